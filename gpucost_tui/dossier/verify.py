"""Recomputes a campaign from its files and names every difference (R41).

Nothing is written, no runner is asked, no torch is loaded; the model need not be here. What the
files can't prove is said too: whoever rewrites all of them consistently, journal and head included,
is noticed only by a head that was kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.fold import State
from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.lock import holder
from gpucost_tui.dossier.agreed import check_commitments, check_exclusions
from gpucost_tui.dossier.chain import Chain, fold_all, note_torn, read_chain
from gpucost_tui.dossier.concluded import Place, check_conclusion
from gpucost_tui.dossier.conduct import (
    attempt_folders,
    check_folders,
    check_hosts,
    check_order,
    check_rows,
    note_unknown,
)
from gpucost_tui.dossier.findings import Findings
from gpucost_tui.dossier.inputs import check_inputs, check_manifest
from gpucost_tui.dossier.verdicts import check_verdicts
from gpucost_tui.dossier.views import check_views, read_views
from gpucost_tui.errors import EnvironmentLacks, GpucostError
from gpucost_tui.text import clean

#: Said whenever no head from elsewhere was given.
REWRITE = (
    "A consistent rewrite of all files, journal and head included, can't be excluded from the "
    "files alone: compare with a head that was kept elsewhere (--head HASH)."
)


@dataclass(slots=True)
class Subject:
    """One campaign under verification, as far as it could be read."""

    campaign: Campaign
    name: str
    chain: Chain
    state: State
    manifest: Manifest | None
    findings: Findings
    live: bool = False
    records: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Verification:
    """The answer: ``ok`` where something was recorded and nothing differs."""

    findings: Findings
    subjects: tuple[Subject, ...]
    sealed: bool

    @property
    def ok(self) -> bool:
        return self.sealed and not self.findings.differences

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``verify --json``."""
        heads = [subject.chain.head for subject in self.subjects]
        sealed = [s.manifest.sha256 if s.manifest else s.state.manifest for s in self.subjects]
        return {
            "ok": self.ok,
            "head": heads[0],
            "manifest": sealed[0],
            "heads": heads,
            "checked": dict(self.findings.checked),
            "differences": [one.to_json() for one in self.findings.differences],
            "not_checkable": self.findings.not_checkable,
            "notes": self.findings.notes,
        }


def verify(
    folders: Sequence[Path],
    *,
    heads: Sequence[str] = (),
    names: Sequence[str] | None = None,
    parents: Sequence[Path] = (),
    resting: bool = False,
) -> Verification:
    """Verify one campaign, or several with one manifest from several hosts.

    Args:
        folders: The campaigns' folders.
        heads: Hashes of journal heads that were kept elsewhere.
        names: How the campaigns are called; by default as their folders.
        parents: Where parent campaigns may lie, beside the places where they were.
        resting: Whoever calls holds the runner's lock: nothing is at work, tables may not lag.

    Raises:
        NotACampaign: A folder is missing or holds no campaign.
        EnvironmentLacks: A file can't be read.
    """
    findings = Findings()
    called = [str(folder) for folder in folders] if names is None else names
    several = len(folders) > 1
    subjects = tuple(
        _read(folder, name, f"{number} ({clean(folder.name, limit=60)}): " * several, resting)
        for number, (folder, name) in enumerate(zip(folders, called, strict=True), 1)
    )
    _one_manifest(subjects, findings)
    _conclude(subjects, findings, parents)
    for subject in subjects:
        findings.merge(subject.findings)
    sealed = all(s.chain.exists for s in subjects)
    _heads(subjects, heads, findings)
    return Verification(findings, subjects, sealed)


def _read(folder: Path, name: str, prefix: str, resting: bool) -> Subject:
    try:
        return _one(folder, name, prefix, resting)
    except OSError as error:
        raise EnvironmentLacks(
            f"it can't be read ({error.strerror or error})",
            where=clean(error.filename or folder, limit=200),
            fix="Correct the permissions, or verify a copy",
        ) from None


def _one(folder: Path, name: str, prefix: str, resting: bool) -> Subject:
    campaign = Campaign.open(folder)
    findings = Findings(prefix=prefix)
    runner = holder(folder)
    live = runner is not None and runner.here and not resting
    # Before the journal, so that they are never newer than it.
    views, folders = read_views(folder), attempt_folders(campaign)
    chain = read_chain(folder, findings, live=live)
    state = fold_all(chain.events, findings)
    subject = Subject(campaign, name, chain, state, None, findings, live)
    with _checking(findings):
        note_torn(folder, chain, state, findings)
    if _draft(subject):
        return subject
    manifest = subject.manifest = check_manifest(campaign, state, findings)
    with _checking(findings):
        subject.records = check_hosts(campaign, chain.events, state, findings)
    with _checking(findings):
        check_folders(folders, state, findings)
    with _checking(findings):
        check_views(views, chain.events, state, findings, live=live, resting=resting)
    if manifest is None:
        findings.cannot("without the manifest: plan, inputs, verdicts, comparison and decision")
    else:
        _against_the_seal(subject, manifest)
    note_unknown(chain.events, findings)
    _ends(subject)
    return subject


