"""A table that paints only the rows in sight, so that a hundred thousand cost what fifty do.

It is handed :class:`Rows`: a Polars frame (:class:`FrameRows`) or a list (:class:`ListRows`). Cells
are outside text: cleaned, cut to their column by terminal cells, never markup. The first columns
can be frozen; the header stays on top.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpucost_tui.tui.safe import fit

if TYPE_CHECKING:
    import polars as pl

#: Rows fetched at once: more than any window is high.
PAGE = 128
_GAP = "  "
#: First and last rows looked at to find how wide a column must be; paging may widen it.
_SAMPLE = 100


class Rows(Protocol):
    """Rows that a table can page through."""

    def __len__(self) -> int: ...

    def page(self, first: int, count: int, columns: Sequence[str]) -> Sequence[Sequence[Any]]:
        """Return the cells of at most ``count`` rows from ``first`` on, by column."""


class FrameRows:
    """Rows of a Polars frame."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __len__(self) -> int:
        return self.frame.height

    def page(self, first: int, count: int, columns: Sequence[str]) -> Sequence[Sequence[Any]]:
        return self.frame.select(columns).slice(first, count).rows()


class ListRows:
    """Rows from memory, each a sequence of cells in the order of ``columns``."""

    def __init__(self, rows: Sequence[Sequence[Any]] = (), columns: Sequence[str] = ()) -> None:
        self.rows = rows
        self._at = {name: number for number, name in enumerate(columns)}

    def __len__(self) -> int:
        return len(self.rows)

    def page(self, first: int, count: int, columns: Sequence[str]) -> Sequence[Sequence[Any]]:
        order = [self._at[name] for name in columns]
        return [[row[n] for n in order] for row in self.rows[first : first + count]]


def words(value: Any) -> str:
    """Return a cell as text; what is missing is a dash."""
    return "-" if value is None else value if isinstance(value, str) else str(value)


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``show`` makes a cell's text; ``tone`` says good, bad or dim of a value."""

    name: str
    title: str = ""
    right: bool = False
    widest: int = 28
    show: Callable[[Any], str] = words
    tone: Callable[[Any], str] | None = None

    @property
    def head(self) -> str:
        return self.title or self.name


