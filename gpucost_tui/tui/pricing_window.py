"""The dialog that asks for a window: two moments in a time zone, and packs in sequence."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from gpucost_tui.errors import GpucostError
from gpucost_tui.tui.form import Field
from gpucost_tui.tui.safe import filled, plain

_FIELDS = (
    ("start", "Start", "2026-09-28T09:00, an offset may follow"),
    ("end", "End", "2026-10-02T09:00"),
    ("timezone", "Time zone", "Europe/Paris"),
    ("periods", "Packs in sequence", "1; never assumed"),
)


@dataclass(frozen=True, slots=True)
class GivenWindow:
    """What was typed (kept for the next time), and what it means; ``seconds`` None: no window."""

    texts: tuple[str, ...]
    seconds: Fraction | None
    basis: str
    periods: int


class WindowDialog(ModalScreen[GivenWindow | None]):
    """Dismissed with the window that was given, or None.

    Args:
        texts: What stands in the fields at first.
    """

    HELP = (
        "The window is elapsed time, clock changes included. A moment that happens twice or never "
        "in the zone is refused. Both moments empty: no window by dates."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close", tooltip="Leave the window as it is"),
    ]

    def __init__(self, texts: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._texts = texts or ("", "", "", "1")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(filled("[b]Window of the rental, by dates[/b]"), classes="dialog-title")
            for (name, label, hint), value in zip(_FIELDS, self._texts, strict=True):
                yield Field(name, label, hint, value)
            yield Static(id="said", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button("Use it", id="yes", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.query(Field).first().take_focus()
        self._said()

    def on_input_changed(self) -> None:
        self._said()

    def _said(self) -> None:
        """Say the hours as soon as they are known."""
        try:
            given = self._given()
        except GpucostError:
            said = ""
        else:
            from gpucost_tui.tui.pricing_words import window_words

            said = window_words(given.seconds, given.basis)
        self.query_one("#said", Static).update(plain(said))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._take()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self._take()
        else:
            self.dismiss(None)

    def _take(self) -> None:
        fields = {field.field_name: field for field in self.query(Field)}
        for field in fields.values():
            field.wrong(None)
        try:
            given = self._given()
        except GpucostError as error:
            at = next((name for name in fields if f"--{name}" in (error.where or "")), "start")
            # What the command would say of its options helps nobody in front of a form.
            fix = f". {error.fix}" if error.fix and "--" not in error.fix else ""
            fields[at].wrong(f"{error.what}{fix}.")
            fields[at].take_focus()
        else:
            self.dismiss(given)

    def _given(self) -> GivenWindow:
        from gpucost_tui.pricing.candidates import whole_periods
        from gpucost_tui.pricing.window import window_between

        texts = tuple(field.value for field in self.query(Field))
        start, end, timezone, periods = texts
        number = whole_periods(periods or "1")
        if not start and not end:
            return GivenWindow(texts, None, "", number)
        window = window_between(start, end, timezone or None)
        zone = timezone or "by offsets"
        return GivenWindow(texts, window.seconds, f"{start} to {end}, {zone}", number)
