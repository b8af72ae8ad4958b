"""The two tables' columns with their types in polars; the names alone load no such library."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from gpucost_tui.campaign.columns import DEVICE_KINDS, KINDS

_TYPES: dict[str, pl.DataType] = {
    "text": pl.String(),
    "time": pl.Datetime("us", "UTC"),
    "count": pl.Int64(),
    "float": pl.Float64(),
    "flag": pl.Boolean(),
}


def _schema(kinds: Mapping[str, str]) -> pl.Schema:
    return pl.Schema({name: _TYPES[kind] for name, kind in kinds.items()})


#: Of raw_results.csv and raw_results.parquet.
SCHEMA = _schema(KINDS)

#: Of device_memory.csv.
DEVICE_SCHEMA = _schema(DEVICE_KINDS)
