"""Rows of JSONL, CSV and Parquet files: a dictionary of plain values with its place."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import polars as pl
from polars.datatypes import DataTypeClass

from gpucost_tui.corpus.sources import MAX_LINE_BYTES, Source, text_lines, unreadable
from gpucost_tui.errors import InputError
from gpucost_tui.files import canonical_json
from gpucost_tui.text import clean, count

#: A value of a column, as JSON has it. CSV gives text alone.
Value = str | int | float | bool | None | list[Any] | dict[str, Any]

_PARQUET_ROWS = 16_384
_MAX_DEPTH = 64
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_AS_TEXT = (pl.Categorical, pl.Enum, pl.Decimal, pl.Date, pl.Datetime, pl.Time)
_PLAIN = (pl.String, pl.Boolean, pl.Null)


class Row(NamedTuple):
    """One entry as a file has it. ``line`` is where it begins (Parquet: its row), from 1."""

    source: Source
    line: int
    values: dict[str, Value]


class Mistake(ValueError):
    """What is wrong with one row, and what to do; the reader of the row knows the place."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


def read_rows(source: Source) -> Iterator[Row]:
    """Yield a file's rows in order, streaming.

    Raises:
        InputError: A mistake of form, with file and line.
    """
    if source.kind == "jsonl":
        return _jsonl(source)
    return _csv(source) if source.kind == "csv" else _parquet(source)


# JSONL ------------------------------------------------------------------------------------------


def _jsonl(source: Source) -> Iterator[Row]:
    for number, line in enumerate(text_lines(source), start=1):
        written = line.rstrip(" \t\r\n")
        if not written:
            continue
        try:
            yield Row(source, number, parse_object(written))
        except Mistake as mistake:
            raise InputError(mistake.what, where=source.at(number), fix=mistake.fix) from None


def parse_object(line: str) -> dict[str, Value]:
    """Return the object that a line holds.

    Raises:
        Mistake: It is no JSON, no object, has a key twice, a number that isn't finite, or a lone
            surrogate, which has no UTF-8.
    """
    fix = "Write one JSON object a line, with its id and text"
    try:
        found = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        problem = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        raise Mistake(f"not valid JSON: {problem}", fix) from None
    except RecursionError:
        raise Mistake("the JSON is nested too deeply", fix) from None
    except Mistake:
        raise
    except ValueError:  # int() refuses thousands of digits
        raise Mistake("a number has too many digits", "Write it in quotes") from None
    if not isinstance(found, dict):
        raise Mistake(f"a JSON {_json_name(found)} stands where an object belongs", fix)
    _check(found)
    if _SURROGATE.search(line):
        _encodable(found)
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Mistake(f"key '{clean(twice, limit=80)}' stands twice", "Leave one of them")
    return found


def _no_constant(name: str) -> NoReturn:
    raise Mistake(f"{name} is no JSON number", "Write null where a value is missing")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


def _check(value: dict[str, Any] | list[Any], depth: int = 1) -> None:
    if depth > _MAX_DEPTH:
        raise Mistake("the JSON is nested too deeply", "Write nested values as text")
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, float) and not math.isfinite(item):
            raise Mistake("a number is not finite", "Write null where a value is missing")
        if isinstance(item, list | dict):
            _check(item, depth + 1)


def _encodable(value: dict[str, Any]) -> None:
    try:
        canonical_json(value)
    except UnicodeEncodeError:
        raise Mistake(
            "the line has half of a surrogate pair (\\ud800 to \\udfff), which is no character",
            "Export the text again as UTF-8",
        ) from None


def _json_name(value: Any) -> str:
    names = {list: "array", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "number")


# CSV --------------------------------------------------------------------------------------------


