"""The progress display of a run in the foreground: one line that moves, one line per attempt."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, Self

import click

if TYPE_CHECKING:
    from gpucost_tui.campaign.fold import Attempt, State
    from gpucost_tui.campaign.progress import ProgressFile
    from gpucost_tui.campaign.runner import Listener

_EVERY_S = 0.2


class Display:
    """Writes to standard error: a moving line on a terminal, plain lines elsewhere."""

    def __init__(self, *, detached: bool = False, synthetic: bool = False) -> None:
        self._synthetic = synthetic
        self._moving = sys.stderr.isatty() and not detached
        self._shown = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._erase()

    def listener(self) -> Listener:
        from gpucost_tui.campaign.runner import Listener

        return Listener(message=self._message, attempt=self._attempt, say=self._say)

    def _message(self, progress: ProgressFile) -> None:
        now = time.monotonic()
        if not self._moving or now - self._shown < _EVERY_S:
            return
        self._shown = now
        width = shutil.get_terminal_size().columns - 1
        self._move(moving_line(progress, width))

    def _attempt(self, attempt: Attempt, state: State) -> None:
        self._say(attempt_line(attempt, synthetic=self._synthetic))

    def _say(self, sentence: str) -> None:
        self._erase()
        # A terminal that is gone must not end the run: the hang-up's signal decides about that.
        with contextlib.suppress(OSError):
            click.echo(sentence, err=True)

    def _erase(self) -> None:
        self._move("")

    def _move(self, line: str) -> None:
        if self._moving:
            try:
                sys.stderr.write("\r\x1b[K" + line)
                sys.stderr.flush()
            except OSError:
                self._moving = False


def moving_line(progress: ProgressFile, width: int) -> str:
    """Return what goes on right now, on one line."""
    from gpucost_tui.text import clean, seconds

    now = progress.now
    part = now.finished_entries / now.expected_ids if now.expected_ids else 0.0
    filled = round(part * 16)
    line = (
        f"{now.done + 1}/{now.done + now.open} {clean(now.variant or '', limit=24)} "
        f"r{now.round} [{'#' * filled}{'.' * (16 - filled)}] {now.finished_entries:,}/"
        f"{now.expected_ids:,} {now.phase or 'starting'} {seconds(now.elapsed_s)}"
    )
    return line[:width]


def attempt_line(attempt: Attempt, *, synthetic: bool = False) -> str:
    """Return an ended attempt on one line; the quality of a made-up corpus says that it is one."""
    from gpucost_tui.text import clean, seconds

    row: dict[str, Any] = attempt.row
    parts = [
        f"#{attempt.number:<3}",
        f"{clean(row['variant'], limit=24):<12}",
        f"round {row['round']}",
        f"{row['status']:<11}",
        f"pass {seconds(row['pass_s']):>9}",
    ]
    if row["quality"] is not None:
        of = "synthetic " if synthetic else ""
        parts.append(f"{of}{clean(row['quality_metric'])} {row['quality']:.4f}")
    if row["corpus_accepted"] is not None and row["status"] == "completed":
        parts.append("accepted" if row["corpus_accepted"] else "rejected")
    if attempt.reasons and row["status"] == "completed":
        parts.append(f"({', '.join(attempt.reasons)})")
    why = attempt.error or next(filter(_is_verdict, attempt.notes), None)
    line = "  ".join(parts)
    return f"{line}\n      {clean(why, limit=74)}" if why else line


def _is_verdict(note: str) -> bool:
    """Tell a note that explains a rejection."""
    return note.startswith(("quality:", "subgroup ", "tolerance:", "format:", "reproduction:"))
