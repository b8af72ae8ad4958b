"""A box whose mark can be read without colours: Textual's own shows an X in either state."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Checkbox

from gpucost_tui.tui.safe import filled


def mark(value: bool) -> str:
    """Return ``[x]`` or ``[ ]``."""
    return "[x]" if value else "[ ]"


class Tick(Checkbox):
    """A checkbox on one line: ``[x] label``."""

    DEFAULT_CSS = """
    Tick { border: none; padding: 0; height: 1; background: transparent; }
    Tick:focus { border: none; background: $block-cursor-background;
        color: $block-cursor-foreground; text-style: bold; }
    """

    @property
    def _button(self) -> Content:
        return filled("$x", x=mark(self.value))

    def render(self) -> Content:
        return Content.assemble(self._button, " ", self._label)
