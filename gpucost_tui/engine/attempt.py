"""One attempt from load to written predictions: whatever happens ends in an outcome (R19, R21)."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gpucost_tui.engine import rows
from gpucost_tui.engine.contract import (
    Engine,
    FailureKind,
    Job,
    Measured,
    Outcome,
    PassFailed,
    Reporter,
    Status,
)
from gpucost_tui.engine.failures import kind_of, message_of, trace_of
from gpucost_tui.engine.settings import return_freed_memory
from gpucost_tui.environment.process import peak_rss_bytes, reset_peak_rss
from gpucost_tui.tasks import registry

_T = TypeVar("_T")


class Attempting:
    """Carries what is known of one attempt while it runs.

    Args:
        engine: Measures; its three steps are called in this thread.
        job: What to do.
        report: Told of phases.
        stop: Ends the attempt after the current batch, or before the next phase.
    """

    def __init__(self, engine: Engine, job: Job, report: Reporter, stop: threading.Event) -> None:
        self._engine = engine
        self._job = job
        self._report = report
        self._stop = stop
        self._row: dict[str, Any] = {"attempt": job.attempt, "finished_entries": 0}
        self._missing: dict[str, str] = {}
        self._notes: list[str] = []
        self._known: dict[str, Any] = {}  # labels, dimension
        self._devices: list[dict[str, Any]] = []
        self._failure: FailureKind | None = None
        self._error: str | None = None
        self._trace: str | None = None
        self._phase = "before it began"  # where it ended, in words

    def run(self) -> Outcome:
        """Run the attempt. Never raises."""
        return_freed_memory()  # what an earlier, larger variant left is not this one's peak
        rss_reason = reset_peak_rss()
        measured: Measured | None = None
        try:
            measured = self._measure()
        except PassFailed as failed:
            measured = failed.partial
            self._fail(failed)
        except BaseException as error:
            self._fail(error)
        self._take_peaks(rss_reason)
        if measured is not None:
            self._take(measured)
        status = self._status(measured)
        self._explain(status)
        return self._outcome(status)

    def _measure(self) -> Measured | None:
        """Run the phases; None where a stop came before the pass."""
        engine, job, report, stop = self._engine, self._job, self._report, self._stop
        self._row.update(rows.requested(job))
        self._notes.append(rows.requested_note(job))
        if stop.is_set():
            return None
        self._phase = "while the model was loaded"
        report.phase("load")
        loaded = engine.load(job, report)
        self._row.update(rows.loaded_columns(loaded))
        self._known = {"labels": loaded.labels, "dimension": loaded.dimension}
        self._add(loaded)
        if stop.is_set():
            return None
        compiles = job.execution.get("compile", "none") != "none"
        self._phase = "during the warm-up"
        report.phase("compile" if compiles else "warm-up")
        warmed = engine.warm_up(job, report, stop)
        if stop.is_set():
            return None
        self._row.update(rows.warmed_columns(warmed))
        self._add(warmed)
        self._phase = "in the pass"
        report.phase("pass")
        return engine.measure(job, report, stop)

    def _add(self, found: Any) -> None:
        self._missing.update(found.missing)
        self._notes.extend(found.notes)

    def _fail(self, error: BaseException) -> None:
        self._failure = kind_of(error)
        self._error = message_of(error)
        self._notes.append(self._error.splitlines()[0])  # a row says why in words (R19)
        self._trace = trace_of(error)
        if isinstance(error, PassFailed):
            error.partial = None
        del error
        if self._failure == "out-of-memory":
            gc.collect()

    def _take_peaks(self, rss_reason: str | None) -> None:
        self._guarded(self._peak_memory, None)
        peak, why = peak_rss_bytes()
        if rss_reason is not None:
            peak, why = None, rss_reason
        self._row["peak_rss_bytes"] = peak
        if why is not None:
            self._missing["peak_rss_bytes"] = why

    def _peak_memory(self) -> None:
        peaks = self._engine.peaks()
        self._devices = rows.device_rows(self._job, peaks)
        row, missing = rows.memory_columns(peaks)
        self._row.update(row)
        self._missing.update(missing)

    def _take(self, measured: Measured) -> None:
        self._row.update(rows.measured_columns(measured))
        self._add(measured)
        if measured.ids:
            self._report.phase("write")
            self._guarded(lambda: self._write(measured), None)
        # An attempt that failed or stopped has no duration to compare with a pass (R22).
        if self._failure is not None or measured.stopped:
            self._notes.append(f"ended {measured.pass_s:.3f} s after the pass began")
        elif self._job.timed:
            self._row.update(rows.durations(measured))

    def _write(self, measured: Measured) -> None:
        task = registry.create(self._job.task)
        self._row.update(rows.write_predictions(task, measured, Path(self._job.predictions)))

    def _guarded(self, step: Callable[[], _T], otherwise: _T) -> _T:
        """Run a step after the pass; its failure makes the attempt fail, an earlier one stays."""
        try:
            return step()
        except BaseException as error:
            if self._failure is None:
                self._fail(error)
            else:
                self._notes.append(f"then: {message_of(error)}")
            return otherwise

    def _status(self, measured: Measured | None) -> Status:
        if self._failure is not None:
            return "failed"
        return "stopped" if measured is None or measured.stopped else "completed"

    def _explain(self, status: Status) -> None:
        """Give every empty column its reason (R20)."""
        done = self._row["finished_entries"]
        if status == "completed":
            why = "reference pass: untimed" if not self._job.timed else "not measured"
        else:
            what = "failed" if status == "failed" else "stopped"
            why = f"{what} {self._phase}"
            if self._phase == "in the pass":
                why = f"{what} after {done} of {self._job.entries} entries"
            if self._job.execution.get("compile", "none") == "none":
                self._missing.setdefault("compile_s", "not compiled")
        if budget := self._job.execution.get("token_budget"):
            self._missing.setdefault("batch_size", f"batches by a token budget of {budget:,}")
        for column in COLUMNS:
            if self._row.get(column) is None:
                self._row[column] = None
                self._missing.setdefault(column, why)
        for column in [name for name in self._missing if self._row.get(name) is not None]:
            del self._missing[column]

    def _outcome(self, status: Status) -> Outcome:
        poisoned = self._failure == "device-error"
        return Outcome(
            attempt=self._job.attempt,
            status=status,
            failure=self._failure,
            finished_entries=self._row["finished_entries"],
            row=self._row,
            device_memory=self._devices,
            missing=self._missing,
            notes=self._notes,
            error=self._error.splitlines()[0] if self._error else None,
            trace=self._trace,
            poisoned=poisoned,
            labels=self._known.get("labels"),
            dimension=self._known.get("dimension"),
        )


#: Raw-table columns that this process answers for: each has a value or a reason.
COLUMNS = (
    "batch_size",
    "dtype_requested",
    "dtype_effective",
    "quantization",
    "attention_requested",
    "attention_effective",
    "compiled",
    "padding",
    "max_length",
    "grouping",
    "prefetch",
    "threads",
    "device",
    "devices",
    "load_s",
    "compile_s",
    "warmup_s",
    *rows.PASS_COLUMNS,
    "write_s",
    "truncated_entries",
    "padding_ratio",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "peak_device_used_bytes",
    "peak_rss_bytes",
    "energy_j",
    "predictions_path",
    "predictions_sha256",
)
