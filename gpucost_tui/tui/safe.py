"""Text from outside on its way to the screen: cleaned once, never markup, cut by cells."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells
from rich.style import Style
from rich.text import Text
from textual.content import Content

from gpucost_tui.text import clean

#: A longer text is cut on its way to the screen; the files have it whole.
LONGEST = 4_000

#: For ``Input(restrict=…)``: what is pasted into a field must not steer the terminal either.
TYPED = r"[^\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]*"

#: State -> glyph: what colour says is said by a glyph and a word too.
GLYPHS = {
    "draft": "◇",
    "sealed": "◆",
    "running": "▶",
    "paused": "‖",
    "idle": "○",
    "finished": "✓",
    "open": "○",
    "done": "✓",
    "completed": "✓",
    "accepted": "✓",
    "rejected": "✗",
    "failed": "✗",
    "stopped": "■",
    "interrupted": "■",
    "excluded": "⊘",
    "damaged": "✗",
}


def plain(
    text: object, *, one_line: bool = False, limit: int = LONGEST, style: str = ""
) -> Content:
    """Return outside text as content for any widget."""
    return Content.styled(clean(text, one_line=one_line, limit=limit), style)


def filled(template: str, **values: object) -> Content:
    """Fill ``$name`` in markup of ours with outside text: ``filled("[b]$x[/b]", x=name)``.

    Values that are Content already are taken as they are.
    """
    cleaned = {
        name: value if isinstance(value, Content) else clean(value, one_line=False, limit=LONGEST)
        for name, value in values.items()
    }
    return Content.from_markup(template, **cleaned)


def fit(text: object, cells: int) -> str:
    """Return cleaned text on one line of at most ``cells`` terminal cells (wide ones take two)."""
    # Controls grow when they are spelled out, so a copy of this many characters is always enough.
    shown = clean(text, limit=max(cells, 1) * 4 + 8)
    if cell_len(shown) <= cells:
        return shown
    return chop_cells(shown, max(cells - 1, 1))[0] + "…" if cells > 1 else "…"


def cell(
    text: object,
    width: int = 60,
    *,
    style: str | Style = "",
    right: bool = False,
    missing: str = "-",
) -> Text:
    """Return a table's cell: outside text, cut to ``width`` cells, never markup."""
    shown = missing if text is None else fit(text, width)
    return Text(shown, style=style, justify="right" if right else "left", no_wrap=True, end="")


def state_word(state: str) -> str:
    """Return a state as glyph and word: ``▶ running``."""
    return f"{GLYPHS.get(state, '·')} {clean(state, limit=40)}"
