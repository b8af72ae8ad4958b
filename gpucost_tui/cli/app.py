"""``gpucost``, ``gpucost DIR`` and ``gpucost TABLE``: open the app on this terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gpucost_tui.errors import EnvironmentLacks, InputError
from gpucost_tui.text import clean


def on_a_terminal() -> bool:
    """Return whether somebody can see a screen and press keys."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@click.command("DIR")
@click.argument("folder", type=click.Path())
def open_folder(folder: str) -> int:
    """Open the campaign in a folder; in one that is no campaign, list those in it."""
    if not on_a_terminal():
        raise EnvironmentLacks(
            "the app needs a terminal",
            fix=f"`gpucost status {clean(folder)}` tells where a campaign stands without one",
        )
    from gpucost_tui.tui.app import run_app

    path = Path(folder)
    if (path / "protocol.toml").is_file() or (path / "manifest.json").is_file():
        return run_app(path)
    return run_app(here=path)


@click.command("TABLE")
@click.argument("table", type=click.Path())
def open_table(table: str) -> int:
    """Open a raw table (.csv, .parquet) in Attempts."""
    path = Path(table)
    if not path.is_file():
        raise InputError("there is no such file", where=clean(table), fix="Check the path")
    if not on_a_terminal():
        raise EnvironmentLacks(
            "the app needs a terminal",
            fix=f"`gpucost attempts {clean(table)}` shows the table without one",
        )
    from gpucost_tui.tui.app import run_app

    return run_app(table=path)


def open_here() -> int:
    """Open the app over the current folder."""
    from gpucost_tui.tui.app import run_app

    return run_app()
