"""The measured pass: read, tokenize, transfer, forward, materialize (R14 to R17).

The loop is the one an expert would write by hand for the variant: one synchronization before the
start and one before the stop; inside, predictions come to the host after each batch, which on a
device is the only wait. Phases are read from the host's monotonic clock; on a device the forward
range comes from two events that are read after that wait.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpucost_tui.engine.contract import Measured, PassFailed, Reporter
from gpucost_tui.engine.devices import Accelerator
from gpucost_tui.engine.failures import kind_of, message_of, trace_of
from gpucost_tui.engine.reading import CorpusReader, opened
from gpucost_tui.engine.warmup import traversal
from gpucost_tui.protocol.execution import Execution
from gpucost_tui.tasks.base import ModelFacts, Task
from gpucost_tui.tasks.encoding import Batch, Encoder, Tokens

#: Entries tokenized at a time where all are tokenized first: enough for the tokenizer's threads,
#: few enough to stop in time.
_CHUNK = 512

_now = time.perf_counter_ns


@dataclass(slots=True)
class Setup:
    """Everything a pass needs, loaded and warm."""

    model: Any
    torch: Any
    task: Task
    facts: ModelFacts
    encoder: Encoder
    accelerator: Accelerator
    execution: Execution


@dataclass(slots=True)
class Tally:
    """What a pass has done so far; nanoseconds."""

    ids: list[str] = field(default_factory=list)
    order: np.ndarray | None = None  # entry predicted as number k; None: in the corpus's order
    parts: list[np.ndarray] = field(default_factory=list)
    finished: int = 0
    read: int = 0
    tokenize: int = 0
    transfer: int = 0
    forward: int = 0
    materialize: int = 0
    real_tokens: int = 0
    computed_tokens: int = 0
    truncated: int = 0
    whole: bool = False  # the corpus is finished


class _Work(NamedTuple):
    ids: Sequence[str]
    tokens: Sequence[Tokens]


def run_pass(setup: Setup, corpus: str, report: Reporter, stop: threading.Event) -> Measured:
    """Run one pass over a corpus.

    Returns:
        Predictions in the corpus's order; ``stopped`` where ``stop`` ended it after a batch.

    Raises:
        PassFailed: With the entries finished before the failure, and their predictions.
    """
    tally = Tally()
    gc.collect()  # the same state before every pass
    setup.accelerator.synchronize()
    start = _now()
    failure: PassFailed | None = None
    try:
        _traverse(setup, corpus, tally, report, stop)
        columns_from = _now()
        columns = setup.task.columns(tally.parts, setup.facts)
        tally.materialize += _now() - columns_from
        setup.accelerator.synchronize()
        elapsed = _now() - start
    except Exception as error:
        # Text only: the exception and its frames hold the batch's tensors.
        failure = PassFailed(kind_of(error), message_of(error), trace=trace_of(error))
        del error
    if failure is not None:
        failure.partial = _rescued(setup, tally, (_now() - start) / 1e9)
        raise failure
    return _measured(setup, tally, columns, elapsed / 1e9, stopped=not tally.whole)


def _traverse(
    setup: Setup, corpus: str, tally: Tally, report: Reporter, stop: threading.Event
) -> None:
    source = _grouped if setup.execution.grouping == "length" else _in_order
    span = setup.accelerator.range()
    with opened(corpus) as reader, setup.torch.inference_mode():
        for work in source(setup, reader, tally, stop):
            if stop.is_set():
                return
            _step(setup, work, tally, span)
            report.progress(tally.finished)


def _step(setup: Setup, work: _Work, tally: Tally, span: Any) -> None:
    task = setup.task
    begun = _now()
    batch = task.encode(setup.encoder, work.tokens)
    encoded = _now()
    inputs = to_device(setup, batch)
    transferred = _now()
    span.start()
    output = task.predict(setup.model, inputs)
    span.stop()
    launched = _now()
    host = task.materialize(output)
    done = _now()
    tally.tokenize += encoded - begun
    tally.transfer += transferred - encoded
    tally.forward += span.elapsed_ns()
    tally.materialize += done - launched
    tally.real_tokens += batch.real_tokens
    tally.computed_tokens += batch.computed_tokens
    tally.truncated += sum(entry.truncated for entry in work.tokens)
    tally.parts.append(host)
    tally.ids.extend(work.ids)
    tally.finished += len(work.ids)


def to_device(setup: Setup, batch: Batch) -> dict[str, Any]:
    """Return a batch's arrays as tensors on the device."""
    from_numpy = setup.torch.from_numpy
    if setup.accelerator.device == "cpu":
        return {name: from_numpy(array) for name, array in batch.arrays.items()}
    device = setup.accelerator.device
    return {name: from_numpy(array).to(device) for name, array in batch.arrays.items()}


