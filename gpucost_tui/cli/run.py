"""``gpucost run``: fills the open slots, here or detached."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from gpucost_tui.cli.common import campaign_argument, say, take_over_option

if TYPE_CHECKING:
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.runner import Options, RunEnd, Wishes


@click.command()
@campaign_argument
@click.option("--detach", is_flag=True, help="Start a runner that outlives this terminal.")
@click.option("--repeat", type=int, metavar="ATTEMPT", help="Add a slot for a failed attempt.")
@click.option(
    "--more-rounds",
    type=click.IntRange(min=1),
    metavar="N",
    help="Add N whole rounds of every variant, up to the sealed maximum.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="End after N attempts.")
@click.option("--model", metavar="FOLDER", help="Where the sealed model lies on this machine.")
@click.option(
    "--device", metavar="D", help="Which device, such as cuda:1, where the seal leaves it open."
)
@take_over_option
@click.option("--detached-here", is_flag=True, hidden=True)
def run(
    folder: str,
    detach: bool,
    repeat: int | None,
    more_rounds: int | None,
    limit: int | None,
    model: str | None,
    device: str | None,
    take_over: bool,
    detached_here: bool,
) -> None:
    """Run the open slots of a sealed campaign, in rotated order. A paused run goes on."""
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.runner import Options

    campaign = Campaign.open(folder)
    if model is not None:
        from gpucost_tui.campaign.unchanged import place_model

        place_model(campaign, model)
    options = Options(
        more_rounds=more_rounds or 0,
        repeat=repeat,
        detached=detached_here,
        take_over=take_over,
        limit=limit,
        device=device,
    )
    if _resumed(campaign, options):
        return
    if detach:
        _detach(folder, campaign, options)
    elif detached_here:
        from gpucost_tui.campaign.detach import logged

        with logged(campaign):
            _run_here(folder, campaign, options)
    else:
        _advise(folder)
        _run_here(folder, campaign, options)


def _advise(folder: str) -> None:
    """Over a line that may drop, say how a run outlives it."""
    from gpucost_tui.text import clean

    kept = os.environ.get("TMUX") or os.environ.get("STY")
    if os.environ.get("SSH_CONNECTION") and not kept:
        say(f"Over SSH: `gpucost run {clean(folder)} --detach` outlives a dropped connection.")


def _run_here(folder: str, campaign: Campaign, options: Options) -> None:
    end, wishes = foreground(campaign, options)
    summary(folder, end)
    leave(end, wishes)


def leave(end: RunEnd, wishes: Wishes) -> None:
    """Leave with the status of a run that a signal cut short (130, 143); return after any other."""
    if end.cut_short and (wishes.interrupted or wishes.signalled):
        sys.exit(143 if wishes.interrupted else 130)


def _resumed(campaign: Campaign, options: Options) -> bool:
    """Let a paused runner go on, if there is one."""
    from gpucost_tui.campaign.lock import holder
    from gpucost_tui.campaign.progress import ask, read_progress
    from gpucost_tui.errors import Refused

    runner = holder(campaign.folder)
    if runner is None or not runner.here:
        return False
    if (read_progress(campaign.progress_file, runner) or {}).get("state") != "paused":
        return False
    if options.more_rounds or options.repeat is not None or options.limit is not None:
        raise Refused(
            f"a paused runner (process {runner.pid}) would go on, and takes no options",
            fix="`gpucost stop` ends it; then give the options again",
        )
    ask(campaign.control_file, "resume", runner)
    click.echo(f"The paused runner (process {runner.pid}) goes on.")
    return True


def _detach(folder: str, campaign: Campaign, options: Options) -> None:
    from gpucost_tui.campaign.detach import detach as start
    from gpucost_tui.campaign.lock import holder
    from gpucost_tui.errors import Refused
    from gpucost_tui.text import clean

    other = holder(campaign.folder)
    if other is not None and (other.here or not options.take_over):
        raise Refused(
            f"{other.words} is already at work on this campaign (process {other.pid}"
            f"{'' if other.here else ' on another machine'})",
            fix="`gpucost status` shows it, `gpucost stop` ends it"
            if other.here
            else "If it is not, add --take-over",
        )
    _ = campaign.manifest  # an unsealed campaign is refused here, in words
    arguments: list[str] = []
    for flag, value in (
        ("--more-rounds", options.more_rounds or None),
        ("--repeat", options.repeat),
        ("--limit", options.limit),
        ("--device", options.device),
    ):
        arguments += [flag, str(value)] if value is not None else []
    arguments += ["--take-over"] if options.take_over else []
    say("Starting …")
    runner = start(campaign, arguments)
    if runner is None:
        click.echo("Every slot is done already.")
        return
    click.echo(f"Running detached (process {runner.pid}); closing this terminal ends nothing.")
    click.echo(f"Look: gpucost status {clean(folder)}   End: gpucost stop {clean(folder)}")


def foreground(campaign: Campaign, options: Options) -> tuple[RunEnd, Wishes]:
    """Run in this process, with a progress display and signals."""
    from gpucost_tui.campaign.runner import Wishes
    from gpucost_tui.campaign.runner import run as run_campaign
    from gpucost_tui.cli.live import Display

    wishes = Wishes()
    synthetic = campaign.manifest.protocol.corpus.synthetic
    display = Display(detached=options.detached, synthetic=synthetic)
    with _signals(wishes, detached=options.detached), display:
        end = run_campaign(campaign, wishes=wishes, listener=display.listener(), options=options)
    return end, wishes


@contextmanager
def _signals(wishes: Wishes, *, detached: bool) -> Iterator[None]:
    """SIGINT once stops after the batch, twice at once; SIGTERM and SIGHUP interrupt.

    A detached run, and one under nohup, survives SIGHUP. Before the run has begun to write, any of
    them simply ends it.
    """
    from gpucost_tui.errors import Interrupted, Terminated

    def interrupt(*_: Any) -> None:
        if not wishes.recording:
            raise Interrupted("interrupted before the run began; nothing was recorded")
        if wishes.stop is None:
            with contextlib.suppress(OSError):
                say("\nStopping after this batch; ctrl+c again stops at once.")
        wishes.interrupt_once_more()

    def terminate(*_: Any) -> None:
        if not wishes.recording:
            raise Terminated("ended before the run began; nothing was recorded")
        wishes.terminate()

    handlers: dict[int, Any] = {
        signal.SIGINT: interrupt,
        signal.SIGTERM: terminate,
        signal.SIGHUP: signal.SIG_IGN if detached else terminate,
    }
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        del handlers[signal.SIGHUP]  # started with nohup: that wish stands
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def summary(folder: str, end: RunEnd) -> None:
    """Print how the run ended; its last line says what failed and was rejected."""
    for line in _summary(folder, end):
        try:
            click.echo(line)
            sys.stdout.flush()
        except OSError:
            # The terminal is gone (a hang-up ended the run): keep the exit status all the same.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return


def _summary(folder: str, end: RunEnd) -> Iterator[str]:
    from gpucost_tui.text import clean, count

    rows = [attempt.row for attempt in end.state.attempts.values()]
    failed = sum(row["status"] == "failed" for row in rows)
    accepted = sum(row["corpus_accepted"] is True for row in rows)
    rejected = sum(row["corpus_accepted"] is False and row["status"] == "completed" for row in rows)
    yield f"The run ended: {clean(end.why)}."
    if end.open_slots:
        yield f"{count(end.open_slots, 'slot')} open: gpucost run {clean(folder)} goes on."
    else:
        yield f"Next: gpucost compare {clean(folder)}, then gpucost decide {clean(folder)}"
    others = {
        word: sum(row["status"] == word for row in rows) for word in ("stopped", "interrupted")
    }
    also = "".join(f", {number} {word}" for word, number in others.items() if number)
    yield (
        f"{count(len(rows), 'attempt')}: {accepted} accepted, {rejected} rejected, {failed} failed"
        f"{also}."
    )
