"""Supervises a runner from a Textual thread worker: says when an attempt fails, and when it ends.

The runner is a process of its own. Nothing here can end it; when the app leaves, only the looking
ends, within a quarter of a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from textual.message import Message

from gpucost_tui.errors import GpucostError
from gpucost_tui.text import clean

if TYPE_CHECKING:
    from gpucost_tui.campaign.lock import Holder

_LOOK_S = 1.0
_STEP_S = 0.25

Wish = Literal["pause", "resume", "stop"]


class AttemptFailed(Message):
    """An attempt of a supervised run failed: which, its kind, the first line of why."""

    bubble = False

    def __init__(self, folder: Path, failure: dict[str, Any]) -> None:
        super().__init__()
        self.folder, self.failure = folder, failure


class RunEnded(Message):
    """A supervised runner is gone; ``why`` in words, ``open_slots`` that are left."""

    bubble = False

    def __init__(self, folder: Path, pid: int, why: str, open_slots: int) -> None:
        super().__init__()
        self.folder, self.pid, self.why, self.open_slots = folder, pid, why, open_slots


@dataclass(frozen=True, slots=True)
class Started:
    """A runner that was started, or none because nothing was left to do."""

    folder: Path
    pid: int | None


def start(folder: Path, *, take_over: bool = False) -> Started:
    """Start a detached runner.

    Raises:
        GpucostError: It did not start; in its words.
    """
    from gpucost_tui.campaign.detach import detach
    from gpucost_tui.campaign.folder import Campaign

    campaign = Campaign.open(folder)
    _ = campaign.manifest  # what is not sealed is refused here, in words
    runner = detach(campaign, ["--take-over"] if take_over else [])
    return Started(folder, runner.pid if runner else None)


def wish_for(folder: Path, wish: Wish) -> int:
    """Leave a wish for the campaign's runner; return its pid.

    Raises:
        AnswerIsNo: There is no runner here.
    """
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.lock import holder
    from gpucost_tui.campaign.progress import ask
    from gpucost_tui.errors import AnswerIsNo

    campaign = Campaign.open(folder)
    runner = holder(campaign.folder)
    if runner is None or not runner.here:
        raise AnswerIsNo("no runner is at work on this campaign on this machine")
    ask(campaign.control_file, wish, runner)
    return runner.pid


def supervise(
    folder: Path, pid: int, tell: Callable[[Message], object], cancelled: Callable[[], bool]
) -> None:
    """Look once a second until the runner is gone, or until told to leave off."""
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.lock import holder
    from gpucost_tui.campaign.progress import read_progress

    campaign = Campaign(folder)
    mine: Holder | None = None
    seen: set[str] | None = None
    while True:
        runner = holder(folder)
        ended = runner is None or runner.pid != pid
        mine = mine if ended else runner
        # Its file outlives it: what failed since the last look is told before its end.
        value = read_progress(campaign.progress_file, mine) if mine is not None else None
        failures = [one for one in (value or {}).get("failures") or [] if isinstance(one, dict)]
        for failure in failures if seen is not None else ():
            if str(failure.get("attempt")) not in (seen or ()):
                tell(AttemptFailed(folder, failure))
        seen = (seen or set()) | {str(failure.get("attempt")) for failure in failures}
        if ended:
            tell(RunEnded(folder, pid, *_end(campaign)))
            return
        for _ in range(round(_LOOK_S / _STEP_S)):
            if cancelled():
                return
            time.sleep(_STEP_S)


def _end(campaign: Any) -> tuple[str, int]:
    """Return why the run ended, and how many slots are open."""
    from gpucost_tui.campaign.status import status

    try:
        now = status(campaign)
    except GpucostError as error:
        return clean(error), 0
    return now["last_end"] or "it left no word", int(now["open"])
