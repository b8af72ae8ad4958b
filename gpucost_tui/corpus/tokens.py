"""Lengths in tokens of the model's tokenizer, and the strata made from them (R12).

Only the ``tokenizers`` library is needed: what the parent process knows of tokens costs it no
import of torch or transformers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpucost_tui.corpus.fingerprint import Named
from gpucost_tui.errors import EnvironmentLacks, InputError
from gpucost_tui.protocol.model import Stratum
from gpucost_tui.text import clean

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BATCH_TEXTS = 1024
_BATCH_CHARACTERS = 1 << 18
_SCHEMA = {"id": pl.String, "tokens": pl.Int64, "stratum": pl.String}
_SUMMARY = {
    "stratum": pl.String,
    "entries": pl.Int64,
    "expected_entries": pl.Int64,
    "min_tokens": pl.Int64,
    "median_tokens": pl.Float64,
    "max_tokens": pl.Int64,
    "total_tokens": pl.Int64,
}


def load_tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer of a model's folder, as its ``tokenizer.json`` describes it.

    Truncation and padding that the file may declare are switched off: a length is counted whole.

    Raises:
        EnvironmentLacks: The folder has no ``tokenizer.json``.
        InputError: The file is damaged.
    """
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise EnvironmentLacks(
            "the model's folder has no tokenizer.json"
            if folder.is_dir()
            else "the model's folder is not there",
            where=clean(folder),
            fix="Save the model with its fast tokenizer: transformers' save_pretrained of a fast "
            "tokenizer writes tokenizer.json",
        )
    try:
        tokenizer = Tokenizer.from_buffer(path.read_bytes())
    except Exception as error:  # the library raises bare Exception
        raise InputError(
            f"the tokenizer can't be read ({_first_line(error)})",
            where=clean(path),
            fix="Download or save the model's files again",
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def count_tokens(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[int]:
    """Yield the number of tokens of each text, special tokens included, in order.

    Raises:
        InputError: The tokenizer can't encode a text.
    """
    for batch in _batches(texts):
        yield from _lengths(tokenizer, batch)


def strata_frame(
    tokenizer: Tokenizer, entries: Iterable[Named], strata: Sequence[Stratum]
) -> pl.DataFrame:
    """Return the length of each entry and the stratum it falls in, in order.

    Columns: ``id`` String, ``tokens`` Int64 (special tokens included, nothing truncated),
    ``stratum`` String: the first whose ``max_tokens`` is not below ``tokens``; null where the
    protocol declares no strata.

    Raises:
        InputError: The tokenizer can't encode a text, named by its id.
    """
    ids: list[str] = []
    parts = [pl.DataFrame(schema=_SCHEMA)]
    for texts in _batches(_remembered(entries, ids)):
        # The batcher may have drawn one entry more than it gave out.
        names = ids[: len(texts)]
        del ids[: len(texts)]
        tokens = np.array(_lengths(tokenizer, texts, names), dtype=np.int64)
        parts.append(
            pl.DataFrame(
                {"id": names, "tokens": tokens, "stratum": _strata_of(tokens, strata)},
                schema=_SCHEMA,
            )
        )
    return pl.concat(parts, rechunk=True)


def truncated(frame: pl.DataFrame, max_length: int) -> int:
    """Return how many entries of a :func:`strata_frame` lose tokens at ``max_length``."""
    return int((frame["tokens"] > max_length).sum())


def strata_summary(frame: pl.DataFrame, strata: Sequence[Stratum]) -> pl.DataFrame:
    """Return one row per declared stratum, in the protocol's order; empty ones too.

    Columns: ``stratum``, ``entries``, ``expected_entries`` (null: none declared), ``min_tokens``,
    ``median_tokens``, ``max_tokens`` (null: no entries), ``total_tokens``. Without strata one row
    describes the whole corpus, its ``stratum`` null.
    """
    parts: list[tuple[str | None, int | None, pl.DataFrame]] = [
        (s.name, s.entries, frame.filter(pl.col("stratum") == s.name)) for s in strata
    ]
    rows = [
        (
            name,
            part.height,
            expected,
            part["tokens"].min(),
            part["tokens"].median(),
            part["tokens"].max(),
            part["tokens"].sum(),
        )
        for name, expected, part in parts or [(None, None, frame)]
    ]
    return pl.DataFrame(rows, schema=_SUMMARY, orient="row")


def _strata_of(tokens: np.ndarray, strata: Sequence[Stratum]) -> list[str | None]:
    if not strata:
        return [None] * len(tokens)
    bounds = [s.max_tokens for s in strata if s.max_tokens is not None]
    return [strata[index].name for index in np.searchsorted(bounds, tokens, side="left")]


def _remembered(entries: Iterable[Named], ids: list[str]) -> Iterator[str]:
    for entry in entries:
        ids.append(entry.id)
        yield entry.text


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Group texts so that a batch is bounded in number and in characters: encodings are large."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        if batch and (len(batch) == _BATCH_TEXTS or characters + len(text) > _BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch


def _lengths(
    tokenizer: Tokenizer, texts: list[str], names: Sequence[str] | None = None
) -> list[int]:
    try:
        return [len(encoding) for encoding in tokenizer.encode_batch_fast(texts)]
    except Exception as error:  # the library raises bare Exception
        index = next((i for i, text in enumerate(texts) if not _encodes(tokenizer, text)), None)
        name = None if index is None or names is None else f"id '{clean(names[index], limit=80)}'"
        raise InputError(
            f"the model's tokenizer can't encode a text ({_first_line(error)})",
            where=name,
            fix="Use a tokenizer with an unknown token, or leave the entry out",
        ) from None


def _encodes(tokenizer: Tokenizer, text: str) -> bool:
    try:
        tokenizer.encode(text)
    except Exception:  # asked only whether it can
        return False
    return True


def _first_line(error: Exception) -> str:
    return clean(next(iter(str(error).splitlines()), type(error).__name__), limit=200)
