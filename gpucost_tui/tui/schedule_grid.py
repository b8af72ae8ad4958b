"""The rotated order as a grid: a row a round, a column a position, a glyph and a name a slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.message import Message
from textual.widgets import DataTable

from gpucost_tui.text import clean
from gpucost_tui.tui.safe import GLYPHS, cell

if TYPE_CHECKING:
    from rich.text import Text

    from gpucost_tui.tui.schedule_view import Cell, Row

_STYLES = {"done": "green", "running": "bold", "failed": "red"}
_WIDEST = 24


class SlotGrid(DataTable["Text"]):
    """Slots by round and position. Only cells whose state changed are drawn again."""

    HELP = (
        "The rotated order: a row a round, a column a position. ✓ done, ▶ running, ○ open, "
        "✗ failed. Arrows move; the line below says all of the slot under the cursor."
    )

    class Pointed(Message):
        """Another slot is under the cursor, or none."""

        def __init__(self, cell: Cell | None) -> None:
            super().__init__()
            self.cell = cell

    def __init__(self, **options: str) -> None:
        super().__init__(cursor_type="cell", zebra_stripes=False, **options)  # type: ignore[arg-type]
        self.fixed_columns = 1
        self._cells: dict[tuple[str, str], Cell] = {}
        self._form: object = None

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
            self._form = form
            self._build(rows, positions, cells)
        else:
            for place, slot in cells.items():
                if slot.state != self._cells[place].state:
                    self.update_cell(*place, self._shown(slot))
        self._cells = cells
        self._point()

    def _build(
        self, rows: tuple[Row, ...], positions: int, cells: dict[tuple[str, str], Cell]
    ) -> None:
        self.clear(columns=True)
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
        return cell(words, self._width, style=_STYLES.get(slot.state, ""))

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
