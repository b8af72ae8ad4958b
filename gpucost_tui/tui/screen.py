"""What the six places share: top bar, footer, the snapshot, long work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer

from gpucost_tui.tui.topbar import TopBar
from gpucost_tui.tui.work import Worker

if TYPE_CHECKING:
    from gpucost_tui.tui.app import GpucostApp
    from gpucost_tui.tui.context import Snapshot


class PlaceScreen(Worker, Screen[None]):
    """Base of a place; :mod:`gpucost_tui.tui` has the contract."""

    PLACE: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = "*"

    _shown: Snapshot | None = None

    @property
    def gpucost(self) -> GpucostApp:
        """The app, with its type."""
        return cast("GpucostApp", self.app)

    def compose(self) -> ComposeResult:
        yield TopBar(self.PLACE)
        yield from self.content()
        yield Footer(show_command_palette=False, compact=True)

    def content(self) -> Iterable[Widget]:
        """Yield the place's own widgets."""
        return ()

    def show(self, snapshot: Snapshot) -> None:
        """Show the campaign; called in the event loop, only while the place is in front."""

    def on_mount(self) -> None:
        self.watch(self.app, "snapshot", self._snapshot_changed, init=False)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self._catch_up)

    def _snapshot_changed(self, snapshot: Snapshot) -> None:
        if self in self.app.screen_stack:
            self._catch_up()

    def _catch_up(self) -> None:
        snapshot = self.gpucost.snapshot
        if self.is_mounted and snapshot is not self._shown:
            self._shown = snapshot
            self.query_one(TopBar).show(snapshot)
            self.show(snapshot)
