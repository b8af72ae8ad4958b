"""Entries of a corpus and rows of tuning data, from any of the file formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpucost_tui.corpus.rows import Mistake, Row, Value, read_rows
from gpucost_tui.corpus.sources import Source, columns_of, find_sources
from gpucost_tui.corpus.unique import SeenIds
from gpucost_tui.errors import InputError
from gpucost_tui.text import clean, listed

_RESERVED = ("id", "text")


@dataclass(frozen=True, slots=True)
class Entry:
    """One document.

    ``id`` and ``text`` are as written: no white space is stripped, no Unicode normalized. ``other``
    holds the remaining columns as written (from CSV always text; a list or an object stays one).
    ``line`` is where the entry begins in ``file`` (Parquet: its row), from 1.
    """

    id: str
    text: str
    other: dict[str, Value]
    file: str
    line: int | None


@dataclass(frozen=True, slots=True)
class TuningRow:
    """One text that a configuration was tuned on; an id is welcome and not required (R6)."""

    id: str | None
    text: str
    place: str

    @property
    def name(self) -> str:
        """The id, or the place where there is none."""
        return self.place if self.id is None else self.id


def read_entries(
    sources: Sequence[str | Path], *, id_column: str = "id", text_column: str = "text"
) -> Iterator[Entry]:
    """Yield the entries of several files, or globs, as one corpus in the given order.

    JSONL, CSV (RFC 4180, with a header) and Parquet; JSONL and CSV also as ``.gz``. Streaming, with
    eight bytes of memory an id. Blank lines are skipped. A whole number as id is taken as its
    decimal text; in CSV ``007`` stays ``007``. That ids are unique is known, and said, at the end.

    Raises:
        InputError: The first mistake, with file, line and id: form of the file, missing or empty id
            or text, NUL, a column that would collide, no entries. Ids that repeat (R7).
    """
    found = find_sources(sources)
    seen = SeenIds()
    for source in found:
        for row in read_rows(source):
            entry = _entry(row, id_column, text_column)
            seen.add(entry.id)
            yield entry
    if not len(seen):
        raise no_entries(found)
    seen.refuse_repeated(lambda: ids_again(found, id_column))


def read_tuning(
    sources: Sequence[str | Path], *, id_column: str = "id", text_column: str = "text"
) -> Iterator[TuningRow]:
    """Yield the texts of tuning data; ids may be absent and may repeat.

    Raises:
        InputError: A mistake of form, or a missing text, with file and line.
    """
    found = find_sources(sources)
    count = 0
    for source in found:
        for row in read_rows(source):
            count += 1
            name = None
            try:
                if row.values.get(id_column) is not None:
                    name = identifier(row.values, id_column)
                text = _text(row.values, text_column)
            except Mistake as mistake:
                raise located(mistake, row, id_column) from None
            yield TuningRow(name, text, source.at(row.line))
    if not count:
        raise no_entries(found)


def _entry(row: Row, id_column: str, text_column: str) -> Entry:
    values = row.values
    try:
        name = identifier(values, id_column)
        text = _text(values, text_column)
        other = {key: value for key, value in values.items() if key not in (id_column, text_column)}
        for reserved in _RESERVED:
            if reserved in other:
                raise Mistake(
                    f"the id and text columns are '{clean(id_column)}' and '{clean(text_column)}', "
                    f"but there is a column '{reserved}' too",
                    f"Rename or leave out the column '{reserved}'",
                )
    except Mistake as mistake:
        raise located(mistake, row, id_column) from None
    return Entry(name, text, other, str(row.source.path), row.line)


def identifier(values: dict[str, Value], column: str) -> str:
    """Return a row's id as text: text as written, a whole number as its decimal text.

    Raises:
        Mistake: It is missing, empty, has a NUL, or is of another type.
    """
    value = values.get(column)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise _absent(values, column, "id", "Give the id as text")
    if not value:
        raise Mistake("the id is empty", "Give every entry an id of its own (R7)")
    if "\0" in value:
        raise Mistake("the id has a NUL character", "Leave it out")
    return value


def _text(values: dict[str, Value], column: str) -> str:
    value = values.get(column)
    if not isinstance(value, str):
        raise _absent(values, column, "text", "Give the text as text, in quotes")
    if not value or value.isspace():
        raise Mistake("the text is empty", "Leave the entry out, or give it a text")
    if "\0" in value:
        raise Mistake("the text has a NUL character", "Leave it out")
    return value


def _absent(values: dict[str, Value], column: str, what: str, fix: str) -> Mistake:
    if column not in values:
        return Mistake(
            f"there is no {what}: no column '{clean(column)}' ({columns_of(list(values))})",
            f"Name the column that holds it: --{what}-column",
        )
    value = values[column]
    if value is None:
        return Mistake(f"the {what} is missing (null)", fix)
    shown = {bool: "true or false", list: "a list", dict: "an object"}.get(type(value), "a number")
    return Mistake(f"the {what} is {shown} ({clean(value, limit=40)}), not text", fix)


def located(mistake: Mistake, row: Row, id_column: str) -> InputError:
    """Return the error for a mistake in a row, with file, line and (where there is one) id."""
    name = row.values.get(id_column)
    named = name if isinstance(name, str) and name else None
    return InputError(mistake.what, where=row.source.at(row.line, named), fix=mistake.fix)


def no_entries(found: Sequence[Source]) -> InputError:
    """Return the error for files that hold nothing."""
    return InputError(
        "there are no entries",
        where=listed([str(source.path) for source in found], length=None),
        fix="Give files with at least one entry",
    )


def ids_again(found: Sequence[Source], id_column: str) -> Iterator[tuple[str, str]]:
    """Yield every id with its place: the second reading, which names ids that repeat."""
    for source in found:
        for row in read_rows(source):
            yield identifier(row.values, id_column), source.at(row.line)
