"""Prices as lines of text: for the command, and for the pricing pane.

No line is wider than 80 columns unless a single word is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from gpucost_tui.pricing.calculator import AS_STATED, Quote
from gpucost_tui.text import clean, count, money

WIDTH = 80


def quote_lines(best: Quote, others: Sequence[Quote] = ()) -> list[str]:
    """Say what a pack costs, and what an accepted corpus does where a count was given (R43)."""
    row = best.row
    lots, gpus = count(best.lots, "lot"), count(best.gpus, "GPU")
    lines = [
        f"flat {money(best.committed_usd)} USD for {gpus}: {lots} of {row.gpu}, {row.days} days",
        *wrapped(
            f"{money(best.usd_per_lot)} USD a lot of {count(row.gpus_per_lot, 'GPU')}, "
            f"{clean(row.provider)}, catalogue of {row.catalogue_date} "
            f"({clean(row.catalogue)}, line {row.line})"
        ),
    ]
    if best.accepted_results is None:
        lines.append("No count of accepted results was given: no cost per result is invented.")
    else:
        results = count(best.accepted_results, "accepted result")
        cost = best.cost_per_accepted_usd
        said = best.note if cost is None else f"{money(cost)} USD"
        lines += ["Cost per accepted corpus:", *wrapped(said)]
        lines += wrapped(
            f"{results}, {AS_STATED}: the calculator reads neither predictions nor metrics; "
            f"count and quality are {AS_STATED}."
        )
    if others:
        lines.append("Other price lists or lot sizes for the same GPU and days:")
        lines += [
            f"  {money(q.committed_usd)} USD, {count(q.gpus, 'GPU')}, "
            f"{clean(q.row.provider, limit=30)}, catalogue of {q.row.catalogue_date}"
            for q in others
        ]
    return lines


def wrapped(text: str) -> list[str]:
    """Wrap by columns, not by characters: names may be in a wide script."""
    lines, line = [], " "
    for word in text.split():
        if line.strip() and cells(line) + 1 + cells(word) > WIDTH:
            lines.append(line)
            line = " "
        line += f" {word}"
    return [*lines, line]


def cells(text: str) -> int:
    """Return the columns that a text takes in a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def fitted(text: str, width: int) -> str:
    """Cut a text to a number of columns, with an ellipsis where something is cut."""
    if cells(text) <= width:
        return text
    kept = ""
    for character in text:
        if cells(kept + character) > width - 1:
            break
        kept += character
    return kept + "…"


def padded(text: str, width: int) -> str:
    """Fill a text with spaces to a number of columns."""
    return text + " " * (width - cells(text))
