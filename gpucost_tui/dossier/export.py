"""Packs campaigns into one ZIP that a stranger can verify (R41).

The same content gives the same bytes: names sorted, times and permissions fixed, nothing compressed
(what compresses differs between machines; the predictions are compressed already). The snapshot is
consistent: no runner may be at work, the files are verified before they are packed, and a journal
that grows meanwhile is packed again from its start.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from gpucost_tui.analysis.parents import parents_of
from gpucost_tui.analysis.together import read_together
from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.lock import RunnerLock
from gpucost_tui.campaign.table import write_tables
from gpucost_tui.dossier.archive import CAMPAIGNS, PARENTS
from gpucost_tui.dossier.inputs import ELSEWHERE
from gpucost_tui.dossier.readme import README, SUMS, readme, referred_to
from gpucost_tui.dossier.verify import Verification, verify
from gpucost_tui.dossier.views import STALE
from gpucost_tui.errors import Differs, EnvironmentLacks, GpucostError, Refused, WrongUse
from gpucost_tui.files import canonical_json, replacing, sha256_bytes, sha256_file
from gpucost_tui.text import clean, count

_EPOCH = (1980, 1, 1, 0, 0, 0)
_TRIES = 3
_UNPLAIN = re.compile(r"[^A-Za-z0-9_-]")
#: What a dossier takes from a campaign's folder, in words of :meth:`pathlib.Path.glob`. Not the
#: runner's files (lock, progress, control, logs), nor ``sources.json``: they are of this machine.
_TAKEN = (
    "manifest.json",
    "journal.jsonl",
    "journal.head",
    "journal.torn-*",
    "corpus/*.jsonl",
    "corpus/*.strata.parquet",
    f"corpus/*{ELSEWHERE}",
    "reference/*.jsonl",
    "tuning/tuning.jsonl",
    "hosts/*.json",
    "prices/*.json",
    "attempts/*/predictions.parquet",
    "attempts/*/verdict.json",
    "attempts/*/failure.txt",
    "raw_results.csv",
    "raw_results.parquet",
    "device_memory.csv",
    "report/decision.md",
    "report/report.html",
)


@dataclass(frozen=True, slots=True)
class Exported:
    """What was exported. ``unrecorded`` are campaigns whose journal could not take the event."""

    path: Path
    sha256: str
    bytes: int
    files: int
    seconds: float
    heads: tuple[str, ...]
    manifest: str
    referred: tuple[str, ...]
    verification: Verification
    unrecorded: tuple[str, ...] = ()


def export(
    folders: Sequence[Path],
    target: Path,
    *,
    anyway: bool = False,
    parents: Sequence[Path] = (),
    take_over: bool = False,
) -> Exported:
    """Write a dossier of one campaign, or of several with one manifest; all or nothing.

    Args:
        folders: The campaigns' folders.
        target: The ZIP to write; replaced where it exists.
        anyway: Pack campaigns that differ from their record too: the evidence of it.
        parents: Where parent campaigns may lie; those that are found are packed too.
        take_over: Take a lock that another machine wrote.

    Raises:
        NotACampaign: A folder is missing or holds no campaign.
        Refused: Not sealed; a runner is at work; the journal does not rest; there are differences.
        WrongUse: The target lies in a campaign, or is a folder; a campaign is named twice.
        EnvironmentLacks: The target can't be written.
    """
    began = time.perf_counter()
    campaigns = [Campaign.open(folder) for folder in folders]
    _check(campaigns, target)
    with ExitStack() as locks:
        for campaign in campaigns:
            _lock(locks, campaign, take_over=take_over)
        before, answer, made = _packed(campaigns, target, anyway, parents)
        seconds = time.perf_counter() - began
        unrecorded = tuple(_record(campaign, seconds) for campaign in campaigns)
    return Exported(
        path=target,
        sha256=sha256_file(target),
        bytes=target.stat().st_size,
        files=made.files,
        seconds=seconds,
        heads=before,
        manifest=campaigns[0].manifest.sha256,
        referred=made.referred,
        verification=answer,
        unrecorded=tuple(name for name in unrecorded if name),
    )


def _check(campaigns: Sequence[Campaign], target: Path) -> None:
    places = [campaign.folder.resolve() for campaign in campaigns]
    if len(set(places)) != len(places):
        raise WrongUse("a campaign is named twice", fix="Name each folder once")
    if target.is_dir():
        raise WrongUse(
            f"'{clean(target, limit=200)}' is a folder", fix="Name the ZIP file to write"
        )
    inside = next((p for p in places if target.resolve().is_relative_to(p)), None)
    if inside is not None:
        raise WrongUse(
            "the dossier would lie in the campaign that it holds",
            where=clean(target, limit=200),
            fix="Name a place outside of it",
        )
    for campaign in campaigns:
        manifest = campaign.manifest  # refuses what is not sealed
        if manifest.sha256 != campaigns[0].manifest.sha256:
            raise Refused(
                f"the campaigns differ in their manifest: {campaigns[0].manifest.sha256} and "
                f"{manifest.sha256}",
                where=clean(campaign.folder),
                fix="Export campaigns of one manifest together, others apart",
            )


def _lock(locks: ExitStack, campaign: Campaign, *, take_over: bool) -> None:
    """Keep runners out for the time of packing, where the folder can be written."""
    try:
        locks.enter_context(RunnerLock(campaign.folder, "export", take_over=take_over))
    except EnvironmentLacks:
        return  # a read-only copy: no runner can be at work in it
    except Refused as error:
        raise Refused(
            f"{error.what}; a dossier is a snapshot, and needs the record at rest",
            where=error.where or clean(campaign.folder),
            fix=error.fix,
        ) from None


def _head(campaign: Campaign) -> str:
    """Return the journal's head.

    Raises:
        Differs: The journal is damaged.
    """
    events = campaign.events()
    return events[-1].hash if events else ""


def _verified(campaigns: Sequence[Campaign], anyway: bool, parents: Sequence[Path]) -> Verification:
    folders = [campaign.folder for campaign in campaigns]
    answer = verify(folders, parents=parents, resting=True)
    found = answer.findings.differences
    if found and all(one.found.endswith(STALE) for one in found):
        # Tables that only lag behind the journal are rebuilt, as a run does.
        for campaign in campaigns:
            with contextlib.suppress(OSError):
                write_tables(campaign.folder, fold(campaign.events()), final=True)
        answer = verify(folders, parents=parents, resting=True)
        found = answer.findings.differences
    if found and not anyway:
        more = f" ({count(len(found) - 1, 'more difference')})" if len(found) > 1 else ""
        raise Refused(
            f"the campaign differs from its record: {found[0].found} instead of "
            f"{found[0].expected}{more}",
            where=found[0].where,
            fix="`gpucost verify` shows all of it; --anyway packs it as it is",
        )
    return answer


def _record(campaign: Campaign, seconds: float) -> str:
    """Add the event; return the campaign's name where its journal takes none."""
    try:
        Journal(campaign.folder).append("exported", {"seconds": round(seconds, 3)})
    except (EnvironmentLacks, Differs):
        return clean(campaign.folder.name)
    return ""


