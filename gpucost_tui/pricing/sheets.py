"""Reads CSV bytes that somebody else wrote: every fault is told with its line."""

from __future__ import annotations

import csv
import io
import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from gpucost_tui.errors import InputError
from gpucost_tui.text import clean

#: The largest file that is read; published price lists have a few megabytes.
LIMIT_BYTES = 64 << 20
LONGEST_CELL = 131_072  # characters
_TAKE_AWAY = "Take it away"
_COMMAS = "Save it as CSV with commas, in UTF-8"
_BREAK = re.compile(r"\r\n|\r|\n")


class Problem(NamedTuple):
    """A mistake in a file: its line (from 1), what is wrong, what to do."""

    line: int
    what: str
    fix: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}. {self.fix}."


class Row(NamedTuple):
    """One record: the line it begins on, and its cells by column."""

    line: int
    cells: dict[str, str]


class Sheet(NamedTuple):
    """What could be read of a file; ``problems`` says what could not."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]


def read_bytes(path: Path, *, regular: bool = False) -> bytes:
    """Return a file's bytes.

    Args:
        path: The file; a pipe or a device too, where a person names it.
        regular: Only a regular file: nothing that might wait for a writer or never end.

    Raises:
        InputError: It is not there, not readable, or too large.
    """
    shown = clean(path)
    try:
        with open(path, "rb", opener=_at_once if regular else None) as stream:
            if regular and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise InputError("it is a pipe or a device, no file", where=shown, fix=_TAKE_AWAY)
            data = stream.read(LIMIT_BYTES + 1)
    except FileNotFoundError:
        raise InputError("there is no such file", where=shown, fix="Check the path") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(
            f"the file can't be read: {clean(reason)}", where=shown, fix="Check path and permission"
        ) from None
    if len(data) > LIMIT_BYTES:
        raise InputError(
            f"the file is larger than {LIMIT_BYTES >> 20} MiB",
            where=shown,
            fix="Keep the rows that you need",
        )
    return data


def _at_once(path: str, flags: int) -> int:
    """Open without waiting for whoever writes into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_sheet(data: bytes) -> Sheet:
    """Read the bytes of a CSV file: UTF-8, commas, a header; BOM, LF, CRLF and CR are all read.

    Cells stay as written. A record with more or fewer cells than the header is a problem; reading
    goes on after it. Bytes that are no text, or quotes that never close, end the reading.
    """
    decoded = _decode(data)
    if isinstance(decoded, Problem):
        return Sheet((), (), (decoded,))
    reader = csv.reader(io.StringIO(decoded, newline=""), strict=True)
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    problems: list[Problem] = []
    while True:
        line = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            problems.append(_broken(line, str(error)))
            break
        if not record:
            continue
        if any(len(cell) > LONGEST_CELL for cell in record):
            # The library's own limit is the whole process's: a corpus that was read raised it.
            problems.append(_too_long(line))
            break
        if not columns:
            fault = _header_fault(line, record)
            if fault:
                return Sheet((), (), (fault,))
            columns = tuple(record)
        elif len(record) != len(columns):
            what = f"{len(record):,} cells where the header has {len(columns)} columns"
            problems.append(Problem(line, what, "Give every column a cell, empty where unknown"))
        else:
            rows.append(Row(line, dict(zip(columns, record, strict=True))))
    if not columns and not problems:
        problems.append(Problem(1, "the file is empty", "A header and rows are expected"))
    return Sheet(columns, tuple(rows), tuple(problems))


def _decode(data: bytes) -> str | Problem:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Problem(1, "the file is UTF-16", _COMMAS)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        return Problem(line, f"byte 0x{data[error.start]:02x} is not UTF-8", _COMMAS)
    at = text.find("\x00")
    if at >= 0:
        line = 1 + len(_BREAK.findall(text, 0, at))
        return Problem(line, "there is a NUL character: this is no text file", _COMMAS)
    return text


def _too_long(line: int) -> Problem:
    return Problem(line, f"a cell is longer than {LONGEST_CELL:,} characters", "Shorten it")


def _broken(line: int, message: str) -> Problem:
    if "field larger" in message:
        return _too_long(line)
    if "unexpected end" in message:
        return Problem(line, "a cell's opening quote is never closed", 'Close it with "')
    return Problem(
        line, "a quote stands inside a cell", 'Put the whole cell in quotes, and write " as ""'
    )


def _header_fault(line: int, header: list[str]) -> Problem | None:
    if len(header) == 1:
        for mark, name in ((";", "semicolons"), ("\t", "tabs")):
            if mark in header[0]:
                return Problem(line, f"columns are separated by {name}, not commas", _COMMAS)
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        shown = clean(twice, limit=40)
        return Problem(line, f"column '{shown}' is there twice", "Remove one of them")
    return None


def refuse(name: str, problems: tuple[Problem, ...] | list[Problem]) -> None:
    """Raise an error for the first problem of a file, with the count of the others; none: return.

    Raises:
        InputError: There is a problem.
    """
    if not problems:
        return
    first, more = problems[0], len(problems) - 1
    others = f" ({more:,} more)" if more else ""
    raise InputError(first.what + others, where=f"{clean(name)}, line {first.line}", fix=first.fix)