class VirtualTable(ScrollView, can_focus=True):
    """A table with a row cursor. The first ``frozen`` columns stay where they are."""

    ALLOW_SELECT = False
    HELP = "Arrows move; page up, page down, home and end too; left and right show more columns."
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "table--head",
        "table--cursor",
        "table--frozen",
        "table--good",
        "table--bad",
        "table--dim",
    }
    DEFAULT_CSS = """
    VirtualTable { height: 1fr; background: $surface; color: $foreground; scrollbar-size: 1 1; }
    VirtualTable .table--head { background: $panel; color: $foreground; text-style: bold; }
    VirtualTable .table--cursor { background: $block-cursor-blurred-background;
        color: $foreground; }
    VirtualTable:focus .table--cursor { background: $block-cursor-background;
        color: $block-cursor-foreground; text-style: bold; }
    VirtualTable .table--frozen { background: $boost; }
    VirtualTable .table--good { color: $text-success; }
    VirtualTable .table--bad { color: $text-error; }
    VirtualTable .table--dim { text-style: dim; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,ctrl+home", "to(0)", "First row", show=False),
        Binding("end,ctrl+end", "to(-1)", "Last row", show=False),
        Binding("left", "sideways(-1)", "Columns to the left", show=False),
        Binding("right", "sideways(1)", "Columns to the right", show=False),
    ]

    cursor: var[int] = var(0, init=False)

    class Highlighted(Message):
        """The cursor is on another row, or on other content."""

        def __init__(self, table: VirtualTable, row: int) -> None:
            super().__init__()
            self.table, self.row = table, row

        @property
        def control(self) -> VirtualTable:
            return self.table

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, VirtualTable.Highlighted) and message.table is self.table

    class Chosen(Message):
        """A click on the highlighted row. Enter belongs to the screen, whose footer names it."""

        def __init__(self, table: VirtualTable, row: int) -> None:
            super().__init__()
            self.table, self.row = table, row

        @property
        def control(self) -> VirtualTable:
            return self.table

    class HeadClicked(Message):
        """A click on a column's head."""

        def __init__(self, table: VirtualTable, column: str) -> None:
            super().__init__()
            self.table, self.column = table, column

        @property
        def control(self) -> VirtualTable:
            return self.table

    def __init__(self, *, id: str | None = None, frozen: int = 1) -> None:
        super().__init__(id=id)
        self.rows: Rows = ListRows()
        self.columns: tuple[Column, ...] = ()
        self.frozen = frozen
        self._widths: tuple[int, ...] = ()
        self._pages: dict[int, Sequence[Sequence[Any]]] = {}
        self._lines: dict[int, tuple[list[tuple[str, str]], list[tuple[str, str]]]] = {}

    # Content

    def fill(self, rows: Rows, columns: Sequence[Column], *, cursor: int = 0) -> None:
        """Show rows under columns."""
        self.rows, self.columns = rows, tuple(columns)
        self._pages.clear()
        self._lines.clear()
        self._widths = self._measured()
        self.virtual_size = Size(sum(self._spans()), len(rows) + 1)
        self.set_reactive(VirtualTable.cursor, self._within(cursor))
        self.refresh()
        self.call_after_refresh(self._follow)
        self.post_message(self.Highlighted(self, self.cursor))

    def cells(self, row: int) -> dict[str, Any]:
        """Return the shown columns of a row, by name; empty where there is no such row."""
        if not 0 <= row < len(self.rows):
            return {}
        return dict(zip([c.name for c in self.columns], self._row(row), strict=True))

    def _measured(self) -> tuple[int, ...]:
        names, height = [column.name for column in self.columns], len(self.rows)
        heads = tuple(max(min(cell_len(c.head), c.widest), 1) for c in self.columns)
        if not height or not names:
            return heads
        first = self._wide_enough(heads, self.rows.page(0, _SAMPLE, names))
        return self._wide_enough(first, self.rows.page(max(height - _SAMPLE, 0), _SAMPLE, names))

    def _wide_enough(self, widths: Sequence[int], rows: Sequence[Sequence[Any]]) -> tuple[int, ...]:
        """Return widths that rows fit into, up to each column's widest."""
        found = []
        for number, (column, width) in enumerate(zip(self.columns, widths, strict=True)):
            for row in rows if width < column.widest else ():
                width = max(width, cell_len(fit(column.show(row[number]), column.widest)))
            found.append(width)
        return tuple(found)

    def _widened(self) -> None:
        """Take the widths that rows further down asked for."""
        self.virtual_size = Size(sum(self._spans()), len(self.rows) + 1)
        self.refresh()

    def _spans(self) -> list[int]:
        """Return the cells that each column takes with its gap; the first has the cursor's mark."""
        spans = [width + len(_GAP) for width in self._widths]
        return [spans[0] + 1, *spans[1:]] if spans else []

    def _row(self, row: int) -> Sequence[Any]:
        page = row // PAGE
        if page not in self._pages:
            if len(self._pages) > 16:
                self._pages.clear()
            names = [column.name for column in self.columns]
            self._pages[page] = self.rows.page(page * PAGE, PAGE, names)
            wider = self._wide_enough(self._widths, self._pages[page])
            if wider != self._widths:
                self._widths = wider
                self._lines.clear()
                self.call_later(self._widened)
        return self._pages[page][row % PAGE]

    # Painting

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        row = self.scroll_offset.y + y - 1
        if not self._widths or (y and row >= len(self.rows)):
            return Strip.blank(width, base)
        head = y == 0
        at_cursor = not head and row == self.cursor
        frozen, rest = self._heads() if head else self._texts(row)
        over = None
        if head:
            over = self.get_component_rich_style("table--head")
        elif at_cursor:
            over = self.get_component_rich_style("table--cursor")
        apart = self.get_component_rich_style("table--frozen")
        left = [Segment("›" if at_cursor else " ", over or apart)]
        left += self._painted(frozen, over, apart)
        fixed = Strip(left)
        used = min(fixed.cell_length, width)
        x = self.scroll_offset.x
        moving = Strip(self._painted(rest, over, base))
        moving = moving.crop_extend(x, x + width - used, over or base)
        return Strip([*fixed.crop(0, used), *moving], width)

    def _style(self, name: str, base: Style) -> Style:
        return base + self.get_component_rich_style(f"table--{name}", partial=True)

    def _painted(
        self, cells: Sequence[tuple[str, str]], over: Style | None, base: Style
    ) -> list[Segment]:
        return [
            Segment(text, over or (self._style(tone, base) if tone else base))
            for text, tone in cells
        ]

    def _heads(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        cells = [
            (_padded(fit(column.head, width), width, column.right) + _GAP, "")
            for column, width in zip(self.columns, self._widths, strict=True)
        ]
        return cells[: self.frozen], cells[self.frozen :]

    def _texts(self, row: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        kept = self._lines.get(row)
        if kept is None:
            if len(self._lines) > 1024:
                self._lines.clear()
            made = []
            for column, width, value in zip(
                self.columns, self._widths, self._row(row), strict=True
            ):
                text = _padded(fit(column.show(value), width), width, column.right) + _GAP
                tone = "dim" if value is None else column.tone(value) if column.tone else ""
                made.append((text, tone))
            kept = self._lines[row] = (made[: self.frozen], made[self.frozen :])
        return kept

    # Moving

    def validate_cursor(self, row: int) -> int:
        return self._within(row)

    def _within(self, row: int) -> int:
        return max(0, min(row, len(self.rows) - 1))

    def watch_cursor(self, before: int, now: int) -> None:
        self.refresh_line(before + 1)
        self.refresh_line(now + 1)
        self._follow()
        self.post_message(self.Highlighted(self, now))

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._follow)

    def _seen(self) -> int:
        """Return how many rows are in sight."""
        return max(self.scrollable_content_region.height - 1, 1)

    def _follow(self) -> None:
        top = self.scroll_offset.y
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + self._seen():
            self.scroll_to(y=self.cursor - self._seen() + 1, animate=False)

    def action_move(self, rows: int) -> None:
        self.cursor += rows

    def action_page(self, pages: int) -> None:
        self.cursor += pages * self._seen()

    def action_to(self, row: int) -> None:
        self.cursor = row if row >= 0 else len(self.rows) - 1

    def action_sideways(self, columns: int) -> None:
        """Scroll so that another column stands beside the frozen ones."""
        starts, at = [0], 0
        for span in self._spans()[self.frozen :]:
            at += span
            starts.append(at)
        x = self.scroll_offset.x
        if columns > 0:
            target = next((s for s in starts if s > x), x)
        else:
            target = next((s for s in reversed(starts) if s < x), 0)
        self.scroll_to(x=min(target, self.max_scroll_x), animate=False)

    def action_choose(self) -> None:
        if len(self.rows):
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None:
            return
        if at.y == 0:
            name = self._column_at(at.x)
            if name is not None:
                self.post_message(self.HeadClicked(self, name))
            return
        row = self.scroll_offset.y + at.y - 1
        if row >= len(self.rows):
            return
        if row == self.cursor:
            self.action_choose()
        self.cursor = row

    def _column_at(self, x: int) -> str | None:
        edge = 0
        for number, (column, span) in enumerate(zip(self.columns, self._spans(), strict=True)):
            edge += span
            if x < edge - (self.scroll_offset.x if number >= self.frozen else 0):
                return column.name
        return None


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * max(width - cell_len(text), 0)
    return space + text if right else text + space
