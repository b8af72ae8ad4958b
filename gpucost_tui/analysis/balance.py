"""The final balance: every configuration with every reason, and the decision (R32 to R40).

Not admissible configurations are out. Among the others the least committed amount decides; equal
amounts are told apart by failed attempts per planned attempt (stopped and interrupted ones are
listed, not counted), then by a settled difference in duration (slack before the deadline), and by
nothing else: what is left is tied. Nothing is called cheapest where a price, a verdict, a
deliverable or a measured window is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import polars as pl

from gpucost_tui.analysis.balance_row import BalanceRow, amount_text
from gpucost_tui.analysis.durations import Durations, durations, highest_round, timed_rows
from gpucost_tui.analysis.narrowing import (
    blocked,
    by_commitment,
    by_failures,
    by_slack,
    listed_not_counted,
    scope,
)
from gpucost_tui.analysis.plan_file import Plan
from gpucost_tui.analysis.rental import Commitment, Rental, rent, total
from gpucost_tui.analysis.settled import DEFAULT_FACTOR, Rule
from gpucost_tui.analysis.slack import PairOfConfigurations, pairs_of_configurations
from gpucost_tui.analysis.verdicts import ordered, verdict
from gpucost_tui.errors import InputError
from gpucost_tui.pricing.catalogue import Catalogue
from gpucost_tui.pricing.spending import Spending, require_all_or_none, spending_json
from gpucost_tui.pricing.window import hours_of
from gpucost_tui.text import clean, listed, money

Outcome = Literal["decided", "tied", "undecided"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What is decided by, fixed before the durations were seen (R1).

    ``planned_rounds``: ``None`` takes the highest round of the table. ``deadline_h`` is exact.
    ``planned_attempts`` by configuration: ``None`` takes rounds × deliverables × seeds × hosts.
    """

    deliverables: tuple[str, ...]
    deadline_h: Fraction
    budget_usd: Decimal | None = None
    planned_rounds: int | None = None
    quality_threshold: float | None = None
    rule: Rule = "auto"
    factor: float = DEFAULT_FACTOR
    spending: tuple[Spending, ...] = ()
    planned_attempts: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer with the whole balance. ``tied`` names the configurations left in a tie."""

    outcome: Outcome
    configuration: str | None
    committed_usd: Decimal | None
    rows: tuple[BalanceRow, ...]
    notes: tuple[str, ...]
    tied: tuple[str, ...] = ()
    pairs: tuple[PairOfConfigurations, ...] = ()

    def row(self, configuration: str) -> BalanceRow:
        return next(row for row in self.rows if row.configuration == configuration)

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``decide --json``."""
        chosen = None if self.configuration is None else self.row(self.configuration)
        cost = None if chosen is None else chosen.cost_per_accepted_usd
        return {
            "outcome": self.outcome,
            "configuration": self.configuration,
            "committed_usd": amount_text(self.committed_usd),
            "cost_per_accepted_usd": amount_text(cost),
            "accepted_deliverables": None if chosen is None else chosen.accepted_deliverables,
            "tied": list(self.tied),
            "balance": [row.to_json() for row in self.rows],
            "notes": list(self.notes),
        }


def decide_table(frame: pl.DataFrame, plan: Plan, catalogue: Catalogue) -> Decision:
    """Decide over a raw table by a plan, with packs from a catalogue.

    Args:
        frame: Rows with the raw table's schema.
        plan: Configurations, deliverables and bounds.
        catalogue: The price lists in force.

    Raises:
        InputError: A row's configuration or deliverable is none of the plan's, a GPU is
            unknown, or corpora and deliverables are mixed up.
        Refused: Other spending is stated for some configurations and not for others (R37).
    """
    rentals = {
        name: rent(name, wanted, plan.window_basis, catalogue)
        for name, wanted in plan.configurations.items()
    }
    terms = Terms(
        deliverables=plan.deliverables,
        deadline_h=plan.deadline_hours,
        budget_usd=plan.budget_usd,
        planned_rounds=plan.planned_rounds,
        quality_threshold=plan.quality_threshold,
        rule=plan.settled_rule,
        factor=plan.settled_factor,
        spending=plan.spending,
    )
    return decide(frame, rentals, terms)


def decide(frame: pl.DataFrame, rentals: Mapping[str, Rental], terms: Terms) -> Decision:
    """Decide over a raw table whose configurations are rented as given.

    Raises:
        InputError: A row's configuration or deliverable is none of those given.
        Refused: Other spending is stated for some configurations and not for others (R37).
    """
    require_all_or_none(list(rentals), terms.spending)
    known = _known_rows(frame, rentals, terms)
    planned = terms.planned_rounds or highest_round(known, by="configuration")
    groups = durations(known, by="configuration")
    seeds = max(1, timed_rows(known)["seed"].drop_nulls().n_unique())
    rows = tuple(
        _row(name, rental, known, groups, terms, planned * seeds)
        for name, rental in rentals.items()
    )
    pairs = pairs_of_configurations(groups, list(rentals), planned, terms.rule, terms.factor)
    return _decision(rows, pairs)


