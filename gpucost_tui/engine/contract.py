"""What goes into an engine and what comes out: plain data, the same through a pipe or a queue.

``Job`` is sent by the runner. ``Engine`` does the work, in a background worker thread of the
measuring process; :mod:`gpucost_tui.engine.worker` drives it, times phases, types failures, writes
the predictions and answers with an ``Outcome``. Everything here is JSON-serializable through
``dataclasses.asdict``; this module imports no torch.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

#: Phases of an attempt in order; the live view names the one that runs.
PHASES = ("load", "compile", "warm-up", "pass", "write", "evaluate")

Status = Literal["completed", "failed", "stopped", "interrupted"]
#: out-of-memory, fallback (a setting silently not honoured), device-error (the device context is
#: poisoned; a fresh process is needed), killed (the measuring process died), error (anything else)
FailureKind = Literal["out-of-memory", "fallback", "device-error", "killed", "error"]


@dataclass(frozen=True, slots=True)
class Job:
    """One pass, asked of a measuring process."""

    attempt: int
    corpus: str  # path of the sealed JSONL: one object a line with at least "id" and "text"
    entries: int
    model: str  # folder with the model's files
    model_sha256: str  # fingerprint over the files: same value, same weights, keep them loaded
    task: dict[str, Any]  # the protocol's task table: "name" and options
    execution: dict[str, Any]  # Execution.model_dump(mode="json") of the variant
    warmup: dict[str, Any]  # Warmup.model_dump(mode="json")
    cache: str  # "keep" or "drop"
    seed: int
    timed: bool  # False for the reference pass of round 0: no duration is reported
    predictions: str  # path of the Parquet file to write; its folder exists
    allow_remote_code: bool = False
    allow_pickle: bool = False

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(slots=True)
class DeviceMemory:
    """Memory of one device at one moment or at its peak, in bytes; ``None`` with its reason.

    ``allocated`` follows tensors, ``reserved`` the allocator (this process); ``used`` is the
    driver's figure over every process on the device, ``own`` its figure for this process alone.
    They are never added (R30).
    """

    index: int
    name: str
    uuid: str | None = None
    capacity_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    used_bytes: int | None = None
    own_bytes: int | None = None
    utilization_percent: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    missing: dict[str, str] = field(default_factory=dict)  # field name -> reason
    # Of a peak: the phase in which it was reached, and the seconds since the attempt began.
    fell: dict[str, tuple[str, float]] = field(default_factory=dict)  # field name -> both


@dataclass(slots=True)
class Loaded:
    """What loading found: requested settings as they took effect."""

    load_s: float | None  # None: the weights were kept from an earlier attempt
    dtype_effective: str
    attention_effective: str
    device: str  # "cpu", "cuda:0"
    devices: list[str]  # every device used
    threads: int
    labels: list[str] | None = None  # the model's labels in order, for a classifier
    dimension: int | None = None  # length of a vector, for an embedding
    quantization: str = "none"  # scheme in effect, with what computes it
    missing: dict[str, str] = field(default_factory=dict)  # raw-table column -> reason
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Warmed:
    warmup_s: float
    compile_s: float | None = None
    compiled: bool = False
    attention_effective: str | None = None  # refined by what the warm-up saw: sdpa's kernel
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Measured:
    """A pass over the corpus, whole or stopped after a batch.

    ``columns`` are the task's columns of predictions (arrays or lists, one item a finished entry),
    aligned with ``ids``; ``order`` is the position at which each entry was predicted (0-based).
    Durations in seconds; phases overlap nowhere unless ``notes`` says so.
    """

    ids: list[str]
    order: Sequence[int]
    columns: dict[str, Any]
    pass_s: float
    read_s: float | None
    tokenize_s: float | None
    transfer_s: float | None
    forward_s: float | None
    materialize_s: float | None
    truncated_entries: int
    padding_ratio: float | None  # tokens computed over real tokens
    energy_j: float | None = None  # of the devices, by the driver's counter
    stopped: bool = False
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Reporter(Protocol):
    """Where an engine says what it is doing. The calls are cheap and never block."""

    def phase(self, name: str) -> None: ...

    def batch(self, entries: int, width: int) -> None:
        """Say which batch is in work: its entries, padded to ``width`` tokens."""

    def progress(self, finished: int) -> None: ...


class Engine(Protocol):
    """One measuring engine. A worker calls load, warm_up, measure in this order, in one thread."""

    def describe(self) -> dict[str, Any]:
        """Return versions and devices for the host record: what only this process sees."""

    def load(self, job: Job, report: Reporter) -> Loaded: ...

    def warm_up(self, job: Job, report: Reporter, stop: threading.Event) -> Warmed:
        """Warm up by the protocol's rule; return early when ``stop`` is set."""

    def measure(self, job: Job, report: Reporter, stop: threading.Event) -> Measured:
        """Run the pass; leave after the current batch when ``stop`` is set.

        Raises:
            PassFailed: With the entries finished before it.
        """

    def peaks(self) -> list[DeviceMemory]:
        """Return peak memory per device since the attempt began (empty without a device)."""

    def sample(self) -> list[DeviceMemory]:
        """Return memory now; called from another thread, must not touch the pass."""

    def release(self) -> None:
        """Free the model and the device's cache."""


class PassFailed(Exception):
    """A pass that ended in a failure, with what it had finished (R21)."""

    def __init__(
        self, kind: FailureKind, message: str, *, partial: Measured | None = None, trace: str = ""
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.partial = partial
        self.trace = trace


@dataclass(slots=True)
class Outcome:
    """How an attempt ended: what the runner puts into the journal.

    ``row`` holds raw-table columns by name (see ``gpucost_tui/campaign/columns.py``); a column that
    is absent or None has its reason in ``missing``.
    """

    attempt: int
    status: Status
    failure: FailureKind | None
    finished_entries: int
    row: dict[str, Any]
    device_memory: list[dict[str, Any]]
    missing: dict[str, str]
    notes: list[str]
    error: str | None = None  # first line, for screens
    trace: str | None = None  # full traceback, for failure.txt
    poisoned: bool = False  # this process must not be used again
    labels: list[str] | None = None  # of the model, in order, for a classifier
    dimension: int | None = None  # length of a vector, for an embedding

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


Emit = Callable[[dict[str, Any]], None]
