"""One configuration of the final balance: what it delivered, what it commits (R36, R40)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gpucost_tui.analysis.durations import Durations
from gpucost_tui.analysis.rental import Rental
from gpucost_tui.analysis.verdicts import DeliverableVerdict
from gpucost_tui.pricing.amounts import exact
from gpucost_tui.text import money


@dataclass(frozen=True, slots=True)
class BalanceRow:
    """One configuration: what it delivered, what it commits, and every reason against it."""

    configuration: str
    reasons: tuple[str, ...]
    why: tuple[str, ...]
    verdicts: tuple[DeliverableVerdict, ...]
    groups: tuple[Durations, ...]
    rental: Rental
    planned_attempts: int
    other_spending: dict[str, object] | None

    @property
    def admissible(self) -> bool:
        return not self.reasons

    @property
    def accepted_deliverables(self) -> int:
        return sum(found.accepted for found in self.verdicts)

    @property
    def failures(self) -> int:
        return sum(found.failed for found in self.verdicts)

    @property
    def failure_rate(self) -> Fraction:
        """Failed attempts per planned attempt."""
        return Fraction(self.failures, max(self.planned_attempts, 1))

    @property
    def cost_per_accepted_usd(self) -> Decimal | None:
        """Return the whole committed amount over the accepted deliverables (R36)."""
        if self.rental.committed_usd is None or not self.accepted_deliverables:
            return None
        with exact():
            return self.rental.committed_usd / self.accepted_deliverables

    def to_json(self) -> dict[str, Any]:
        """Return the keys of ``decide``'s ``balance``.

        ``durations_s`` holds all durations; ``median_s`` is ``None`` where they are of several
        deliverables, seeds or hosts, which are never pooled: ``durations`` has them apart.
        """
        rental, groups = self.rental, self.groups
        lows = [v.quality_min for v in self.verdicts if v.quality_min is not None]
        return {
            "configuration": self.configuration,
            "admissible": self.admissible,
            "reasons": list(self.reasons),
            "why": list(self.why),
            "durations_s": [value for group in groups for value in group.durations_s],
            "median_s": groups[0].median_s if len(groups) == 1 else None,
            "durations": [_group_json(group) for group in groups],
            "quality": min(lows, default=None),
            "verdicts": [found.to_json() for found in self.verdicts],
            "window_hours": rental.window_hours,
            "window_basis": rental.window_basis,
            "pack": rental.commitments[0].pack if rental.commitments else None,
            "committed_usd": amount_text(rental.committed_usd),
            "other_spending": self.other_spending,
            "accepted_deliverables": self.accepted_deliverables,
            "cost_per_accepted_usd": amount_text(self.cost_per_accepted_usd),
            "attempts": sum(found.attempts for found in self.verdicts),
            "failures": self.failures,
            "planned_attempts": self.planned_attempts,
            "failure_rate": float(self.failure_rate),
            "stopped": sum(found.stopped for found in self.verdicts),
            "interrupted": sum(found.interrupted for found in self.verdicts),
            "excluded": sum(found.excluded for found in self.verdicts),
        }


def _group_json(group: Durations) -> dict[str, Any]:
    keys = ("deliverable", "seed", "host", "durations_s", "median_s", "min_s", "max_s")
    whole = group.to_json()
    return {key: whole[key] for key in keys}


def amount_text(amount: Decimal | None) -> str | None:
    """Return US dollars as text with two decimals, ``None`` for none."""
    return None if amount is None else money(amount)
