"""What variants predicted: their quality with its interval, and the entries in which they differ.

A verdict holds an attempt against the reference; here variants are held against each other, by
the first sound attempt of each, in the pairs in which their durations are compared (R27).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from gpucost_tui.analysis.compare import Pair
from gpucost_tui.analysis.durations import Durations
from gpucost_tui.analysis.together import Together
from gpucost_tui.campaign.fold import Attempt
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.reproducing import NAMED
from gpucost_tui.files import sha256_file
from gpucost_tui.tasks.registry import create

#: Variant, deliverable, seed and host: attempts that predict the same.
Key = tuple[str, str | None, int | None, str | None]


@dataclass(frozen=True, slots=True)
class Quality:
    """The lowest and highest quality of a variant's completed, non-excluded passes.

    ``interval`` is that of the lowest: low, high, level, method; None where none is recorded.
    """

    key: Key
    metric: str | None
    low: float
    high: float
    interval: dict[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        variant, deliverable, seed, host = self.key
        place = {"variant": variant, "deliverable": deliverable, "seed": seed, "host": host}
        figures = {"metric": self.metric, "lowest": self.low, "highest": self.high}
        return {**place, **figures, "interval": self.interval}


@dataclass(frozen=True, slots=True)
class Flips:
    """Entries that two variants (or one on two hosts) predicted differently.

    ``attempts`` are those compared. ``flips`` is None where they could not be, for the reason
    ``why``; ``ids`` are the first :data:`NAMED` of them, in the order of the corpus.
    """

    pair: Pair
    attempts: tuple[int | None, int | None]
    entries: int | None = None
    flips: int | None = None
    ids: tuple[str, ...] = ()
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        a, b = self.pair.names
        return {
            "a": a,
            "b": b,
            "deliverable": self.pair.a.deliverable,
            "seed": self.pair.a.seed,
            "hosts": [self.pair.a.host, self.pair.b.host],
            "attempts": list(self.attempts),
            "entries": self.entries,
            "flips": self.flips,
            "flipped_ids": list(self.ids),
            "why": self.why,
        }


def qualities(together: Together) -> list[Quality]:
    """Return the quality of each variant, deliverable, seed and host that has one."""
    found: dict[Key, list[Attempt]] = {}
    for _, attempt in _completed(together):
        if attempt.row["quality"] is not None:
            found.setdefault(_key(attempt.row), []).append(attempt)
    result = []
    for key, attempts in found.items():
        lowest = min(attempts, key=lambda one: (one.row["quality"], one.number))
        high = max(one.row["quality"] for one in attempts)
        metric = lowest.row["quality_metric"]
        result.append(Quality(key, metric, lowest.row["quality"], high, lowest.interval))
    return result


def variant_flips(together: Together, pairs: Iterable[Pair]) -> list[Flips]:
    """Return the flips of each pair, by the first sound attempt of either side.

    Args:
        together: The campaigns, whose prediction files are read.
        pairs: Of their comparison.
    """
    first: dict[Key, tuple[Campaign, Attempt]] = {}
    for campaign, attempt in _completed(together):
        if attempt.row["ids_match"] and attempt.row["format_ok"]:
            first.setdefault(_key(attempt.row), (campaign, attempt))
    return [_flips(together, pair, first) for pair in pairs]


def _completed(together: Together) -> Iterator[tuple[Campaign, Attempt]]:
    for member in together.members:
        for number, attempt in sorted(member.state.attempts.items()):
            row = attempt.row
            counts = row["status"] == "completed" and row["round"] and not row["excluded"]
            if counts and number not in member.shared:
                yield member.campaign, attempt


def _key(row: dict[str, Any]) -> Key:
    return row["variant"], row["deliverable"], row["seed"], row["host"]


def _flips(together: Together, pair: Pair, first: dict[Key, tuple[Campaign, Attempt]]) -> Flips:
    sides = [first.get(_of(group)) for group in (pair.a, pair.b)]
    one, other = (None if side is None else side[1].number for side in sides)
    frames = []
    for group, side in zip((pair.a, pair.b), sides, strict=True):
        if side is None:
            why = f"{group.variant} has no completed attempt with sound predictions"
            return Flips(pair, (one, other), why=why)
        frame = _predictions(*side)
        if frame is None:
            why = f"the predictions of attempt {side[1].number} are not those written"
            return Flips(pair, (one, other), why=why)
        frames.append(frame)
    found = create(together.protocol.task).flips(*frames)
    ids = tuple(found["id"].head(NAMED).to_list())
    return Flips(pair, (one, other), frames[0].height, found.height, ids)


def _of(group: Durations) -> Key:
    return group.variant, group.deliverable, group.seed, group.host


def _predictions(campaign: Campaign, attempt: Attempt) -> pl.DataFrame | None:
    path = campaign.folder / (attempt.row["predictions_path"] or "")
    if not path.is_file() or sha256_file(path) != attempt.row["predictions_sha256"]:
        return None
    return pl.read_parquet(path, columns=["id", "prediction"])
