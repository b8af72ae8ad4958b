"""Review."""

from __future__ import annotations

from typing import ClassVar

from gpucost_tui.tui.screen import PlaceScreen


class ReviewScreen(PlaceScreen):
    """Review."""

    PLACE: ClassVar[str] = "review"
