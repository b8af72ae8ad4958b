"""Narrowing the admissible configurations to the answer, with a sentence for every step (R40)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from gpucost_tui.analysis.balance_row import BalanceRow
from gpucost_tui.analysis.slack import PairOfConfigurations
from gpucost_tui.text import clean, listed, money


def by_commitment(left: list[BalanceRow], notes: list[str]) -> list[BalanceRow]:
    """Keep those that commit the least."""
    amounts = {row.configuration: row.rental.committed_usd or Decimal(0) for row in left}
    least = min(amounts.values())
    kept = [row for row in left if amounts[row.configuration] == least]
    if len(left) == 1:
        notes.append(f"{_name(left[0])} is the only admissible configuration.")
    elif len(kept) < len(left):
        more = [
            f"{_name(row)} {money(amounts[row.configuration])}" for row in left if row not in kept
        ]
        notes.append(
            f"Of {len(left)} admissible configurations, {_names(kept)} "
            f"{'commits' if len(kept) == 1 else 'commit'} the least, {money(least)} USD "
            f"({listed(more)})."
        )
    else:
        notes.append(f"All {len(left)} admissible configurations commit {money(least)} USD.")
    return kept


def by_failures(left: list[BalanceRow], notes: list[str]) -> list[BalanceRow]:
    """Keep those with the fewest failed attempts per planned attempt."""
    if len(left) < 2:
        return left
    least = min(row.failure_rate for row in left)
    kept = [row for row in left if row.failure_rate == least]
    if len(kept) < len(left):
        told = [f"{_name(r)} {r.failures} of {r.planned_attempts}" for r in left]
        notes.append(f"Failed attempts per planned attempt tell them apart: {listed(told)}.")
    return kept


def by_slack(
    left: list[BalanceRow],
    pairs: Mapping[tuple[str, str], PairOfConfigurations],
    notes: list[str],
) -> list[BalanceRow]:
    """Keep the one that is settled as faster than all others, else those not settled as slower."""
    if len(left) < 2:
        return left
    names = [row.configuration for row in left]
    slower: dict[str, set[str]] = {name: set() for name in names}
    for (a, b), pair in pairs.items():
        if a in slower and b in slower and pair.faster:
            loser, winner = (b, a) if pair.faster == "a" else (a, b)
            slower[loser].add(winner)
    ahead = [n for n in names if all(n in slower[other] for other in names if other != n)]
    if ahead:
        notes.append(
            f"{clean(ahead[0], limit=80)} is faster by a settled difference, which leaves more "
            "slack before the deadline."
        )
        return [row for row in left if row.configuration == ahead[0]]
    kept = [row for row in left if not slower[row.configuration]]
    kept = kept if len(kept) > 1 else left
    notes.append(
        f"{_names(kept)} are tied: same commitment, same failures, and no settled difference in "
        "duration tells them apart."
    )
    tied = {row.configuration for row in kept}
    for (a, b), pair in pairs.items():
        if {a, b} <= tied:
            both = f"{clean(a, limit=60)} and {clean(b, limit=60)}"
            notes += [f"{both}: {settlement.why}" for settlement in pair.settlements]
            notes += pair.could_settle
    return kept


def blocked(rows: Sequence[BalanceRow], answered: bool) -> list[str]:
    """Say why configurations are not admissible, and what is not known because of it."""
    notes = []
    for row in rows:
        if row.admissible:
            continue
        notes.append(
            f"{_name(row)} is not admissible ({', '.join(row.reasons)}): {'; '.join(row.why)}."
        )
        open_questions = {"missing", "price", "window"} & set(row.reasons)
        if answered and open_questions and set(row.reasons) == open_questions:
            notes.append(
                f"What {_name(row)} would cost for the same work is not known: nothing is called "
                "cheapest beside it."
            )
    if not answered:
        notes.insert(0, "No configuration is admissible: there is no decision.")
    return notes


def listed_not_counted(rows: Sequence[BalanceRow]) -> list[str]:
    """Name stopped, interrupted and excluded attempts."""
    notes = []
    for row in rows:
        for word in ("stopped", "interrupted", "excluded"):
            number = sum(getattr(found, word) for found in row.verdicts)
            if number:
                notes.append(f"{_name(row)}: {number} {word}, listed and not counted as failures.")
        if row.admissible and not row.groups:
            notes.append(f"{_name(row)}: no duration was measured.")
    return notes


def scope(row: BalanceRow) -> str:
    """Say what is chosen, for how much, and the scope of its cost (R36)."""
    names = [found.deliverable for found in row.verdicts if found.accepted]
    committed, cost = row.rental.committed_usd, row.cost_per_accepted_usd
    return (
        f"{_name(row)} is chosen: {money(committed or Decimal(0))} USD committed, "
        f"{money(cost or Decimal(0))} USD per accepted deliverable ({listed(names)})."
    )


def _name(row: BalanceRow) -> str:
    return clean(row.configuration, limit=80)


def _names(rows: Sequence[BalanceRow]) -> str:
    return listed([row.configuration for row in rows], limit=8)
