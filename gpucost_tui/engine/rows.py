"""From what an engine measured to the raw-table columns that the measuring process knows (R19)."""

from __future__ import annotations

import dataclasses
import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gpucost_tui.engine.contract import DeviceMemory, Job, Loaded, Measured, Warmed
from gpucost_tui.files import replacing, sha256_file
from gpucost_tui.protocol.execution import Execution, requested_columns, requested_words
from gpucost_tui.tasks.base import Task

#: Durations of a pass; a pass that did not run to its end has none of them.
PASS_COLUMNS = ("pass_s", "read_s", "tokenize_s", "transfer_s", "forward_s", "materialize_s")


def requested(job: Job) -> dict[str, Any]:
    """Return the columns that are known before anything is tried."""
    settings = Execution.model_validate(job.execution)
    return {
        "attempt": job.attempt,
        "seed": job.seed,
        "model_sha256": job.model_sha256,
        **requested_columns(settings),
        "cache_policy": job.cache,
    }


def requested_note(job: Job) -> str:
    """Return what was asked for beside those columns."""
    return requested_words(Execution.model_validate(job.execution))


def loaded_columns(loaded: Loaded) -> dict[str, Any]:
    return {
        "dtype_effective": loaded.dtype_effective,
        "attention_effective": loaded.attention_effective,
        "quantization": loaded.quantization,
        "threads": loaded.threads,
        "device": loaded.device,
        "devices": " | ".join(loaded.devices),
        "load_s": loaded.load_s,
    }


def warmed_columns(warmed: Warmed) -> dict[str, Any]:
    found: dict[str, Any] = {
        "warmup_s": warmed.warmup_s,
        "compile_s": warmed.compile_s,
        "compiled": warmed.compiled,
    }
    if warmed.attention_effective is not None:
        found["attention_effective"] = warmed.attention_effective
    return found


def measured_columns(measured: Measured) -> dict[str, Any]:
    return {
        "finished_entries": len(measured.ids),
        "truncated_entries": measured.truncated_entries,
        "padding_ratio": measured.padding_ratio,
    }


def durations(measured: Measured) -> dict[str, Any]:
    """Return the durations of a whole, timed pass, in seconds, and its energy in joules."""
    return {name: getattr(measured, name) for name in (*PASS_COLUMNS, "energy_j")}


def memory_columns(peaks: list[DeviceMemory]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the peaks' maxima over the devices, and the reasons of those that are missing."""
    names = {
        "peak_allocated_bytes": "allocated_bytes",
        "peak_reserved_bytes": "reserved_bytes",
        "peak_device_used_bytes": "used_bytes",
    }
    row: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for column, name in names.items():
        values = [value for p in peaks if (value := getattr(p, name)) is not None]
        row[column] = max(values, default=None)
        if not values:
            reasons = [p.missing[name] for p in peaks if name in p.missing]
            missing[column] = reasons[0] if reasons else "not measured" if peaks else "no GPU"
    return row, missing


def device_rows(job: Job, peaks: list[DeviceMemory]) -> list[dict[str, Any]]:
    """Return peak memory per device as plain data."""
    return [{"attempt": job.attempt, **dataclasses.asdict(peak)} for peak in peaks]


def write_predictions(task: Task, measured: Measured, path: Path) -> dict[str, Any]:
    """Write the prediction file in one step; return its columns of the row, ``write_s`` included.

    Raises:
        OSError: The disk is full, or the folder can't be written.
    """
    begun = time.perf_counter()
    frame = predictions_frame(task, measured)
    # By way of memory: Polars's own error for a full disk is no OSError and may not name the cause.
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd")
    with replacing(path) as scratch:
        scratch.write_bytes(content.getbuffer())
    return {
        "predictions_path": path.name,
        "predictions_sha256": sha256_file(path),
        "write_s": time.perf_counter() - begun,
    }


def predictions_frame(task: Task, measured: Measured) -> pl.DataFrame:
    """Return predictions with the task's explicit schema: id, order, and the task's columns."""
    values = {"id": measured.ids, "order": measured.order, **measured.columns}
    return pl.DataFrame([_series(name, values[name], kind) for name, kind in task.schema().items()])


def _series(name: str, values: Any, kind: pl.DataType) -> pl.Series:
    if isinstance(values, np.ndarray) and values.ndim == 2:
        rows, width = values.shape
        if not rows or not width:
            return pl.Series(name, [[] for _ in range(rows)], dtype=kind)
        return pl.Series(name, np.ascontiguousarray(values)).cast(kind)
    if isinstance(values, np.ndarray) and values.dtype == object:
        return pl.Series(name, values.tolist(), dtype=kind)
    return pl.Series(name, values, dtype=kind)
