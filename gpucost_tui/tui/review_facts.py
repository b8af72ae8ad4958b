"""What the review shows, gathered in a thread from the core: survey, problems, host, seal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost_tui.tui.work import Work

if TYPE_CHECKING:
    from gpucost_tui.campaign.folder import Campaign, Manifest
    from gpucost_tui.campaign.survey import Survey
    from gpucost_tui.protocol.load import Source
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
    """Look at everything that a seal freezes; reports each stage and can be cancelled between them.

    Raises:
        NotACampaign, Differs: Of the core.
        Cancelled: Between two stages.
    """
    work.report("Looking")
    from gpucost_tui.campaign.check import check
    from gpucost_tui.environment.host import host_id, host_record

    campaign = watched(work, folder)
    found = check(campaign)
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
    """
    work.report("Sealing")
    from gpucost_tui.campaign.seal import seal

    manifest, _ = seal(watched(work, folder))
    return manifest.sha256


def watched(work: Work, folder: Path) -> Campaign:
    """Return the campaign so that each stage of a look at it is reported, and can be the last.

    The core asks a campaign for a file when it begins to read it: there lies the border of a stage.
    """
    from gpucost_tui.campaign.folder import Campaign

    class Watched(Campaign):
        def draft(self) -> tuple[Source, Protocol]:
            work.report("Reading protocol and model")
            return super().draft()

        def corpus_file(self, deliverable: str) -> Path:
            work.report(f"Reading corpus '{deliverable}'")
            return super().corpus_file(deliverable)

        def reference_file(self, deliverable: str) -> Path:
            work.report(f"Reading the reference of '{deliverable}'")
            return super().reference_file(deliverable)

        @property
        def tuning_file(self) -> Path:
            work.report("Reading the tuning data")
            return super().tuning_file

    return Watched.open(folder)
