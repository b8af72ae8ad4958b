"""The measuring engine over torch and transformers, for the CPU, CUDA and ROCm.

Everything that imports torch does so when the engine is built: in the worker thread of the
measuring process, never in the parent.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gpucost_tui.engine.attention import implementation
from gpucost_tui.engine.batching import Batching
from gpucost_tui.engine.compiling import Compilations, Compiler, compilations, inside_pass
from gpucost_tui.engine.contract import (
    DeviceMemory,
    Job,
    Loaded,
    Measured,
    PassFailed,
    Reporter,
    Warmed,
)
from gpucost_tui.engine.devices import Accelerator, resolve
from gpucost_tui.engine.memory import DeviceMeter
from gpucost_tui.engine.reading import forget_cached, opened
from gpucost_tui.engine.settings import (
    apply,
    check_products,
    keep_freed_memory,
    prepare_environment,
    seed,
    switches,
)
from gpucost_tui.environment.devices import Driver
from gpucost_tui.errors import InputError
from gpucost_tui.protocol.execution import Execution, conflicts
from gpucost_tui.tasks import registry

_CHUNK = 1024  # entries tokenized at a time when the warm-up is planned


def _default_driver() -> Driver:
    from gpucost_tui.environment.drivers import find_driver

    return find_driver()


class TorchEngine:
    """Implements :class:`gpucost_tui.engine.contract.Engine`.

    Args:
        find_driver: Opens the device driver for sampled memory.
    """

    def __init__(self, find_driver: Callable[[], Driver] = _default_driver) -> None:
        prepare_environment()
        self._keeps_memory = keep_freed_memory()
        begun = time.perf_counter()
        import torch
        import transformers

        log: Any = transformers.logging
        log.set_verbosity_error()
        log.disable_progress_bar()
        _ = transformers.AutoModel, transformers.AutoTokenizer  # loaded lazily: now, not in load_s
        # What is imported stays: a collection before a pass, or inside one, need not walk it.
        gc.collect()
        gc.freeze()
        self.import_s = time.perf_counter() - begun
        self._torch = torch
        self._meter = DeviceMeter(find_driver)
        self._accelerator: Accelerator | None = None
        self._kept: tuple[Any, ...] | None = None
        self._loaded: Any = None
        self._setup: Any = None
        self._compiler = Compiler(torch)
        self._lengths: dict[tuple[Any, ...], tuple[np.ndarray, int]] = {}

    def describe(self) -> dict[str, Any]:
        from gpucost_tui.environment import framework

        return {
            **framework.describe(),
            "versions": framework.installed(),
            "import_s": self.import_s,
            "allocator_keeps_freed_memory": self._keeps_memory,
            "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
            "cpu_capability": self._torch.backends.cpu.get_cpu_capability(),
        }

    # -- phases ------------------------------------------------------------------------------

    def load(self, job: Job, report: Reporter) -> Loaded:
        from gpucost_tui.engine import loading
        from gpucost_tui.engine.passes import Setup

        execution = Execution.model_validate(job.execution)
        _refuse_conflicts(execution)
        task = registry.create(job.task)
        self._setup = None
        threads = apply(self._torch, execution)
        seed(self._torch, job.seed)
        wanted = resolve(execution.device, self._torch)
        key = _identity(job, execution, wanted.device)
        if key != self._kept:
            self.release()  # the previous variant's weights go first
        self._accelerator = wanted
        check_products(self._torch, execution, wanted.device)
        wanted.empty_cache()  # what an earlier variant's activations left is no peak of this one
        wanted.reset_peaks()
        self._meter.reset("load")
        load_s: float | None = None
        if key != self._kept:
            begun = time.perf_counter()
            self._loaded = loading.load_model(job, execution, task, wanted.device)
            wanted.synchronize()
            load_s = time.perf_counter() - begun
            self._kept = key
        encoder = loading.make_encoder(self._loaded, execution)
        self._setup = Setup(
            model=self._compiler.model(self._loaded.model, execution),
            torch=self._torch,
            task=task,
            facts=self._loaded.facts,
            encoder=encoder,
            accelerator=wanted,
            execution=execution,
            begin_batch=self._compiler.begin_batch(execution),
        )
        facts = self._loaded.facts
        return Loaded(
            load_s=load_s,
            dtype_effective=self._loaded.dtype_effective,
            attention_effective=self._loaded.attention_effective,
            device=wanted.device,
            devices=[wanted.device],
            threads=threads,
            labels=list(facts.labels) if facts.labels is not None else None,
            dimension=facts.dimension,
            quantization=self._loaded.quantization,
            missing={} if load_s is not None else {"load_s": "already loaded"},
            notes=[
                *self._loaded.notes,
                *loading.limits_note(self._loaded, execution),
                switches(self._torch, execution, job.seed),
            ],
        )

    def warm_up(self, job: Job, report: Reporter, stop: threading.Event) -> Warmed:
        from gpucost_tui.engine.warming import Warming

        setup = self._ready()
        compiles = setup.execution.compile != "none"
        self._meter.enter(setup.accelerator, "compile" if compiles else "warm-up")
        begun = time.perf_counter()
        notes = self._check_direct(setup, job)
        lengths, highest = self._token_lengths(job, stop)
        self._check_ids(highest)
        planned = time.perf_counter() - begun
        warming = Warming(setup, self._loaded.model, job, self._compiler)
        warmed = warming.run(lengths, _Metered(report, self._meter, setup.accelerator), stop)
        warmed.warmup_s += planned
        warmed.notes[:0] = notes
        return warmed

    def measure(self, job: Job, report: Reporter, stop: threading.Event) -> Measured:
        from gpucost_tui.engine.passes import run_pass

        setup = self._ready()
        notes = [_drop_cache(job.corpus)] if job.cache == "drop" else []
        seed(self._torch, job.seed)
        self._meter.enter(setup.accelerator, "pass")
        self._meter.begin_pass(setup.accelerator, {os.getpid(), os.getppid()})
        before = compilations()
        try:
            measured = run_pass(setup, job.corpus, report, stop)
        except PassFailed as failure:
            if failure.kind != "device-error":
                gc.collect()
                setup.accelerator.empty_cache()
            raise
        seen = self._meter.end_pass(setup.accelerator)
        measured.energy_j = seen.energy_j
        if seen.reason is not None:
            measured.missing["energy_j"] = seen.reason
        measured.notes.extend([*notes, *seen.notes])
        self._recompiled(job, compilations().since(before), measured)
        return measured

    def _recompiled(self, job: Job, made: Compilations, measured: Measured) -> None:
        refuse = job.warmup.get("recompilation") == "refuse"
        try:
            said = inside_pass(made, refuse=refuse)
        except PassFailed as failure:
            failure.partial = measured
            raise
        measured.notes += [said] if said else []

    def operations(self, job: Job) -> dict[str, Callable[[], Any]]:
        """Return the operations of one batch, to be timed alone: the corpus is that batch."""
        from gpucost_tui.engine.passes import to_device

        setup = self._ready()
        with opened(job.corpus) as reader:
            texts = reader.take(job.entries)[1]
        tokens = setup.encoder.tokens(texts)
        batch = setup.task.encode(setup.encoder, tokens)
        with self._torch.inference_mode():
            inputs = to_device(setup, batch)
            # A copy: recorded device graphs write the next output into the same memory.
            output = setup.forward(inputs).clone()
        return {
            "tokenize": lambda: setup.encoder.tokens(texts),
            "collate": lambda: setup.task.encode(setup.encoder, tokens),
            "transfer": lambda: to_device(setup, batch),
            "forward": lambda: setup.forward(inputs),
            "materialize": lambda: setup.task.materialize(output),
        }

    # -- memory ------------------------------------------------------------------------------

    def peaks(self) -> list[DeviceMemory]:
        return self._meter.peaks(self._accelerator) if self._accelerator else []

    def sample(self) -> list[DeviceMemory]:
        accelerator = self._accelerator
        return self._meter.sample(accelerator) if accelerator else []

    def release(self) -> None:
        self._setup = None
        self._compiler.forget()
        self._loaded = self._kept = None
        gc.collect()
        if self._accelerator is not None:
            self._accelerator.empty_cache()

    # -- parts of the warm-up ----------------------------------------------------------------

    def _ready(self) -> Any:
        if self._setup is None:
            raise RuntimeError("load comes before warm_up and measure")
        return self._setup

    def _check_direct(self, setup: Any, job: Job) -> list[str]:
        """Hold the direct way to the tokenizer against the library's call, on real entries."""
        with opened(job.corpus) as reader:
            texts = reader.take(32)[1]
        if setup.encoder.agrees(texts):
            return []
        return ["this tokenizer is called the long way: its own call gives other ids"]

    def _token_lengths(self, job: Job, stop: threading.Event) -> tuple[np.ndarray, int]:
        """Return tokens per entry after truncation, and the highest id; kept for later attempts."""
        encoder = self._ready().encoder
        found = os.stat(job.corpus)  # noqa: PTH116 - one call, its fields make the key
        key = (job.corpus, found.st_size, found.st_mtime_ns, job.model_sha256, encoder.max_length)
        if key not in self._lengths:
            sizes: list[int] = []
            highest = 0
            with opened(job.corpus) as reader:
                while texts := reader.take(_CHUNK)[1]:
                    for entry in encoder.tokens(texts):
                        sizes.append(len(entry.ids))
                        highest = max(highest, *entry.ids, 0)
                    if stop.is_set():
                        return np.asarray(sizes, dtype=np.int32), highest
            self._lengths = {key: (np.asarray(sizes, dtype=np.int32), highest)}
        return self._lengths[key]

    def _check_ids(self, highest: int) -> None:
        rows = self._loaded.vocabulary
        setup = self._ready()
        if Batching.of(setup.execution).pads:
            highest = max(highest, setup.encoder.tokenizer.pad_token_id or 0)
        if rows is not None and highest >= rows:
            raise InputError(
                f"the tokenizer gives token {highest} and the model knows {rows} tokens: the pass "
                "would end with an index error",
                where="model",
                fix="Tokenizer and model do not belong together: take the model's own",
            )


