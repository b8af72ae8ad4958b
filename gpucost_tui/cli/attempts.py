"""``gpucost attempts``: the raw table, one row per attempt."""

from __future__ import annotations

from typing import Any

import click

from gpucost_tui.cli.common import json_option, print_json, say, table


@click.command()
@click.argument("place", metavar="DIR|TABLE", type=click.Path())
@json_option
@click.option("--notes", is_flag=True, help="Show notes and missing measurements too.")
def attempts(place: str, as_json: bool, notes: bool) -> None:
    """Show every attempt of the campaign DIR, or of a raw table (.csv, .parquet)."""
    from gpucost_tui.campaign.table import rows_json

    rows = rows_json(_frame(place))
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo("No attempt yet. `gpucost run` makes them.")
        return
    click.echo(_table(rows))
    if notes:
        for row in rows:
            _notes(row)
    elif any(row["notes"] for row in rows):
        click.echo("\n--notes shows the notes, and why cells are empty.")


def _frame(place: str) -> Any:
    from pathlib import Path

    if Path(place).is_file():
        from gpucost_tui.analysis.table import read_table

        read = read_table(Path(place))
        for note in read.notes:
            say(note)
        return read.frame
    from gpucost_tui.campaign.fold import fold
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.table import raw_table

    return raw_table(fold(Campaign.open(place).events()))


def _table(rows: list[dict[str, Any]]) -> str:
    from gpucost_tui.text import clean, seconds, size

    cells = [
        [
            str(row["attempt"]),
            clean(row["variant"], limit=24),
            str(row["round"]),
            row["status"] or "no end yet",
            _verdict(row),
            "-" if row["quality"] is None else f"{row['quality']:.4f}",
            seconds(row["pass_s"]),
            "-" if row["padding_ratio"] is None else f"{row['padding_ratio']:.2f}",
            size(_peak(row)),
            clean(row["failure"] or ""),
        ]
        for row in rows
    ]
    headers = ["#", "variant", "round", "status", "verdict", "quality", "pass", "padding"]
    headers += ["peak", "failure"]
    return table(headers, cells, right=(0, 2, 5, 6, 7, 8))


def _peak(row: dict[str, Any]) -> int | None:
    """Return the peak on the device, else that of the host; the table itself has both."""
    on_device: int | None = row["peak_allocated_bytes"]
    on_host: int | None = row["peak_rss_bytes"]
    return on_host if on_device is None else on_device


def _verdict(row: dict[str, Any]) -> str:
    if row["excluded"]:
        return "excluded"
    if row["corpus_accepted"] is None:
        return "reference" if row["round"] == 0 and row["status"] == "completed" else "-"
    return "accepted" if row["corpus_accepted"] else "rejected"


def _notes(row: dict[str, Any]) -> None:
    from gpucost_tui.text import clean

    click.echo(f"\nAttempt {row['attempt']}")
    for name in ("notes", "missing"):
        for part in (row[name] or "").split("; "):
            if part:
                click.echo(f"  {name}: {clean(part, limit=300)}")
