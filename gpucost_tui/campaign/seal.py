"""Sealing: the protocol and the fingerprints of all inputs become the manifest (R1)."""

from __future__ import annotations

from gpucost_tui.campaign.check import look_at_room
from gpucost_tui.campaign.edit import alone
from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.lock import RunnerLock
from gpucost_tui.campaign.manifest import manifest_of
from gpucost_tui.campaign.survey import CorpusSurvey, Survey, survey
from gpucost_tui.campaign.unchanged import ensure_unchanged, model_folder
from gpucost_tui.errors import Differs, EnvironmentLacks, GpucostError, Refused
from gpucost_tui.files import canonical_json, replacing, write_atomic
from gpucost_tui.text import clean, count
from gpucost_tui.watch import NOBODY, Watch

__all__ = ["ensure_unchanged", "model_folder", "seal"]


def seal(
    campaign: Campaign, watch: Watch = NOBODY, *, take_over: bool = False
) -> tuple[Manifest, Survey]:
    """Freeze a campaign. A seal that was cut off is done again, from the campaign as it stands.

    Args:
        campaign: A draft.
        watch: Is told of each stage of the survey and may end it; from "Writing the seal" on the
            seal is written to its end.
        take_over: Take a lock that another machine wrote.

    Raises:
        Refused: It is sealed already, or problems block it; the first is named.
        Differs: The journal is damaged, or the protocol was changed meanwhile.
        EnvironmentLacks: The disk refuses; the campaign is not sealed.
    """
    with RunnerLock(campaign.folder, "seal", take_over=take_over):
        if (sealed := campaign.sealed_hash()) is not None:
            raise Refused(
                f"the campaign is sealed already ({sealed})",
                where=campaign.folder.name,
                fix="A change makes a new campaign: `gpucost new NEWDIR --from "
                f"{clean(campaign.folder)}` (R1)",
            )
        found = survey(campaign, watch)
        look_at_room(found, campaign)  # a disk that takes nothing says so itself, below
        if found.blocking:
            first = found.blocking[0]
            others = len(found.blocking) - 1
            more = f" ({count(others, 'more problem')}: see `gpucost check`)" if others else ""
            raise Refused(first.what + more, where=first.where, fix=first.fix)
        watch.stage("Writing the seal")
        return _freeze(campaign, found), found


def _freeze(campaign: Campaign, found: Survey) -> Manifest:
    data = canonical_json(manifest_of(found))
    try:
        for one in found.corpora.values():
            _write_derived(campaign, one)
        with alone(campaign):
            _still_as_surveyed(campaign, found)
            write_atomic(campaign.manifest_file, data)
            _remember(campaign, found)
            return _sealed(campaign, data)
    except OSError as error:
        raise EnvironmentLacks(
            f"the seal can't be written ({error.strerror or error})",
            where=campaign.folder.name,
            fix="Make space or correct the permissions; the campaign is not sealed",
        ) from None


def _still_as_surveyed(campaign: Campaign, found: Survey) -> None:
    """Refuse where somebody has edited the protocol since it was surveyed: what they see there is
    what they believe to be sealed."""
    try:
        now = campaign.draft()[0].text
    except GpucostError:
        now = None
    if found.source is None or now != found.source.text:
        raise Differs(
            "the protocol was changed while it was being sealed; nothing is sealed",
            where=campaign.protocol_file.name,
            fix="Look at it again, then repeat `gpucost seal`",
        )


def _sealed(campaign: Campaign, data: bytes) -> Manifest:
    campaign.__dict__.pop("manifest", None)  # what a cut-off seal had left
    manifest = Manifest(data)
    # From this line on the campaign is sealed.
    Journal(campaign.folder).append(
        "sealed", {"manifest": manifest.sha256, "campaign": manifest.protocol.name}
    )
    return manifest


def _remember(campaign: Campaign, found: Survey) -> None:
    """Keep where the model lies here, and what its download took before the seal (R14)."""
    assert found.model is not None  # noqa: S101 - nothing blocks
    folder, took = str(found.model.folder.resolve()), found.model.download_s
    known = campaign.sources().get("model", {})
    if took is None and known.get("folder") == folder:
        took = known.get("download_s")
    campaign.remember_model(folder=folder, download_s=took)


def _write_derived(campaign: Campaign, one: CorpusSurvey) -> None:
    assert one.strata is not None  # noqa: S101 - no blocking problem, so tokens were counted
    with replacing(campaign.strata_file(one.deliverable)) as scratch:
        one.strata.write_parquet(scratch)
    if one.answers is None:
        return
    campaign.reference_file(one.deliverable).parent.mkdir(exist_ok=True)
    lines = (
        canonical_json({"id": key, "answer": answer}) + b"\n"
        for key, answer in one.answers.select("id", "answer").iter_rows()
    )
    write_atomic(campaign.reference_file(one.deliverable), b"".join(lines))
