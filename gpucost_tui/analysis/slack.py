"""Settled differences in duration between configurations: slack before the deadline (R40)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gpucost_tui.analysis.causes import could_settle
from gpucost_tui.analysis.durations import Durations
from gpucost_tui.analysis.settled import Rule, Settlement, settle_series

Side = Literal["a", "b"]


@dataclass(frozen=True, slots=True)
class PairOfConfigurations:
    """Two configurations over everything they have in common.

    ``faster`` is told only where every comparison (deliverable, seed, hosts) settles it alike.
    ``could_settle`` holds sentences on the comparisons that are not settled.
    """

    a: str
    b: str
    faster: Side | None
    settlements: tuple[Settlement, ...]
    could_settle: tuple[str, ...]


def pairs_of_configurations(
    groups: Sequence[Durations], names: Sequence[str], planned: int, rule: Rule, factor: float
) -> dict[tuple[str, str], PairOfConfigurations]:
    """Compare every two configurations (R26), each deliverable and seed apart.

    Two configurations that were measured on the same hosts are compared host by host; where no
    host is common to both (other hardware), every host of the one with every host of the other.
    Holm's correction is over all pairs compared for one deliverable and seed.

    Args:
        groups: Durations by configuration.
        names: The configurations, in the plan's order.
        planned: Planned durations of each.
        rule: The sealed rule.
        factor: The sealed factor of the range rule.
    """
    found: dict[tuple[str, str], list[tuple[Durations, Durations, Settlement]]] = {}
    lacking: set[str] = set()
    rounds = max([planned, *(n or 0 for group in groups for n in group.rounds)])
    for work in dict.fromkeys((group.deliverable, group.seed) for group in groups):
        here = [g for g in groups if (g.deliverable, g.seed) == work and g.variant in names]
        lacking |= set(names) - {group.variant for group in here}
        members = {f"{group.variant} on {group.host}": group for group in here}
        pairs = [
            (left, right)
            for a, b in itertools.combinations(names, 2)
            for left, right in _sides(members, a, b)
        ]
        settled = settle_series(
            {name: group.durations_s for name, group in members.items()},
            planned=planned,
            rounds=rounds,
            rule=rule,
            factor=factor,
            pairs=pairs,
        )
        for (left, right), settlement in settled.items():
            one, other = members[left], members[right]
            found.setdefault((one.variant, other.variant), []).append((one, other, settlement))
    return {
        (a, b): _joined(a, b, found.get((a, b), []), bool({a, b} & lacking), rule, rounds)
        for a, b in itertools.combinations(names, 2)
    }


def _sides(members: dict[str, Durations], a: str, b: str) -> Iterator[tuple[str, str]]:
    of_a = {group.host: name for name, group in members.items() if group.variant == a}
    of_b = {group.host: name for name, group in members.items() if group.variant == b}
    common = [host for host in of_a if host in of_b]
    if common:
        yield from ((of_a[host], of_b[host]) for host in common)
    else:
        yield from itertools.product(of_a.values(), of_b.values())


def _joined(
    a: str,
    b: str,
    compared: Sequence[tuple[Durations, Durations, Settlement]],
    lacking: bool,
    rule: Rule,
    rounds: int,
) -> PairOfConfigurations:
    verdicts = {settlement.faster for *_, settlement in compared}
    alike = len(verdicts) == 1 and not lacking
    advice = [
        sentence
        for one, other, settlement in compared
        if not settlement.settled
        for sentence in could_settle(one, other, settlement, rule, rounds)
    ]
    if lacking:
        advice.append("A deliverable or seed lacks durations of one of them.")
    if verdicts >= {"a", "b"}:
        advice.append("One is faster for some of the work, the other for the rest.")
    return PairOfConfigurations(
        a,
        b,
        verdicts.pop() if alike else None,
        tuple(settlement for *_, settlement in compared),
        tuple(dict.fromkeys(advice)),
    )
