"""What a configuration delivered: one verdict for each deliverable (R3, R38)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from gpucost_tui.analysis.durations import timed_rows
from gpucost_tui.campaign.judge import REASONS
from gpucost_tui.text import clean, count


def ordered(reasons: set[str]) -> tuple[str, ...]:
    """Return reasons in the documented order of :data:`~gpucost_tui.campaign.judge.REASONS`."""
    return tuple(reason for reason in REASONS if reason in reasons)


@dataclass(frozen=True, slots=True)
class DeliverableVerdict:
    """One deliverable in one configuration. Counts are of attempts; excluded ones count as such.

    ``reasons`` is empty exactly where the deliverable is accepted. ``why`` says it in sentences
    without their final stop; ``doubts`` are contradictions in the table.
    """

    deliverable: str
    accepted: bool
    reasons: tuple[str, ...]
    why: tuple[str, ...]
    accepted_passes: int
    rejected_passes: int
    unjudged_passes: int
    failed: int
    stopped: int
    interrupted: int
    excluded: int
    quality_min: float | None
    quality_max: float | None
    doubts: tuple[str, ...] = ()

    @property
    def attempts(self) -> int:
        judged = self.accepted_passes + self.rejected_passes + self.unjudged_passes
        return judged + self.failed + self.stopped + self.interrupted + self.excluded

    def to_json(self) -> dict[str, Any]:
        return {
            "deliverable": self.deliverable,
            "accepted": self.accepted,
            "reasons": list(self.reasons),
            "why": list(self.why),
            "accepted_passes": self.accepted_passes,
            "rejected_passes": self.rejected_passes,
            "unjudged_passes": self.unjudged_passes,
            "quality_min": self.quality_min,
            "quality_max": self.quality_max,
        }


def verdict(
    deliverable: str, rows: pl.DataFrame, threshold: float | None = None
) -> DeliverableVerdict:
    """Judge one deliverable from the attempts of one configuration.

    It is accepted when at least one completed, non-excluded attempt is accepted and none of those
    is rejected or still without a verdict. A failed attempt is a failure, not a rejection; round
    0 does not count. A row that calls itself accepted against its own figures is rejected.

    Args:
        deliverable: Its name.
        rows: The attempts of the configuration for it, with the raw table's schema.
        threshold: The sealed minimum, where the table's own verdict does not hold it already.
    """
    ended = timed_rows(rows).filter(pl.col("status").is_not_null())
    out = ended["excluded"].fill_null(value=False)
    kept = ended.filter(~out)
    statuses = dict(kept.group_by("status").len().rows())
    completed = kept.filter(pl.col("status") == "completed").to_dicts()
    judged = [(_row_reasons(row, threshold), row) for row in completed]
    rejected = [(reasons, row) for reasons, row in judged if reasons]
    unjudged = [r for reasons, r in judged if not reasons and r["corpus_accepted"] is None]
    accepted = len(judged) - len(rejected) - len(unjudged)
    reasons: set[str] = set().union(*(reasons for reasons, _ in rejected))
    if unjudged or (not judged and not statuses.get("failed")):
        reasons.add("missing")
    if not judged and statuses.get("failed"):
        reasons.add("failed")
    qualities = [row["quality"] for row in completed if row["quality"] is not None]
    return DeliverableVerdict(
        deliverable=deliverable,
        accepted=not reasons,
        reasons=ordered(reasons),
        why=tuple(
            _why(deliverable, rejected, unjudged, judged, statuses, int(out.sum()), threshold)
        ),
        accepted_passes=accepted,
        rejected_passes=len(rejected),
        unjudged_passes=len(unjudged),
        failed=statuses.get("failed", 0),
        stopped=statuses.get("stopped", 0),
        interrupted=statuses.get("interrupted", 0),
        excluded=int(out.sum()),
        quality_min=min(qualities, default=None),
        quality_max=max(qualities, default=None),
        doubts=tuple(_doubts(rejected, kept)),
    )


def _row_reasons(row: Mapping[str, Any], threshold: float | None) -> set[str]:
    """Return why a completed pass is rejected; empty: accepted, or without a verdict."""
    reasons: set[str] = set()
    counts = (row["expected_ids"], row["observed_ids"])
    if row["ids_match"] is False or (None not in counts and counts[0] != counts[1]):
        reasons.add("identifiers")
    if row["format_ok"] is False:
        reasons.add("format")
    below = threshold is not None and row["quality"] is not None and row["quality"] < threshold
    if below or row["quality_ok"] is False or row["subgroups_ok"] is False:
        reasons.add("quality")
    if row["corpus_accepted"] is False and not reasons:
        # Rejected without a figure that says why: by quality, unless quality is not known at all.
        reasons.add("missing" if row["quality"] is None else "quality")
    return reasons


def _why(
    deliverable: str,
    rejected: list[tuple[set[str], dict[str, Any]]],
    unjudged: list[dict[str, Any]],
    judged: list[Any],
    statuses: Mapping[str, int],
    excluded: int,
    threshold: float | None,
) -> list[str]:
    name = clean(deliverable, limit=60)
    said = []
    for reason in ordered(set().union(*(reasons for reasons, _ in rejected))):
        rows = [row for reasons, row in rejected if reason in reasons]
        passes = f"{len(rows)} of {count(len(judged), 'completed pass', 'completed passes')}"
        said.append(f"{name}: {passes} rejected for {reason}{_figures(reason, rows, threshold)}")
    if unjudged:
        number = count(len(unjudged), "completed pass", "completed passes")
        said.append(f"{name}: {number} without a verdict")
    if not judged:
        parts = [f"{number} {status}" for status, number in sorted(statuses.items()) if number]
        parts += [f"{excluded} excluded"] if excluded else []
        said.append(f"{name}: no completed pass counts ({', '.join(parts) or 'no attempt'})")
    return said


def _figures(reason: str, rows: list[dict[str, Any]], threshold: float | None) -> str:
    values = [row["quality"] for row in rows if row["quality"] is not None]
    if reason != "quality" or not values:
        return ""
    low, high = f"{min(values):.6g}", f"{max(values):.6g}"
    span = low if low == high else f"{low} to {high}"
    return f" (quality {span}" + (")" if threshold is None else f", at least {threshold:g} asked)")


def _doubts(rejected: list[tuple[set[str], dict[str, Any]]], kept: pl.DataFrame) -> list[str]:
    said = []
    for reasons, row in rejected:
        if row["corpus_accepted"] is True:
            said.append(
                f"{_attempt(row)} is marked accepted, and its own figures reject it for "
                f"{', '.join(ordered(reasons))}: it counts as rejected."
            )
    odd = kept.filter((pl.col("status") != "completed") & pl.col("corpus_accepted"))
    for row in odd.to_dicts():
        said.append(f"{_attempt(row)} is {row['status']} and marked accepted: it is no result.")
    return said


def _attempt(row: Mapping[str, Any]) -> str:
    if row["attempt"] is not None:
        return f"Attempt {row['attempt']}"
    return f"The attempt of round {row['round']} for {clean(row['deliverable'], limit=60)}"
