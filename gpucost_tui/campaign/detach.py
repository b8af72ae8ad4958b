"""Starts a runner in its own session: it outlives the terminal, the shell and the connection."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.lock import Holder, holder
from gpucost_tui.campaign.logs import BoundedLog
from gpucost_tui.errors import GpucostError

_WAIT_S = 60.0


class NotStarted(GpucostError):
    """A detached runner that ended before it was at work; carries its exit status."""

    def __init__(self, what: str, status: int) -> None:
        super().__init__(what, fix="`gpucost run` in the foreground shows more")
        self.exit_status = status


def detach(campaign: Campaign, arguments: Sequence[str]) -> Holder | None:
    """Start ``gpucost run`` detached; return the runner, or none when it is already done.

    Args:
        campaign: A sealed campaign.
        arguments: Options of ``gpucost run`` to pass on.

    Raises:
        NotStarted: It ended with an error; in its words.
    """
    campaign.logs.mkdir(exist_ok=True)
    words = BoundedLog(campaign.logs / "runner.log")
    before = len(words.tail(1_000_000))
    with words.path.open("ab") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gpucost_tui", "run", str(campaign.folder.resolve())),
                *("--detached-here", *arguments),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        runner = holder(campaign.folder)
        if runner is not None and runner.pid == process.pid:
            return runner
        if (code := process.poll()) is not None:
            if code == 0:
                return None
            said = words.tail(1_000_000)[before:].strip().splitlines()
            raise NotStarted(said[-1].removeprefix("gpucost: ") if said else "no word", code)
        time.sleep(0.05)
    return holder(campaign.folder)
