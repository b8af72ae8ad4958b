"""The app ``gpucost``: modes, keys, what is remembered, and how it is left."""

from __future__ import annotations

import os
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.content import Content
from textual.notifications import SeverityLevel
from textual.reactive import var

from gpucost_tui.tui.context import CampaignContext, Snapshot
from gpucost_tui.tui.messages import StateChanged
from gpucost_tui.tui.palette import ActionsProvider
from gpucost_tui.tui.places import BY_NAME, PLACES
from gpucost_tui.tui.remembered import Remembered, recall, remember
from gpucost_tui.tui.safe import filled
from gpucost_tui.tui.screen import PlaceScreen
from gpucost_tui.tui.themes import DARK, LIGHT
from gpucost_tui.tui.work import Worker


class GpucostApp(App[int]):
    """Six places over one campaign; :mod:`gpucost_tui.tui` has the contract.

    Args:
        folder: A campaign to open, or a folder whose campaigns Home lists.
        here: The folder whose campaigns Home lists; default: the current one.
        table: A raw table file to open in Attempts.
    """

    TITLE = "gpucost"
    CSS_PATH = "app.tcss"
    MODES = {place.name: place.make for place in PLACES}  # noqa: RUF012 - as Textual declares it
    DEFAULT_MODE = "home"
    COMMANDS: ClassVar[set[Any]] = {ActionsProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-normal"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(p.key, f"place('{p.name}')", p.label, tooltip=p.about, show=False)
            for p in PLACES
        ),
        Binding("question_mark", "help", "Help", tooltip="Help for what has the focus"),
        # In dialogs and fields too, where letters are typed.
        Binding(
            "f1", "help", "Help", tooltip="Help for what has the focus", show=False, priority=True
        ),
        Binding("ctrl+t", "theme", "Light or dark", tooltip="Switch the theme", show=False),
        Binding("ctrl+q", "quit", "Quit", tooltip="Leave; a run goes on", priority=True),
        Binding("ctrl+c", "help_quit", show=False, system=True),
    ]

    snapshot: var[Snapshot] = var(Snapshot(), init=False)

    def __init__(
        self, folder: Path | None = None, *, here: Path | None = None, table: Path | None = None
    ) -> None:
        super().__init__()
        self.here = here or Path()
        self.remembered: Remembered = recall()
        self.context = CampaignContext(self)
        #: Runs that are supervised: folder -> process of the runner. See tui/run.py.
        self.runs: dict[Path, int] = {}
        self._first = folder
        self.table_asked_for = table  # taken by Attempts when it comes to the front
        self._said_forgetful = False
        self.register_theme(LIGHT)
        if self.remembered.theme in self.available_themes:
            self.theme = self.remembered.theme

    # Starting

    def on_mount(self) -> None:
        if not self.is_headless:
            from gpucost_tui.tui.leaving import Leaving

            leaving = Leaving(self._leave)
            leaving.install()
            self.set_interval(1.0, leaving.look)
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        """Open what was asked for; Home has been painted by now."""
        self.context.start()
        if self.table_asked_for is not None:
            self.action_place("attempts")
        elif self._first is not None:
            place = self.remembered.place_of(self._first)
            # Home lists campaigns; who names one wants to see it.
            if place in (None, "home"):
                place = "run" if _has_run(self._first) else "review"
            self.open_campaign(self._first, place=place)
        elif self.remembered.recent:
            folder, place = self.remembered.recent[0]
            if Path(folder).parent == self.here.resolve() and Path(folder).is_dir():
                self.open_campaign(Path(folder), place=place)

    def get_key_display(self, binding: Binding) -> str:
        if binding.key == "question_mark":
            return "?"
        return super().get_key_display(binding)

    # The campaign

    def open_campaign(self, folder: Path, *, place: str | None = None) -> None:
        """Put a campaign in front; what runs in another goes on."""
        front = self.snapshot.folder
        if front is not None and front.resolve() == folder.resolve():
            folder = front  # the same by another path
        if front != folder:
            if self.snapshot.word in ("running", "paused"):
                self.say(filled("The run of $x goes on.", x=self.snapshot.name))
            self.snapshot = Snapshot(folder)
        self.context.open(folder)
        self.remembered.opened(folder, place or self.current_mode)
        self.keep()
        if place in BY_NAME:
            self.action_place(place)

    def on_state_changed(self, event: StateChanged) -> None:
        if event.snapshot.folder == self.context.folder:
            self.snapshot = event.snapshot

    # Actions

    def action_place(self, name: str) -> None:
        """Go to a place, from anywhere but a dialog."""
        if name not in BY_NAME or isinstance(self.screen, CommandPalette):
            return
        if not isinstance(self.screen, PlaceScreen):
            self.bell()
            return
        self.switch_mode(name)
        if self.context.folder is not None:
            self.remembered.opened(self.context.folder, name)
            self.keep()

    def action_help(self) -> None:
        """Show the help for what has the focus."""
        from gpucost_tui.tui.dialogs import HelpDialog

        if isinstance(self.screen, HelpDialog):
            self.screen.dismiss()
        else:
            self.push_screen(HelpDialog(self.screen))

    def action_theme(self) -> None:
        """Switch between light and dark."""
        self.theme = LIGHT.name if self.current_theme.dark else DARK
        self.remembered.theme = self.theme
        self.keep()

    async def act(self, place: str, action: str) -> None:
        """Do an action of the palette; one of a place goes there first."""
        if place and place != self.current_mode:
            await self.switch_mode(place)
        target = self.screen if place else self
        if place and not target.check_action(action.partition("(")[0], ()):
            self.say("That is not possible here and now.", severity="warning")
            return
        await self.run_action(action, target)

    async def action_quit(self) -> None:
        """Leave with status 0; ask first when files are being written."""
        busy = self.writing()
        if not busy:
            self.exit(0, 0)
            return
        from gpucost_tui.tui.dialogs import ConfirmDialog

        self.push_screen(
            ConfirmDialog(
                "Leave now?",
                f"Still at work: {', '.join(busy)}. Leaving now cuts it off; a hidden folder "
                "named .gpucost-new-… may stay behind and can be deleted. A run in progress is "
                "not concerned: it goes on.",
                yes="Leave",
                no="Wait",
            ),
            lambda yes: self.exit(0, 0) if yes else None,
        )

    def writing(self) -> list[str]:
        """Return what is changing files right now, in any place."""
        screens = [screen for stack in self._screen_stacks.values() for screen in stack]
        return [name for s in screens if isinstance(s, Worker) for name in s.writing()]

    # Words

    def say(
        self,
        sentence: str | Content,
        *,
        severity: SeverityLevel = "information",
        timeout: float | None = None,
    ) -> None:
        """Notify; the sentence is outside text, errors stay longer."""
        shown = sentence if isinstance(sentence, Content) else filled("$x", x=sentence)
        seconds = timeout or {"information": 4, "warning": 8, "error": 12}[severity]
        self.notify(shown.plain, severity=severity, timeout=seconds, markup=False)

    def keep(self) -> None:
        """Write what is remembered; say once when that is not possible."""
        why = remember(self.remembered)
        if why and not self._said_forgetful:
            self._said_forgetful = True
            self.say(f"Theme and place can't be remembered ({why}).", severity="warning")

    # Leaving

    def _leave(self, status: int) -> None:
        self.exit(status, status)

    def on_unmount(self) -> None:
        self.context.close()


