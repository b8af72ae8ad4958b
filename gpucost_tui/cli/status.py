"""``gpucost status``: where a campaign stands."""

from __future__ import annotations

from typing import Any

import click

from gpucost_tui.cli.common import campaign_argument, json_option, print_json


@click.command()
@campaign_argument
@json_option
def status(folder: str, as_json: bool) -> None:
    """Show what is done, what is open, what runs, and what to type next."""
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.status import status as look

    now = look(Campaign.open(folder))
    if as_json:
        print_json(now)
        return
    for line in lines(folder, now):
        click.echo(line)


def lines(folder: str, now: dict[str, Any]) -> list[str]:
    """Return a status as lines for a terminal."""
    from gpucost_tui.text import clean, count, seconds

    shown = clean(folder)
    out = [f"{shown}: {now['state']}"]
    if now["manifest"]:
        out.append(f"Sealed as {now['manifest']}")
        out.append(
            f"{count(now['done'], 'slot')} done, {now['open']} open; "
            f"{count(now['attempts'], 'attempt')}: {now['accepted']} accepted, "
            f"{now['rejected']} rejected, {now['failures']} failed, {now['stopped']} stopped, "
            f"{now['interrupted']} interrupted"
        )
    if now["runner"]:
        out.append(_runner(now["runner"]))
    if now["attempt"] is not None:
        out.append(
            f"Attempt {now['attempt']}: {clean(now['variant'])}, round {now['round']}, "
            f"{now['phase'] or 'starting'}, {now['finished_entries']:,} of "
            f"{now['expected_ids']:,} entries, {seconds(now['elapsed_s'])}"
        )
    if now["committed_usd"] is not None:
        packs = clean("; ".join(now["packs"]), limit=200)
        out.append(f"Committed by now: {now['committed_usd']} USD ({packs})")
    elif now["attempts"]:
        out.append("Committed by now: nothing is recorded; gpucost commit does it")
    if now["spent_usd"] is not None:
        out.append(f"Other spending: {now['spent_usd']} USD")
    out += _told(now)
    state = "elsewhere" if now["runner"] and not now["runner"]["here"] else now["state"]
    out.append(f"Next: {next_step(shown, state)}")
    return out


def _runner(runner: dict[str, Any]) -> str:
    from gpucost_tui.text import clean

    kind = "detached" if runner["detached"] else "in the foreground"
    place = "" if runner["here"] else f" on another machine ({clean(runner['host'])})"
    return f"Runner: process {runner['pid']}{place}, {kind}, since {clean(runner['since'])}"


def _told(now: dict[str, Any]) -> list[str]:
    """Return what somebody who comes back the next day must know before going on."""
    from gpucost_tui.text import clean, count

    out = []
    if now["elsewhere"]:
        out.append(
            f"{now['elsewhere']['what'].capitalize()} on another machine "
            f"({clean(now['elsewhere']['host'])}) has held this campaign since "
            f"{clean(now['elsewhere']['since'])}; if it is gone, `gpucost run`, `seal` and "
            "`export` take --take-over"
        )
    if now["lost"]:
        cut = f", {count(now['cut_off'], 'attempt')} cut off" if now["cut_off"] else ""
        out.append(f"The last run was cut off: its runner was lost{cut}; the next run records it")
    elif now["last_end"] and not now["runner"] and now["state"] != "finished":
        out.append(f"The last run ended: {clean(now['last_end'])}")
    if now["set_aside"]:
        out.append(f"{count(now['set_aside'], 'journal line')} cut off, set aside and kept")
    if now["clock"]:
        out.append(f"The wall clock went backwards: {clean(now['clock'][-1])}")
    return out


def next_step(folder: str, state: str) -> str:
    """Return what to type next."""
    return {
        "draft": f"gpucost check {folder}, then gpucost seal {folder}",
        "sealed": f"gpucost run {folder}",
        "running": f"gpucost status {folder} again, or gpucost pause|stop {folder}",
        "elsewhere": f"gpucost status {folder} on that machine; if this is a copy of its folder, "
        "here again in a minute",
        "paused": f"gpucost run {folder} to go on, gpucost stop {folder} to end",
        "idle": f"gpucost run {folder} fills the open slots",
        "finished": f"gpucost attempts {folder}",
    }[state]
