"""Long work beside the event loop: a daemon thread in, messages out.

Textual's own thread workers keep a closing process until their call returns; a daemon thread does
not, and nothing here holds what would be lost with it (the core writes whole files or none).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from textual.message_pump import MessagePump

from gpucost_tui.errors import GpucostError
from gpucost_tui.text import clean
from gpucost_tui.tui.messages import WorkEnded, WorkProgressed
from gpucost_tui.watch import Cancelled, Step, Told

__all__ = ["Cancelled", "Work", "Worker", "program_error"]

_numbers = itertools.count(1)


class Work:
    """One piece of work. The thread uses :meth:`report`; callbacks run in the event loop."""

    def __init__(
        self,
        owner: MessagePump,
        name: str,
        done: Callable[[Any], object] | None,
        failed: Callable[[str], object] | None,
        progress: Callable[[str, int | None, int | None], object] | None,
        writes: bool,
    ) -> None:
        self.name, self.writes = name, writes
        self.number = next(_numbers)
        self.done, self.failed, self.progress = done, failed, progress
        self._owner = owner
        self._cancelled = threading.Event()
        self.thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        self._cancelled.set()

    def report(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Tell how far the work is.

        Raises:
            Cancelled: It is to end here.
        """
        if self._cancelled.is_set():
            raise Cancelled
        self._owner.post_message(WorkProgressed(self, text, done, total))

    def watch(self) -> Told:
        """Return what the core tells of its long loops; a cancel ends them."""

        def tell(step: Step) -> None:
            self.report(str(step), step.done, step.total)

        return Told(tell)

    def run(self, function: Callable[[Work], Any]) -> None:
        try:
            ended = WorkEnded(self, value=function(self))
        except Cancelled:
            ended = WorkEnded(self, cancelled=True)
        except GpucostError as error:
            ended = WorkEnded(self, failure=clean(error, one_line=False))
        except Exception as error:
            ended = WorkEnded(self, failure=program_error(error))
        self._owner.post_message(ended)


def program_error(error: BaseException) -> str:
    """Return a mistake of the program as a sentence; one in the app must not end it."""
    said = clean(f"{type(error).__name__}: {error}", limit=400)
    return f"An error of the program itself: {said}."


class Worker(MessagePump):
    """Mixed into screens and dialogs: starts work and takes its outcomes.

    ``cancelled`` outcomes call ``failed`` with the sentence "Cancelled.".
    """

    _works: dict[str, Work]

    def work(
        self,
        name: str,
        function: Callable[[Work], Any],
        *,
        done: Callable[[Any], object] | None = None,
        failed: Callable[[str], object] | None = None,
        progress: Callable[[str, int | None, int | None], object] | None = None,
        writes: bool = False,
    ) -> Work:
        """Start work; an older one of the same name is cancelled and its outcome dropped."""
        self.cancel(name)
        work = Work(self, name, done, failed, progress, writes)
        self._works_by_name()[name] = work
        work.thread = threading.Thread(
            target=work.run, args=(function,), name=f"gpucost-{name}", daemon=True
        )
        work.thread.start()
        return work

    def cancel(self, name: str) -> bool:
        """Ask a work to end; False when there is none."""
        work = self._works_by_name().get(name)
        if work is None:
            return False
        work.cancel()
        return True

    def busy(self, name: str) -> bool:
        """Return whether a work of that name has not ended yet."""
        return name in self._works_by_name()

    def writing(self) -> list[str]:
        """Return the names of works that are changing files right now."""
        return [work.name for work in self._works_by_name().values() if work.writes]

    def _works_by_name(self) -> dict[str, Work]:
        if not hasattr(self, "_works"):
            self._works = {}
        return self._works

    def on_work_progressed(self, event: WorkProgressed) -> None:
        work = event.work
        if self._works_by_name().get(work.name) is work and work.progress and not work.cancelled:
            work.progress(event.text, event.done, event.total)

    def on_work_ended(self, event: WorkEnded) -> None:
        work = event.work
        if self._works_by_name().get(work.name) is not work:
            return  # a newer work of this name has taken its place
        del self._works_by_name()[work.name]
        if event.cancelled or (work.cancelled and not work.writes):
            if work.failed:
                work.failed("Cancelled.")
        elif event.failure is not None:
            if work.failed:
                work.failed(event.failure)
        elif work.done:
            work.done(event.value)
