"""The measured pass: read, tokenize, transfer, forward, materialize (R14 to R17).

The loop is the one an expert would write by hand for the variant: one synchronization before the
start and one before the stop; inside, predictions come to the host after each batch, which on a
device is the only wait. Phases are read from the host's monotonic clock; on a device the forward
range comes from two events that are read after that wait.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpucost_tui.engine.contract import Measured, PassFailed, Reporter
from gpucost_tui.engine.devices import Accelerator, Sent
from gpucost_tui.engine.failures import failed_batch, kind_of, message_of, trace_of
from gpucost_tui.engine.prefetching import Prefetched
from gpucost_tui.engine.reading import opened
from gpucost_tui.engine.sources import Supply, Work, batches
from gpucost_tui.protocol.execution import Execution
from gpucost_tui.tasks.base import ModelFacts, Task
from gpucost_tui.tasks.encoding import Batch, Encoder

_now = time.perf_counter_ns


@dataclass(slots=True)
class Setup:
    """Everything a pass needs, loaded and warm. ``begin_batch`` is called before each forward."""

    model: Any
    torch: Any
    task: Task
    facts: ModelFacts
    encoder: Encoder
    accelerator: Accelerator
    execution: Execution
    begin_batch: Any = None

    def forward(self, inputs: dict[str, Any]) -> Any:
        """Return the task's output of a batch that is on the device."""
        if self.begin_batch is not None:
            self.begin_batch()
        return self.task.predict(self.model, inputs)


@dataclass(slots=True)
class Tally:
    """What a pass has done so far; nanoseconds. ``supply`` is written by who prepares batches."""

    supply: Supply = field(default_factory=Supply)
    ids: list[str] = field(default_factory=list)
    parts: list[np.ndarray] = field(default_factory=list)
    finished: int = 0
    collate: int = 0
    transfer: int = 0
    forward: int = 0
    materialize: int = 0
    real_tokens: int = 0
    computed_tokens: int = 0
    truncated: int = 0
    last: tuple[int, int] | None = None  # entries and padded length of the batch in work
    stopped: bool = False


class _Ready(NamedTuple):
    """A batch whose tensors are on the device, or on their way there."""

    ids: Sequence[str]
    sent: Sent
    real_tokens: int
    shape: tuple[int, int]
    truncated: int


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
        if failure.partial is not None:
            failure.partial.notes += _failed_batch(tally)
        raise failure
    return _measured(
        setup, tally, columns, elapsed / 1e9, stopped=tally.stopped or not tally.supply.whole
    )


def _traverse(
    setup: Setup, corpus: str, tally: Tally, report: Reporter, stop: threading.Event
) -> None:
    span = setup.accelerator.range()
    with (
        opened(corpus) as reader,
        setup.torch.inference_mode(),
        contextlib.ExitStack() as stack,
    ):
        works = batches(setup.execution, setup.encoder, reader, tally.supply, stop)
        for ready in _prepared(setup, works, tally, stack):
            if stop.is_set():
                tally.stopped = True
                return
            report.batch(*ready.shape)
            _step(setup, ready, tally, span)
            report.progress(tally.finished)


def _prepared(
    setup: Setup, works: Iterable[Work], tally: Tally, stack: contextlib.ExitStack
) -> Iterable[_Ready]:
    """Return the batches on the device: one when it is asked for, or some of them ahead."""
    if not setup.execution.prefetch:
        return (_prepare(setup, work, tally, setup.accelerator.send) for work in works)
    upload = setup.accelerator.uploader()

    def ahead() -> Generator[_Ready, None, None]:
        with setup.torch.inference_mode():  # it belongs to the thread
            for work in works:
                yield _prepare(setup, work, tally, upload.send)

    prefetched = Prefetched(ahead(), setup.execution.prefetch, upload.enter)
    stack.callback(prefetched.close)
    return prefetched


def _prepare(setup: Setup, work: Work, tally: Tally, send: Any) -> _Ready:
    begun = _now()
    batch = setup.task.encode(setup.encoder, work.tokens)
    encoded = _now()
    shape = (len(work.ids), batch.computed_tokens // max(1, len(work.ids)))
    if not setup.execution.prefetch:
        tally.last = shape
    sent = send(tensors(setup, batch))
    tally.collate += encoded - begun
    tally.transfer += _now() - encoded
    truncated = sum(entry.truncated for entry in work.tokens)
    return _Ready(work.ids, sent, batch.real_tokens, shape, truncated)


def _step(setup: Setup, ready: _Ready, tally: Tally, span: Any) -> None:
    task = setup.task
    tally.last = ready.shape
    inputs = ready.sent.arrived()
    span.start()
    output = setup.forward(inputs)
    span.stop()
    launched = _now()
    host = task.materialize(output)
    done = _now()
    tally.forward += span.elapsed_ns()
    tally.materialize += done - launched
    tally.real_tokens += ready.real_tokens
    tally.computed_tokens += ready.shape[0] * ready.shape[1]
    tally.truncated += ready.truncated
    tally.parts.append(host)
    tally.ids.extend(ready.ids)
    tally.finished += len(ready.ids)
    tally.last = None


def tensors(setup: Setup, batch: Batch) -> dict[str, Any]:
    """Return a batch's arrays as tensors on the host, without a copy."""
    from_numpy = setup.torch.from_numpy
    return {name: from_numpy(array) for name, array in batch.arrays.items()}


def to_device(setup: Setup, batch: Batch) -> dict[str, Any]:
    """Return a batch's arrays as tensors on the device, sent in the variant's own way."""
    send = setup.accelerator.send
    if setup.execution.prefetch:
        upload = setup.accelerator.uploader()
        upload.enter()
        send = upload.send
    return send(tensors(setup, batch)).arrived()


def _failed_batch(tally: Tally) -> list[str]:
    """Return the note on the batch that was in work when a pass failed (R21)."""
    if tally.last is None:
        return []
    return [failed_batch(*tally.last)]


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
    supply = tally.supply
    if supply.order is not None:
        order = np.argsort(supply.order[: len(ids)], kind="stable")
        ids = [ids[k] for k in order.tolist()]
    columns = {name: values[order] for name, values in columns.items()}
    return Measured(
        ids=ids,
        order=order.tolist(),
        columns=columns,
        pass_s=elapsed_s,
        read_s=supply.read / 1e9,
        tokenize_s=(supply.tokenize + tally.collate) / 1e9,
        transfer_s=tally.transfer / 1e9,
        forward_s=tally.forward / 1e9,
        materialize_s=tally.materialize / 1e9,
        truncated_entries=tally.truncated,
        padding_ratio=tally.computed_tokens / tally.real_tokens if tally.real_tokens else None,
        stopped=stopped,
        notes=_overlaps(setup),
    )


def _overlaps(setup: Setup) -> list[str]:
    """Return which phases ran beside one another, for the row (R14)."""
    notes = []
    ahead, on_device = setup.execution.prefetch, setup.accelerator.device != "cpu"
    if ahead:
        notes.append(
            f"reading, tokenizing and transfer of up to {ahead} batches ran beside the forward "
            "passes: phases may add up to more than the pass"
        )
    if ahead and on_device:
        notes.append("transfer_s is what pinning and starting the copies took on the host")
    if on_device:
        notes.append(
            "forward_s is a range of device events; materialize_s waits for the device on the "
            "host, so the two overlap and the phases may add up to more than the pass"
        )
    return notes
