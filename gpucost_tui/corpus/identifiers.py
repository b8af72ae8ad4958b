"""Exactly the expected ids: no duplicate, none missing, none extra (R13, R19)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from gpucost_tui.errors import InputError
from gpucost_tui.text import clean, count, listed

#: Ids of each kind that are kept by name; their counts are always true.
KEPT = 1000


@dataclass(frozen=True, slots=True)
class IdCheck:
    """The ids of a set of predictions against those of the corpus.

    ``expected_ids`` and ``observed_ids`` count rows. ``ids_match``: the sets are equal and no id is
    repeated. ``in_order``: the rows are equal one by one. ``duplicates``, ``missing`` and ``extra``
    name each id once, in the order of appearance, and at most :data:`KEPT`; the ``_count`` fields
    are the whole numbers. ``unnamed_count``: predictions whose id is null.
    """

    expected_ids: int
    observed_ids: int
    ids_match: bool
    in_order: bool
    duplicates: list[str]
    missing: list[str]
    extra: list[str]
    duplicates_count: int
    missing_count: int
    extra_count: int
    unnamed_count: int = 0

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def explain(self) -> str:
        """Return what is wrong, naming the first ids; empty where they match."""
        kinds = (
            ("repeated", self.duplicates, self.duplicates_count),
            ("missing", self.missing, self.missing_count),
            ("not in the corpus", self.extra, self.extra_count),
        )
        parts = [
            f"{count(number, 'id')} {word} ({listed(names[:5])}{', …' if number > 5 else ''})"
            for word, names, number in kinds
            if number
        ]
        if self.unnamed_count:
            parts.append(f"{count(self.unnamed_count, 'prediction')} without an id")
        return "; ".join(parts)


def compare_ids(
    expected: pl.Series | Sequence[str], observed: pl.Series | Sequence[str]
) -> IdCheck:
    """Compare ids as text, as written: ``1``, ``01`` and ``1.0`` are three ids.

    Equality in order is tried first; counting and anti-joins, tens of times as long, follow only
    where it fails. An id that is repeated in ``expected`` itself counts as repeated wherever the
    observed ids repeat it.

    Raises:
        InputError: Ids of a type that is no text.
    """
    wanted, found = _as_text(expected), _as_text(observed)
    in_order = not found.has_nulls() and wanted.equals(found)
    if in_order and found.n_unique() == found.len():
        return IdCheck(wanted.len(), found.len(), True, True, [], [], [], 0, 0, 0)
    there, named = wanted.to_frame("id"), found.drop_nulls().to_frame("id")
    counted = named.group_by("id", maintain_order=True).len()
    repeated = counted.filter(pl.col("len") > 1)["id"]
    missing = _without(there.unique(maintain_order=True), counted)
    extra = _without(counted.select("id"), there)
    unnamed = found.null_count()
    return IdCheck(
        expected_ids=wanted.len(),
        observed_ids=found.len(),
        ids_match=not (repeated.len() or missing.len() or extra.len() or unnamed),
        in_order=in_order,
        duplicates=repeated.head(KEPT).to_list(),
        missing=missing.head(KEPT).to_list(),
        extra=extra.head(KEPT).to_list(),
        duplicates_count=repeated.len(),
        missing_count=missing.len(),
        extra_count=extra.len(),
        unnamed_count=unnamed,
    )


def _without(left: pl.DataFrame, right: pl.DataFrame) -> pl.Series:
    return left.join(right, on="id", how="anti", maintain_order="left")["id"]


def _as_text(ids: pl.Series | Sequence[str]) -> pl.Series:
    if isinstance(ids, pl.Series):
        if ids.dtype == pl.String:
            return ids.alias("id")
        if isinstance(ids.dtype, pl.Categorical | pl.Enum):
            return ids.cast(pl.String).alias("id")
        if ids.dtype == pl.Null:
            return ids.cast(pl.String).alias("id")
        problem = f"the ids are {ids.dtype}, not text"
    else:
        try:
            return pl.Series("id", ids, dtype=pl.String, strict=True)
        except (TypeError, UnicodeEncodeError) as error:
            problem = f"the ids are not all text ({clean(str(error).splitlines()[0], limit=120)})"
    raise InputError(problem, fix="Write ids as text: 007 and 7 are two ids")
