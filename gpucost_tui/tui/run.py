"""Live run."""

from __future__ import annotations

from typing import ClassVar

from gpucost_tui.tui.screen import PlaceScreen


class RunScreen(PlaceScreen):
    """Live run."""

    PLACE: ClassVar[str] = "run"
