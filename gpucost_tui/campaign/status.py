"""Where a campaign stands, from its files alone: for `status`, the app and any other terminal."""

from __future__ import annotations

from typing import Any

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.fold import State, fold
from gpucost_tui.campaign.lock import Holder, holder
from gpucost_tui.campaign.progress import read_progress


def status(campaign: Campaign) -> dict[str, Any]:
    """Return the keys that ``status --json`` promises, and what the run says of itself.

    ``state``: draft, sealed, running, paused, idle (open slots, no runner) or finished.

    Raises:
        Differs: The journal is damaged.
    """
    if not campaign.sealed:
        return _answer("draft", None, None, State(), 0, 0)
    state = fold(campaign.events())
    protocol = campaign.manifest.protocol
    slots, open_slots = len(state.slots(protocol)), len(state.open_slots(protocol))
    runner = holder(campaign.folder)
    progress = read_progress(campaign.progress_file) if runner else None
    if runner is not None:
        word = "paused" if progress and progress["state"] == "paused" else "running"
    elif not open_slots:
        word = "finished"
    else:
        word = "idle" if state.attempts else "sealed"
    return _answer(word, runner, progress, state, slots - open_slots, open_slots)


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
    return {
        "state": word,
        "runner": runner
        and {"pid": runner.pid, "host": runner.machine, "since": runner.since}
        | {"detached": runner.detached},
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
        "last_end": state.last_end,
        "manifest": state.manifest,
    }
