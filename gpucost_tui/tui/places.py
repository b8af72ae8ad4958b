"""The six places, by key. Their modules are imported when they are first entered."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from gpucost_tui.tui.screen import PlaceScreen


@dataclass(frozen=True, slots=True)
class Place:
    """One place: a mode of the app."""

    key: str
    name: str
    label: str
    about: str
    class_name: str

    def screen_class(self) -> type[PlaceScreen]:
        module = importlib.import_module(f"gpucost_tui.tui.{self.name}")
        return cast("type[PlaceScreen]", getattr(module, self.class_name))

    def make(self) -> PlaceScreen:
        return self.screen_class()()


PLACES = (
    Place("1", "home", "Home", "campaigns here and recent ones", "HomeScreen"),
    Place("2", "review", "Review", "all that a seal freezes, and what blocks it", "ReviewScreen"),
    Place("3", "schedule", "Schedule", "variants, rotated order, window", "ScheduleScreen"),
    Place("4", "run", "Run", "the live run", "RunScreen"),
    Place("5", "attempts", "Attempts", "the raw table, one row per attempt", "AttemptsScreen"),
    Place("6", "pricing", "Pricing", "packs, windows, cost per accepted corpus", "PricingScreen"),
)

BY_NAME = {place.name: place for place in PLACES}
