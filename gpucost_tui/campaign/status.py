"""Where a campaign stands, from its files alone: for `status`, the app and any other terminal."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from gpucost_tui.campaign.acts import committed_so_far
from gpucost_tui.campaign.fold import State, fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.lock import Holder, holder
from gpucost_tui.campaign.progress import read_progress

#: A runner on another machine is believed to be at work if its progress is not older than this.
_FRESH_S = 60.0


def status(campaign: Campaign) -> dict[str, Any]:
    """Return the keys that ``status --json`` promises, and what the run says of itself.

    ``state``: draft, sealed, running, paused, idle (open slots, no runner) or finished.

    Raises:
        Differs: The journal is damaged.
    """
    # The runner first: one that ends meanwhile is seen, and what it wrote at its end too.
    runner = holder(campaign.folder)
    state = fold(campaign.events()) if campaign.sealed else State()
    if state.manifest is None:
        return _answer("draft", None, None, state, 0, 0)
    protocol = campaign.manifest.protocol
    slots, open_slots = len(state.slots(protocol)), len(state.open_slots(protocol))
    progress = read_progress(campaign.progress_file, runner) if runner else None
    if runner is not None and (runner.here or _fresh(progress)):
        word = "paused" if progress and progress.get("state") == "paused" else "running"
    elif not open_slots:
        word, progress = "finished", None
    else:
        word, progress = "idle" if state.attempts else "sealed", None
    return _answer(word, runner, progress, state, slots - open_slots, open_slots)


def _fresh(progress: dict[str, Any] | None) -> bool:
    try:
        updated = datetime.fromisoformat((progress or {})["updated"])
    except (KeyError, TypeError, ValueError):
        return False
    return abs(time.time() - updated.timestamp()) < _FRESH_S


def _answer(
    word: str,
    runner: Holder | None,
    progress: dict[str, Any] | None,
    state: State,
    done: int,
    open_slots: int,
) -> dict[str, Any]:
    now = progress or {}
    rows = [attempt.row for attempt in state.attempts.values()]
    at_work = word in ("running", "paused")
    return {
        "state": word,
        "runner": _runner(runner) if runner and at_work else None,
        # A lock that another machine wrote, in a folder that was copied or is shared.
        "elsewhere": _runner(runner) if runner and not at_work else None,
        "attempt": now.get("attempt"),
        "variant": now.get("variant"),
        "round": now.get("round"),
        "phase": now.get("phase"),
        "finished_entries": now.get("finished_entries"),
        "expected_ids": now.get("expected_ids"),
        "elapsed_s": now.get("elapsed_s"),
        "failures": sum(row["status"] == "failed" for row in rows),
        "done": done,
        "open": open_slots,
        "attempts": len(rows),
        "accepted": sum(row["corpus_accepted"] is True for row in rows),
        "rejected": sum(
            row["corpus_accepted"] is False and row["status"] == "completed" for row in rows
        ),
        "stopped": sum(row["status"] == "stopped" for row in rows),
        "interrupted": sum(row["status"] == "interrupted" for row in rows),
        "cut_off": len(state.unfinished()) if not at_work else 0,
        "last_end": state.last_end if not state.running else None,
        "lost": state.running and not at_work,
        "set_aside": len(state.set_aside),
        "clock": state.clock,
        **committed_so_far(state),
        "manifest": state.manifest,
    }


def _runner(holder_: Holder) -> dict[str, Any]:
    return {
        "pid": holder_.pid,
        "host": holder_.machine,
        "here": holder_.here,
        "what": holder_.words,
        "since": holder_.since,
        "detached": holder_.detached,
    }
