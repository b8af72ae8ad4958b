"""Which attempts are shown, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpucost_tui.tui.attempts_columns import FOLDER, LINE, OWN
from gpucost_tui.tui.safe import fit

if TYPE_CHECKING:
    import polars as pl

#: Quick filters, by name: what they keep, in words.
QUICK = {
    "failed": "failed attempts",
    "rejected": "completed attempts that the verdict rejects",
    "excluded": "attempts excluded for a declared cause",
}


@dataclass(frozen=True, slots=True)
class Query:
    """Filters, which all must hold, and one column to sort by (none: as they were made).

    ``text`` is words, all of which must occur in a row (case is no matter); ``column:word`` looks
    into one column.
    """

    quick: str = ""
    variant: str | None = None
    text: str = ""
    sort: str = ""
    descending: bool = False

    @property
    def filtered(self) -> bool:
        return bool(self.quick or self.variant is not None or self.text.strip())

    def said(self) -> str:
        """Return filters and order in words, without the typed text cut short."""
        parts = [self.quick] if self.quick else []
        if self.variant is not None:
            parts.append(f"variant {fit(self.variant, 24)}")
        if self.text.strip():
            parts.append(f"text '{fit(self.text.strip(), 24)}'")
        if self.sort:
            parts.append(f"by {self.sort} {'↓' if self.descending else '↑'}")
        return " · ".join(parts)


def apply(query: Query, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that a query keeps, in its order; empty cells come last."""
    import polars as pl

    kept = []
    if query.quick == "failed":
        kept.append(pl.col("status") == "failed")
    elif query.quick == "rejected":
        kept.append((pl.col("status") == "completed") & ~pl.col("corpus_accepted"))
    elif query.quick == "excluded":
        kept.append(pl.col("excluded").fill_null(value=False))
    if query.variant is not None:
        kept.append(pl.col("variant") == query.variant)
    kept += [_occurs(word, frame) for word in query.text.split()]
    found = frame.filter(kept) if kept else frame
    if query.sort in frame.columns:
        found = found.sort(
            query.sort, descending=query.descending, nulls_last=True, maintain_order=True
        )
    return found


def _occurs(word: str, frame: pl.DataFrame) -> pl.Expr:
    import polars as pl

    name, colon, value = word.partition(":")
    if colon and name in frame.columns and name not in OWN:
        cells, sought = pl.col(name).cast(pl.String), value
    else:
        texts = [
            pl.col(name)
            for name, kind in frame.schema.items()
            if (kind == pl.String or name == "attempt") and name not in OWN
        ]
        cells, sought = pl.concat_str(texts, separator="\x1f", ignore_nulls=True), word
    return cells.str.to_lowercase().str.contains(sought.lower(), literal=True).fill_null(False)


def row_like(frame: pl.DataFrame, row: dict[str, Any]) -> int:
    """Return where an attempt stands now; 0 where it is not shown any more."""
    import polars as pl

    same = pl.all_horizontal(
        pl.col(name).eq_missing(pl.lit(row[name], dtype=frame.schema[name]))
        for name in (FOLDER, LINE, "campaign", "attempt")
    )
    found = frame.select(same.arg_true().first()).item()
    return int(found) if found is not None else 0
