"""How the raw table's columns look on the screen: numbers with units, states with a glyph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from gpucost_tui.text import seconds, size
from gpucost_tui.tui.safe import state_word
from gpucost_tui.tui.table_view import Column, words

#: Columns shown until somebody chooses others, the most telling first.
DEFAULT = (
    "variant",
    "round",
    "status",
    "corpus_accepted",
    "excluded",
    "quality",
    "pass_s",
    "padding_ratio",
    "peak_allocated_bytes",
    "peak_rss_bytes",
    "failure",
    "deliverable",
    "gpu",
    "notes",
)
#: Columns that the app adds for itself; never shown, never exported.
FOLDER, LINE = "_folder", "_line"
OWN = (FOLDER, LINE)

_TITLES = {
    "attempt": "#",
    "corpus_accepted": "verdict",
    "pass_s": "pass",
    "padding_ratio": "padding",
    "peak_allocated_bytes": "allocated",
    "peak_reserved_bytes": "reserved",
    "peak_device_used_bytes": "device used",
    "peak_rss_bytes": "host memory",
}


def column(name: str) -> Column:
    """Return the column of a raw-table name."""
    show, right, tone = _look(name)
    widest = 12 if name.endswith("sha256") or name == "manifest" else 28
    if name == "campaign":
        widest = 16
    return Column(name, _TITLES.get(name, name), right, widest, show, tone)


def shown_columns(chosen: Iterable[str], *, many: bool) -> list[Column]:
    """Return the frozen ids, then the chosen columns. ``many``: rows of several campaigns."""
    frozen = ["campaign", "attempt"] if many else ["attempt"]
    return [column(name) for name in [*frozen, *(n for n in chosen if n not in frozen)]]


def shown_value(name: str, value: Any) -> str:
    """Return one value as its column shows it."""
    return _look(name)[0](value)


_Look = tuple[Callable[[Any], str], bool, Callable[[Any], str] | None]


def _look(name: str) -> _Look:
    if name == "status":
        return _status, False, _status_tone
    if name == "corpus_accepted":
        return _verdict, False, lambda value: "good" if value else "bad"
    if name == "excluded":
        return lambda value: state_word("excluded") if value else "-", False, None
    if name in ("ids_match", "format_ok", "quality_ok", "subgroups_ok", "compiled"):
        return _flag, False, None
    if name.endswith("_s"):
        return seconds, True, None
    if name.endswith("_bytes"):
        return size, True, None
    if name in ("quality", "padding_ratio", "energy_j"):
        return _number, True, None
    if name in ("started_at", "ended_at"):
        return _time, False, None
    if name in _COUNTS:
        return words, True, None
    return words, False, None


_COUNTS = frozenset(
    [
        "attempt",
        "round",
        "position",
        "seed",
        "batch_size",
        "max_length",
        "prefetch",
        "threads",
        "finished_entries",
        "expected_ids",
        "observed_ids",
        "truncated_entries",
    ]
)


def _status(value: str | None) -> str:
    return state_word(value) if value else state_word("running")


def _status_tone(value: str | None) -> str:
    return "bad" if value == "failed" else ""


def _verdict(value: bool | None) -> str:
    if value is None:
        return "-"
    return state_word("accepted" if value else "rejected")


def _flag(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}" if abs(value) < 1e6 else f"{value:.4g}"


def _time(value: datetime | None) -> str:
    return "-" if value is None else value.strftime("%Y-%m-%d %H:%M:%SZ")
