"""``gpucost demo``: the embedded campaign, from making it to reading it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gpucost_tui.cli.common import say, table, typed

if TYPE_CHECKING:
    from gpucost_tui.campaign.fold import State
    from gpucost_tui.campaign.folder import Campaign


@click.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(), default="demo-campaign")
def demo(folder: str) -> None:
    """Make the embedded campaign in DIR, seal it, run it, and print what came out.

    A synthetic demonstration: 1000 made-up tickets, a tiny classifier, batch 1, 4 and 8, five
    passes each in rotated order. Offline. A demonstration that was cut off goes on.
    """
    from gpucost_tui.campaign.runner import Options
    from gpucost_tui.cli.run import foreground, summary

    campaign = _made(folder)
    say("Running 15 passes: three variants, five rounds, in rotated order.\n")
    end, wishes = foreground(campaign, Options())
    click.echo("")
    for line in answer(folder, campaign, end.state):
        click.echo(line)
    summary(folder, end)
    if wishes.interrupted or wishes.signalled:
        sys.exit(143 if wishes.interrupted else 130)


def _made(folder: str) -> Campaign:
    from pathlib import Path

    from gpucost_tui.campaign.demo import make_demo
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.seal import seal
    from gpucost_tui.errors import WrongUse
    from gpucost_tui.text import clean

    if Path(folder, "manifest.json").is_file():
        campaign = Campaign.open(folder)
        if not campaign.manifest.protocol.corpus.synthetic:
            raise WrongUse(
                f"'{clean(folder)}' is a campaign of yours, not the demonstration",
                fix="Name another folder",
            )
        return campaign
    say("Making the synthetic demonstration: 1000 made-up tickets and a tiny classifier …")
    campaign = make_demo(Path(folder))
    manifest, _ = seal(campaign)
    say(f"Sealed before the first duration is seen: {manifest.sha256}")
    return campaign


def answer(folder: str, campaign: Campaign, state: State) -> list[str]:
    """Return the durations per variant, verdicts, memory, and what to type next, as lines."""
    from gpucost_tui.campaign.summary import by_variant
    from gpucost_tui.text import clean, seconds, size

    protocol = campaign.manifest.protocol
    rows, passes = [], []
    for one in by_variant(protocol, state):
        name, taken = clean(one.variant, limit=24), one.durations_s
        passes.append([name, " ".join(f"{value:.2f}" for value in taken) or "-"])
        rows.append(
            [
                name,
                seconds(one.median_s),
                seconds(min(taken, default=None)),
                seconds(max(taken, default=None)),
                f"{one.accepted} of {one.accepted + one.rejected + one.failed}",
                f"{one.qualities[-1]:.3f}" if one.qualities else "-",
                "-" if one.padding_ratio is None else f"{one.padding_ratio:.2f}",
                size(one.peak_allocated_bytes or one.peak_rss_bytes),
            ]
        )
    headers = ["variant", "median", "min", "max", "accepted", "quality", "padding", "peak"]
    shown, there, corpus = clean(folder), typed(folder), protocol.deliverables[0].name
    of = "synthetic demonstration: " if protocol.corpus.synthetic else ""
    return [
        table(["variant", "every pass (s), in the order of rounds"], passes),
        "",
        table(headers, rows, right=(1, 2, 3, 5, 6, 7)),
        "",
        f"Quality: {of}{protocol.quality.metric}, at least {protocol.quality.threshold:g} asked.",
        "Padding: tokens computed over real tokens.",
        f"Peak: {_scope(state)}",
        "Five passes describe a small series: no difference is settled by a look.",
        "",
        f"Raw table     {shown}/raw_results.csv, one row per attempt",
        f"Predictions   {shown}/attempts/*/predictions.parquet",
        f"Everything    {shown}/journal.jsonl",
        "",
        f"Next: gpucost compare {there}     which differences are settled, and why",
        f"      gpucost {there}             the same in the app",
        "",
        "Its corpus and model serve a campaign of your own too (or take your own files):",
        "      gpucost new mine --protocol classification-batch --model demo \\",
        f"        --corpus {there}/corpus/{corpus}.jsonl --right-of-use synthetic",
        "",
    ]


def _scope(state: State) -> str:
    rows = [attempt.row for attempt in state.attempts.values()]
    if any(row["peak_allocated_bytes"] is not None for row in rows):
        return "tensors of the process on the device (torch's allocator)."
    return "host memory of the measuring process (no GPU was used)."
