"""Run: what goes on, live; start, pause, resume and stop of a runner that outlives the app."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import get_current_worker

from gpucost_tui.tui.run_memory import memory_lines
from gpucost_tui.tui.run_view import Known, attempt_lines, ended_lines, first_line, headline
from gpucost_tui.tui.run_watch import (
    AttemptFailed,
    RunEnded,
    Started,
    Wish,
    start,
    supervise,
    wish_for,
)
from gpucost_tui.tui.safe import filled
from gpucost_tui.tui.screen import PlaceScreen

if TYPE_CHECKING:
    from gpucost_tui.campaign.fold import State
    from gpucost_tui.tui.context import Snapshot

_NONE = "No campaign is open. 1 Home opens one, makes one, or makes the demonstration."
#: Without news for so long, what is shown is looked at again: it may have grown old.
_STALE_S = 2.5

_ANSWERS: dict[str, str] = {
    "pause": "Pause asked for: after this attempt.",
    "resume": "The runner goes on.",
    "stop": "Stop asked for: after this batch.",
}


class Live(VerticalScroll):
    """What goes on; scrolls with the arrows."""

    HELP = (
        "The attempt that goes on: its phase, entries, rate, and what remains with its basis; "
        "memory of each device, each counter by itself; failures as they happen. Arrows scroll."
    )


class Part(Vertical):
    """A part of the place whose lines are made for its width."""

    class Widened(Message):
        """The part has another width."""

    _width = 0

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width != self._width:
            self._width = event.size.width
            self.post_message(self.Widened())


class RunScreen(PlaceScreen):
    """The live run, wherever it was started."""

    PLACE: ClassVar[str] = "run"
    CSS_PATH = "run.tcss"
    HELP = (
        "The run, live, wherever it was started. A run belongs to a runner of its own: leaving "
        "this place, opening another campaign or closing the app ends nothing.\n"
        "Pause waits for the end of the attempt and gives the device back. Stop waits for the end "
        "of the batch; the attempt's slot stays open, and the next start fills it."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "start", "Start", tooltip="Start a detached runner on the open slots"),
        Binding("p", "pause", "Pause", tooltip="Pause the run after the current attempt"),
        Binding("r", "resume", "Resume", tooltip="Let a paused run go on"),
        Binding("x", "stop", "Stop", tooltip="Stop the run after the current batch; asks first"),
    ]

    _snapshot: Snapshot | None = None
    _known: tuple[State | None, Known] = (None, Known())
    _painted = 0.0

    def content(self) -> Iterable[Widget]:
        yield Live(
            Part(
                Static(id="head", markup=False),
                Static(id="attempt", markup=False),
                Static(id="ended", markup=False),
                id="now",
            ),
            Part(Static(id="memory", markup=False), id="devices"),
            id="live",
        )

    def on_mount(self) -> None:
        self.set_interval(1.0, self._look_again)

    # Showing: at most once a second, four widgets

    def show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        runner = (snapshot.status or {}).get("runner")
        if snapshot.folder is not None and snapshot.word in ("running", "paused") and runner:
            self._attend(snapshot.folder, runner["pid"])
        self._paint()
        self.refresh_bindings()

    def on_part_widened(self) -> None:
        self._paint()

    def _look_again(self) -> None:
        """Show that a runner is silent; its file doesn't change then, so no snapshot comes."""
        snapshot = self._snapshot
        if snapshot is None or snapshot.word != "running" or self not in self.app.screen_stack:
            return
        if time.monotonic() - self._painted > _STALE_S:
            self._paint()

    def _paint(self) -> None:
        snapshot = self._snapshot
        if snapshot is None:
            return
        self._painted = time.monotonic()
        if snapshot.folder is None:
            self._put("head", [filled("$x", x=_NONE)])
            for name in ("attempt", "ended", "memory"):
                self._put(name, [])
            return
        starting = self.busy(_starting(snapshot.folder))
        self._put("head", [headline(snapshot, starting)])
        running = snapshot.word == "running"
        width = max(self.query_one("#now").size.width, 20)
        live = attempt_lines(snapshot, self._durations(snapshot.state), width) if running else []
        self._put("attempt", live)
        self._put("ended", ended_lines(snapshot.state))
        progress = snapshot.progress if running else None
        width = max(self.query_one("#devices").size.width, 20)
        self._put("memory", memory_lines(progress, width) if progress else [])

    def _put(self, name: str, lines: list[Content]) -> None:
        widget = self.query_one(f"#{name}", Static)
        widget.display = bool(lines)
        content = Content("\n").join(lines)
        if content != widget.content:
            widget.update(content)

    def _durations(self, state: State | None) -> Known:
        if self._known[0] is not state:
            self._known = (state, Known.of(state))
        return self._known[1]

    # Supervising

    def _attend(self, folder: Path, pid: int) -> None:
        """Supervise a runner, once, wherever it was started."""
        if self.gpucost.runs.get(folder) == pid:
            return
        self.gpucost.runs[folder] = pid

        def watch() -> None:
            worker = get_current_worker()
            supervise(folder, pid, self.post_message, lambda: worker.is_cancelled)

        self.run_worker(watch, name=f"runner {pid}", group="runners", thread=True,
                        exit_on_error=False)  # fmt: skip

    def on_attempt_failed(self, event: AttemptFailed) -> None:
        if self._in_front(event.folder):
            return  # it stands in the list
        failure = event.failure
        self.gpucost.say(
            filled(
                "✗ $where: attempt $n ($variant) failed: $kind. $why",
                where=event.folder.name, n=failure.get("attempt"), variant=failure.get("variant"),
                kind=failure.get("kind"), why=first_line(str(failure.get("why") or "")),
            ),
            severity="warning",
        )  # fmt: skip

    def on_run_ended(self, event: RunEnded) -> None:
        if self.gpucost.runs.get(event.folder) == event.pid:
            del self.gpucost.runs[event.folder]
        left = f" {event.open_slots} open." if event.open_slots else ""
        words = filled(
            "The run of $x ended: $why.$left", x=event.folder.name, why=event.why, left=left
        )
        self.gpucost.say(words)
        self.gpucost.context.nudge()

    def _in_front(self, folder: Path) -> bool:
        return self in self.app.screen_stack and self.gpucost.snapshot.folder == folder

    # Acting

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        snapshot = self.gpucost.snapshot
        word, runner = snapshot.word, (snapshot.status or {}).get("runner")
        if action == "start":
            can = word in ("sealed", "idle") and snapshot.folder is not None
            return can and not self.busy(_starting(snapshot.folder))
        asked = (snapshot.progress or {}).get("asked") if word == "running" else None
        if action == "pause":
            return bool(runner) and word == "running" and asked is None
        if action == "stop":
            return bool(runner) and word in _AT_WORK and asked != "stop"
        if action == "resume":
            return bool(runner) and (word == "paused" or asked == "pause")
        return True

    def action_start(self) -> None:
        """Start a detached runner; ask first where another machine left its lock."""
        folder = self.gpucost.snapshot.folder
        if folder is None:
            return
        if not (self.gpucost.snapshot.status or {}).get("elsewhere"):
            self._start(folder, take_over=False)
            return
        from gpucost_tui.tui.dialogs import ConfirmDialog

        self.app.push_screen(
            ConfirmDialog(
                "Take over the lock of another machine?",
                "A runner on another machine wrote it and may still be at work there. Two runners "
                "on one journal damage it. Take over only if you know that it has ended.",
                yes="Take over",
            ),
            lambda yes: self._start(folder, take_over=True) if yes else None,
        )

    def _start(self, folder: Path, *, take_over: bool) -> None:
        self.work(
            _starting(folder),
            lambda work: start(folder, take_over=take_over),
            done=self._started,
            failed=partial(self._not_started, folder),
        )
        self._paint()
        self.refresh_bindings()

    def _started(self, started: Started) -> None:
        if started.pid is None:
            self.gpucost.say("Every slot is done already.")
        else:
            self._attend(started.folder, started.pid)
            self.gpucost.say(
                f"Running detached (process {started.pid}): closing the app ends nothing."
            )
        self._paint()
        self.refresh_bindings()
        self.gpucost.context.nudge()

    def _not_started(self, folder: Path, why: str) -> None:
        self.gpucost.say(filled("$x: $why", x=folder.name, why=why), severity="error")
        self._paint()
        self.refresh_bindings()
        self.gpucost.context.nudge()

    def action_pause(self) -> None:
        """Ask the runner to pause after the current attempt."""
        self._wish("pause")

    def action_resume(self) -> None:
        """Let a paused runner go on, or take back a pause that was asked for."""
        self._wish("resume")

    def action_stop(self) -> None:
        """Ask once, then ask the runner to stop after the current batch."""
        from gpucost_tui.tui.dialogs import ConfirmDialog

        folder = self.gpucost.snapshot.folder
        self.app.push_screen(
            ConfirmDialog(
                "Stop the run?",
                "It ends after the current batch. The attempt is recorded as stopped, its row "
                "stays, and its slot stays open: the next start fills it with a new attempt.",
                yes="Stop",
                no="Go on",
            ),
            lambda yes: self._wish("stop", folder) if yes else None,
        )

    def _wish(self, wish: Wish, folder: Path | None = None) -> None:
        target = folder or self.gpucost.snapshot.folder
        if target is None:
            return

        def asked(pid: int) -> None:
            self.gpucost.say(_ANSWERS[wish])
            self.gpucost.context.nudge()

        self.work(
            f"{wish} {target}",
            lambda work: wish_for(target, wish),
            done=asked,
            failed=lambda why: self.gpucost.say(why, severity="error"),
        )


_AT_WORK = ("running", "paused")


def _starting(folder: Path | None) -> str:
    return f"starting a runner on {folder}"
