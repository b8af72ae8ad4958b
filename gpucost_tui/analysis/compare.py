"""Compares the variants of a table: durations, pairs, and what could settle the unsettled ones.

Deliverables, seeds and hosts are compared apart. A pair is judged with the other pairs of its
series (Holm's correction, see :mod:`gpucost_tui.analysis.settled`). Where there are several hosts,
the same variant on two hosts is a pair of a ``hardware`` series, judged like any other; a constant
bias of one host can't be told from a difference, and the pair says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from gpucost_tui.analysis.causes import could_settle, one_host, rounds_to_add
from gpucost_tui.analysis.durations import Durations, durations, highest_round, with_variant
from gpucost_tui.analysis.settled import (
    DEFAULT_FACTOR,
    Rule,
    Settlement,
    chosen_rule,
    settle_series,
)
from gpucost_tui.protocol.model import Protocol

_BIAS = (
    " A constant bias of one host, such as its cooling or its neighbours, can't be told from a "
    "difference between the devices."
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups of durations and what they settle. ``host`` is ``None`` between two hosts.

    ``could_settle`` holds sentences: on more rounds, then the causes of spread; empty where the
    pair is settled (between hosts: what a settled difference does not show). ``more_rounds`` is how
    many could settle it within the sealed maximum, judging by the spread; ``None``: no number is
    expected to.
    """

    a: Durations
    b: Durations
    between_hosts: bool
    settlement: Settlement
    could_settle: tuple[str, ...] = ()
    more_rounds: int | None = None

    @property
    def names(self) -> tuple[str, str]:
        if not self.between_hosts:
            return self.a.variant, self.b.variant
        return _on_host(self.a), _on_host(self.b)

    def to_json(self) -> dict[str, Any]:
        """Return the keys of ``compare``'s ``pairs``."""
        a, b = self.names
        place = {"deliverable": self.a.deliverable, "seed": self.a.seed}
        host = None if self.between_hosts else self.a.host
        return {
            "a": a,
            "b": b,
            **place,
            "host": host,
            **self.settlement.to_json(a, b),
            "hosts": [self.a.host, self.b.host],
            "could_settle": list(self.could_settle),
            "more_rounds": self.more_rounds,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All durations and pairs of a table.

    ``before`` holds the pairs as they stood after the originally planned rounds, where whole
    rounds were added (R26: the result before and after are both shown); else it is ``None``.
    """

    variants: tuple[Durations, ...]
    pairs: tuple[Pair, ...]
    planned: int
    rounds: int
    rule: str
    factor: float
    before: tuple[Pair, ...] | None = None
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``compare --json``."""
        before = None if self.before is None else [pair.to_json() for pair in self.before]
        return {
            "variants": [group.to_json() for group in self.variants],
            "pairs": [pair.to_json() for pair in self.pairs],
            "planned_rounds": self.planned,
            "rounds": self.rounds,
            "rule": self.rule,
            "settled_factor": self.factor,
            "before_more_rounds": before,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Reading:
    """How the durations of a campaign are read: what its seal says, or a table's defaults.

    ``planned`` and ``rounds`` default to the highest round. ``series`` maps a series to its
    variants, default: the table's ``series`` column, one series where that is empty.
    ``hardware`` names the variants compared between hosts; default: all.
    """

    rule: Rule = "auto"
    factor: float = DEFAULT_FACTOR
    planned: int | None = None
    rounds: int | None = None
    max_rounds: int | None = None
    series: Mapping[str, Sequence[str]] | None = None
    hardware: Sequence[str] | None = None


def sealed_reading(protocol: Protocol, rounds: int) -> Reading:
    """Return how a sealed protocol wants its durations read.

    Args:
        protocol: The sealed protocol.
        rounds: Rounds by now, extensions included.
    """
    measurement = protocol.measurement
    between_hosts = [series for series in protocol.series if series.factor == "hardware"]
    return Reading(
        rule=measurement.settled_rule,
        factor=measurement.settled_factor,
        planned=measurement.rounds,
        rounds=rounds,
        max_rounds=measurement.max_rounds,
        series={s.name: s.variants for s in protocol.series if s not in between_hosts},
        hardware=tuple({name: None for s in between_hosts for name in s.variants}),
    )


def compare(frame: pl.DataFrame, reading: Reading | None = None) -> Comparison:
    """Compare the variants of a raw table.

    Args:
        frame: Rows with the raw table's schema, of one manifest; several hosts are told apart.
        reading: The sealed rule, factor and plan; default: those of a table without a seal.
    """
    how = reading or Reading()
    named = with_variant(frame)
    highest = highest_round(named)
    planned = highest if how.planned is None else how.planned
    rounds = max(planned, highest if how.rounds is None else how.rounds)
    groups = durations(named)
    before = None
    if rounds > planned > 0 and highest > planned:
        early = named.filter(pl.col("round").is_null() | (pl.col("round") <= planned))
        before = tuple(_pairs(durations(early), how, planned, planned))
    return Comparison(
        variants=tuple(groups),
        pairs=tuple(_pairs(groups, how, planned, rounds)),
        planned=planned,
        rounds=rounds,
        rule=chosen_rule(how.rule, rounds),
        factor=how.factor,
        before=before,
        notes=(*_notes(groups, planned), *one_host(groups)),
    )


def _pairs(groups: Sequence[Durations], how: Reading, planned: int, rounds: int) -> Iterable[Pair]:
    found: dict[tuple[str, str], Pair] = {}
    for place in dict.fromkeys(group.place for group in groups):
        here = {group.variant: group for group in groups if group.place == place}
        for variants in _series(groups, how).values():
            members = {name: here[name] for name in variants if name in here}
            for (a, b), pair in _judged(members, None, how, planned, rounds, False).items():
                key = (f"{place} {a}", f"{place} {b}")
                # A pair of two series is settled only where both series settle it.
                if key not in found or not pair.settlement.settled:
                    found[key] = pair
    yield from found.values()
    yield from _between_hosts(groups, how, planned, rounds)


def _series(groups: Sequence[Durations], how: Reading) -> dict[str, list[str]]:
    if how.series is not None:
        return {name: list(variants) for name, variants in how.series.items()}
    series: dict[str, list[str]] = {}
    for group in groups:
        for name in group.series or ("",):
            members = series.setdefault(name, [])
            if group.variant not in members:
                members.append(group.variant)
    return series


def _between_hosts(
    groups: Sequence[Durations], how: Reading, planned: int, rounds: int
) -> Iterable[Pair]:
    for deliverable, seed in dict.fromkeys((g.deliverable, g.seed) for g in groups):
        members = {
            _on_host(group): group
            for group in groups
            if (group.deliverable, group.seed) == (deliverable, seed)
            and group.host is not None
            and (how.hardware is None or group.variant in how.hardware)
        }
        pairs = [
            (a, b)
            for a, b in itertools.combinations(members, 2)
            if members[a].variant == members[b].variant
        ]
        yield from _judged(members, pairs, how, planned, rounds, True).values()


def _judged(
    members: Mapping[str, Durations],
    pairs: Sequence[tuple[str, str]] | None,
    how: Reading,
    planned: int,
    rounds: int,
    between_hosts: bool,
) -> dict[tuple[str, str], Pair]:
    settled = settle_series(
        {name: group.durations_s for name, group in members.items()},
        planned=planned,
        rounds=rounds,
        rule=how.rule,
        factor=how.factor,
        pairs=pairs,
    )
    made = {}
    for (a, b), verdict in settled.items():
        advice: tuple[str, ...] = ()
        more = None
        if not verdict.settled:
            known = (members[a], members[b], verdict, how.rule, rounds, how.max_rounds)
            advice, more = could_settle(*known), rounds_to_add(*known)
        elif between_hosts:
            advice = (_BIAS.strip(),)
        made[a, b] = Pair(members[a], members[b], between_hosts, verdict, advice, more)
    return made


def _on_host(group: Durations) -> str:
    return f"{group.variant} on {group.host}"


def _notes(groups: Sequence[Durations], planned: int) -> Iterable[str]:
    excluded = sum(group.excluded for group in groups)
    if excluded:
        yield (
            f"{excluded} excluded passes are counted and give no duration."
            if excluded > 1
            else "1 excluded pass is counted and gives no duration."
        )
    unmeasured = sum(group.succeeded - len(group.durations_s) for group in groups)
    if unmeasured:
        yield f"{unmeasured} of the completed passes have no duration in pass_s."
    if any(len(set(group.rounds) - {None}) < len(group.rounds) for group in groups) and planned:
        yield "A round has more than one duration of a variant, or none is written for it."
