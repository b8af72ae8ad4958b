"""``gpucost check``: what stands in the way of sealing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gpucost_tui.cli.common import campaign_argument, json_option, print_json, typed

if TYPE_CHECKING:
    from gpucost_tui.campaign.survey import Survey
    from gpucost_tui.protocol.problem import Problem


@click.command()
@campaign_argument
@json_option
def check(folder: str, as_json: bool) -> None:
    """Show problems in protocol, corpus, model, environment and disk. Exit 1 if any blocks."""
    from gpucost_tui.campaign.check import check as look
    from gpucost_tui.campaign.folder import Campaign

    found = look(Campaign.open(folder))
    if as_json:
        problems = [problem.to_json() for problem in found.problems]
        print_json({"ok": not found.blocking, "problems": problems})
    else:
        _print(folder, found)
    sys.exit(1 if found.blocking else 0)


def _print(folder: str, found: Survey) -> None:
    from gpucost_tui.campaign.describe import facts
    from gpucost_tui.text import count

    for line in facts(found):
        click.echo(line)
    for problem in found.problems:
        click.echo(_problem(problem))
    sealed = found.manifest is not None
    blocking = len(found.blocking)
    if blocking:
        verb = "blocks" if blocking == 1 else "block"
        what = "running what is sealed" if sealed else "the seal"
        click.echo(f"\n{count(blocking, 'problem')} {verb} {what}.")
    elif sealed:
        click.echo(f"\nEverything is as it was sealed. Next: gpucost run {typed(folder)}")
    else:
        click.echo(f"\nNothing blocks the seal. Next: gpucost seal {typed(folder)}")


def _problem(problem: Problem) -> str:
    from gpucost_tui.text import clean

    mark = "BLOCKS" if problem.blocking else "note"
    where, what, fix = (clean(part) for part in (problem.where, problem.what, problem.fix))
    return f"\n[{mark}] {where}\n    {what}.\n    {fix}."