def _against_the_seal(subject: Subject, manifest: Manifest) -> None:
    campaign, findings, state = subject.campaign, subject.findings, subject.state
    events, protocol = subject.chain.events, manifest.protocol
    at_hand: frozenset[str] = frozenset()
    with _checking(findings):
        at_hand = check_inputs(campaign, manifest, findings)
    with _checking(findings):
        check_order(events, manifest, findings)
    with _checking(findings):
        check_rows(manifest, events, state, findings)
    with _checking(findings):
        check_verdicts(campaign, manifest, events, state, at_hand, findings)
    with _checking(findings):
        check_exclusions(protocol, state, findings)
    with _checking(findings):
        check_commitments(campaign, events, state, subject.records, findings)


@contextmanager
def _checking(findings: Findings) -> Iterator[None]:
    """Turn what a forged value does to a check into a difference: no check ends in silence."""
    try:
        yield
    except (
        GpucostError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as error:
        first = next(iter(str(error).splitlines()), "")
        found = clean(f"{type(error).__name__}: {first}", limit=200)
        findings.differs("journal.jsonl", "values of the kinds that the program writes", found)


def _draft(subject: Subject) -> bool:
    """A folder where nothing was sealed; traces of a record make it more than a draft."""
    campaign, findings = subject.campaign, subject.findings
    if subject.chain.exists:
        return False
    names = ("raw_results.csv", "raw_results.parquet", "hosts", "attempts", "prices", "report")
    traces = [name for name in names if (campaign.folder / name).exists()]
    if traces:
        findings.differs("journal.jsonl", f"the journal to {', '.join(traces)}", "no file")
        subject.chain.exists = True
        return False
    findings.cannot("the campaign is not sealed: nothing is recorded that could be verified")
    return True


def _ends(subject: Subject) -> None:
    state, findings = subject.state, subject.findings
    unfinished = ", ".join(str(attempt.number) for attempt in state.unfinished())
    if subject.live:
        findings.note("A runner is at work: what is verified is the record as it stood just now.")
    elif unfinished:
        findings.note(
            f"attempt {unfinished} has no end: its runner was lost; the next run records it as "
            "interrupted"
        )
    elif state.running:
        findings.note("The last run has no recorded end: its runner was lost.")


def _conclude(subjects: Sequence[Subject], findings: Findings, parents: Sequence[Path]) -> None:
    """Recompute comparison, decision and notes, where every campaign can be read at all."""
    if any(subject.manifest is None for subject in subjects):
        return
    places = [Place(s.campaign.folder, s.chain, s.findings) for s in subjects]
    with _checking(findings):
        check_conclusion(places, findings, parents)


def _one_manifest(subjects: Sequence[Subject], findings: Findings) -> None:
    known = [s for s in subjects if s.manifest is not None]
    for subject in known[1:]:
        first, other = known[0].manifest, subject.manifest
        if first is not None and other is not None and first.sha256 != other.sha256:
            findings.compare(
                f"{subject.findings.prefix}manifest.json of one comparison",
                first.sha256,
                other.sha256,
            )


def _heads(subjects: Sequence[Subject], heads: Sequence[str], findings: Findings) -> None:
    if not heads:
        findings.cannot(REWRITE)
    for given in heads:
        wanted = given.strip().lower()
        found = [(s, s.chain.upto(wanted)) for s in subjects]
        there = next(((s, events) for s, events in found if events), None)
        if there is None:
            ends = ", ".join(s.chain.head or "no line" for s in subjects)
            findings.differs("journal.head (--head)", wanted, f"no such line; the head is {ends}")
            continue
        subject, events = there
        later = len(subject.chain.events) - len(events)
        if later:
            findings.note(
                f"The head that was kept names line {events[-1].seq}: that record stands as it "
                f"was, and {later} more lines were added after it."
            )
    lacking = len(subjects) - len(set(heads))
    if heads and lacking > 0:
        findings.cannot(f"{REWRITE} ({lacking} of {len(subjects)} campaigns without --head)")
