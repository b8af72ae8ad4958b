"""The raw table and the table of device memory, as Polars frames and as files (R19)."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.fold import Attempt, State, joined, missing_text
from gpucost_tui.campaign.peaks import reached
from gpucost_tui.campaign.schema import DEVICE_SCHEMA, SCHEMA
from gpucost_tui.files import replacing, write_atomic

_TIMES = ("started_at", "ended_at")
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%.6fZ"


def raw_table(state: State) -> pl.DataFrame:
    """Return one row per attempt, in the order of their numbers, with the explicit schema."""
    return _frame((_row(a) for _, a in sorted(state.attempts.items())), SCHEMA)


def device_table(state: State) -> pl.DataFrame:
    """Return one row per attempt and device."""
    rows = (
        _device_row(a.number, memory)
        for _, a in sorted(state.attempts.items())
        for memory in a.device_memory
    )
    return _frame(rows, DEVICE_SCHEMA)


#: column of device_memory.csv -> field of the engine's DeviceMemory
_DEVICE_FIELDS = {
    "device": "index",
    "name": "name",
    "uuid": "uuid",
    "capacity_bytes": "capacity_bytes",
}
_DEVICE_PEAKS = {
    "peak_allocated": "allocated_bytes",
    "peak_reserved": "reserved_bytes",
    "peak_device_used": "used_bytes",
    "peak_process_used": "own_bytes",
}


def _device_row(attempt: int, memory: dict[str, Any]) -> dict[str, Any]:
    reasons = memory.get("missing") or {}
    row: dict[str, Any] = {"attempt": attempt}
    why: dict[str, str] = {}
    for column, name in _DEVICE_FIELDS.items():
        row[column] = memory.get(name)
        why[column] = reasons.get(name, "not measured")
    for peak, name in _DEVICE_PEAKS.items():
        row[f"{peak}_bytes"] = memory.get(name)
        row[f"{peak}_phase"], row[f"{peak}_at_s"] = reached(memory, name) or (None, None)
        why[f"{peak}_bytes"] = reasons.get(name, "not measured")
    said = (f"{column}: {reason}" for column, reason in why.items() if row[column] is None)
    row["missing"] = joined(said)
    return row


def write_tables(folder: Path, state: State, *, final: bool = False) -> None:
    """Write raw_results.csv and device_memory.csv; at the end of a run the Parquet file too."""
    table = raw_table(state)
    _write_csv(table, folder / "raw_results.csv")
    _write_csv(device_table(state), folder / "device_memory.csv")
    if final:
        # By way of memory: Polars's own error for a full disk is no OSError.
        content = io.BytesIO()
        table.write_parquet(content)
        write_atomic(folder / "raw_results.parquet", content.getvalue(), sync=False)


def rows_json(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Return rows as JSON values: times as text, the rest as it is."""
    return table.with_columns(pl.col(name).dt.strftime(_TIME_FORMAT) for name in _TIMES).to_dicts()


def _row(attempt: Attempt) -> dict[str, Any]:
    row = dict(attempt.row)
    row["missing"] = missing_text(attempt)
    row["notes"] = joined(attempt.notes)
    for name in _TIMES:
        if row[name] is not None:
            row[name] = datetime.fromisoformat(row[name])
    return row


def _frame(rows: Iterable[dict[str, Any]], schema: pl.Schema) -> pl.DataFrame:
    """Build column by column: a type is never inferred from the first rows."""
    kept = list(rows)
    return pl.DataFrame(
        [
            pl.Series(name, [row.get(name) for row in kept], dtype=kind, strict=True)
            for name, kind in schema.items()
        ]
    )


def table_csv(table: pl.DataFrame) -> bytes:
    """Return a table as the bytes of its CSV file."""
    return table.write_csv(datetime_format=_TIME_FORMAT).encode()


def _write_csv(table: pl.DataFrame, path: Path) -> None:
    with replacing(path, sync=False) as scratch:
        scratch.write_bytes(table_csv(table))
