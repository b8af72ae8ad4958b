"""What a run showed, variant by variant: raw durations first, never a percentile (R23, R25)."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpucost_tui.campaign.fold import State
from gpucost_tui.protocol.model import Protocol


@dataclass(slots=True)
class VariantSummary:
    """Measured passes of a variant in the order of its rounds, and counts of the rest."""

    variant: str
    durations_s: list[float] = field(default_factory=list)
    accepted: int = 0
    rejected: int = 0
    failed: int = 0
    qualities: list[float] = field(default_factory=list)
    padding_ratio: float | None = None
    peak_rss_bytes: int | None = None
    peak_allocated_bytes: int | None = None

    @property
    def median_s(self) -> float | None:
        return statistics.median(self.durations_s) if self.durations_s else None


def by_variant(protocol: Protocol, state: State) -> Iterator[VariantSummary]:
    """Yield a summary of each variant; the untimed reference pass is left out."""
    for name in protocol.order():
        one = VariantSummary(name)
        for _, attempt in sorted(state.attempts.items()):
            if attempt.row["variant"] == name and attempt.row["round"]:
                _add(one, attempt.row)
        yield one


def _add(one: VariantSummary, row: dict[str, Any]) -> None:
    if row["status"] == "completed" and row["pass_s"] is not None and not row["excluded"]:
        one.durations_s.append(row["pass_s"])
    one.accepted += row["corpus_accepted"] is True
    one.rejected += row["corpus_accepted"] is False and row["status"] == "completed"
    one.failed += row["status"] == "failed"
    if row["quality"] is not None:
        one.qualities.append(row["quality"])
    one.padding_ratio = row["padding_ratio"] if row["padding_ratio"] else one.padding_ratio
    for column in ("peak_rss_bytes", "peak_allocated_bytes"):
        if row[column] is not None:
            setattr(one, column, max(getattr(one, column) or 0, row[column]))
