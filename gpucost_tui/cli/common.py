"""What the words share: the campaign argument, JSON output, plain tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

campaign_argument = click.argument("folder", metavar="DIR", type=click.Path())
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
parents_option = click.option(
    "--parent",
    "parents",
    multiple=True,
    type=click.Path(),
    metavar="DIR",
    help="Where a parent campaign lies, if not where it was.",
)
take_over_option = click.option(
    "--take-over", is_flag=True, help="Take the lock that another machine left."
)


def print_json(value: Any) -> None:
    """Print one JSON document. Text in it stays as stored: JSON escapes every control character."""
    click.echo(json.dumps(value, indent=1, ensure_ascii=True, default=str))


def typed(folder: str) -> str:
    """Return a folder's name as it can be typed into a shell, for the line about what is next."""
    import shlex

    from gpucost_tui.text import clean

    return shlex.quote(clean(f"./{folder}" if folder.startswith("-") else folder))


def say(sentence: str) -> None:
    """Print a message for a person on standard error, so that standard output stays data."""
    click.echo(sentence, err=True)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return cleaned cells as aligned columns; ``right`` are the columns of numbers."""
    from rich.cells import cell_len

    lines = [list(headers), *[list(row) for row in rows]]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(headers))]

    def padded(cell: str, index: int) -> str:
        room = " " * (widths[index] - cell_len(cell))
        return room + cell if index in right else cell + room

    return "\n".join(
        "  ".join(padded(cell, i) for i, cell in enumerate(line)).rstrip() for line in lines
    )
