"""Home."""

from __future__ import annotations

from typing import ClassVar

from gpucost_tui.tui.screen import PlaceScreen


class HomeScreen(PlaceScreen):
    """Home."""

    PLACE: ClassVar[str] = "home"
