"""``gpucost attempts``: the raw table, one row per attempt."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click
from rich.cells import cell_len

from gpucost_tui.cli.common import json_option, print_json, say, table

if TYPE_CHECKING:
    from gpucost_tui.protocol.model import Protocol

#: Columns that stand at the right.
_FIGURES = ("#", "round", "quality", "pass", "padding", "peak")


@click.command()
@click.argument("place", metavar="DIR|TABLE", type=click.Path())
@json_option
@click.option(
    "--columns",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, asked: _columns(context) if asked else None,
    help="Say what each column means, with the scope of each counter, and leave.",
)
@click.option("--notes", is_flag=True, help="Show notes and missing measurements too.")
def attempts(place: str, as_json: bool, notes: bool) -> None:
    """Show every attempt of the campaign DIR, or of a raw table (.csv, .parquet)."""
    from gpucost_tui.campaign.table import rows_json

    frame, about = _frame(place)
    rows = rows_json(frame)
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo("No attempt yet. `gpucost run` makes them.")
        return
    shown, left_out = _table(rows, _width())
    click.echo(shown)
    click.echo(f"\n{about}")
    if left_out:
        click.echo(f"Too wide for this terminal: {', '.join(left_out)}. --json has every column.")
    if notes:
        for row in rows:
            _notes(row)
    elif any(row["notes"] for row in rows):
        click.echo("--notes shows the notes, and why cells are empty.")


def _columns(context: click.Context) -> None:
    from gpucost_tui.campaign.columns import described

    click.echo("\n".join(described(80)).lstrip())
    context.exit()


def _frame(place: str) -> tuple[Any, str]:
    """Return the raw table, and a line about what its quality is."""
    from pathlib import Path

    if Path(place).is_file():
        from gpucost_tui.analysis.table import read_table
        from gpucost_tui.text import listed

        read = read_table(Path(place))
        for note in read.notes:
            say(note)
        metrics = read.frame["quality_metric"].drop_nulls().unique(maintain_order=True).to_list()
        return read.frame, f"quality: {listed(metrics) or 'the metric is not named'}"
    from gpucost_tui.campaign.fold import fold
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.table import raw_table

    campaign = Campaign.open(place)
    frame = raw_table(fold(campaign.events()))
    return frame, _quality(campaign.manifest.protocol) if campaign.sealed else ""


def _quality(protocol: Protocol) -> str:
    from gpucost_tui.text import clean

    quality = protocol.quality
    of = "of a synthetic demonstration: " if protocol.corpus.synthetic else ""
    asked = f"at least {quality.threshold:g} asked"
    return (
        f"quality {of}{clean(quality.metric)}, {asked}"
        if of
        else (f"quality: {clean(quality.metric)}, {asked}")
    )


def _width() -> int | None:
    """Return the cells of a line on a terminal; None where the table goes into a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _table(rows: list[dict[str, Any]], width: int | None) -> tuple[str, list[str]]:
    """Return the table, and the columns that were left out so that it fits."""
    from gpucost_tui.text import clean, seconds, size

    columns = {
        "#": [str(row["attempt"]) for row in rows],
        "variant": [clean(row["variant"], limit=24) for row in rows],
        "round": [str(row["round"]) for row in rows],
        "status": [_status(row) for row in rows],
        "outcome": [_outcome(row) for row in rows],
        "quality": ["-" if row["quality"] is None else f"{row['quality']:.4f}" for row in rows],
        "pass": [seconds(row["pass_s"]) for row in rows],
        "padding": [_ratio(row["padding_ratio"]) for row in rows],
        "peak": [size(_peak(row)) for row in rows],
    }
    left_out = []
    for name in ("padding", "peak", "round"):
        needed = sum(max(map(cell_len, [head, *cells])) + 2 for head, cells in columns.items()) - 2
        if width is not None and needed > width:
            del columns[name]
            left_out.append(name)
    heads = list(columns)
    right = [heads.index(name) for name in _FIGURES if name in columns]
    return table(heads, list(zip(*columns.values(), strict=True)), right), left_out


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _peak(row: dict[str, Any]) -> int | None:
    """Return the peak on the device, else that of the host; the table itself has both."""
    on_device: int | None = row["peak_allocated_bytes"]
    on_host: int | None = row["peak_rss_bytes"]
    return on_host if on_device is None else on_device


def _outcome(row: dict[str, Any]) -> str:
    """Return the verdict, or the kind of the failure: a pass that did not end was not judged, and
    is no rejection (R38)."""
    from gpucost_tui.text import clean

    if row["excluded"]:
        return "excluded"
    if row["status"] in ("failed", "stopped", "interrupted"):
        return clean(row["failure"] or "-")
    if row["corpus_accepted"] is None:
        return "reference" if row["round"] == 0 and row["status"] == "completed" else "-"
    return "accepted" if row["corpus_accepted"] else "rejected"


def _notes(row: dict[str, Any]) -> None:
    from gpucost_tui.text import clean

    click.echo(f"\nAttempt {row['attempt']}")
    for note in filter(None, (row["notes"] or "").split("; ")):
        click.echo(f"  note: {clean(note, limit=300)}")
    columns: dict[str, list[str]] = {}
    for part in filter(None, (row["missing"] or "").split("; ")):
        name, _, reason = part.partition(": ")
        columns.setdefault(reason, []).append(name)
    for reason, names in columns.items():
        click.echo(f"  empty, {clean(reason, limit=300)}: {clean(', '.join(names))}")


def _status(row: dict[str, Any]) -> str:
    """Return the status, with what was finished where that is not the whole corpus."""
    status: str = row["status"] or "no end yet"
    done, expected = row["finished_entries"], row["expected_ids"]
    if status == "completed" or done is None or expected is None:
        return status
    return f"{status} {done:,}/{expected:,}"
