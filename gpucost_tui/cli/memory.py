"""``gpucost memory``: an estimate of each variant's memory beside what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpucost_tui.cli.common import campaign_argument, json_option, print_json, table

if TYPE_CHECKING:
    from gpucost_tui.campaign.memory import VariantMemory

_NOTE = (
    "The estimate is arithmetic for the longest batch: weights, and activations of one layer. The "
    "observed figures are peaks of separate counters (tensors, allocator, whole device, process); "
    "they are never added, and an estimate never stands in for one of them (R30, R31)."
)


@click.command()
@campaign_argument
@json_option
def memory(folder: str, as_json: bool) -> None:
    """Show the estimated memory of each variant beside what its attempts showed."""
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.memory import memory as look

    found = look(Campaign.open(folder))
    if as_json:
        print_json({"note": _NOTE, "variants": [one.to_json() for one in found]})
    else:
        _print(found)


def _print(found: list[VariantMemory]) -> None:
    from gpucost_tui.text import clean, size

    click.echo("Estimated, not observed:")
    guesses = [
        [
            clean(one.variant),
            clean(one.deliverable),
            f"{one.entries} x {one.padded_length} tokens",
            *(size(value) for value in one.estimated.values()),
        ]
        for one in found
    ]
    headers = ["variant", "corpus", "longest batch", "weights", "activations", "together"]
    click.echo(table(headers, guesses, right=(3, 4, 5)))
    click.echo("\nObserved, greatest peak of each counter:")
    seen = [
        [
            clean(one.variant),
            clean(one.deliverable),
            str(one.attempts),
            *(size(value) for value in one.observed.values()),
        ]
        for one in found
    ]
    headers = ["variant", "corpus", "attempts", "allocated", "reserved", "device", "process"]
    click.echo(table(headers, seen, right=(2, 3, 4, 5, 6)))
    for reason in sorted({f"{name}: {why}" for one in found for name, why in one.missing.items()}):
        click.echo(f"  - {clean(reason)}")
    click.echo(f"\n{_NOTE}")
