"""``gpucost kit``: the method's folder, usable without this program."""

from __future__ import annotations

from pathlib import Path

import click

from gpucost_tui.pricing.kit import write_kit
from gpucost_tui.text import clean, count


@click.command()
@click.argument("target", metavar="OUT.zip")
@click.option("--force", is_flag=True, help="Replace another file of that name.")
def kit(target: str, force: bool) -> None:
    """Write the blank kit for working without this program.

    Instructions, a quality protocol to fill in, the empty raw table, and a calculator that needs
    nothing but Python 3.10 or newer. The bytes are the same every time.
    """
    names = write_kit(Path(target), force=force)
    click.echo(f"{clean(target)}: {count(len(names), 'file')}")
    click.echo("\n".join(f"  {name}" for name in names))