def _known_rows(frame: pl.DataFrame, rentals: Mapping[str, Rental], terms: Terms) -> pl.DataFrame:
    """Return the rows with their deliverable filled where only one is expected."""
    if len(terms.deliverables) == 1:
        filled = pl.col("deliverable").fill_null(terms.deliverables[0])
        frame = frame.with_columns(filled)
    for column, allowed in (
        ("configuration", tuple(rentals)),
        ("deliverable", terms.deliverables),
    ):
        for at, value in enumerate(frame[column]):
            if value in allowed:
                continue
            number = frame["attempt"][at]
            place = f"attempt {number}" if number is not None else f"row {at + 1} of the table"
            what = (
                f"the row names no {column}"
                if value is None
                else f"{column} '{clean(value, limit=80)}' is none of the plan's"
            )
            raise InputError(what, where=place, fix=f"The plan has: {listed(allowed, limit=8)}")
    _refuse_one_corpus_twice(frame)
    return frame


def _refuse_one_corpus_twice(frame: pl.DataFrame) -> None:
    """Two deliverables with one corpus would count it twice (R36, R38)."""
    seen: dict[tuple[str | None, str], str] = {}
    columns = ("manifest", "corpus_sha256", "deliverable")
    for manifest, corpus, deliverable in frame.select(columns).unique(maintain_order=True).rows():
        if corpus is None:
            continue
        first = seen.setdefault((manifest, corpus), deliverable)
        if first != deliverable:
            raise InputError(
                f"deliverables '{clean(first, limit=60)}' and '{clean(deliverable, limit=60)}' "
                "are one corpus (equal corpus_sha256): it counts once",
                fix="Name one deliverable for each distinct corpus",
            )


def _row(
    name: str,
    rental: Rental,
    frame: pl.DataFrame,
    groups: Sequence[Durations],
    terms: Terms,
    planned: int,
) -> BalanceRow:
    own = frame.filter(pl.col("configuration") == name)
    verdicts = tuple(
        verdict(d, own.filter(pl.col("deliverable") == d), terms.quality_threshold)
        for d in terms.deliverables
    )
    reasons = {reason for found in verdicts for reason in found.reasons}
    why = [sentence for found in verdicts for sentence in found.why]
    for reason, sentence in (*_bounds(rental, terms), *rental.problems):
        reasons.add(reason)
        why.append(sentence)
    hosts = max(1, timed_rows(own)["host"].drop_nulls().n_unique())
    attempts = planned * len(terms.deliverables) * hosts
    if terms.planned_attempts is not None:
        attempts = terms.planned_attempts[name]
    return BalanceRow(
        configuration=name,
        reasons=ordered(reasons),
        why=tuple(why),
        verdicts=verdicts,
        groups=tuple(group for group in groups if group.variant == name),
        rental=rental,
        planned_attempts=attempts,
        other_spending=spending_json(name, terms.spending),
    )


def _bounds(rental: Rental, terms: Terms) -> list[tuple[str, str]]:
    found = []
    if rental.window_s is not None and rental.window_s > terms.deadline_h * 3600:
        window, deadline = hours_of(rental.window_s), hours_of(terms.deadline_h * 3600)
        found.append(("deadline", f"the window of {window:g} h does not end within {deadline:g} h"))
    committed = rental.committed_usd
    if committed is not None and terms.budget_usd is not None and committed > terms.budget_usd:
        sentence = f"{money(committed)} USD is more than the budget of {money(terms.budget_usd)}"
        found.append(("budget", sentence))
    return found


def _decision(
    rows: tuple[BalanceRow, ...], pairs: Mapping[tuple[str, str], PairOfConfigurations]
) -> Decision:
    left = [row for row in rows if row.admissible]
    notes: list[str] = []
    if left:
        for narrow in (by_commitment, by_failures):
            left = narrow(left, notes)
        left = by_slack(left, pairs, notes)
    notes += blocked(rows, bool(left))
    notes += [doubt for row in rows for found in row.verdicts for doubt in found.doubts]
    told = tuple(dict.fromkeys([*notes, *listed_not_counted(rows)]))
    everything = tuple(pairs.values())
    if len(left) == 1:
        chosen = left[0]
        spent = chosen.rental.committed_usd
        said = scope(chosen)
        return Decision("decided", chosen.configuration, spent, rows, (said, *told), (), everything)
    outcome: Outcome = "tied" if left else "undecided"
    tied = tuple(row.configuration for row in left)
    return Decision(outcome, None, _spent(rows), rows, told, tied, everything)


def _spent(rows: Sequence[BalanceRow]) -> Decimal | None:
    """Return what stays spent where nothing is chosen: each distinct rental once."""
    commitments: list[Commitment] = [
        c for row in rows for c in (*row.rental.commitments, *row.rental.inherited)
    ]
    return total(commitments) if commitments else None