def run_app(
    folder: Path | None = None, *, here: Path | None = None, table: Path | None = None
) -> int:
    """Open the app on this terminal, and return its exit status.

    What was going on is said below it: a run goes on without the app.
    """
    # Exported by a shell, they would be believed before the window's own size.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    app = GpucostApp(folder, here=here, table=table)
    app.run()
    status = app.return_code or 0
    words = farewell(app.snapshot, app.runs)
    if words and status == 0:
        print(words, flush=True)
    if any(t.name.startswith("gpucost-") for t in threading.enumerate() if t.is_alive()):
        _end_now(status)
    return status


def _has_run(folder: Path) -> bool:
    """Whether there is a run to come back to: what it did, what is open, what it costs by now.

    Asked of the names alone: nothing heavy is loaded, and no journal read, before the first paint.
    """
    try:
        return any((folder / "attempts").iterdir())
    except OSError:
        return False  # Review says what is wrong


def farewell(snapshot: Snapshot, runs: dict[Path, int] | None = None) -> str | None:
    """Return what to know on leaving: the runs that go on, a line for each."""
    from gpucost_tui.text import clean

    going: dict[Path, tuple[str, object]] = {
        folder: ("running", pid) for folder, pid in (runs or {}).items()
    }
    if snapshot.folder is not None:
        going.pop(snapshot.folder, None)
        if snapshot.word in ("running", "paused"):
            runner = (snapshot.status or {}).get("runner") or {}
            going[snapshot.folder] = (snapshot.word, runner.get("pid"))
    lines = [
        f"The run goes on without the app ({word}, process {pid}). "
        f"`gpucost {clean(folder)}` shows it again."
        for folder, (word, pid) in going.items()
    ]
    return "\n".join(lines) or None


def _end_now(status: int) -> None:
    """Leave without waiting for threads that read: interpreters can hang on them at their end."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    partial(os._exit, status)()
