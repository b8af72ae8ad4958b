"""``gpucost commit``: the pack that a campaign is rented with, at a frozen price (R35)."""

from __future__ import annotations

from typing import Any

import click

from gpucost_tui.cli.common import campaign_argument, json_option, print_json, typed


@click.command()
@campaign_argument
@click.option("--gpu", required=True, metavar="GPU", help="Id of the GPU, such as rtx-4090.")
@click.option("--days", required=True, metavar="D", help="Length of the pack: 3, 7 or 30.")
@click.option("--lots", default="1", show_default=True, metavar="N", help="Number of lots.")
@click.option("--provider", metavar="NAME", help="Whose pack it is, where several fit.")
@click.option("--gpus-per-lot", type=int, metavar="N", help="Which lot, where several fit.")
@click.option(
    "--catalogue",
    "catalogues",
    multiple=True,
    metavar="FILE",
    help="Price list to use instead of the kept and shipped ones of its form.",
)
@click.option("--host-gpu", metavar="NAME", help="How the host calls a GPU that no table names.")
@click.option("--rented-from", metavar="T", help="Your own record: when the rental began.")
@click.option("--rented-to", metavar="T", help="When it ended.")
@click.option("--timezone", metavar="ZONE", help="Of these two, such as Europe/Paris.")
@click.option("--paid", metavar="USD", help="What was paid.")
@click.option("--reference", metavar="TEXT", help="Invoice or order number.")
@click.option("--correct", is_flag=True, help="Replace a commitment recorded by mistake.")
@json_option
def commit(
    folder: str,
    gpu: str,
    days: str,
    lots: str,
    provider: str | None,
    gpus_per_lot: int | None,
    catalogues: tuple[str, ...],
    host_gpu: str | None,
    rented_from: str | None,
    rented_to: str | None,
    timezone: str | None,
    paid: str | None,
    reference: str | None,
    correct: bool,
    as_json: bool,
) -> None:
    """Record the pack that the campaign DIR is rented with; all its variants share it.

    The price is frozen in DIR, whatever the catalogue says later. The GPU is one that the host
    record shows. A second time with the same pack adds your own record of the rental.
    """
    from pathlib import Path

    from gpucost_tui.campaign.committing import Pack, real_rental
    from gpucost_tui.campaign.committing import commit as record
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.cli.exclude import instant
    from gpucost_tui.pricing.amounts import usd
    from gpucost_tui.pricing.catalogue import load

    campaign = Campaign.open(folder)
    rental = real_rental(
        instant(rented_from, timezone, "rented-from"),
        instant(rented_to, timezone, "rented-to"),
        None if paid is None else usd(paid, "--paid"),
        reference,
    )
    pack = Pack(gpu, days, lots, provider, gpus_per_lot, host_gpu)
    prices = load([Path(name) for name in catalogues])
    done = record(campaign, pack, prices, rental, correct=correct)
    document, said = _told(campaign, done)
    if as_json:
        print_json(document)
        return
    for line in said:
        click.echo(line)
    click.echo(f"Next: gpucost decide {typed(folder)}")


def _told(campaign: Any, done: Any) -> tuple[dict[str, Any], list[str]]:
    from gpucost_tui.campaign.committing import devices_used, priced_row, used_sentence
    from gpucost_tui.campaign.fold import fold
    from gpucost_tui.text import clean, money

    row = priced_row(campaign.folder, done)
    state = fold(campaign.events())
    rental = done.rental.to_json() if done.rental else None
    used = used_sentence(state, done)
    document = {
        "gpu": done.gpu,
        "host_gpu": done.host_gpu,
        "provider": done.provider,
        "days": done.days,
        "lots": done.lots,
        "gpus": done.gpus,
        "gpus_used": devices_used(state, done) if used else None,
        "committed_usd": money(done.usd),
        "catalogue": row.catalogue,
        "catalogue_date": row.catalogue_date.isoformat(),
        "prices_sha256": done.prices,
        "rental": rental,
    }
    said = [
        f"Committed: {done.words}, {money(done.usd)} USD, {clean(done.provider)}.",
        f"Frozen: {clean(row.catalogue)} of {row.catalogue_date}, prices/{done.prices[:16]}….json",
    ]
    if used:
        said.append(used)
    if rental:
        parts = [f"{key} {clean(value)}" for key, value in rental.items() if value is not None]
        said.append(f"Your own record of the rental: {', '.join(parts)}.")
    return document, said
