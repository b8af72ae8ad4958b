"""Variants and schedule."""

from __future__ import annotations

from typing import ClassVar

from gpucost_tui.tui.screen import PlaceScreen


class ScheduleScreen(PlaceScreen):
    """Variants and schedule."""

    PLACE: ClassVar[str] = "schedule"
