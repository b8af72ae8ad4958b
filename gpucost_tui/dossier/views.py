"""Folds the tables again and compares them cell by cell with the files (R19, R23)."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gpucost_tui.campaign.fold import State, advance
from gpucost_tui.campaign.journal import Event
from gpucost_tui.campaign.table import device_table, raw_table, table_csv
from gpucost_tui.dossier.findings import NAMED, Findings
from gpucost_tui.errors import Differs
from gpucost_tui.text import clean

#: How a difference ends whose table is only behind the journal.
STALE = "`gpucost run` rebuilds it"

_EARLIER = f"the fold of an earlier journal: stale, {STALE}"


@dataclass(frozen=True, slots=True)
class Views:
    """The tables' bytes as they were before the journal was read; None where there is no file."""

    files: dict[str, bytes | None]


_TABLES: dict[str, Callable[[State], pl.DataFrame]] = {
    "raw_results.csv": raw_table,
    "device_memory.csv": device_table,
    "raw_results.parquet": raw_table,
}


def read_views(folder: Path) -> Views:
    """Read the tables first: they are then never newer than the journal that is read after."""
    return Views({name: _bytes(folder / name) for name in _TABLES})


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return None


def check_views(
    views: Views,
    events: list[Event],
    state: State,
    findings: Findings,
    *,
    live: bool,
    resting: bool,
) -> None:
    """Compare the tables with the fold; one that equals an earlier fold is stale.

    Args:
        views: From :func:`read_views`.
        events: The journal.
        state: Its fold.
        findings: Where differences go.
        live: A runner is at work: its tables follow the journal, a little behind.
        resting: Tables may not lag at all. Otherwise an attempt that has begun and not ended has
            its row later, whatever has become of its runner (it is elsewhere, or lost).
    """
    ended = any(event.event == "run_ended" for event in events)
    cut_off = set() if resting else {attempt.number for attempt in state.unfinished()}
    for name, made in _TABLES.items():
        data = views.files[name]
        if data is None:
            if not state.attempts.keys() - cut_off or (name.endswith(".parquet") and not ended):
                continue
            if live:
                findings.note(f"{name} is not there yet: a runner is at work and writes it")
            else:
                findings.differs(name, f"{len(state.attempts)} attempts", f"no file: {STALE}")
            continue
        findings.checked["tables"] += 1
        expected = made(state)
        if _same(name, data, expected):
            continue
        if cut_off and _same(name, data, made(_without(events, cut_off))):
            findings.note(f"{name} has no row yet of the attempt without end")
            continue
        line = _earlier(name, data, made, events)
        if line is None:
            _cells(name, data, expected, findings)
        elif live:
            findings.note(f"{name} stands at line {line}: a runner is at work and rewrites it")
        elif name.endswith(".parquet") and not _ended_since(events, line):
            findings.note(f"{name} stands at line {line}: it is written at the end of a run")
        else:
            findings.differs(name, f"the fold of line {events[-1].seq}", f"line {line}: {_EARLIER}")


def _without(events: list[Event], attempts: set[int]) -> State:
    """Return the fold as if some attempts had not begun."""
    state = State()
    for event in events:
        if event.event == "attempt_started" and event.data.get("attempt") in attempts:
            continue
        with contextlib.suppress(Differs):
            advance(state, [event])
    return state


def _ended_since(events: list[Event], line: int) -> bool:
    return any(event.event == "run_ended" and event.seq > line for event in events)


def _same(name: str, data: bytes, expected: pl.DataFrame) -> bool:
    if not name.endswith(".parquet"):
        return data == table_csv(expected)
    frame = _parquet(data)
    return frame is not None and frame.equals(expected) and frame.schema == expected.schema


def _parquet(data: bytes) -> pl.DataFrame | None:
    try:
        return pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None


def _earlier(
    name: str, data: bytes, made: Callable[[State], pl.DataFrame], events: list[Event]
) -> int | None:
    """Return the last line whose fold gives these bytes, or None."""
    state, found = State(), None
    height = _height(name, data)
    for event in events:
        try:
            advance(state, [event])
        except Differs:
            continue
        table = made(state)
        if table.height == height and _same(name, data, table):
            found = event.seq
    return found


def _height(name: str, data: bytes) -> int:
    if name.endswith(".parquet"):
        frame = _parquet(data)
        return -1 if frame is None else frame.height
    return max(len(_rows(data)) - 1, 0)


def _rows(data: bytes) -> list[list[str]]:
    text = data.decode("utf-8", "replace")
    try:
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return [[line] for line in text.splitlines()]


def _cells(name: str, data: bytes, expected: pl.DataFrame, findings: Findings) -> None:
    """Name the cells that differ; rows are told apart by their number of attempt."""
    if name.endswith(".parquet"):
        frame = _parquet(data)
        if frame is None or frame.columns != expected.columns:
            findings.differs(name, "the table's Parquet file", "another file")
            return
        try:
            data = table_csv(frame)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            findings.differs(name, "the table's column types", "others")
            return
    wanted, found = _rows(table_csv(expected)), _rows(data)
    if not found or found[0] != wanted[0]:
        findings.differs(f"{name}, first line", ",".join(wanted[0]), ",".join(*found[:1] or [[""]]))
        return
    differing = list(_differing(wanted, found))
    for where, one, other in differing[:NAMED]:
        findings.differs(f"{name}, {where}", one or "empty", clean(other or "empty", limit=200))
    if len(differing) > NAMED:
        findings.differs(name, "no more", f"{len(differing) - NAMED:,} more cells differ")
    if not differing:
        findings.note(f"{name}: the same values in another spelling (of another version).")


def _differing(wanted: list[list[str]], found: list[list[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield what differs: whole rows first, then cells."""
    rows, there = _keyed(wanted[1:]), _keyed(found[1:])
    for key in rows:
        if key not in there:
            yield f"attempt {key}", "a row", "no row"
    for key in there:
        if key not in rows:
            yield f"attempt {clean(key, limit=40)}", "no such row", "a row"
    common = [key for key in rows if key in there]
    if common != [key for key in there if key in rows]:
        yield "order of rows", ", ".join(common[:NAMED]), ", ".join(list(there)[:NAMED])
    for key in common:
        if len(there[key]) != len(rows[key]):
            yield f"attempt {key}", f"{len(rows[key])} cells", f"{len(there[key])} cells"
        for column, one, other in zip(wanted[0], rows[key], there[key], strict=False):
            if one != other and not _same_number(one, other):
                yield f"attempt {key}, {column}", one, other


def _same_number(one: str, other: str) -> bool:
    """Whether two cells are one number: 0.00001 and 1e-5."""
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def _keyed(rows: list[list[str]]) -> dict[str, list[str]]:
    """Return rows by their first cell; a second one of the same number gets a mark."""
    keyed: dict[str, list[str]] = {}
    for row in rows:
        key = row[0] if row else ""
        while key in keyed:
            key += "+"
        keyed[key] = row
    return keyed
