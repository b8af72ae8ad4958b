"""``gpucost compare``: durations, and which differences are settled (R23 to R26)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gpucost_tui.cli.common import json_option, print_json, say, typed

if TYPE_CHECKING:
    from gpucost_tui.analysis.compare import Comparison


@click.command()
@click.argument("places", metavar="DIR…|TABLE", nargs=-1, required=True, type=click.Path())
@json_option
def compare(places: tuple[str, ...], as_json: bool) -> None:
    """Show the durations of every variant, and which differences they settle and why.

    Several DIRs are campaigns with one manifest from several hosts. A TABLE is a raw table (.csv,
    .parquet) that was filled by hand. What is not settled comes with what could settle it. Of
    campaigns, quality with its confidence interval is shown too, and which entries the variants
    predicted differently.
    """
    width, unicode = terminal()
    lines, document = (
        _table(places[0], width, unicode)
        if _is_table(places)
        else _campaigns(places, width, unicode)
    )
    if as_json:
        print_json(document)
    else:
        click.echo("\n".join(lines))


def _campaigns(
    places: tuple[str, ...], width: int, unicode: bool
) -> tuple[list[str], dict[str, Any]]:
    from gpucost_tui.analysis.campaigns import compare_campaigns, comparison_json
    from gpucost_tui.analysis.predicted import qualities, variant_flips
    from gpucost_tui.analysis.render import compare_lines, predicted_lines
    from gpucost_tui.analysis.together import read_together

    together = read_together(places)
    found = compare_campaigns(together)
    quality, flips = qualities(together), variant_flips(together, found.pairs)
    document = comparison_json(together, found)
    document["qualities"] = [one.to_json() for one in quality]
    document["flips"] = [one.to_json() for one in flips]
    lines = compare_lines(found, width=width, unicode=unicode)
    lines += predicted_lines(quality, flips, width=width)
    return lines + _more_rounds(places, found), document


def _more_rounds(places: tuple[str, ...], found: Comparison) -> list[str]:
    """Name the command that adds the rounds which could settle what is not settled (R26)."""
    more = max((pair.more_rounds or 0 for pair in found.pairs), default=0)
    commands = [f"  gpucost run {typed(place)} --more-rounds {more}" for place in places]
    if not more:
        return []
    return ["", "More rounds for every variant; the result before stays shown:", *commands]


def _table(place: str, width: int, unicode: bool) -> tuple[list[str], dict[str, Any]]:
    from pathlib import Path

    from gpucost_tui.analysis.compare import compare as compare_table
    from gpucost_tui.analysis.render import compare_lines
    from gpucost_tui.analysis.table import FOR_COMPARE, read_table

    read = read_table(Path(place), FOR_COMPARE)
    for note in read.notes:
        say(note)
    one_manifest(read.frame, read.name)
    found = compare_table(read.frame)
    return compare_lines(found, width=width, unicode=unicode), found.to_json()


def one_manifest(frame: Any, name: str) -> None:
    """Refuse a table in which rows of several campaigns were put together.

    Raises:
        Refused: Its rows name more than one manifest.
    """
    from gpucost_tui.errors import Refused
    from gpucost_tui.text import listed

    manifests = frame["manifest"].drop_nulls().unique(maintain_order=True).to_list()
    if len(manifests) > 1:
        raise Refused(
            f"its rows belong to {len(manifests)} campaigns with different manifests "
            f"({listed([m[:16] + '…' for m in manifests])})",
            where=name,
            fix="Only passes of one manifest are read together: split the table",
        )


def _is_table(places: tuple[str, ...]) -> bool:
    from pathlib import Path

    from gpucost_tui.errors import WrongUse
    from gpucost_tui.text import clean

    files = [place for place in places if Path(place).is_file() or _named_table(place)]
    if files and len(places) > 1:
        raise WrongUse(
            f"'{clean(files[0], limit=100)}' is a table, and a table stands alone",
            fix="Name one table, or one or several campaign folders",
        )
    return bool(files)


def _named_table(place: str) -> bool:
    from pathlib import Path

    return Path(place).suffix.lower() in (".csv", ".parquet") and not Path(place).is_dir()


def terminal() -> tuple[int, bool]:
    """Return the width to write for, and whether the terminal takes more than ASCII."""
    import shutil
    import sys

    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    return min(shutil.get_terminal_size((80, 24)).columns, 120), encoding.startswith("utf")
