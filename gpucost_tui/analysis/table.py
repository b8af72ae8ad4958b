"""Reads a raw table that this program wrote or that somebody filled by hand (CSV or Parquet).

The columns are those of :mod:`gpucost_tui.campaign.columns`; each may be left out except the ones
asked for, and is then empty throughout. Accepted, because unambiguous: a BOM, any line ends,
commas, semicolons or tabs between cells, column names and closed lists in other case, ``TRUE``,
``yes`` or ``1`` for a flag, ``5.0`` for 5, empty rows, empty columns at the end, columns of one's
own (left aside with a note). Refused with a sentence: a decimal comma, a time without its offset,
``NaN``, a column name that is nearly one of ours (its figures would silently be missing), and
every impossible value. Values are never inferred: ``007`` stays ``007`` where text belongs.
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.analysis.cells import (
    CHOICES,
    BadCell,
    bounded,
    parse,
)
from gpucost_tui.campaign.schema import SCHEMA
from gpucost_tui.errors import InputError, WrongUse
from gpucost_tui.text import clean, listed

#: Columns without which a row says nothing about durations.
FOR_COMPARE = ("status", "pass_s")
#: Columns without which no verdict can be counted.
FOR_DECIDE = ("configuration", "status", "corpus_accepted")
_LARGEST_CELL = 1 << 20


@dataclass(frozen=True)
class RawTable:
    """A raw table as read: ``frame`` has every column of the schema, in its order.

    ``lines`` gives for each row the line of the CSV file (or the row of the Parquet file, from 1).
    ``notes`` are sentences about what was left aside.
    """

    frame: pl.DataFrame
    name: str
    lines: list[int]
    notes: list[str] = field(default_factory=list)


def read_table(path: Path, needed: Collection[str] = ("status",)) -> RawTable:
    """Read a raw table.

    Args:
        path: A ``.csv`` or ``.parquet`` file.
        needed: Columns that must be there, such as :data:`FOR_COMPARE` or :data:`FOR_DECIDE`.

    Raises:
        WrongUse: The file is neither CSV nor Parquet.
        InputError: The file can't be read, or a column, row or cell is wrong; it is named.
    """
    shown = clean(path)
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise WrongUse(
            "a raw table is a .csv or a .parquet file", where=shown, fix="Export it as one of them"
        )
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", where=shown, fix="Check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"the file can't be read: {clean(reason)}", where=shown, fix="Check path and permission"
        ) from None
    table = (
        _from_csv(data, shown, needed) if suffix == ".csv" else _from_parquet(data, shown, needed)
    )
    _check_rows(table)
    return table


def _from_csv(data: bytes, name: str, needed: Collection[str]) -> RawTable:
    header, records, lines = _records(_text(data, name), name)
    columns, notes = _columns(header, records, name, needed)
    series = []
    for column, kind in SCHEMA.items():
        if column not in columns:
            series.append(pl.Series(column, [None] * len(records), dtype=kind))
            continue
        at = columns[column]
        cells = pl.Series(column, [record[at] for record in records], dtype=pl.String)
        series.append(_typed(cells, kind, name, [f"line {line}" for line in lines]))
    return RawTable(pl.DataFrame(series), name, lines, notes)


def _text(data: bytes, name: str) -> str:
    fix = "Save it as CSV in UTF-8"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("the file is UTF-16", where=name, fix=fix)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        what = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise InputError(what, where=f"{name}, line {line}", fix=fix) from None
    if "\x00" in text:
        line = 1 + text.count("\n", 0, text.index("\x00"))
        what = "there is a NUL character: this is no text file"
        raise InputError(what, where=f"{name}, line {line}", fix=fix)
    return text


def _records(text: str, name: str) -> tuple[list[str], list[list[str]], list[int]]:
    """Split CSV text into header, records and the line on which each record begins."""
    before = csv.field_size_limit(_LARGEST_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    header: list[str] = []
    records: list[list[str]] = []
    lines: list[int] = []
    line = 1
    try:
        while True:
            line = reader.line_num + 1
            record = next(reader, None)
            if record is None:
                break
            if not any(cell.strip() for cell in record):
                continue
            if not header:
                header = record
                continue
            records.append(_fitted(record, len(header), f"{name}, line {line}"))
            lines.append(line)
    except csv.Error as error:
        what = f"the quotes or the length of a cell are wrong ({clean(error)})"
        fix = 'Put a cell with quotes in quotes, and write " as ""'
        raise InputError(what, where=f"{name}, line {line}", fix=fix) from None
    finally:
        csv.field_size_limit(before)
    if not header:
        fix = "The first line names the columns; data/raw_results_template.csv is the empty sheet"
        raise InputError("the file is empty", where=name, fix=fix)
    return header, records, lines


def _delimiter(text: str) -> str:
    """Return the mark that splits the header into the most columns of ours."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    known = {name.casefold() for name in SCHEMA}

    def hits(mark: str) -> int:
        return sum(cell.strip().strip('"').casefold() in known for cell in first.split(mark))

    return max((",", ";", "\t"), key=hits)


