"""Starts a runner in its own session: it outlives the terminal, the shell and the connection."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import utc_now
from gpucost_tui.campaign.lock import Holder, holder, machine
from gpucost_tui.campaign.logs import BoundedLog
from gpucost_tui.campaign.private import Private
from gpucost_tui.campaign.progress import read_progress
from gpucost_tui.errors import GpucostError

#: How long the starter waits for a sign that the measuring process is ready. Where the inputs are
#: large or torch comes from a slow disk, the runner goes on alone.
_WAIT_S = 60.0


class NotStarted(GpucostError):
    """A detached runner that ended before it was at work; carries its exit status."""

    def __init__(self, what: str, status: int) -> None:
        super().__init__(what, fix="`gpucost run` in the foreground shows more")
        self.exit_status = status


def runner_log(campaign: Campaign) -> BoundedLog:
    """Return the log of detached runners."""
    return BoundedLog(campaign.logs / "runner.log", Private(campaign.folder).hide)


def detach(campaign: Campaign, arguments: Sequence[str]) -> Holder | None:
    """Start ``gpucost run`` detached; return the runner, or none when it is already done.

    Args:
        campaign: A sealed campaign.
        arguments: Options of ``gpucost run`` to pass on.

    Raises:
        NotStarted: It ended with an error; in its words.
    """
    folder = campaign.folder.resolve()
    # What it says before its log is open is kept in memory: the disk may be what it can't write to.
    with os.fdopen(os.memfd_create("words"), "w+b") as words:
        process = subprocess.Popen(
            # By its name and from beside it: what is said of the folder then gives no place away.
            [
                *(sys.executable, "-m", "gpucost_tui", "run", f"./{folder.name}"),
                *("--detached-here", *arguments),
            ],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            start_new_session=True,
            cwd=folder.parent,
            env=_environment(),
        )
        return _await(campaign, process, words)


def _environment() -> dict[str, str]:
    """Return the environment with relative import paths made absolute: the folder changes."""
    environment = dict(os.environ)
    if path := environment.get("PYTHONPATH"):
        parts = (str(Path(part).absolute()) for part in path.split(os.pathsep) if part)
        environment["PYTHONPATH"] = os.pathsep.join(parts)
    return environment


def _await(campaign: Campaign, process: subprocess.Popen[bytes], words: IO[bytes]) -> Holder | None:
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        code = process.poll()
        if code == 0:
            return None
        if code is not None:
            raise NotStarted(_last_words(words), code if code > 0 else 1)
        runner = holder(campaign.folder)
        if runner is not None and runner.pid == process.pid:
            progress = read_progress(campaign.progress_file, runner)
            if progress is not None and (progress["ready"] or progress["state"] == "paused"):
                return runner
        time.sleep(0.05)
    return holder(campaign.folder) or Holder(process.pid, "", machine(), utc_now(), True)


def _last_words(words: IO[bytes]) -> str:
    words.seek(0)
    said = words.read().decode("utf-8", "replace").strip().splitlines()
    return said[-1].removeprefix("gpucost: ").removesuffix(".") if said else "it left no word"


@contextmanager
def logged(campaign: Campaign) -> Iterator[None]:
    """Lead everything that this process prints into the bounded log, libraries' words too."""
    log = runner_log(campaign)
    source, sink = os.pipe()
    stream = os.fdopen(source, "rb")
    pump = threading.Thread(target=log.drain, args=(stream,), daemon=True)
    pump.start()
    sys.stdout.flush()
    before = [os.dup(1), os.dup(2)]
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.close(sink)
    try:
        yield
    except GpucostError as error:
        print(f"gpucost: {error}", file=sys.stderr)
        raise
    finally:
        for text in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                text.flush()
        for number, handle in enumerate(before, 1):
            os.dup2(handle, number)
            os.close(handle)
        pump.join(timeout=5)
