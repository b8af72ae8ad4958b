"""Campaigns with one manifest from several hosts, read together and never rewritten into one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.fold import State, fold
from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.hosts import read_hosts
from gpucost_tui.campaign.journal import Event
from gpucost_tui.campaign.table import raw_table
from gpucost_tui.campaign.unchanged import sealed_manifest
from gpucost_tui.errors import Refused, WrongUse
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.text import clean, count, listed

_NAMED = 8


@dataclass(frozen=True)
class Member:
    """One campaign's folder as read. ``shared`` are attempts that another member has too."""

    campaign: Campaign
    manifest: Manifest
    events: list[Event]
    state: State
    hosts: dict[str, dict[str, Any] | None]
    shared: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        return str(self.campaign.folder)

    @property
    def protocol(self) -> Protocol:
        return self.manifest.protocol

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the rounds (without the reference pass), shared ones left out."""
        return [
            attempt.row
            for number, attempt in sorted(self.state.attempts.items())
            if number not in self.shared and attempt.row["round"]
        ]

    def frame(self) -> pl.DataFrame:
        """Return the raw table, shared attempts left out."""
        table = raw_table(self.state)
        return table.filter(~pl.col("attempt").is_in(list(self.shared)))


@dataclass(frozen=True)
class Together:
    """Campaigns with one manifest. ``notes`` are sentences about what was counted once."""

    members: tuple[Member, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def manifest(self) -> Manifest:
        return self.members[0].manifest

    @property
    def protocol(self) -> Protocol:
        return self.manifest.protocol

    @property
    def rounds(self) -> int:
        """Rounds planned by now, extensions included: the most of any host."""
        return max(member.state.rounds(self.protocol) for member in self.members)

    def frame(self) -> pl.DataFrame:
        """Return the rows of all members."""
        return pl.concat([member.frame() for member in self.members])

    def hosts(self) -> dict[str, dict[str, Any] | None]:
        """Return the host records of all members; None where a record is not here."""
        found: dict[str, dict[str, Any] | None] = {}
        for member in self.members:
            for name, record in member.hosts.items():
                found[name] = found.get(name) or record
        return found


def read_together(folders: Sequence[str | Path]) -> Together:
    """Read campaigns that are to be compared or decided together.

    Raises:
        NotACampaign: A folder is none.
        WrongUse: A folder is named twice, or none is.
        Refused: One is not sealed, another manifest, or an earlier copy of another.
        Differs: A journal, manifest or host record is not what was written.
    """
    if not folders:
        raise WrongUse("no campaign is named", fix="Name one or several campaign folders")
    resolved: dict[Path, str | Path] = {}
    for folder in folders:
        place = Path(folder).resolve()
        if place in resolved:
            raise WrongUse(f"'{clean(folder, limit=200)}' is named twice", fix="Name it once")
        resolved[place] = folder
    members = [read_member(Campaign.open(folder)) for folder in folders]
    for other in members[1:]:
        _refuse_other_manifest(members[0], other)
    return joined(members)


def read_member(campaign: Campaign) -> Member:
    """Read one sealed campaign.

    Raises:
        Refused: It is not sealed.
        Differs: Journal, manifest or a host record is not what was written.
    """
    manifest = sealed_manifest(campaign)
    events = campaign.events()
    return Member(campaign, manifest, events, fold(events), read_hosts(campaign))


def joined(members: Sequence[Member]) -> Together:
    """Join members that have one manifest; attempts that stand in two of them count once.

    Raises:
        Refused: A member is an earlier copy of another.
    """
    shared: dict[int, set[int]] = {at: set() for at in range(len(members))}
    notes = []
    for one, other in itertools.combinations(range(len(members)), 2):
        a, b = members[one], members[other]
        common = _common(a.events, b.events)
        if common == min(len(a.events), len(b.events)):
            earlier, later = (a, b) if len(a.events) <= len(b.events) else (b, a)
            raise Refused(
                f"'{clean(earlier.name, limit=120)}' is a copy of '{clean(later.name, limit=120)}'"
                f", or an earlier state of it: the same attempts would count twice",
                fix="Name one of the two",
            )
        begun = {
            int(event.data["attempt"])
            for event in a.events[:common]
            if event.event == "attempt_started"
        }
        if begun:
            shared[other] |= begun
            notes.append(
                f"{count(len(begun), 'attempt')} of {clean(b.name, limit=80)} "
                f"{'stands' if len(begun) == 1 else 'stand'} in {clean(a.name, limit=80)} too (one "
                "folder was copied from the other): counted once."
            )
    kept = tuple(
        Member(m.campaign, m.manifest, m.events, m.state, m.hosts, frozenset(shared[at]))
        for at, m in enumerate(members)
    )
    return Together(kept, tuple(notes))


def _common(one: Sequence[Event], other: Sequence[Event]) -> int:
    """Return how many lines two journals have in common from the first on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a.hash != b.hash), min(len(one), len(other)))


def _refuse_other_manifest(first: Member, other: Member) -> None:
    if first.manifest.sha256 == other.manifest.sha256:
        return
    found = list(manifest_differences(first.manifest.json, other.manifest.json))
    told = "; ".join(found[:_NAMED]) + (
        f" and {len(found) - _NAMED} more" if found[_NAMED:] else ""
    )
    raise Refused(
        f"'{clean(other.name, limit=120)}' has another manifest than "
        f"'{clean(first.name, limit=120)}': {told}",
        fix="Only campaigns with one manifest are read together; compare others one by one",
    )


def manifest_differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Yield in words every leaf in which two manifests differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*one, *other]):
            inner = f"{place}.{key}" if place else str(key)
            yield from manifest_differences(one.get(key), other.get(key), inner)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from manifest_differences(a, b, f"{place}.{at}")
    elif one != other:
        shown = clean(place.removeprefix("protocol."), limit=80)
        yield f"{shown} is {_value(one)} and {_value(other)}"


def _value(value: Any) -> str:
    return "absent" if value is None else listed([str(value)])
