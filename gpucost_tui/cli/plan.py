"""``gpucost plan``: the rotated slots and the window they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpucost_tui.cli.common import campaign_argument, json_option, print_json, table

if TYPE_CHECKING:
    from gpucost_tui.campaign.slots import Slot


@click.command()
@campaign_argument
@json_option
def plan(folder: str, as_json: bool) -> None:
    """Show slots in their rotated order, and the window that the rental needs."""
    from gpucost_tui.campaign.fold import State, fold
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.unchanged import sealed_manifest
    from gpucost_tui.campaign.window import need
    from gpucost_tui.text import listed

    campaign = Campaign.open(folder)
    if campaign.sealed_hash() is None:
        protocol, state = campaign.draft()[1], State()
    else:
        protocol, state = sealed_manifest(campaign).protocol, fold(campaign.events())
    slots = state.slots(protocol)
    window = need(protocol, state)
    if as_json:
        print_json(
            {
                "slots": [slot.to_json() for slot in slots],
                "window_hours": window.hours,
                "window_basis": window.basis,
                "unknown_tasks": list(window.unknown),
            }
        )
        return
    click.echo(_slots(slots, {a.slot: a.row["status"] for a in state.attempts.values()}))
    if window.hours is None:
        missing = listed(window.unknown, limit=8) or "no task is named"
        click.echo(f"\nWindow: not known ({missing}). Give hours in [[window.tasks]], or run.")
    else:
        click.echo(f"\nWindow: {window.hours:.2f} h ({window.basis}).")


def _slots(slots: list[Slot], states: dict[int, str]) -> str:
    from gpucost_tui.text import clean

    rows = [
        [
            str(slot.slot),
            str(slot.round),
            str(slot.position),
            clean(slot.variant, limit=40),
            clean(slot.deliverable, limit=24),
            str(slot.seed),
            states.get(slot.slot) or "open",
        ]
        for slot in slots
    ]
    headers = ["slot", "round", "position", "variant", "deliverable", "seed", "state"]
    return table(headers, rows, right=(0, 1, 2, 5))
