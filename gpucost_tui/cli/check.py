"""``gpucost check``: what stands in the way of sealing, and with ``--try`` what memory it takes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from gpucost_tui.cli.common import campaign_argument, json_option, print_json, say, table, typed

if TYPE_CHECKING:
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.survey import Survey
    from gpucost_tui.campaign.trying import Tried
    from gpucost_tui.protocol.problem import Problem


@click.command()
@campaign_argument
@click.option(
    "--try", "trial", is_flag=True, help="Run each variant's longest batch; show its memory."
)
@json_option
def check(folder: str, trial: bool, as_json: bool) -> None:
    """Show problems in protocol, corpus, model, environment and disk. Exit 1 if any blocks.

    With --try the longest batch of every variant runs once, in a process of its own, and its
    memory is shown: never a duration."""
    from gpucost_tui.campaign.check import check as look
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.cli.live import watched

    campaign = Campaign.open(folder)
    with watched() as watch:
        found = look(campaign, watch)
    tried = _tried(campaign, found) if trial and not found.blocking else []
    if as_json:
        problems = [problem.to_json() for problem in found.problems]
        value: dict[str, Any] = {"ok": not found.blocking, "problems": problems}
        if trial:
            value["tried"] = [one.to_json() for one in tried]
        print_json(value)
    else:
        _print(folder, found, tried, trial=trial)
    sys.exit(1 if found.blocking else 0)


def _tried(campaign: Campaign, found: Survey) -> list[Tried]:
    from gpucost_tui.campaign.trying import try_batches
    from gpucost_tui.protocol.problem import Problem

    tried = []
    for one in try_batches(campaign, found, lambda sentence: say(f"{sentence} …")):
        tried.append(one)
        if one.status != "completed":
            found.problems.append(
                Problem(
                    f"variant '{one.variant}' over '{one.deliverable}'",
                    f"its longest batch ended as {one.failure or one.status}: "
                    f"{(one.error or 'no reason').rstrip('.')}",
                    "Its attempts would fail here too: change the variant, or seal it knowingly",
                    blocking=False,
                )
            )
    return tried


def _print(folder: str, found: Survey, tried: list[Tried], *, trial: bool) -> None:
    from gpucost_tui.campaign.describe import facts
    from gpucost_tui.text import count

    for line in facts(found):
        click.echo(line)
    for problem in found.problems:
        click.echo(_problem(problem))
    if trial:
        click.echo("\n" + _memory(tried))
    sealed = found.manifest is not None
    blocking = len(found.blocking)
    if blocking:
        verb = "blocks" if blocking == 1 else "block"
        what = "running what is sealed" if sealed else "the seal"
        again = "" if sealed else f" Then again: gpucost check {typed(folder)}"
        click.echo(f"\n{count(blocking, 'problem')} {verb} {what}.{again}")
    elif sealed:
        click.echo(f"\nEverything is as it was sealed. Next: {_next(folder)}")
    else:
        click.echo(f"\nNothing blocks the seal. Next: gpucost seal {typed(folder)}")


def _next(folder: str) -> str:
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.status import status
    from gpucost_tui.cli.status import next_step

    return next_step(typed(folder), str(status(Campaign.open(folder))["state"]))


def _memory(tried: list[Tried]) -> str:
    """Return the table of memory; its columns are separate counters and are not added (R30)."""
    from gpucost_tui.campaign.trying import MEMORY
    from gpucost_tui.text import clean, size

    if not tried:
        return "Nothing was tried: what blocks comes first."
    headers = ["variant", "corpus", "longest batch", "ended", "allocated", "reserved", "device"]
    rows = [
        [
            clean(one.variant),
            clean(one.deliverable),
            f"{one.entries} x {one.padded_length} tokens",
            one.failure or one.status,
            *(size(one.memory[name]) for name in MEMORY),
        ]
        for one in tried
    ]
    reasons = sorted({f"{name}: {why}" for one in tried for name, why in one.missing.items()})
    text = "Longest batch of each variant, memory at its peak (separate counters, never added):\n"
    text += table([*headers, "process"], rows, right=(4, 5, 6, 7))
    return "\n".join([text, *(f"  - {clean(reason)}" for reason in reasons)])


def _problem(problem: Problem) -> str:
    from gpucost_tui.text import clean

    mark = "BLOCKS" if problem.blocking else "note"
    where, what, fix = (clean(part) for part in (problem.where, problem.what, problem.fix))
    return f"\n[{mark}] {where}\n    {what}.\n    {fix}."
