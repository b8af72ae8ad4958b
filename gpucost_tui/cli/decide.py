"""``gpucost decide``: the final balance over one or several machines (R36 to R40)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from gpucost_tui.cli.common import json_option, parents_option, print_json, say

if TYPE_CHECKING:
    from gpucost_tui.analysis.balance import Decision


@click.command()
@click.argument("places", metavar="DIR…|TABLE", nargs=-1, required=True, type=click.Path())
@click.option("--plan", metavar="PLAN.toml", help="What a TABLE is decided by.")
@click.option(
    "--catalogue",
    "catalogues",
    multiple=True,
    metavar="FILE",
    help="Price list for a TABLE; a campaign has its prices frozen.",
)
@parents_option
@json_option
@click.pass_context
def decide(
    ctx: click.Context,
    places: tuple[str, ...],
    plan: str | None,
    catalogues: tuple[str, ...],
    parents: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the full balance of every configuration, and which one is chosen and why.

    Several DIRs are campaigns with one manifest from several hosts. A TABLE is a raw table (.csv,
    .parquet) with a plan of the form of data/decision_plan_template.toml. Exit status 1: tied or
    undecided.
    """
    _refuse_mixture(places, plan, catalogues, parents)
    if plan is not None:
        decision, document = _table(places[0], plan, catalogues)
    else:
        decision, document = _campaigns(places, parents)
    if as_json:
        print_json(document)
    else:
        _show(decision, document)
    if decision.outcome != "decided":
        ctx.exit(1)


def _refuse_mixture(
    places: tuple[str, ...],
    plan: str | None,
    catalogues: tuple[str, ...],
    parents: tuple[str, ...],
) -> None:
    from pathlib import Path

    from gpucost_tui.errors import WrongUse
    from gpucost_tui.text import clean

    folders = [place for place in places if Path(place).is_dir()]
    if plan is None and catalogues:
        raise WrongUse(
            "--catalogue goes with a table: `gpucost commit` froze the prices of a campaign",
            fix="Leave it out",
        )
    if plan is None:
        table = next((p for p in places if Path(p).is_file()), None)
        if table is not None:
            raise WrongUse(
                f"the table '{clean(table, limit=100)}' says nothing of deadline and packs",
                fix="Add --plan PLAN.toml; data/decision_plan_template.toml shows its form",
            )
    elif folders or len(places) > 1:
        raise WrongUse(
            "--plan goes with one table: a campaign is decided by what was sealed",
            fix="Leave --plan out, or name a raw table (.csv, .parquet)",
        )
    elif parents:
        raise WrongUse("--parent goes with campaign folders", fix="Leave it out")


def _table(place: str, plan: str, catalogues: tuple[str, ...]) -> tuple[Decision, dict[str, Any]]:
    from pathlib import Path

    from gpucost_tui.analysis.balance import decide_table
    from gpucost_tui.analysis.plan_file import read_plan
    from gpucost_tui.analysis.table import FOR_DECIDE, read_table
    from gpucost_tui.cli.compare import one_manifest
    from gpucost_tui.pricing.catalogue import load

    by = read_plan(Path(plan))
    read = read_table(Path(place), FOR_DECIDE)
    for note in read.notes:
        say(note)
    one_manifest(read.frame, read.name)
    decision = decide_table(read.frame, by, load([Path(name) for name in catalogues]))
    return decision, decision.to_json()


def _campaigns(
    places: tuple[str, ...], parents: tuple[str, ...]
) -> tuple[Decision, dict[str, Any]]:
    from gpucost_tui.analysis.campaigns import decide_campaigns
    from gpucost_tui.analysis.together import read_together

    balance = decide_campaigns(read_together(places), parents)
    return balance.decision, balance.to_json()


def _show(decision: Decision, document: dict[str, Any]) -> None:
    from gpucost_tui.analysis.render import decision_lines
    from gpucost_tui.cli.compare import terminal

    width, _ = terminal()
    click.echo("\n".join(decision_lines(decision, width=width)))
    for sentence in dict.fromkeys(_paid(document)):
        click.echo(_wrapped(sentence, width))


def _paid(document: dict[str, Any]) -> Iterator[str]:
    """Yield what each pack costs, once, and other spending (R37)."""
    from gpucost_tui.text import clean, count

    for row in document["balance"]:
        pack = row["pack"]
        if pack is not None:
            yield (
                f"{count(pack['lots'], 'lot')} of {clean(pack['gpu'])} for {pack['days']} days: "
                f"{pack['usd_per_lot']} USD a lot, {clean(pack['provider'])}, catalogue of "
                f"{pack['catalogue_date']}."
            )
    for row in document["balance"]:
        for spent in (row["other_spending"] or {}).get("rows", ()):
            said = f"other spending {spent['usd']} USD, {clean(spent['reason'], limit=200)}"
            yield f"{clean(row['configuration'], limit=80)}: {said}."


def _wrapped(sentence: str, width: int) -> str:
    import textwrap

    return textwrap.fill(sentence, width, break_on_hyphens=False)
