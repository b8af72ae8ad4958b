"""What the places look like: one walk through the recorded campaign, for snapshots and pictures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import tui_recorded
from textual.widgets import Input, Static
from tui_support import pressed, screen_text, until

from gpucost_tui.tui.app import GpucostApp
from gpucost_tui.tui.table_view import VirtualTable

#: Windows: tmux as it opens, and a large one.
WINDOWS = [(80, 24), (120, 40)]


def prepared(patch: pytest.MonkeyPatch, folder: Path) -> GpucostApp:
    """Put two recorded campaigns into an empty folder, stand in it, and return the app there."""
    tui_recorded.running(folder / "tickets")
    tui_recorded.draft(folder / "tickets-next")
    tui_recorded.at_work(patch, folder / "tickets")
    patch.chdir(folder)
    for name, value in (("TZ", "UTC"), ("GPUCOST_STATE_HOME", str(folder / ".state"))):
        patch.setenv(name, value)
    patch.delenv("NO_COLOR", raising=False)
    patch.setattr(Input, "cursor_blink", False)
    return GpucostApp(here=Path())


async def walk(app: GpucostApp, size: tuple[int, int]) -> AsyncIterator[str]:
    """Go through the places; yields the name of what is on the screen now."""
    async with app.run_test(size=size) as pilot:
        await until(
            pilot, lambda: "▶ running" in screen_text(app) and "◇ draft" in screen_text(app)
        )
        app.open_campaign(Path("tickets"), place="home")
        await until(pilot, lambda: "open now" in screen_text(app) and app.snapshot.status)
        await pressed(pilot, "down")
        yield "home"
        await pressed(pilot, "3")
        await until(pilot, lambda: app.screen._plan is not None and "▶" in screen_text(app))
        yield "schedule"
        await pressed(pilot, "4")
        await until(pilot, lambda: "entries/s" in screen_text(app))
        yield "run"
        await pressed(pilot, "5")
        await until(pilot, lambda: app.screen.shown is not None and app.screen.shown.height == 11)
        yield "attempts"
        await pressed(pilot, "down", "down", "enter")
        await until(
            pilot, lambda: "Traceback" in screen_text(app) or "Attempt 3" in screen_text(app)
        )
        await until(pilot, lambda: "Reading" not in screen_text(app))
        yield "attempts-details"
        await pressed(pilot, "escape", "d")
        await until(pilot, lambda: "●" in screen_text(app) and app.screen.told)
        yield "attempts-durations"
        await pressed(pilot, "escape", "6")
        await until(pilot, lambda: app.screen.entries and app.screen.facts.name == "tickets")
        packs = [(entry.price.gpu, entry.price.days) for entry in app.screen.entries]
        app.screen.query_one(VirtualTable).cursor = packs.index(("rtx-4090", 7))
        await until(
            pilot, lambda: "110.00 USD" in str(app.screen.query_one("#words", Static).content)
        )
        yield "pricing"
        await pressed(pilot, "s")
        await until(pilot, lambda: "by the schedule" in screen_text(app))
        yield "pricing-window"
        app.open_campaign(Path("tickets-next"), place="review")
        await until(pilot, lambda: app.snapshot.word == "draft")
        await until(pilot, lambda: "Nothing blocks the seal" in screen_text(app))
        await _quiet(app)
        for section in ("decision", "corpus"):
            app.screen.action_show_section(section)
            await pilot.pause()
            yield f"review-{section}"
        await pressed(pilot, "s")
        yield "review-seal"


async def _quiet(app: GpucostApp) -> None:
    """Take away what goes by itself: notices."""
    app.clear_notifications()