def _packed(
    campaigns: Sequence[Campaign], target: Path, anyway: bool, parents: Sequence[Path]
) -> tuple[tuple[str, ...], Verification, _Made]:
    """Write the ZIP over a record that rests meanwhile; return its heads and what was verified."""
    try:
        with replacing(target) as scratch:
            for _ in range(_TRIES):
                before = tuple(_head(campaign) for campaign in campaigns)
                answer = _verified(campaigns, anyway, parents)
                made = _pack(campaigns, _parents_of(campaigns, parents), scratch)
                if tuple(_head(campaign) for campaign in campaigns) == before:
                    return before, answer, made
            raise Refused(
                "the journal grew while it was packed",
                where=clean(campaigns[0].folder),
                fix="Export again when nothing else writes to the campaign",
            )
    except OSError as error:
        raise EnvironmentLacks(
            f"the dossier can't be written ({error.strerror or error})",
            where=clean(target, limit=200),
            fix="Make space, or name a place where you may write",
        ) from None


# -- the ZIP -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Made:
    files: int
    referred: tuple[str, ...]


def _pack(campaigns: Sequence[Campaign], parents: Sequence[Campaign], target: Path) -> _Made:
    referred: list[str] = []
    with zipfile.ZipFile(target, "w") as archive:
        listed = _write(archive, campaigns, parents, referred)
    return _Made(len(listed), tuple(referred))


