"""What the review shows, gathered in a thread from the core: survey, problems, host, seal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost_tui.tui.work import Work

if TYPE_CHECKING:
    from gpucost_tui.campaign.folder import Manifest
    from gpucost_tui.campaign.survey import Survey
    from gpucost_tui.protocol.model import Protocol


@dataclass(frozen=True, slots=True)
class Review:
    """One look at a campaign. ``protocol`` is the sealed one where there is a seal."""

    folder: Path
    survey: Survey
    protocol: Protocol | None
    manifest: Manifest | None
    host: dict[str, Any]
    host_id: str

    @property
    def blocking(self) -> int:
        return len(self.survey.blocking)


def look(work: Work, folder: Path) -> Review:
    """Look at everything that a seal freezes; tells each stage and how far it is.

    Raises:
        NotACampaign, Differs: Of the core.
        Cancelled: Within a stage.
    """
    work.report("Looking")
    from gpucost_tui.campaign.check import check
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.environment.host import host_id, host_record

    campaign = Campaign.open(folder)
    found = check(campaign, work.watch())
    work.report("Asking the machine")
    host = host_record()
    manifest = None
    if campaign.sealed and not any(p.where == "manifest.json" for p in found.problems):
        manifest = campaign.manifest
    protocol = manifest.protocol if manifest is not None else found.protocol
    return Review(folder, found, protocol, manifest, host, host_id(host))


def seal_it(work: Work, folder: Path) -> str:
    """Seal the campaign; return the manifest's hash.

    Raises:
        Refused: Problems block it, or it is sealed already.
        EnvironmentLacks: The disk refuses.
        Cancelled: Before the seal was written; nothing is sealed.
    """
    work.report("Looking")
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.seal import seal

    manifest, _ = seal(Campaign.open(folder), work.watch())
    return manifest.sha256
