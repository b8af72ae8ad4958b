"""The sealed corpus: one canonical JSONL file, written with its facts in one stream."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.corpus.fingerprint import Fingerprint
from gpucost_tui.corpus.read import Entry
from gpucost_tui.corpus.rows import Value
from gpucost_tui.corpus.sources import Source, columns_of, text_lines
from gpucost_tui.errors import EnvironmentLacks, InputError
from gpucost_tui.files import canonical_json, replacing
from gpucost_tui.text import clean
from gpucost_tui.watch import NOBODY, Watch

_CHUNK = 65_536
_RESTORE = "Restore the campaign's sealed files"
_EXACT = 1 << 53  # whole numbers up to here are exact as Float64


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """What a sealed corpus is: number of entries, fingerprint, size, other columns by name."""

    entries: int
    sha256: str
    bytes: int
    columns: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "columns": list(self.columns)}


def write_sealed(entries: Iterable[Entry], path: Path) -> CorpusFacts:
    """Write a corpus as canonical JSONL, all or nothing, and return its facts.

    One object a line: ``id``, ``text`` and the other columns, keys sorted. The ids are unique, as
    :func:`~gpucost_tui.corpus.read.read_entries` makes sure of.

    Raises:
        InputError: There are no entries, or reading them finds a mistake.
        EnvironmentLacks: The file can't be written.
    """
    found = Fingerprint()
    columns: set[str] = set()
    count = size = 0
    try:
        with replacing(path) as scratch:
            with scratch.open("wb") as stream:
                for entry in entries:
                    found.update(entry.id, entry.text)
                    columns.update(entry.other)
                    line = canonical_json({**entry.other, "id": entry.id, "text": entry.text})
                    count += 1
                    size += stream.write(line + b"\n")
            if not count:
                raise InputError("the corpus has no entries", fix="Give at least one entry")
    except OSError as error:
        raise EnvironmentLacks(
            f"the corpus can't be written ({error.strerror or error})",
            where=clean(path),
            fix="Make room, or the folder writable",
        ) from None
    return CorpusFacts(count, found.hexdigest(), size, tuple(sorted(columns)))


def read_sealed(path: Path) -> Iterator[Entry]:
    """Yield the entries of a sealed corpus in order, streaming.

    Raises:
        InputError: The file is not there or not what was sealed, with its line.
    """
    source = _sealed(path)
    file = str(path)
    for number, line in enumerate(text_lines(source), start=1):
        try:
            values = json.loads(line)
            name, text = values.pop("id"), values.pop("text")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise _damaged(source, number) from None
        if not isinstance(name, str) or not isinstance(text, str):
            raise _damaged(source, number)
        yield Entry(name, text, values, file, number)


def _damaged(source: Source, line: int) -> InputError:
    return InputError("the line is no sealed entry", where=source.at(line), fix=_RESTORE)


def sealed_frame(
    path: Path, columns: Sequence[str] | None = None, watch: Watch = NOBODY
) -> pl.DataFrame:
    """Return a sealed corpus as a frame, in order.

    ``id`` and ``text`` are String. Another column gets its type from all of its values, never from
    the first ones: Boolean, Int64 or String where all are so; Float64 where all are numbers that it
    holds exactly; else String, in which a value that is no text stands as its canonical JSON. Where
    an entry lacks the column it is null.

    Args:
        columns: Names to return, in this order; without it ``id``, ``text`` and the others by name.
        watch: Is told of the entries read.

    Raises:
        InputError: A line of the file is damaged, or no entry has such a column.
    """
    wanted = None if columns is None else set(columns)
    fixed: dict[str, list[pl.Series]] = {
        name: [] for name in ("id", "text") if wanted is None or name in wanted
    }
    found: dict[str, list[Value]] = {}
    others_here: set[str] = set()
    height = 0
    for chunk in _chunks(watch.each(read_sealed(path))):
        for name, parts in fixed.items():
            values = [getattr(entry, name) for entry in chunk]
            parts.append(pl.Series(name, values, dtype=pl.String))
        others_here.update(name for entry in chunk for name in entry.other)
        for name in others_here - found.keys():
            if wanted is None or name in wanted:
                found[name] = [None] * height
        for name, others in found.items():
            others.extend(entry.other.get(name) for entry in chunk)
        height += len(chunk)
    if not height:
        raise InputError("the sealed corpus is empty", where=clean(path), fix=_RESTORE)
    made = {name: pl.concat(parts) for name, parts in fixed.items()}
    made |= {name: column(name, found[name]) for name in sorted(found)}
    here = ["id", "text", *sorted(others_here)]
    return pl.DataFrame(_in_order(made, columns, here, path))


def _in_order(
    made: dict[str, pl.Series], columns: Sequence[str] | None, here: Sequence[str], path: Path
) -> dict[str, pl.Series]:
    order = list(made) if columns is None else list(columns)
    missing = [name for name in order if name not in made]
    if missing:
        raise InputError(
            f"there is no column '{clean(missing[0])}' ({columns_of(here)})",
            where=clean(path),
            fix="Correct the name where the protocol has it ([corpus] label_column, [reference] "
            "column, [[quality.subgroups]] column), or give a corpus that has the column",
        )
    return {name: made[name] for name in order}


def column(name: str, values: Sequence[Value]) -> pl.Series:
    """Return values as a series, of the type that :func:`sealed_frame` describes."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds == {int} and all(-(1 << 63) <= v < 1 << 63 for v in values if isinstance(v, int)):
        return pl.Series(name, values, dtype=pl.Int64)
    if (kinds == {float} or kinds == {int, float}) and all(
        abs(v) <= _EXACT for v in values if type(v) is int
    ):
        floats = [float(v) if isinstance(v, int) else v for v in values]
        return pl.Series(name, floats, dtype=pl.Float64)
    return pl.Series(name, [spelled(value) for value in values], dtype=pl.String)


def spelled(value: Value) -> str | None:
    """Return a value as text: text as it is, anything else as its canonical JSON, null as null."""
    return value if value is None or isinstance(value, str) else canonical_json(value).decode()


def _sealed(path: Path) -> Source:
    if not path.is_file():
        raise InputError("the sealed corpus is not there", where=clean(path), fix=_RESTORE)
    return Source(path, "jsonl")


def _chunks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    chunk: list[Entry] = []
    for entry in entries:
        chunk.append(entry)
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