def _fitted(record: list[str], width: int, where: str) -> list[str]:
    if len(record) > width and not any(cell.strip() for cell in record[width:]):
        return record[:width]
    if len(record) != width:
        raise InputError(
            f"{len(record)} cells where the header has {width} columns",
            where=where,
            fix="Give every column a cell, empty where unknown; quote one that has the separator",
        )
    return record


def _columns(
    header: Sequence[str], records: Sequence[Sequence[str]], name: str, needed: Collection[str]
) -> tuple[dict[str, int], list[str]]:
    """Return where each known column stands, and notes on the columns left aside."""
    by_fold = {column.casefold(): column for column in SCHEMA}
    found: dict[str, int] = {}
    aside: list[str] = []
    for at, written in enumerate(header):
        word = written.strip()
        column = by_fold.get(word.casefold())
        if column is None:
            if word:
                _refuse_near(word, name)
                aside.append(word)
            elif any(record[at].strip() for record in records):
                what = f"column {at + 1} has cells and no name"
                raise InputError(what, where=f"{name}, line 1", fix="Name it or remove it")
        elif column in found:
            what = f"column '{column}' is there twice"
            raise InputError(what, where=f"{name}, line 1", fix="Remove one of them")
        else:
            found[column] = at
    _refuse_lacking(found, name, needed)
    return found, _aside(aside)


def _refuse_near(word: str, name: str) -> None:
    squashed = word.casefold().replace(" ", "_").replace("-", "_")
    near = difflib.get_close_matches(squashed, SCHEMA, n=1, cutoff=0.85)
    if near:
        raise InputError(
            f"column '{clean(word, limit=60)}' is nearly '{near[0]}', and is not it",
            where=f"{name}, line 1",
            fix=f"Write '{near[0]}', or give your own column a name that can't be mistaken",
        )


def _refuse_lacking(found: Collection[str], name: str, needed: Collection[str]) -> None:
    lacking = [column for column in needed if column not in found]
    if lacking:
        word = "column is" if len(lacking) == 1 else "columns are"
        raise InputError(
            f"the {word} missing: {', '.join(lacking)}",
            where=name,
            fix="data/raw_results_template.csv has every column",
        )


def _aside(words: Sequence[str]) -> list[str]:
    if not words:
        return []
    verb = "is no column" if len(words) == 1 else "are no columns"
    return [f"{listed(list(words))} {verb} of the raw table: left aside."]


def _typed(cells: pl.Series, kind: Any, name: str, places: Sequence[str]) -> pl.Series:
    """Cast a column of text, all at once where it is plainly written, else cell by cell."""
    column = cells.name
    cells = cells.replace("", None)
    if kind == pl.String and column not in CHOICES:
        return cells
    if kind not in (pl.Int64, pl.Float64):
        return _cell_by_cell(cells, cells.is_not_null(), None, kind, name, places)
    fast = cells.cast(kind, strict=False)
    doubtful = fast.is_null() | cells.str.contains(r"[^0-9.+\-eE]")
    if kind == pl.Float64:
        doubtful |= ~fast.is_finite()
    doubtful |= (fast < 1e-9) | (fast > 1e9)  # the bounds of columns are judged on the cell
    return _cell_by_cell(cells, doubtful & cells.is_not_null(), fast, kind, name, places)


def _cell_by_cell(
    cells: pl.Series,
    doubtful: pl.Series,
    fast: pl.Series | None,
    kind: Any,
    name: str,
    places: Sequence[str],
) -> pl.Series:
    """Read the doubtful cells one by one, each spelling once, so that a wrong one can be named."""
    if fast is not None and not doubtful.any():
        return fast
    values = fast.to_list() if fast is not None else [None] * len(cells)
    written = cells.to_list()
    read: dict[str, Any] = {}
    for at in doubtful.fill_null(value=False).arg_true():
        cell = written[at]
        if cell not in read:
            try:
                read[cell] = parse(cells.name, kind, cell)
            except BadCell as problem:
                raise _located(problem, cell, cells.name, name, places[at]) from None
        values[at] = read[cell]
    return pl.Series(cells.name, values, dtype=kind)


