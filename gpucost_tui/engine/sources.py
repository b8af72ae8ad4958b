"""From the corpus to batches of tokens in the order of the pass, inside the measured pass (R16)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gpucost_tui.engine.batching import Batching
from gpucost_tui.engine.reading import CorpusReader
from gpucost_tui.engine.warmup import traversal
from gpucost_tui.protocol.execution import Execution
from gpucost_tui.tasks.encoding import Encoder, Tokens

#: Entries tokenized at a time where all are tokenized first: enough for the tokenizer's threads,
#: few enough to stop in time.
_CHUNK = 512
#: Entries read at a time where a batch's size depends on their tokens.
_LOOK_AHEAD = 64

_now = time.perf_counter_ns


class Work(NamedTuple):
    """A batch before it is padded: ids and tokens of its entries."""

    ids: Sequence[str]
    tokens: Sequence[Tokens]


@dataclass(slots=True)
class Supply:
    """What the way to the batches has cost so far, in nanoseconds, and how far it has come."""

    read: int = 0
    tokenize: int = 0
    order: np.ndarray | None = None  # entry predicted as number k; None: in the corpus's order
    whole: bool = False  # the corpus is finished


def batches(
    execution: Execution,
    encoder: Encoder,
    reader: CorpusReader,
    supply: Supply,
    stop: threading.Event,
) -> Iterator[Work]:
    """Yield the batches of a pass as its execution organizes them."""
    if execution.grouping == "length" or execution.tokenize == "first":
        return _tokenized_first(execution, encoder, reader, supply, stop)
    if execution.token_budget:
        return _by_budget(execution, encoder, reader, supply)
    return _by_size(execution, encoder, reader, supply)


def _by_size(
    execution: Execution, encoder: Encoder, reader: CorpusReader, supply: Supply
) -> Iterator[Work]:
    while True:
        ids, tokens = _take(execution.batch_size, encoder, reader, supply)
        if not ids:
            supply.whole = True
            return
        yield Work(ids, tokens)


def _by_budget(
    execution: Execution, encoder: Encoder, reader: CorpusReader, supply: Supply
) -> Iterator[Work]:
    cutter = Batching.of(execution).cutter()
    waiting = _Waiting()
    while True:
        ids, tokens = _take(_LOOK_AHEAD, encoder, reader, supply)
        for one, entry in zip(ids, tokens, strict=True):
            if cutter.begins(len(entry.ids)) and waiting.ids:
                yield waiting.out()
            waiting.ids.append(one)
            waiting.tokens.append(entry)
        if not ids:
            if waiting.ids:
                yield waiting.out()
            supply.whole = True
            return


@dataclass(slots=True)
class _Waiting:
    ids: list[str] = field(default_factory=list)
    tokens: list[Tokens] = field(default_factory=list)

    def out(self) -> Work:
        work = Work(self.ids, self.tokens)
        self.ids, self.tokens = [], []
        return work


def _take(
    count: int, encoder: Encoder, reader: CorpusReader, supply: Supply
) -> tuple[list[str], list[Tokens]]:
    begun = _now()
    ids, texts = reader.take(count)
    read = _now()
    supply.read += read - begun
    if not ids:
        return [], []
    tokens = encoder.tokens(texts)
    supply.tokenize += _now() - read
    return ids, tokens


def _tokenized_first(
    execution: Execution,
    encoder: Encoder,
    reader: CorpusReader,
    supply: Supply,
    stop: threading.Event,
) -> Iterator[Work]:
    """Read and tokenize everything, then yield batches, of like length where grouped."""
    all_ids: list[str] = []
    all_tokens: list[Tokens] = []
    while not stop.is_set():
        ids, tokens = _take(_CHUNK, encoder, reader, supply)
        if not ids:
            break
        begun = _now()
        all_ids += ids
        all_tokens += [_packed(entry) for entry in tokens]
        supply.tokenize += _now() - begun
    if stop.is_set():
        return
    begun = _now()
    lengths = np.fromiter((len(entry.ids) for entry in all_tokens), np.int32, len(all_tokens))
    order = traversal(lengths, execution.grouping)
    starts = Batching.of(execution).starts(lengths[order].tolist())
    supply.order = order if execution.grouping == "length" else None
    positions = order.tolist()
    bounds = [*starts.tolist(), len(positions)]
    supply.tokenize += _now() - begun
    for first, end in pairwise(bounds):
        chosen = positions[first:end]
        yield Work([all_ids[i] for i in chosen], [all_tokens[i] for i in chosen])
    supply.whole = True


def _packed(entry: Tokens) -> Tokens:
    """Hold ids in four bytes each: the whole corpus is in memory at once."""
    types = None if entry.types is None else np.array(entry.types, dtype=np.int32)
    return Tokens(np.array(entry.ids, dtype=np.int32), types, entry.truncated)
