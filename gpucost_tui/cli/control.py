"""``gpucost pause`` and ``gpucost stop``: wishes for a runner, from any terminal."""

from __future__ import annotations

from typing import Literal

import click

from gpucost_tui.cli.common import campaign_argument


@click.command()
@campaign_argument
def pause(folder: str) -> None:
    """Pause the run after the current attempt; `gpucost run` goes on."""
    _ask(folder, "pause", "It pauses after the current attempt; `gpucost run` goes on.")


@click.command()
@campaign_argument
def stop(folder: str) -> None:
    """Stop the run after the current batch; the attempt is recorded as stopped."""
    _ask(folder, "stop", "It stops after the current batch; its slot stays open.")


def _ask(folder: str, wish: Literal["pause", "stop"], answer: str) -> None:
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.lock import holder
    from gpucost_tui.campaign.progress import ask
    from gpucost_tui.errors import AnswerIsNo

    campaign = Campaign.open(folder)
    runner = holder(campaign.folder)
    if runner is None or not runner.here:
        raise AnswerIsNo(
            "no runner is at work on this campaign here",
            where=campaign.folder.name,
            fix="`gpucost status` shows where it stands",
        )
    ask(campaign.control_file, wish, runner)
    click.echo(f"Asked the runner (process {runner.pid}). {answer}")
