"""Dialogs of the attempts: which columns, which table file, and where an export goes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Label, OptionList, Static

from gpucost_tui.text import clean, count
from gpucost_tui.tui.attempts_columns import DEFAULT
from gpucost_tui.tui.attempts_data import Attempts, export, of_file, without_own
from gpucost_tui.tui.form import Field
from gpucost_tui.tui.safe import filled, plain
from gpucost_tui.tui.tick import Tick, mark
from gpucost_tui.tui.work import Work, Worker

if TYPE_CHECKING:
    import polars as pl


class ColumnsDialog(ModalScreen[tuple[str, ...] | None]):
    """Dismissed with the columns to show, in the table's order, or None.

    Args:
        columns: Every column with its meaning.
        chosen: Those shown now.
    """

    HELP = "Space takes a column or leaves it. The ids stay frozen on the left in any case."
    CSS_PATH = "pick.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close", tooltip="Leave the columns as they are"),
        Binding("enter", "take", "Show them", tooltip="Show the marked columns", priority=True),
        Binding("space", "mark", "Mark", tooltip="Mark a column, or unmark it", priority=True),
        Binding("a", "all", "All", tooltip="Mark every column"),
        Binding("d", "usual", "Usual", tooltip="Mark the usual columns"),
    ]

    def __init__(self, columns: dict[str, str], chosen: Collection[str]) -> None:
        super().__init__()
        self._columns, self._chosen = columns, tuple(chosen)
        self._marked = set(chosen)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(
                filled("[b]Columns[/b]  [$text-muted]space marks, enter shows, a all, d usual[/]"),
                classes="dialog-title",
            )
            yield OptionList(*self._lines(), compact=True, markup=False, classes="dialog-body")

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = 0

    def _lines(self) -> Iterator[Content]:
        for name, meaning in self._columns.items():
            yield filled("$x [b]$n[/b]  $m", x=mark(name in self._marked), n=name, m=meaning)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self._toggle(event.option_index)

    def action_mark(self) -> None:
        """Mark the highlighted column, or take its mark."""
        row = self.query_one(OptionList).highlighted
        if row is not None:
            self._toggle(row)

    def _toggle(self, row: int) -> None:
        self._marked ^= {list(self._columns)[row]}
        self._paint()

    def _paint(self) -> None:
        options = self.query_one(OptionList)
        for row, line in enumerate(self._lines()):
            options.replace_option_prompt_at_index(row, line)

    def action_take(self) -> None:
        # Columns that were shown keep their place; new ones follow in the table's order.
        kept = [name for name in self._chosen if name in self._marked]
        self.dismiss((*kept, *(n for n in self._columns if n in self._marked and n not in kept)))

    def action_all(self) -> None:
        self._marked = set(self._columns)
        self._paint()

    def action_usual(self) -> None:
        self._marked = set(DEFAULT)
        self._paint()


class _FileDialog(Worker, ModalScreen[Any]):
    """A dialog with one file name and work on it."""

    TITLE_WORDS = ""
    ABOUT = ""
    YES = "Open"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", tooltip="Do nothing"),
    ]

    def __init__(self, here: Path, value: str = "") -> None:
        super().__init__()
        self.here, self._value = here, value

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(filled("[b]$x[/b]", x=self.TITLE_WORDS), classes="dialog-title")
            yield Static(plain(self.ABOUT), classes="muted")
            yield Field("file", "File", "name.csv or name.parquet", self._value, here=self.here)
            yield from self.more()
            yield Static(id="said", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button(self.YES, id="yes", variant="primary", compact=True)

    def more(self) -> ComposeResult:
        yield from ()

    def on_mount(self) -> None:
        self.query_one(Field).take_focus()

    def on_input_submitted(self) -> None:
        self._begin()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self._begin()
        else:
            self.action_close()

    def action_close(self) -> None:
        """Close; reading that goes on is given up, writing is waited for."""
        if self.writing():
            self.app.bell()
            return
        self.cancel("file")
        self.dismiss(None)

    def _begin(self) -> None:
        field = self.query_one(Field)
        if self.busy("file"):
            return
        field.wrong(None)
        if not field.value:
            field.wrong("Name a file.")
            return
        self.act(self.here / Path(field.value).expanduser())

    def act(self, path: Path) -> None:
        """Do the work on a path."""

    def said(self, sentence: str) -> None:
        self.query_one("#said", Static).update(plain(sentence))

    def failed(self, why: str) -> None:
        self.said("")
        self.query_one(Field).wrong(why)
        self.query_one(Field).take_focus()


class OpenTableDialog(_FileDialog):
    """Dismissed with the attempts of a table file, or None."""

    TITLE_WORDS = "Open a raw table"
    ABOUT = "A sheet that somebody filled (data/raw_results_template.csv is the empty one), or an "
    ABOUT += "export. Nothing is guessed: a wrong cell is named with its line."
    HELP = "The right arrow completes a name. The file is read whole or refused with a sentence."

    def act(self, path: Path) -> None:
        self.said("Reading … escape gives up")

        def read(work: Work) -> Attempts:
            found = of_file(path)
            work.report("Read")
            return found

        self.work("file", read, done=self.dismiss, failed=self.failed)


class ExportDialog(_FileDialog):
    """Writes what is shown; dismissed with a sentence that says so, or None."""

    TITLE_WORDS = "Export what is shown"
    ABOUT = "The rows as filtered and sorted. The end of the name says which form: .csv or .parquet"
    YES = "Export"
    HELP = "The file is written whole or not at all. With every column it can be opened here again."

    def __init__(self, here: Path, value: str, frame: pl.DataFrame, columns: list[str]) -> None:
        super().__init__(here, value)
        self._frame, self._columns = frame, columns
        self._asked: Path | None = None

    def more(self) -> ComposeResult:
        yield Tick("every column, not only the shown ones", id="every")

    def act(self, path: Path) -> None:
        if path.exists() and path != self._asked:
            self._asked = path
            self.query_one(Field).wrong("It is there: enter once more replaces it.")
            return
        frame = without_own(self._frame)
        if not self.query_one(Tick).value:
            frame = frame.select(self._columns)
        self.said("Writing …")
        self.work(
            "file",
            lambda work: f"{count(export(frame, path), 'row')} written to {clean(path, limit=200)}",
            done=self.dismiss,
            failed=self.failed,
            writes=True,
        )
