"""``gpucost window``: real hours, the packs that cover them, and schedules (R32 to R34)."""

from __future__ import annotations

from pathlib import Path

import click

from gpucost_tui.errors import WrongUse
from gpucost_tui.pricing.answer import answer_json, answer_window
from gpucost_tui.pricing.catalogue import load
from gpucost_tui.pricing.schedule import Schedule, read_tasks, schedule
from gpucost_tui.pricing.showing import WIDTH
from gpucost_tui.pricing.showing_window import timeline_lines, window_lines
from gpucost_tui.pricing.window import Window, window_between
from gpucost_tui.text import clean


@click.command()
@click.option("--start", metavar="TIME", help="Such as 2026-09-28T09:00, an offset may follow.")
@click.option("--end", metavar="TIME", help="Likewise.")
@click.option("--timezone", metavar="ZONE", help="Such as Europe/Paris.")
@click.option(
    "--tasks",
    "tasks_file",
    metavar="FILE.toml",
    help="Schedule instead of two moments: [[tasks]] with name, hours, after, kind.",
)
@click.option("--gpu", metavar="GPU", help="Only this GPU.")
@click.option("--lots", default="1", show_default=True, metavar="N", help="Lots of each pack.")
@click.option(
    "--periods",
    default="1",
    show_default=True,
    metavar="N",
    help="Price N packs in sequence; never done by itself.",
)
@click.option("--with-hourly", is_flag=True, help="Rank hourly estimates with the packs.")
@click.option(
    "--catalogue",
    "catalogues",
    multiple=True,
    metavar="FILE",
    help="Price list to use instead of the kept and shipped ones of its form.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def window(
    start: str | None,
    end: str | None,
    timezone: str | None,
    tasks_file: str | None,
    gpu: str | None,
    lots: str,
    periods: str,
    with_hourly: bool,
    catalogues: tuple[str, ...],
    as_json: bool,
) -> None:
    """Hours of a window, and the packs that cover it.

    The window is elapsed time, clock changes included. From tasks it is the real schedule: what
    overlaps counts once, a wait during which the rental is kept counts.
    """
    source = _source(start, end, timezone, tasks_file)
    answer = answer_window(
        load([Path(name) for name in catalogues]), source, gpu=gpu, lots=lots, periods=periods
    )
    if as_json:
        from gpucost_tui.cli.common import print_json

        asked = {"start": start, "end": end, "timezone": timezone}
        document = answer_json(answer, asked, with_hourly=with_hourly)
        print_json(document)
        return
    if isinstance(source, Schedule):
        import shutil

        # A narrow terminal would break the bars of the timeline; COLUMNS is heeded too.
        width = min(max(shutil.get_terminal_size().columns, 40), WIDTH)
        click.echo("\n".join([*timeline_lines(source, width), ""]))
    click.echo("\n".join(window_lines(answer, gpu=gpu, with_hourly=with_hourly)))


def _source(
    start: str | None, end: str | None, timezone: str | None, tasks_file: str | None
) -> Window | Schedule:
    moments = [name for name, value in (("--start", start), ("--end", end)) if value is not None]
    if tasks_file is not None:
        if moments or timezone is not None:
            raise WrongUse(
                "a window is given by --tasks, or by --start and --end, not by both",
                fix="Leave one of them out",
            )
        return schedule(read_tasks(Path(tasks_file)), clean(tasks_file))
    if start is None or end is None:
        raise WrongUse(
            "a window needs --start and --end, or --tasks FILE.toml",
            fix="Try --start 2026-09-28T09:00 --end 2026-10-02T09:00 --timezone Europe/Paris",
        )
    return window_between(start, end, timezone)
