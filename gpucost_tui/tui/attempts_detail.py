"""The dialog with all that is known of one attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Label, Static

from gpucost_tui.tui.attempts_details import Details, read_details
from gpucost_tui.tui.attempts_page import page
from gpucost_tui.tui.safe import filled, plain
from gpucost_tui.tui.whole import WholeDialog


class AttemptDialog(WholeDialog):
    """Parameters, phases, memory, verdict, notes, traceback, missing values.

    Args:
        row: The attempt's row.
        beside: Returns the row so many rows further down, or None.
    """

    HELP = "Everything that is recorded of one attempt. n and b go to the next and the one before."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", tooltip="Back to the table"),
        Binding("n", "beside(1)", "Next", tooltip="The attempt of the next row"),
        Binding("b", "beside(-1)", "Before", tooltip="The attempt of the row before"),
        Binding("p", "predictions", "Predictions", tooltip="The attempt's predictions"),
    ]

    def __init__(
        self, row: dict[str, Any], beside: Callable[[int], dict[str, Any] | None] = lambda _: None
    ) -> None:
        super().__init__()
        self.row, self._beside = row, beside
        self.details: Details | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(
                filled(
                    "[b]Attempt[/b]  [$text-muted]n next  b before  p predictions  esc close[/]"
                ),
                classes="dialog-title",
            )
            with VerticalScroll(classes="dialog-body"):
                yield Static(id="page", markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self._read()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._paint)

    def _read(self) -> None:
        row = self.row
        self.query_one("#page", Static).update(plain("Reading …"))
        self.work("details", lambda work: read_details(row), done=self._done, failed=self._failed)

    def _done(self, details: Details) -> None:
        self.details = details
        self._paint()
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def _failed(self, why: str) -> None:
        self.query_one("#page", Static).update(filled("[$text-error]✗ $x[/]", x=why))

    def _paint(self) -> None:
        if self.details is not None and self.is_mounted:
            width = self.query_one(VerticalScroll).scrollable_content_region.width
            self.query_one("#page", Static).update(page(self.details, width))

    def action_beside(self, step: int) -> None:
        row = self._beside(step)
        if row is None:
            self.app.bell()
            return
        self.row, self.details = row, None
        self._read()

    def action_predictions(self) -> None:
        from gpucost_tui.tui.attempts_predictions import PredictionsDialog

        self.app.push_screen(PredictionsDialog(self.row))
