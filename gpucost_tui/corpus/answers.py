"""Reference answers: exactly one for every entry of the corpus (R27)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import polars as pl

from gpucost_tui.corpus.identifiers import compare_ids
from gpucost_tui.corpus.read import identifier, ids_again, located, no_entries
from gpucost_tui.corpus.rows import Mistake, Value, read_rows
from gpucost_tui.corpus.sources import columns_of, find_sources
from gpucost_tui.corpus.unique import SeenIds
from gpucost_tui.errors import InputError
from gpucost_tui.text import clean

#: A label, or a vector.
Answer = str | list[float]

_CHUNK = 16_384
_FIX = "Give a label as text, or a vector as a list of numbers (JSONL, Parquet)"


def read_answers(
    sources: Sequence[str | Path], *, id_column: str = "id", answer_column: str = "answer"
) -> Iterator[tuple[str, Answer]]:
    """Yield (id, answer) of several files, or globs, in order, streaming.

    An answer is a label or a vector, the same kind throughout, vectors of one length. A label that
    the file has as a whole number or a truth value is taken as its JSON spelling (``3``, ``true``).
    That ids are unique is known, and said, at the end.

    Raises:
        InputError: With file, line and id: a mistake of form, a missing or empty answer, another
            kind or length than before. Ids that repeat.
    """
    found = find_sources(sources)
    seen = SeenIds()
    shape: str | None = None
    for source in found:
        for row in read_rows(source):
            try:
                name = identifier(row.values, id_column)
                answer = _answer(row.values, answer_column)
                shape = _same_shape(shape, answer)
            except Mistake as mistake:
                raise located(mistake, row, id_column) from None
            seen.add(name)
            yield name, answer
    if not len(seen):
        raise no_entries(found)
    seen.refuse_repeated(lambda: ids_again(found, id_column))


def answers_for(
    ids: pl.Series | Sequence[str],
    answers: Iterable[tuple[str, Answer]],
    *,
    where: str | None = None,
) -> pl.DataFrame:
    """Return the answers in the order of the corpus: ``id`` String, ``answer`` String or
    List(Float64).

    Args:
        ids: Of every entry of the corpus, in order.
        answers: One for each of them, in any order.
        where: What to name in an error, such as the reference's file.

    Raises:
        InputError: Entries without an answer, answers without an entry, or more than one; named.
    """
    frame = answers_frame(answers)
    check = compare_ids(ids, frame["id"])
    if not check.ids_match:
        raise InputError(
            f"the answers don't fit the corpus: {check.explain()}",
            where=where,
            fix="Give every entry of the corpus exactly one answer, and no others (R27)",
        )
    if check.in_order:
        return frame
    order = pl.Series("id", ids, dtype=pl.String).to_frame()
    return order.join(frame, on="id", how="left", maintain_order="left")


def answers_frame(answers: Iterable[tuple[str, Answer]]) -> pl.DataFrame:
    """Return answers in their own order, in the columns of :func:`answers_for`."""
    parts: list[pl.DataFrame] = []
    stream = iter(answers)
    while chunk := list(islice(stream, _CHUNK)):
        kind = pl.String if isinstance(chunk[0][1], str) else pl.List(pl.Float64)
        schema = {"id": pl.String, "answer": kind}
        parts.append(pl.DataFrame(chunk, schema=schema, orient="row"))
    if not parts:
        return pl.DataFrame(schema={"id": pl.String, "answer": pl.String})
    return pl.concat(parts, rechunk=True)


def _answer(values: dict[str, Value], column: str) -> Answer:
    if column not in values:
        raise Mistake(
            f"there is no answer: no column '{clean(column)}' ({columns_of(list(values))})",
            "Name the column that holds it: --answer-column",
        )
    value = values[column]
    if value is None or value in ("", []):
        raise Mistake("the answer is missing or empty", "Give every entry an answer")
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return _vector(value)
    raise Mistake(f"the answer is neither a label nor a vector ({clean(value, limit=40)})", _FIX)


def _vector(value: list[object]) -> list[float]:
    try:
        return [_component(item) for item in value]
    except OverflowError:
        raise Mistake("a component of the vector is too large", _FIX) from None


def _component(item: object) -> float:
    if isinstance(item, bool) or not isinstance(item, int | float):
        raise Mistake(
            f"the vector has a component that is no number ({clean(item, limit=40)})", _FIX
        )
    return float(item)


def _same_shape(before: str | None, answer: Answer) -> str:
    shape = "a label" if isinstance(answer, str) else f"a vector of {len(answer):,} components"
    if before is not None and shape != before:
        raise Mistake(
            f"the answer is {shape}, after {before} in the entries before",
            "Give answers of one kind, and vectors of one length",
        )
    return shape
