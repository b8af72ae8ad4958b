"""Pricing."""

from __future__ import annotations

from typing import ClassVar

from gpucost_tui.tui.screen import PlaceScreen


class PricingScreen(PlaceScreen):
    """Pricing."""

    PLACE: ClassVar[str] = "pricing"
