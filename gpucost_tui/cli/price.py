"""``gpucost price``: the calculator (R35, R36, R43)."""

from __future__ import annotations

from pathlib import Path

import click

from gpucost_tui.pricing import calculator, showing
from gpucost_tui.pricing.catalogue import load


@click.command()
@click.option("--gpu", required=True, metavar="GPU", help="Id of the GPU, such as rtx-4090.")
@click.option("--days", required=True, metavar="D", help="Length of the pack: 3, 7 or 30.")
@click.option("--lots", default="1", show_default=True, metavar="N", help="Number of lots.")
@click.option(
    "--accepted-results",
    metavar="N",
    help="Distinct accepted corpora; leave it out until they exist.",
)
@click.option("--provider", metavar="NAME", help="Only this provider's packs.")
@click.option(
    "--catalogue",
    "catalogues",
    multiple=True,
    metavar="FILE",
    help="Price list to use instead of the kept and shipped ones of its form.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def price(
    gpu: str,
    days: str,
    lots: str,
    accepted_results: str | None,
    provider: str | None,
    catalogues: tuple[str, ...],
    as_json: bool,
) -> None:
    """Price of packs, and cost per accepted corpus.

    A pack is paid whole, however short the run: price of a lot times lots, whatever GPUs a lot
    holds. The cost per accepted corpus is that amount over the corpora that were accepted.
    """
    prices = load([Path(name) for name in catalogues])
    best, others = calculator.price(prices, gpu, days, lots, accepted_results, provider)
    if as_json:
        from gpucost_tui.cli.common import print_json

        document = calculator.quote_json(best)
        document["others"] = [calculator.quote_json(other) for other in others]
        print_json(document)
    else:
        click.echo("\n".join(showing.quote_lines(best, others)))