def _located(problem: BadCell, cell: Any, column: str, name: str, place: str) -> InputError:
    what = f"'{clean(cell, limit=60)}': {problem}"
    if what.endswith("with its reason in"):
        what += " 'missing'"
    return InputError(what, where=f"{name}, {place}, column {column}")


def _from_parquet(data: bytes, name: str, needed: Collection[str]) -> RawTable:
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except Exception as error:  # whatever the reader meets, it is the file's fault
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"this is no readable Parquet file: {clean(first, limit=200)}",
            where=name,
            fix="Export it again, or use CSV",
        ) from None
    columns, notes = _columns(frame.columns, [], name, needed)
    lines = list(range(1, frame.height + 1))
    places = [f"row {line}" for line in lines]
    series = [
        _converted(frame.to_series(columns[column]).alias(column), kind, name, places)
        if column in columns
        else pl.Series(column, [None] * frame.height, dtype=kind)
        for column, kind in SCHEMA.items()
    ]
    return RawTable(pl.DataFrame(series), name, lines, notes)


def _converted(values: pl.Series, kind: Any, name: str, places: Sequence[str]) -> pl.Series:
    column = values.name
    found = values.dtype
    if found == pl.Null:
        return values.cast(kind)
    if found in (pl.String, pl.Categorical, pl.Enum):
        return _typed(values.cast(pl.String).fill_null(""), kind, name, places)
    fits = (
        (kind == pl.Boolean and found == pl.Boolean)
        or (kind in (pl.Int64, pl.Float64) and found.is_integer())
        or (kind == pl.Float64 and (found.is_float() or found.is_decimal()))
        or (kind == pl.Int64 and found.is_float())
        or (isinstance(found, pl.Datetime) and found.time_zone and isinstance(kind, pl.Datetime))
    )
    if not fits:
        what = f"the column holds {clean(found)}, and {clean(kind)} is expected"
        raise InputError(what, where=f"{name}, column {column}", fix="Export it with that type")
    if isinstance(kind, pl.Datetime):
        return values.dt.convert_time_zone("UTC").dt.cast_time_unit("us")
    cast = values.cast(kind, strict=False)
    same = (cast == values).fill_null(value=True) & (cast.is_not_null() | values.is_null())
    for at in (~same).arg_true():
        problem = BadCell("a whole number of at most 64 bits is expected")
        raise _located(problem, values[at], column, name, places[at])
    if kind != pl.Boolean:
        _check_numbers(cast, name, places)
    return cast


def _check_numbers(values: pl.Series, name: str, places: Sequence[str]) -> None:
    for at, value in enumerate(values):
        if value is None:
            continue
        try:
            if value != value or value in (float("inf"), float("-inf")):
                raise BadCell("a finite number is expected; a missing one is null")
            bounded(values.name, value)
        except BadCell as problem:
            raise _located(problem, value, values.name, name, places[at]) from None


def _check_rows(table: RawTable) -> None:
    """Refuse what no single cell shows: a result without status, an attempt on two rows (R19).

    A row without status and duration is an attempt that still runs.
    """
    frame = table.frame
    place = "line" if table.name.lower().endswith(".csv") else "row"
    ended = frame["pass_s"].is_not_null() | frame["corpus_accepted"].is_not_null()
    for at in (frame["status"].is_null() & ended).arg_true():
        raise InputError(
            "the row has a result and no status",
            where=f"{table.name}, {place} {table.lines[at]}",
            fix=f"Write one of {', '.join(CHOICES['status'])}",
        )
    seen: dict[tuple[Any, ...], int] = {}
    keys = frame.select("manifest", "campaign", "host", "attempt").rows()
    for at, key in enumerate(keys):
        if key[-1] is None:
            continue
        if key in seen:
            raise InputError(
                f"attempt {key[-1]} stands on {place} {table.lines[seen[key]]} already: "
                "one row is one attempt",
                where=f"{table.name}, {place} {table.lines[at]}",
                fix="Number the attempts, each once, or leave the column empty",
            )
        seen[key] = at
