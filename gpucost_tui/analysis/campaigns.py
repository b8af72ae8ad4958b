"""Joins campaigns to the analysis: their comparison, and their balance with the decision."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.analysis.balance import Decision, Terms, decide
from gpucost_tui.analysis.compare import Comparison, compare, sealed_reading
from gpucost_tui.analysis.configurations import (
    Configuration,
    configurations,
    names_by_attempt,
    renamed,
    rental_notes,
    rental_of,
)
from gpucost_tui.analysis.parents import Inherited, parents_of
from gpucost_tui.analysis.stack import stack_differences, stack_notes
from gpucost_tui.analysis.together import Together
from gpucost_tui.pricing.spending import Spending
from gpucost_tui.text import clean, count


@dataclass(frozen=True)
class Balance:
    """The decision over campaigns, with what it rests on."""

    together: Together
    decision: Decision
    parents: tuple[Inherited, ...]
    configurations: tuple[Configuration, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``decide --json``."""
        document = self.decision.to_json()
        attempts = sum(len(one.rows()) for one in self.parents)
        failures = sum(one.counts()["failed"] for one in self.parents)
        for row in document["balance"]:
            row.update(parent_attempts=attempts, parent_failures=failures)
        document.update(
            manifest=self.together.manifest.sha256,
            parents=[one.to_json() for one in self.parents],
            **_hosts_json(self.together),
        )
        return document


def compare_campaigns(together: Together) -> Comparison:
    """Compare the variants of campaigns with one manifest, by the sealed rule (R26).

    The notes name every differing stack entry of their hosts (R9).
    """
    reading = sealed_reading(together.protocol, together.rounds)
    found = compare(together.frame(), reading)
    running = sum(row["status"] is None for m in together.members for row in m.rows())
    notes = [*found.notes, *together.notes]
    if running:
        notes.append(f"{count(running, 'attempt')} without an end is not counted.")
    notes += stack_notes(together.hosts())
    return dataclasses.replace(found, notes=tuple(notes))


def comparison_json(together: Together, comparison: Comparison) -> dict[str, Any]:
    """Return the document of ``compare --json`` for campaigns."""
    document = comparison.to_json()
    document.update(manifest=together.manifest.sha256, **_hosts_json(together))
    return document


def decide_campaigns(together: Together, parents: Sequence[str | Path] = ()) -> Balance:
    """Decide over campaigns with one manifest (R40).

    Args:
        together: The campaigns.
        parents: Folders that may hold parent campaigns, beside the places where they were.

    Raises:
        Refused: Other spending is stated for some configurations and not for others (R37).
        WrongUse: An expense names no configuration.
        Differs: A frozen price is not what was written.
    """
    earlier = parents_of(together, parents)
    known = configurations(together)
    problems = [problem for one in earlier for problem in one.problems]
    inherited = [commitment for one in earlier for commitment in one.commitments]
    seconds = sum((one.seconds for one in earlier), Fraction(0))
    rentals = {one.name: rental_of(one, seconds, inherited, problems) for one in known}
    decision = decide(_frame(together), rentals, _terms(together, known))
    notes = [*decision.notes, *(one.sentence() for one in earlier), *together.notes]
    notes += [note for member in together.members for note in rental_notes(member)]
    notes += _beside(known) + stack_notes(together.hosts())
    whole = dataclasses.replace(decision, notes=tuple(dict.fromkeys(notes)))
    return Balance(together, whole, earlier, known)


def _frame(together: Together) -> pl.DataFrame:
    """Return the rows of the rounds, each under the name of its configuration."""
    frames = []
    for member in together.members:
        names = names_by_attempt(together, member)
        frame = member.frame().filter(pl.col("round") != 0)
        named = [names[number] for number in frame["attempt"]]
        frames.append(frame.with_columns(pl.Series("configuration", named, dtype=pl.String)))
    return pl.concat(frames)


def _terms(together: Together, known: Sequence[Configuration]) -> Terms:
    protocol = together.protocol
    return Terms(
        deliverables=tuple(deliverable.name for deliverable in protocol.deliverables),
        deadline_h=Fraction(repr(protocol.decision.deadline_hours)),
        budget_usd=protocol.decision.budget_usd,
        planned_rounds=protocol.measurement.rounds,
        quality_threshold=protocol.quality.threshold,
        rule=protocol.measurement.settled_rule,
        factor=protocol.measurement.settled_factor,
        spending=stated_spending(together),
        planned_attempts={one.name: one.planned for one in known},
    )


def stated_spending(together: Together) -> tuple[Spending, ...]:
    """Return the expenses, under the names that the configurations have among all members."""
    found = []
    for member in together.members:
        names = renamed(together, member)
        for spent in member.state.acts.spending.values():
            name = names.get(spent.configuration, spent.configuration)
            found.append(Spending(name, spent.usd, spent.reason))
    return tuple(found)


def _beside(known: Sequence[Configuration]) -> list[str]:
    return [
        f"{clean(one.name, limit=80)} stands in {count(len(one.members), 'campaign folder')}: "
        "they are taken to have run beside each other, and the longest window counts."
        for one in known
        if len(one.members) > 1
    ]


def _hosts_json(together: Together) -> dict[str, Any]:
    hosts = together.hosts()
    there = {name: record for name, record in hosts.items() if record is not None}
    return {
        "hosts": list(hosts),
        "stack_differences": [found.to_json() for found in stack_differences(there)],
    }
