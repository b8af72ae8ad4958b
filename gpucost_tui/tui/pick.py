"""A dialog that asks for one of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Label, OptionList

from gpucost_tui.tui.safe import filled


class PickDialog(ModalScreen[str | None]):
    """Dismissed with the value that was picked, or None.

    Args:
        title: What is asked for.
        options: Values with what is shown for each.
        current: The value that has the highlight at first.
    """

    HELP = "Arrows move, letters and digits jump, enter takes, escape leaves all as it is."
    CSS_PATH = "pick.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close", tooltip="Leave it as it is"),
    ]

    def __init__(
        self, title: str, options: Sequence[tuple[str, Content]], current: str | None = None
    ) -> None:
        super().__init__()
        self._title, self._options, self._current = title, options, current

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(filled("[b]$x[/b]", x=self._title), classes="dialog-title")
            yield OptionList(
                *(shown for _, shown in self._options),
                compact=True,
                markup=False,
                classes="dialog-body",
            )

    def on_mount(self) -> None:
        values = [value for value, _ in self._options]
        options = self.query_one(OptionList)
        options.highlighted = values.index(self._current) if self._current in values else 0
        options.focus()

    def on_key(self, event: object) -> None:
        """Jump to the next value that begins with a typed character."""
        character = getattr(event, "character", None)
        if not character or not character.isalnum():
            return
        options = self.query_one(OptionList)
        start = (options.highlighted or 0) + 1
        order = [*range(start, len(self._options)), *range(start)]
        for number in order:
            if self._options[number][0].casefold().startswith(character.casefold()):
                options.highlighted = number
                return

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._options[event.option_index][0])
