"""``gpucost op``: single operations, timed apart from any pass."""

from __future__ import annotations

import click

from gpucost_tui.cli.common import campaign_argument, json_option, print_json, say, table

_NOTE = (
    "Single operations by torch.utils.benchmark.Timer, over and over on one warm batch: no pass, "
    "and never comparable with the duration of one (R16, R17). Nothing of it enters the campaign."
)


@click.command()
@campaign_argument
@click.option("--variant", metavar="NAME", help="Variant; the first one without it.")
@click.option("--deliverable", metavar="NAME", help="Deliverable; the first one without it.")
@json_option
def op(folder: str, variant: str | None, deliverable: str | None, as_json: bool) -> None:
    """Time single operations of a sealed campaign's variant on its longest batch."""
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.operating import operate

    found = operate(Campaign.open(folder), variant=variant, deliverable=deliverable, said=say)
    if as_json:
        print_json({"note": _NOTE, **found})
        return
    from gpucost_tui.text import clean

    click.echo(
        f"{clean(found['variant'])} over {clean(found['deliverable'])}: {found['entries']} x "
        f"{found['padded_length']} tokens"
    )
    rows = [
        [
            one["operation"],
            f"{one['median_s'] * 1000:.3f}",
            f"{one['iqr_s'] * 1000:.3f}",
            f"{one['runs']:,}",
            str(one["threads"]),
        ]
        for one in found["operations"]
    ]
    headers = ["operation", "median ms", "interquartile range ms", "runs", "threads"]
    click.echo(table(headers, rows, right=(1, 2, 3, 4)))
    click.echo(f"\n{_NOTE}")
