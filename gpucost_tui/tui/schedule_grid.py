"""The rotated order as a grid: a row a round, a column a position, a glyph and a name a slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.message import Message
from textual.widgets import DataTable

from gpucost_tui.text import clean
from gpucost_tui.tui.safe import GLYPHS, cell

if TYPE_CHECKING:
    from rich.style import Style
    from rich.text import Text

    from gpucost_tui.tui.schedule_view import Cell, Row

#: States that have a look of their own beside glyph and word.
_TONES = ("done", "running", "failed")
_WIDEST = 24


class SlotGrid(DataTable["Text"]):
    """Slots by round and position. Only cells whose state changed are drawn again."""

    HELP = (
        "The rotated order: a row a round, a column a position. ✓ done, ▶ running, ○ open, "
        "✗ failed. Arrows move; the line below says all of the slot under the cursor."
    )
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"slot--{tone}" for tone in _TONES}
    DEFAULT_CSS = """
    SlotGrid .slot--done { color: $text-success; }
    SlotGrid .slot--running { color: $text-accent; text-style: bold; }
    SlotGrid .slot--failed { color: $text-error; }
    """

    class Pointed(Message):
        """Another slot is under the cursor, or none."""

        def __init__(self, cell: Cell | None) -> None:
            super().__init__()
            self.cell = cell

    def __init__(self, **options: str) -> None:
        self._cells: dict[tuple[str, str], Cell] = {}
        self._form: object = None
        self._tones: dict[str, Style] = {}
        super().__init__(cursor_type="cell", zebra_stripes=False, **options)  # type: ignore[arg-type]
        self.fixed_columns = 1

    def clear_plan(self) -> None:
        self._cells, self._form = {}, None
        self.clear(columns=True)

    def show_plan(self, rows: tuple[Row, ...], positions: int) -> None:
        """Show slots; the cursor stays where it was if the form of the grid is the same."""
        cells = {
            (row.key, str(position)): slot for row in rows for position, slot in row.cells.items()
        }
        form = (tuple((row.key, row.label) for row in rows), positions, _labels(cells))
        if form != self._form:
            self._tones = self._looks()
            self._build(rows, positions, cells)
            self._form = form
        else:
            for place, slot in cells.items():
                if slot.state != self._cells[place].state:
                    self.update_cell(*place, self._shown(slot))
        self._cells = cells
        self._point()

    def _build(
        self, rows: tuple[Row, ...], positions: int, cells: dict[tuple[str, str], Cell]
    ) -> None:
        self.clear_plan()
        widest = max((cell_len(clean(slot.label)) for slot in cells.values()), default=4)
        self._width = min(widest, _WIDEST) + 2
        self.add_column(
            "round", key="round", width=max(len("round"), *(len(r.label) for r in rows))
        )
        for position in range(1, positions + 1):
            self.add_column(str(position), key=str(position), width=self._width)
        for row in rows:
            shown = [
                self._shown(row.cells[n]) if n in row.cells else cell("", 1)
                for n in range(1, positions + 1)
            ]
            self.add_row(cell(row.label, 12, right=True), *shown, key=row.key)
        if rows:
            self.move_cursor(row=0, column=1)

    def _shown(self, slot: Cell) -> Text:
        words = f"{GLYPHS[slot.state]} {slot.label}"
        return cell(words, self._width, style=self._tones.get(slot.state, ""))

    def _looks(self) -> dict[str, Style]:
        return {tone: self.get_component_rich_style(f"slot--{tone}", partial=True)
                for tone in _TONES}  # fmt: skip

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self._cells:  # those of the tones are not looked up yet
            self.call_later(self._recolour)

    def _recolour(self) -> None:
        """Paint the cells again where another theme gives their states other colours."""
        looks = self._looks()
        if looks != self._tones:
            self._tones = looks
            for place, slot in self._cells.items():
                self.update_cell(*place, self._shown(slot))

    def on_data_table_cell_highlighted(self, event: DataTable.CellHighlighted) -> None:
        event.stop()
        self._point()

    def _point(self) -> None:
        if not self.is_valid_coordinate(self.cursor_coordinate):
            self.post_message(self.Pointed(None))
            return
        key = self.coordinate_to_cell_key(self.cursor_coordinate)
        place = str(key.row_key.value), str(key.column_key.value)
        self.post_message(self.Pointed(self._cells.get(place)))


def _labels(cells: dict[tuple[str, str], Cell]) -> tuple[str, ...]:
    return tuple(slot.label for slot in cells.values())
