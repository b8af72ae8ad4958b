"""Raw tables for the tests of the analysis: rows by keyword, every other column empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from gpucost_tui.campaign.schema import SCHEMA


def frame(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Build a raw table with the explicit schema from rows that name only what they need."""
    kept = list(rows)
    for row in kept:
        assert set(row) <= set(SCHEMA), set(row) - set(SCHEMA)
    return pl.DataFrame(
        [
            pl.Series(name, [row.get(name) for row in kept], dtype=kind, strict=False)
            for name, kind in SCHEMA.items()
        ]
    )


def passes(values: Sequence[float], **more: Any) -> list[dict[str, Any]]:
    """Return one completed, accepted pass a value, in rounds from 1."""
    base = {"status": "completed", "ids_match": True, "corpus_accepted": True, "quality": 0.9}
    return [
        {**base, "round": number, "pass_s": value, **more} for number, value in enumerate(values, 1)
    ]