def _in_order(
    setup: Setup, reader: CorpusReader, tally: Tally, stop: threading.Event
) -> Iterator[_Work]:
    """Yield batches as the corpus has them."""
    size, encoder = setup.execution.batch_size, setup.encoder
    while True:
        begun = _now()
        ids, texts = reader.take(size)
        read = _now()
        tally.read += read - begun
        if not ids:
            tally.whole = True
            return
        tokens = encoder.tokens(texts)
        tally.tokenize += _now() - read
        yield _Work(ids, tokens)


def _grouped(
    setup: Setup, reader: CorpusReader, tally: Tally, stop: threading.Event
) -> Iterator[_Work]:
    """Read and tokenize everything, then yield batches of like length, the longest first."""
    all_ids: list[str] = []
    all_tokens: list[Tokens] = []
    while not stop.is_set():
        begun = _now()
        ids, texts = reader.take(_CHUNK)
        read = _now()
        tally.read += read - begun
        if not ids:
            break
        all_ids += ids
        all_tokens += [_packed(entry) for entry in setup.encoder.tokens(texts)]
        tally.tokenize += _now() - read
    if stop.is_set():
        return
    begun = _now()
    lengths = np.fromiter((len(entry.ids) for entry in all_tokens), np.int32, len(all_tokens))
    tally.order = traversal(lengths, "length")
    positions = tally.order.tolist()
    tally.tokenize += _now() - begun
    size = setup.execution.batch_size
    for first in range(0, len(positions), size):
        chosen = positions[first : first + size]
        yield _Work([all_ids[i] for i in chosen], [all_tokens[i] for i in chosen])
    tally.whole = True


def _packed(entry: Tokens) -> Tokens:
    """Hold ids in four bytes each: the whole corpus is in memory at once."""
    types = None if entry.types is None else np.array(entry.types, dtype=np.int32)
    return Tokens(np.array(entry.ids, dtype=np.int32), types, entry.truncated)


def _rescued(setup: Setup, tally: Tally, elapsed_s: float) -> Measured | None:
    """Return what was finished before a failure; None where not even that can be put together."""
    try:
        columns = setup.task.columns(tally.parts, setup.facts)
    except MemoryError:
        return None
    return _measured(setup, tally, columns, elapsed_s, stopped=True)


def _measured(
    setup: Setup, tally: Tally, columns: dict[str, Any], elapsed_s: float, *, stopped: bool
) -> Measured:
    """Put the entries back in the corpus's order; not part of the pass."""
    ids = tally.ids[: sum(len(part) for part in tally.parts)]
    order = np.arange(len(ids))
    if tally.order is not None:
        order = np.argsort(tally.order[: len(ids)], kind="stable")
        ids = [ids[k] for k in order.tolist()]
    columns = {name: values[order] for name, values in columns.items()}
    notes = []
    if setup.accelerator.device != "cpu":
        notes.append(
            "forward_s is a range of device events; materialize_s waits for the device on the "
            "host, so the two overlap and the phases may add up to more than the pass"
        )
    return Measured(
        ids=ids,
        order=order.tolist(),
        columns=columns,
        pass_s=elapsed_s,
        read_s=tally.read / 1e9,
        tokenize_s=tally.tokenize / 1e9,
        transfer_s=tally.transfer / 1e9,
        forward_s=tally.forward / 1e9,
        materialize_s=tally.materialize / 1e9,
        truncated_entries=tally.truncated,
        padding_ratio=tally.computed_tokens / tally.real_tokens if tally.real_tokens else None,
        stopped=stopped,
        notes=notes,
    )
