"""Attempts."""

from __future__ import annotations

from typing import ClassVar

from gpucost_tui.tui.screen import PlaceScreen


class AttemptsScreen(PlaceScreen):
    """Attempts."""

    PLACE: ClassVar[str] = "attempts"
