"""Durations as they were measured: all of them, median, minimum, maximum and counts (R23, R25).

No percentile above the median exists here: for fewer than 100 durations of a corpus none is
shown anywhere (R25), and request latencies are another population.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import polars as pl

from gpucost_tui.analysis.settled import exact
from gpucost_tui.errors import InputError
from gpucost_tui.text import clean

#: Fewer durations than this have no percentile above the median (R25).
LEAST_FOR_PERCENTILE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Durations:
    """The passes of one variant over one deliverable, with one seed, on one host.

    ``durations_s`` are those of completed, non-excluded passes, in the order in which they were
    made; ``rounds`` and ``attempts`` go with them (``None`` where the table has none). ``None``
    for deliverable, seed or host means that the table does not say. An excluded attempt is counted
    as excluded alone, whatever its status; round 0 (the untimed reference pass) is left out.
    """

    variant: str
    deliverable: str | None
    seed: int | None
    host: str | None
    durations_s: tuple[float, ...]
    rounds: tuple[int | None, ...]
    attempts: tuple[int | None, ...]
    succeeded: int
    failed: int
    stopped: int
    interrupted: int
    excluded: int
    series: tuple[str, ...] = ()
    rows: pl.DataFrame = field(repr=False, default_factory=pl.DataFrame)

    @property
    def median_s(self) -> float | None:
        return float(median(exact(self.durations_s))) if self.durations_s else None

    @property
    def min_s(self) -> float | None:
        return min(self.durations_s, default=None)

    @property
    def max_s(self) -> float | None:
        return max(self.durations_s, default=None)

    @property
    def place(self) -> tuple[str | None, int | None, str | None]:
        """Deliverable, seed and host: what is compared apart."""
        return self.deliverable, self.seed, self.host

    def to_json(self) -> dict[str, Any]:
        """Return the keys of ``compare``'s ``variants``."""
        return {
            "variant": self.variant,
            "deliverable": self.deliverable,
            "seed": self.seed,
            "host": self.host,
            "durations_s": list(self.durations_s),
            "median_s": self.median_s,
            "min_s": self.min_s,
            "max_s": self.max_s,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "stopped": self.stopped,
            "interrupted": self.interrupted,
            "excluded": self.excluded,
            "series": list(self.series),
        }


def timed_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the rounds: without round 0, in the order in which they were made.

    The order is round, position, attempt, and that of the table where these are empty.
    """
    return frame.filter(pl.col("round").is_null() | (pl.col("round") != 0)).sort(
        "round", "position", "attempt", maintain_order=True, nulls_last=True
    )


def measured(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with a duration that counts: completed, not excluded, measured."""
    return frame.filter(
        (pl.col("status") == "completed")
        & ~pl.col("excluded").fill_null(value=False)
        & pl.col("pass_s").is_not_null()
    )


def highest_round(frame: pl.DataFrame, by: str = "variant") -> int:
    """Return the highest round of a table.

    Where no row has a round, it is the greatest number of attempts that one variant (or
    configuration) made for one deliverable, seed and host. 0 for an empty table.
    """
    rounds = frame["round"].max()
    if isinstance(rounds, int) and rounds > 0:
        return rounds
    rows = timed_rows(frame)
    if rows.is_empty():
        return 0
    sizes = rows.group_by(by, "deliverable", "seed", "host").len()
    return int(max(sizes["len"].to_list()))


def with_variant(frame: pl.DataFrame) -> pl.DataFrame:
    """Name rows without a variant by their configuration, as a sheet filled by hand may have it."""
    return frame.with_columns(
        pl.coalesce("variant", "configuration", pl.lit("(no variant named)")).alias("variant")
    )


def refuse_mixed_corpora(frame: pl.DataFrame) -> None:
    """Refuse a deliverable whose attempts read different corpora under one manifest.

    Raises:
        InputError: It names the deliverable; its durations would be of different work.
    """
    known = frame.filter(pl.col("corpus_sha256").is_not_null())
    corpora = known.group_by("manifest", "deliverable", maintain_order=True).agg(
        pl.col("corpus_sha256").n_unique().alias("corpora")
    )
    for _, deliverable, number in corpora.filter(pl.col("corpora") > 1).rows():
        named = "" if deliverable is None else f" '{clean(deliverable, limit=60)}'"
        raise InputError(
            f"the attempts for deliverable{named} read {number} different corpora (corpus_sha256)",
            fix="Give each corpus a deliverable of its own",
        )


def durations(frame: pl.DataFrame, by: str = "variant") -> list[Durations]:
    """Group a raw table into durations.

    Args:
        frame: Rows with the raw table's schema.
        by: The column that names the variant: ``variant`` or ``configuration``.

    Returns:
        One group for each variant, deliverable, seed and host, in order of first appearance;
        seeds and hosts are never pooled (R28).

    Raises:
        InputError: One deliverable has several corpora.
    """
    refuse_mixed_corpora(frame)
    rows = timed_rows(frame)
    keys = [by, "deliverable", "seed", "host"]
    order = frame.select(keys).unique(maintain_order=True).rows()
    parts = rows.partition_by(keys, maintain_order=True, as_dict=True)
    return [_group(key, parts[key]) for key in order if key in parts]


def _group(key: Sequence[Any], rows: pl.DataFrame) -> Durations:
    left_out = rows["excluded"].fill_null(value=False)
    kept = rows.filter(~left_out)
    timed = measured(rows)
    by_status = dict(kept.group_by("status").len().rows())
    names = rows["series"].drop_nulls().unique(maintain_order=True)
    return Durations(
        variant=str(key[0]),
        deliverable=key[1],
        seed=key[2],
        host=key[3],
        durations_s=tuple(timed["pass_s"]),
        rounds=tuple(timed["round"]),
        attempts=tuple(timed["attempt"]),
        succeeded=by_status.get("completed", 0),
        failed=by_status.get("failed", 0),
        stopped=by_status.get("stopped", 0),
        interrupted=by_status.get("interrupted", 0),
        excluded=int(left_out.sum()),
        series=tuple(dict.fromkeys(part for text in names for part in text.split(" | "))),
        rows=rows,
    )