class _Metered:
    """Tells the meter of a phase that begins inside a step, and then who asked to be told."""

    def __init__(self, report: Reporter, meter: DeviceMeter, accelerator: Accelerator) -> None:
        self._report = report
        self._meter = meter
        self._accelerator = accelerator

    def phase(self, name: str) -> None:
        self._meter.enter(self._accelerator, name)
        self._report.phase(name)

    def batch(self, entries: int, width: int) -> None:
        self._report.batch(entries, width)

    def progress(self, finished: int) -> None:
        self._report.progress(finished)


def _refuse_conflicts(execution: Execution) -> None:
    for conflict in conflicts(execution):
        raise InputError(conflict.what, where=f"execution.{conflict.key}", fix=conflict.fix)


def _identity(job: Job, execution: Execution, device: str) -> tuple[Any, ...]:
    """Return what must be equal for loaded weights to be kept."""
    return (
        job.model_sha256,
        job.model,
        job.task.get("name"),
        execution.dtype,
        execution.tf32,
        execution.quantization,
        implementation(execution.attention),
        device,
        job.allow_remote_code,
        job.allow_pickle,
    )


def _drop_cache(corpus: str) -> str:
    try:
        forget_cached(corpus)
    except OSError as error:
        return f"page cache: the corpus could not be dropped ({error.strerror})"
    return "page cache: the kernel was asked to forget the corpus file before the pass"
