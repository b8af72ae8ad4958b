"""``gpucost spend``: other real expenses, for every configuration or for none (R37)."""

from __future__ import annotations

import click

from gpucost_tui.cli.common import campaign_argument


@click.command()
@campaign_argument
@click.option("--configuration", required=True, metavar="C", help="As `gpucost decide` names it.")
@click.option("--usd", required=True, metavar="A", help="Amount, such as 12.50.")
@click.option("--reason", required=True, metavar="R", help="What was paid for.")
@click.option("--withdraw", is_flag=True, help="Take back one recorded by mistake.")
def spend(folder: str, configuration: str, usd: str, reason: str, withdraw: bool) -> None:
    """Record another real expense of a configuration of DIR, apart from its commitment.

    It is stated for every configuration or for none: `decide` refuses a mixture.
    """
    from gpucost_tui.analysis.campaigns import stated_spending
    from gpucost_tui.analysis.configurations import local_names
    from gpucost_tui.analysis.together import Together, read_member
    from gpucost_tui.campaign import committing
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.text import clean, listed

    campaign = Campaign.open(folder)
    names = local_names(read_member(campaign))
    if withdraw:
        committing.take_back(campaign, configuration, usd, reason)
        click.echo(f"Taken back for {clean(configuration)}; both acts stay in the journal.")
    else:
        committing.spend(campaign, configuration, usd, reason, names)
        click.echo(f"Recorded for {clean(configuration)}: {usd} USD, {clean(reason, limit=200)}.")
    now = Together((read_member(campaign),))
    stated = {spent.configuration for spent in stated_spending(now)}
    lacking = [name for name in names if name not in stated]
    if stated and lacking:
        click.echo(f"Not stated yet for: {listed(lacking, limit=10)} (0.00 is a statement).")
