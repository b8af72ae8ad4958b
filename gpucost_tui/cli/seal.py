"""``gpucost seal``: freezes a campaign and prints its hash."""

from __future__ import annotations

import click

from gpucost_tui.cli.common import (
    campaign_argument,
    json_option,
    print_json,
    take_over_option,
    typed,
)


@click.command()
@campaign_argument
@take_over_option
@json_option
def seal(folder: str, take_over: bool, as_json: bool) -> None:
    """Freeze protocol, corpus, reference and model; print the manifest's SHA-256."""
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.seal import seal as freeze
    from gpucost_tui.cli.live import watched
    from gpucost_tui.text import clean

    with watched() as watch:
        manifest, found = freeze(Campaign.open(folder), watch, take_over=take_over)
    notes = [problem.to_json() for problem in found.problems]
    if as_json:
        print_json({"manifest": manifest.sha256, "notes": notes})
        return
    for problem in found.problems:
        click.echo(f"note: {clean(problem.sentence())}", err=True)
    click.echo(f"Sealed: {manifest.sha256}")
    click.echo("Question, thresholds, deadline, budget, corpus, reference, model and variants can")
    click.echo("no longer change; a change makes a new campaign that names this one.")
    click.echo(f"Next: gpucost plan {typed(folder)}, then gpucost run {typed(folder)}")