def _csv(source: Source) -> Iterator[Row]:
    # The limit is the process's own; the default (131,072) is below a long document.
    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(text_lines(source), strict=True)
    header: list[str] | None = None
    while True:
        start = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            raise _csv_mistake(source, start, error) from None
        if not fields:
            continue
        if header is None:
            header = _header(source, start, fields)
            continue
        if len(fields) != len(header):
            raise InputError(
                f"the row has {count(len(fields), 'field')}, the header {len(header)}",
                where=source.at(start),
                fix="Quote fields that hold commas or line breaks",
            )
        yield Row(source, start, dict(zip(header, fields, strict=True)))
    if header is None:
        raise InputError(
            "the file is empty: a CSV file begins with a header",
            where=clean(source.path),
            fix="Write the names of the columns in the first line",
        )


def _header(source: Source, line: int, names: list[str]) -> list[str]:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(
            f"column '{clean(twice[0], limit=80)}' stands twice in the header",
            where=source.at(line),
            fix="Give every column a name of its own",
        )
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise InputError(
            "the header is one column: fields are separated by commas here (RFC 4180)",
            where=source.at(line),
            fix="Export the file with commas instead of semicolons or tabs",
        )
    return names


def _csv_mistake(source: Source, line: int, error: csv.Error) -> InputError:
    message = str(error)
    if "unexpected end of data" in message:
        what, fix = "a quoted field that begins here is never closed", "Close the quote"
    elif "field larger" in message:
        what = f"a field is longer than {MAX_LINE_BYTES:,} characters"
        fix = "Look for a quote that is never closed"
    elif "new-line character" in message:
        what = "a carriage return stands outside quotes"
        fix = "End lines with LF or CR LF, and quote fields that hold line breaks"
    else:
        what, fix = f"not valid CSV: {message}", "Double the quotes inside a quoted field"
    return InputError(what, where=source.at(line), fix=fix)


# Parquet ----------------------------------------------------------------------------------------


def _parquet(source: Source) -> Iterator[Row]:
    offset = 0
    while True:
        frame = _slice(source, offset)
        if not frame.height:
            return
        columns = [_plain(source, series).to_list() for series in frame.get_columns()]
        for index, values in enumerate(zip(*columns, strict=True), start=offset + 1):
            row = dict(zip(frame.columns, values, strict=True))
            try:
                _check(row)
            except Mistake as mistake:
                raise InputError(mistake.what, where=source.at(index), fix=mistake.fix) from None
            yield Row(source, index, row)
        offset += frame.height


def _slice(source: Source, offset: int) -> pl.DataFrame:
    try:
        lazy = pl.scan_parquet(source.path, glob=False, hive_partitioning=False)
        return lazy.slice(offset, _PARQUET_ROWS).collect()
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as error:
        raise unreadable(source.path, error) from None
    except TypeError:  # what the library makes of a path that is no UTF-8
        raise InputError(
            "the file's name is not UTF-8", where=clean(source.path), fix="Rename the file"
        ) from None
    except pl.exceptions.PanicException as error:  # a BaseException: the library gave up
        raise unreadable(source.path, ValueError(f"damaged Parquet: {error}")) from None


def _plain(source: Source, series: pl.Series) -> pl.Series:
    if isinstance(series.dtype, _AS_TEXT):
        return series.cast(pl.String)
    if not _is_plain(series.dtype):
        raise InputError(
            f"column '{clean(series.name, limit=80)}' holds {clean(series.dtype)}, "
            "which a corpus can't carry",
            where=clean(source.path),
            fix="Leave the column out, or write it as text",
        )
    return series


def _is_plain(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.List | pl.Array) and dtype.inner is not None:
        return _is_plain(_instance(dtype.inner))
    if isinstance(dtype, pl.Struct):
        return all(_is_plain(_instance(field.dtype)) for field in dtype.fields)
    return isinstance(dtype, _PLAIN) or dtype.is_integer() or dtype.is_float()


def _instance(dtype: DataTypeClass | pl.DataType) -> pl.DataType:
    return dtype if isinstance(dtype, pl.DataType) else dtype()
