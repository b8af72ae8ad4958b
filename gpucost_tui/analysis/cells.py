"""One cell of a table that a person filled: accepted where unambiguous, else a sentence why not."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import polars as pl

_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_COMMA = re.compile(r"[+-]?[0-9][0-9.,'\u00a0\u202f ]*,[0-9]+")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
#: Columns whose values come from a closed list.
CHOICES: dict[str, tuple[str, ...]] = {
    "status": ("completed", "failed", "stopped", "interrupted"),
    "failure": ("out-of-memory", "fallback", "device-error", "killed", "error"),
}
#: Columns that a measurement can't leave at zero: no GPU is not zero seconds (R20).
ABOVE_ZERO = frozenset({"pass_s", "padding_ratio", "batch_size", "attempt", "position"})
#: Columns that may be below zero: a correlation, a seed as written.
ANY_SIGN = frozenset({"quality", "seed"})
_LARGEST = 2**63 - 1
#: Seconds that no phase of a campaign lasts (31 years), and that no pass falls short of.
_LONGEST_S, _SHORTEST_S = 1e9, 1e-9


class BadCell(ValueError):
    """What was expected in a cell; the caller adds where."""


def parse(column: str, kind: Any, cell: str) -> Any:
    """Return the value of a cell of text, ``None`` for an empty one.

    Args:
        column: The raw table's column, for its closed list or its bounds.
        kind: The column's Polars type.
        cell: The text as written.

    Raises:
        BadCell: The text is no such value, or could mean two things.
    """
    if not cell.strip():
        return None
    if kind == pl.String:
        return choice(column, cell)
    return _PARSERS[kind](column, cell.strip())


def choice(column: str, text: str) -> str:
    """Return a text, in the spelling of its closed list where the column has one."""
    if column not in CHOICES:
        return text
    word = text.strip().lower()
    if word not in CHOICES[column]:
        raise BadCell(f"one of {', '.join(CHOICES[column])} is expected")
    return word


def bounded(column: str, value: float) -> None:
    """Refuse a number that the column can't hold.

    Raises:
        BadCell: Negative, zero where nothing that was measured is zero, or absurd for a duration.
    """
    if column in ABOVE_ZERO and value <= 0:
        raise BadCell("a value above zero is expected; a missing one is an empty cell")
    if value < 0 and column not in ANY_SIGN:
        raise BadCell("a negative value is impossible here")
    if column.endswith("_s") and value > _LONGEST_S:
        raise BadCell("at most 1,000,000,000 seconds are possible")
    if column == "pass_s" and value < _SHORTEST_S:
        raise BadCell("no pass takes less than a nanosecond")


def _flag(column: str, text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise BadCell("true or false is expected (also yes, no, 1, 0)")
    return _FLAGS[text.lower()]


def _whole(column: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        _refuse_comma(text)
        raise BadCell("a whole number is expected")
    digits = text.partition(".")[0]
    if len(digits) > 20 or abs(int(digits)) > _LARGEST:
        raise BadCell("the number is too large")
    bounded(column, int(digits))
    return int(digits)


def _number(column: str, text: str) -> float:
    if not _NUMBER.fullmatch(text):
        _refuse_comma(text)
        raise BadCell("a number is expected; a missing one is an empty cell, with its reason in")
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadCell("the number is too large")
    bounded(column, value)
    return value


def _refuse_comma(text: str) -> None:
    if _COMMA.fullmatch(text):
        raise BadCell(
            "a decimal point is expected: a comma can mean decimals or thousands. "
            "Export with points, without thousands separators"
        )


def _instant(column: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadCell("a time such as 2026-09-28T09:00:00Z is expected") from None
    if moment.tzinfo is None:
        raise BadCell("a time needs its offset: add Z for UTC, or +02:00")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise BadCell("the time is out of range") from None


_PARSERS: dict[Any, Callable[[str, str], Any]] = {
    pl.Boolean: _flag,
    pl.Int64: _whole,
    pl.Float64: _number,
    pl.Datetime("us", "UTC"): _instant,
}
