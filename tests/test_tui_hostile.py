"""One hostile campaign through every place and window: ids, texts, names, errors, price lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from attempts_support import TEXT, hostile
from pricing_support import PACK_HEADER
from textual.pilot import Pilot
from tui_support import (
    HOSTILE,
    SIZES,
    WIDE,
    app_on,
    assert_harmless,
    at_rest,
    draft_campaign,
    pressed,
    screen_text,
    until,
)

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.lock import RunnerLock, holder
from gpucost_tui.pricing import kept
from gpucost_tui.tui.app import GpucostApp
from gpucost_tui.tui.places import PLACES

LONG = "x" * 1_000_000
#: What goes on by itself and so may differ between two looks.
_READY: dict[str, Callable[[Any], object]] = {
    "home": lambda screen: screen._listing is not None and screen._painted is not None,
    "review": lambda screen: not screen.busy("check"),
    "schedule": lambda screen: screen._plan is not None,
    "run": lambda screen: screen._snapshot is not None,
    "attempts": lambda screen: screen.shown is not None,
    "pricing": lambda screen: screen.entries and screen.facts.name,
}


async def everywhere(pilot: Pilot[Any]) -> None:
    """Go through all places and windows; nothing steers, and a shrunk window loses nothing."""
    app = pilot.app
    assert isinstance(app, GpucostApp)
    await until(pilot, lambda: app.snapshot.status is not None or app.snapshot.problem)
    for place in PLACES:
        await pressed(pilot, place.key)
        await until(pilot, lambda name=place.name: _READY[name](app.screen))
        before = await at_rest(pilot)
        for size in (*SIZES, SIZES[0]):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert_harmless(app)
        await until(pilot, lambda before=before: screen_text(app) == before)
        await pressed(pilot, "pagedown", "end")
        assert_harmless(app)
        await pressed(pilot, "home")


async def test_a_hostile_campaign_that_ran(tmp_path: Path) -> None:
    reason = TEXT.replace('"', "").replace("\n", " ")
    line = f'"{WIDE} [/INST]",rtx-4090,1,7,99.00,2026-11-01,\n'
    gap = f'{WIDE},rtx-4090,1,30,,2026-11-01,"{reason}"\n'
    kept.keep((PACK_HEADER + line + gap).encode(), "mine.csv")
    app = app_on(hostile(tmp_path / "hostile").folder, here=tmp_path)
    async with app.run_test(size=SIZES[0]) as pilot:
        await everywhere(pilot)
        await pressed(pilot, "5", "enter")
        await until(pilot, lambda: "Attempt 1" in screen_text(app))
        assert_harmless(app)
        await pressed(pilot, "p")
        await until(pilot, lambda: "12 of 12 entries" in screen_text(app))
        for _ in range(12):  # one of the ids has a million letters
            await pressed(pilot, "down")
            assert_harmless(app)


async def test_a_hostile_campaign_that_runs(tmp_path: Path) -> None:
    campaign = hostile(tmp_path / "hostile")
    with RunnerLock(campaign.folder, detached=True):
        _tell(campaign)
        app = app_on(campaign.folder, here=tmp_path)
        async with app.run_test(size=SIZES[0]) as pilot:
            await until(pilot, lambda: app.snapshot.word == "running")
            await pressed(pilot, "4")
            await until(pilot, lambda: "▶ running" in screen_text(app))
            for size in SIZES:
                await pilot.resize_terminal(*size)
                await pressed(pilot, "end")
                assert_harmless(app)


def _tell(campaign: Campaign) -> None:
    me = holder(campaign.folder)
    assert me is not None
    device = {"index": 0, "name": LONG, "missing": {"used_bytes": HOSTILE, "power_w": LONG}}
    why = f"{HOSTILE}{LONG}"
    told = {
        "runner": me.pid, "started": me.started, "ready": True, "state": "running", "attempt": 3,
        "slot": 3, "variant": LONG, "round": 1, "deliverable": HOSTILE, "phase": HOSTILE,
        "finished_entries": 5, "expected_ids": 12, "elapsed_s": 1.0, "phase_s": 1.0,
        "failures": [{"attempt": 2, "variant": HOSTILE, "kind": HOSTILE, "why": why}],
        "devices": [device], "devices_error": why, "history": {}, "rss_bytes": None,
        "updated": HOSTILE,
    }  # fmt: skip
    (campaign.folder / "progress.json").write_text(json.dumps(told), "utf-8")


@pytest.mark.parametrize("text", [f"{TEXT} {WIDE}", LONG], ids=["steering and wide", "long"])
async def test_a_hostile_draft(tmp_path: Path, text: str) -> None:
    campaign = draft_campaign(tmp_path / "draft")
    document: Any = tomlkit.parse(campaign.protocol_file.read_text("utf-8"))
    document["decision"]["question"] = text
    document["corpus"]["right_of_use"] = text
    document["tuning"]["statement"] = text
    document["series"][0]["name"] = text
    campaign.protocol_file.write_text(tomlkit.dumps(document), "utf-8")
    provider = text.replace('"', "")  # refused where it is that long: in a sentence
    kept.keep((PACK_HEADER + f'"{provider}",rtx-4090,1,7,9.00,2026-11-01,\n').encode(), "mine.csv")
    app = app_on(campaign.folder, here=tmp_path)
    async with app.run_test(size=SIZES[0]) as pilot:
        await until(pilot, lambda: app.snapshot.status is not None or app.snapshot.problem)
        for key in ("1", "2", "3", "4", "5", "6"):
            await pressed(pilot, key)
            await until(pilot, lambda: not app.screen.busy("check"))
            for size in (SIZES[2], SIZES[0]):
                await pilot.resize_terminal(*size)
                await pilot.pause()
                assert_harmless(app)
