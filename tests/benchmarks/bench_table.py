"""What 100,000 attempts cost in the app, as ratios to a bare read and to 1,000 attempts.

    python tests/benchmarks/bench_table.py [rounds]

Every round makes all measurements once, one after the other, so that a busy moment meets all of
them; ratios are those of medians.

* opened: from asking for the Parquet file to its painted rows (read, checked, shown), against
  ``polars.read_parquet`` of the same file and every value of it checked by
  :func:`gpucost_tui.analysis.table.read_table`;
* paged: 40 pages down, each painted, with 100,000 rows against 1,000;
* sorted and filtered: by a key, until painted, with 100,000 rows against 1,000.

Exit status 1 where paging or opening is above its limit.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.analysis.table import read_table
from gpucost_tui.campaign.schema import SCHEMA
from gpucost_tui.tui.app import GpucostApp
from gpucost_tui.tui.attempts import AttemptsScreen
from gpucost_tui.tui.table_view import VirtualTable

MANY, FEW, PAGES = 100_000, 1_000, 40
LIMITS = {"paged, to 1,000 rows": 1.5, "opened, to reading and checking": 1.5}


def attempts(rows: int) -> pl.DataFrame:
    """Return a raw table as a campaign's: texts and numbers in the columns that have them."""
    number = pl.int_range(1, rows + 1, dtype=pl.Int64, eager=True)
    share = (number * 7919 % 1000).cast(pl.Float64) / 1000
    failed = number % 17 == 0
    values: dict[str, Any] = {
        "attempt": number,
        "campaign": "benchmark",
        "started_at": datetime(2026, 11, 30, tzinfo=UTC),
        "variant": "batch-" + (number % 8).cast(pl.String),
        "round": number // 8 + 1,
        "position": number % 8 + 1,
        "deliverable": "corpus",
        "seed": 0,
        "host": "host-1",
        "pass_s": pl.select(pl.when(failed).then(None).otherwise(1 + share)).to_series(),
        "status": pl.select(
            pl.when(failed).then(pl.lit("failed")).otherwise(pl.lit("completed"))
        ).to_series(),
        "failure": pl.select(pl.when(failed).then(pl.lit("out-of-memory"))).to_series(),
        "quality": share.clip(0, 1),
        "corpus_accepted": ~failed,
        "excluded": False,
        "peak_rss_bytes": number * 1000,
        "missing": "energy_j: no GPU; peak_allocated_bytes: no GPU; install_s: before the campaign",
        "notes": "note of attempt " + number.cast(pl.String),
    }
    columns = []
    for name, kind in SCHEMA.items():
        value = values.get(name)
        series = (
            value
            if isinstance(value, pl.Series)
            else pl.Series([value]).extend_constant(value, rows - 1)
            if value is not None
            else pl.Series([None] * rows, dtype=kind)
        )
        columns.append(series.cast(kind).alias(name))
    return pl.DataFrame(columns)


async def painted(pilot: Any, condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)
    await pilot.pause()


async def timed(work: Awaitable[Any]) -> float:
    begun = time.perf_counter()
    await work
    return time.perf_counter() - begun


async def in_the_app(path: Path, rows: int, times: dict[str, list[float]]) -> None:
    """Open a table, page, sort and filter; add the seconds of each to ``times``."""
    app = GpucostApp(here=path.parent)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("5")
        await pilot.pause()
        place = app.screen
        assert isinstance(place, AttemptsScreen)

        async def open_it() -> None:
            place.read_file(path)
            await painted(pilot, lambda: place.shown is not None and place.shown.height == rows)

        times["opened"].append(await timed(open_it()))
        table = place.query_one(VirtualTable)
        table.focus()

        async def page() -> None:
            # Within the first thousand rows of either table, so that the work is the same.
            for _ in range(PAGES // 2):
                await pilot.press("pagedown")
            for _ in range(PAGES // 2):
                await pilot.press("pageup")

        times["paged"].append(await timed(page()))

        async def sort_and_filter() -> None:
            await pilot.press("r")
            await painted(pilot, lambda: place.shown["attempt"][0] == rows)
            await pilot.press("f")
            await painted(pilot, lambda: place.shown.height == rows // 17)

        times["sorted and filtered"].append(await timed(sort_and_filter()))


def measured(folder: Path, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return seconds by what was measured, at either size; the first round warms caches."""
    files = {}
    for rows in (FEW, MANY):
        files[rows] = folder / f"{rows}.parquet"
        attempts(rows).write_parquet(files[rows])
    names = ("bare read", "read and checked", "opened", "paged", "sorted and filtered")
    found = {str(rows): {name: [] for name in names} for rows in (FEW, MANY)}
    for number in range(rounds + 1):
        for rows, path in files.items():
            times: dict[str, list[float]] = {name: [] for name in names}
            for name, read in (("bare read", pl.read_parquet), ("read and checked", read_table)):
                begun = time.perf_counter()
                read(path)
                times[name].append(time.perf_counter() - begun)
            asyncio.run(in_the_app(path, rows, times))
            if number:
                for name, values in times.items():
                    found[str(rows)][name] += values
    return found


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), rounds)
    medians = {
        size: {name: statistics.median(values) for name, values in times.items()}
        for size, times in found.items()
    }
    few, many = medians[str(FEW)], medians[str(MANY)]
    for name in few:
        small, large = few[name] * 1000, many[name] * 1000
        print(f"{name:<22} {small:8.1f} ms at {FEW:,}  {large:8.1f} ms at {MANY:,}")
    ratios = {
        "opened, to the bare read": many["opened"] / many["bare read"],
        "opened, to reading and checking": many["opened"] / many["read and checked"],
        "opened, to 1,000 rows": many["opened"] / few["opened"],
        "paged, to 1,000 rows": many["paged"] / few["paged"],
        "sorted and filtered, to 1,000 rows": many["sorted and filtered"]
        / few["sorted and filtered"],
    }
    for name, ratio in ratios.items():
        print(f"{name:<36} {ratio:6.2f}")
    above = [name for name, limit in LIMITS.items() if ratios[name] > limit]
    print(f"above their limits: {', '.join(above) or 'none'}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
