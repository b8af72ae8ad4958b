"""What goes on in the foreground: one line that moves; of a run also a line per attempt."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import click

if TYPE_CHECKING:
    from gpucost_tui.campaign.fold import Attempt, State
    from gpucost_tui.campaign.progress import ProgressFile
    from gpucost_tui.campaign.runner import Listener
    from gpucost_tui.watch import Step, Watch

_EVERY_S = 0.2


class MovingLine:
    """One line on a terminal's standard error that is written over and over; elsewhere nothing."""

    def __init__(self, *, wanted: bool = True) -> None:
        self.moves = wanted and sys.stderr.isatty()

    def show(self, line: str) -> None:
        if self.moves:
            try:
                sys.stderr.write("\r\x1b[K" + line)
                sys.stderr.flush()
            except OSError:
                self.moves = False

    def erase(self) -> None:
        self.show("")


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
    """Give a watch: what it is told stands on a moving line, which is gone at the end."""
    from rich.cells import cell_len, chop_cells

    from gpucost_tui.text import clean
    from gpucost_tui.watch import NOBODY, Told

    line = MovingLine()

    def tell(step: Step) -> None:
        words = clean(f"{step} …")
        width = max(shutil.get_terminal_size().columns - 1, 1)
        line.show(words if cell_len(words) <= width else chop_cells(words, width)[0])

    try:
        yield Told(tell) if line.moves else NOBODY
    finally:
        line.erase()


class Display:
    """Writes to standard error: a moving line on a terminal, plain lines elsewhere."""

    def __init__(self, *, detached: bool = False, synthetic: bool = False) -> None:
        self._synthetic = synthetic
        self._line = MovingLine(wanted=not detached)
        self._shown = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.erase()

    def listener(self) -> Listener:
        from gpucost_tui.campaign.runner import Listener

        return Listener(message=self._message, attempt=self._attempt, say=self._say)

    def _message(self, progress: ProgressFile) -> None:
        now = time.monotonic()
        if not self._line.moves or now - self._shown < _EVERY_S:
            return
        self._shown = now
        width = shutil.get_terminal_size().columns - 1
        self._line.show(moving_line(progress, width))

    def _attempt(self, attempt: Attempt, state: State) -> None:
        self._say(attempt_line(attempt, synthetic=self._synthetic))

    def _say(self, sentence: str) -> None:
        self._line.erase()
        # A terminal that is gone must not end the run: the hang-up's signal decides about that.
        with contextlib.suppress(OSError):
            click.echo(sentence, err=True)


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
