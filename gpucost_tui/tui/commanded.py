"""Asks the command ``gpucost`` to do a thing: what it does can be ended cleanly at any time."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gpucost_tui.errors import GpucostError
from gpucost_tui.tui.work import Cancelled, Work

_PATIENCE_S = 5.0


class CommandFailed(GpucostError):
    """The command's own sentence."""

    def __str__(self) -> str:
        return self.what


def command(work: Work, arguments: Sequence[str], *, cwd: Path, words: str) -> str:
    """Run ``gpucost`` with arguments, reporting while it works; return what it printed.

    Raises:
        CommandFailed: It ended with an error; in its words.
        Cancelled: The work was cancelled; the command was interrupted and has cleaned up.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "gpucost_tui", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        start_new_session=True,
        text=True,
        errors="backslashreplace",
    )
    while True:
        try:
            said, wrong = process.communicate(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            try:
                work.report(f"{words} {time.monotonic() - began:.0f} s")
            except Cancelled:
                _interrupt(process)
                raise
    if process.returncode:
        lines = [line for line in wrong.strip().splitlines() if line.strip()]
        sentence = "\n".join(lines).removeprefix("gpucost: ")
        raise CommandFailed(sentence or f"The command ended with status {process.returncode}")
    return said


def _interrupt(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
