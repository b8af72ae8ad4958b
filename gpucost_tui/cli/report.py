"""``gpucost report``: the decision note and its page."""

from __future__ import annotations

import click

from gpucost_tui.cli.common import json_option, parents_option, print_json


@click.command()
@click.argument("folders", metavar="DIR…", nargs=-1, required=True, type=click.Path())
@parents_option
@json_option
def report(folders: tuple[str, ...], parents: tuple[str, ...], as_json: bool) -> None:
    """Write the decision note (report/decision.md) and its page (report.html) into the first DIR.

    Several DIRs are campaigns with one manifest from several hosts. The note says the question,
    the answer, what it covers and what it does not show, every failure and exclusion.
    """
    from gpucost_tui.analysis.render import answer
    from gpucost_tui.report.note import write_report
    from gpucost_tui.text import clean

    done = write_report(folders, parents=parents)
    decision = done.facts.balance.decision
    if as_json:
        print_json(
            {
                "outcome": decision.outcome,
                "configuration": decision.configuration,
                "note": str(done.note),
                "page": str(done.page),
                "manifest": done.facts.together.manifest.sha256,
                "heads": list(done.facts.heads),
            }
        )
        return
    click.echo(answer(decision))
    click.echo(f"Note      {clean(done.note)}")
    click.echo(f"Page      {clean(done.page)}")
    click.echo(f"Manifest  {done.facts.together.manifest.sha256}")
    for head in done.facts.heads:
        click.echo(f"Head      {head}   keep it elsewhere")
