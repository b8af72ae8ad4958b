"""Asks where the demonstration goes, and makes it there (not sealed, not run)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Label, Static

from gpucost_tui.tui.form import Field
from gpucost_tui.tui.safe import filled, plain
from gpucost_tui.tui.work import Work, Worker

_WORDS = (
    "1000 made-up tickets and a tiny classifier, from this program alone, without a network: a "
    "synthetic demonstration that says nothing of real documents. Review and seal it next."
)

_MAKING = "making the demonstration"


class DemoDialog(Worker, ModalScreen[Path | None]):
    """Dismissed with the folder that was made, or none."""

    HELP = "Names the folder of the demonstration. It is made whole or not at all."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", tooltip="Cancel the making, or make nothing"),
    ]

    def __init__(self, here: Path) -> None:
        super().__init__()
        self._here = here

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(filled("[b]Make the demonstration[/b]"), classes="dialog-title")
            yield Static(plain(_WORDS), classes="muted")
            yield Field("folder", "Folder", value=_free_name(self._here))
            yield Static(id="said", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button("Make it", id="yes", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.query_one(Field).take_focus()

    def on_input_submitted(self) -> None:
        self._make()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self._make()
        else:
            self.action_close()

    def action_close(self) -> None:
        """Cancel the making, or close."""
        if self.cancel(_MAKING):
            self._say("Cancelling …")
        else:
            self.dismiss(None)

    def _say(self, words: str) -> None:
        self.query_one("#said", Static).update(plain(words))

    def _make(self) -> None:
        field = self.query_one(Field)
        if self.busy(_MAKING):
            return
        if not field.value:
            field.wrong("Name a folder that is not there yet.")
            return
        field.wrong(None)
        folder = self._here / Path(field.value).expanduser()
        self._say("Making the demonstration …")
        self.work(
            _MAKING,
            lambda work: _make_demo(work, folder),
            done=self.dismiss,
            failed=self._failed,
            progress=lambda text, done, total: self._say(f"{text} … escape cancels"),
            writes=True,
        )

    def _failed(self, why: str) -> None:
        if why == "Cancelled.":
            self._say("Cancelled: nothing was made.")
            return
        self._say("")
        self.query_one(Field).wrong(why)
        self.query_one(Field).take_focus()


def _make_demo(work: Work, folder: Path) -> Path:
    from gpucost_tui.campaign.demo import make_demo

    return make_demo(folder, work.watch()).folder


def _free_name(here: Path) -> str:
    """Return ``demo-campaign``, with a number where it is taken."""
    names = ["demo-campaign", *(f"demo-campaign-{n}" for n in range(2, 100))]
    return next((name for name in names if not (here / name).exists()), names[0])