def _write(
    archive: zipfile.ZipFile,
    campaigns: Sequence[Campaign],
    parents: Sequence[Campaign],
    referred: list[str],
) -> dict[str, str]:
    names, earlier = _names(campaigns), _names(parents)
    folders = [campaign.folder for campaign in campaigns]
    files: dict[str, Path | bytes] = {README: readme(folders, names, earlier).encode()}
    for place, members, called in ((CAMPAIGNS, campaigns, names), (PARENTS, parents, earlier)):
        for campaign, name in zip(members, called, strict=True):
            for inner, source in _files(campaign, referred):
                files[f"{place}/{name}/{inner}"] = source
    listed = {name: _digest(source) for name, source in files.items()}
    lines = [f"{digest}  {name}\n" for name, digest in sorted(listed.items())]
    for name, source in ((SUMS, "".join(lines).encode()), *files.items()):
        _put(archive, name, source)
    return listed


def _parents_of(campaigns: Sequence[Campaign], places: Sequence[Path]) -> list[Campaign]:
    """Return the parent campaigns that can be found, each once."""
    try:
        together = read_together([campaign.folder for campaign in campaigns])
        found = parents_of(together, places)
    except GpucostError:
        return []  # what is wrong was named by the verification
    members = [m for one in found if one.together for m in one.together.members]
    return list({m.campaign.folder.resolve(): m.campaign for m in members}.values())


def _names(campaigns: Sequence[Campaign]) -> list[str]:
    return [
        f"{number:02d}-{_UNPLAIN.sub('-', campaign.manifest.protocol.name)[:60]}"
        for number, campaign in enumerate(campaigns, 1)
    ]


def _files(campaign: Campaign, referred: list[str]) -> Iterator[tuple[str, Path | bytes]]:
    """Yield the files of a campaign by name, with their paths or their content."""
    found = {
        path.relative_to(campaign.folder).as_posix(): path
        for pattern in _TAKEN
        for path in campaign.folder.glob(pattern)
        if path.is_file()
    }
    content: dict[str, Path | bytes] = {**found}
    for deliverable in (d.name for d in campaign.manifest.protocol.deliverables):
        path = campaign.corpus_file(deliverable)
        inner = f"corpus/{path.name}"
        if referred_to(path) and not (path.is_file() and not path.is_symlink()):
            content.pop(inner, None)
            content[inner + ELSEWHERE] = _reference(campaign, deliverable)
            referred.append(inner)
    if campaign.protocol_file.is_file() and not _names_a_place(campaign):
        content["protocol.toml"] = campaign.protocol_file
    yield from sorted(content.items())


def _reference(campaign: Campaign, deliverable: str) -> bytes:
    """Return what stands in for a corpus that is not packed: its fingerprint and size."""
    sealed = campaign.manifest.corpus(deliverable)
    path = campaign.corpus_file(deliverable)
    there = path.stat().st_size if path.is_file() else None
    return canonical_json(
        {"entries": sealed["entries"], "sha256": sealed["sha256"], "bytes": there}
    )


def _names_a_place(campaign: Campaign) -> bool:
    """Whether the editable protocol names a folder of this machine; the manifest has the rest."""
    try:
        source = campaign.draft()[1].model.source
    except GpucostError:
        return True
    return source not in ("", "demo") and source != campaign.manifest.protocol.model.source


def _digest(source: Path | bytes) -> str:
    return sha256_bytes(source) if isinstance(source, bytes) else sha256_file(source)


def _put(archive: zipfile.ZipFile, name: str, source: Path | bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = 3
    info.external_attr = 0o100644 << 16
    info.file_size = len(source) if isinstance(source, bytes) else source.stat().st_size
    opened = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    with opened as stream, archive.open(info, "w") as into:
        shutil.copyfileobj(stream, into, 1 << 20)
