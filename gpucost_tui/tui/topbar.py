"""The two lines on top: the places, and the campaign with its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.widgets import Static

from gpucost_tui.tui.places import PLACES
from gpucost_tui.tui.safe import filled, fit, state_word

if TYPE_CHECKING:
    from gpucost_tui.tui.context import Snapshot

#: Below this width only the place in front keeps its name; the others keep their key.
_ALL_NAMES = 64


class TopBar(Static):
    """Places by key and mouse; campaign, state and progress below them."""

    def __init__(self, place: str) -> None:
        super().__init__(markup=False)
        self._place = place
        self._snapshot: Snapshot | None = None

    def show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._paint()

    def on_resize(self, event: events.Resize) -> None:
        self._paint()

    def _paint(self) -> None:
        self.update(Content("\n").join([self._tabs(), self._campaign()]))

    def _tabs(self) -> Content:
        parts = []
        for place in PLACES:
            front = place.name == self._place
            named = front or self.size.width >= _ALL_NAMES
            label = f" {place.key} {place.label} " if named else f" {place.key} "
            style = "bold reverse" if front else ""
            click = f"@click=app.place('{place.name}')"
            parts.append(Content.from_markup(f"[{click}][{style or '$foreground'}]{label}[/][/]"))
        return Content("").join(parts)

    def _campaign(self) -> Content:
        snapshot, width = self._snapshot, self.size.width
        if snapshot is None or snapshot.folder is None:
            return filled("[$text-muted] No campaign is open[/]")
        word = snapshot.word
        tail = state_word(word) if word else "…"
        if snapshot.status is not None and word not in (None, "draft"):
            done, all_ = snapshot.status["done"], snapshot.status["done"] + snapshot.status["open"]
            tail += f" · {done} of {all_} done"
        name = fit(snapshot.name, max(width - cell_len(tail) - 5, 8))
        return filled("[b] $name[/b] · $tail", name=name, tail=tail)
