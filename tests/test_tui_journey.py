"""Whole ways through the app: by keys in tmux, over the real small model, and across its end."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.widgets import Static
from tui_support import (
    app_on,
    assert_harmless,
    corpus_file,
    fake_engine,
    pressed,
    screen_text,
    sealed_campaign,
    until,
)
from tui_terminal import HAS_TMUX, end_runner, tmux

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.lock import holder
from gpucost_tui.campaign.status import status
from gpucost_tui.tui.app import GpucostApp
from gpucost_tui.tui.form import Field
from gpucost_tui.tui.table_view import VirtualTable

__all__ = ["fake_engine"]
LONG = 180.0


@pytest.fixture
def ended_after() -> Iterator[list[Path]]:
    """Campaigns whose runners end with the test, whatever happened."""
    folders: list[Path] = []
    yield folders
    for folder in folders:
        end_runner(folder)


def shown(app: GpucostApp, name: str) -> str:
    """Return what a part of the place says, without the window's line breaks."""
    return str(app.screen.query_one(f"#{name}", Static).content)


def highlight(app: GpucostApp, gpu: str, days: int) -> None:
    """Put the cursor on a pack."""
    packs = [(entry.price.gpu, entry.price.days) for entry in app.screen.entries]
    app.screen.query_one(VirtualTable).cursor = packs.index((gpu, days))


@pytest.mark.skipif(not HAS_TMUX, reason="tmux is not installed")
def test_by_keys_from_nothing_to_prices(tmp_path: Path, ended_after: list[Path]) -> None:
    folder = tmp_path / "demo-campaign"
    ended_after.append(folder)
    with tmux(tmp_path) as screen:
        screen.types("gpucost")
        screen.shows("No campaign here yet")
        screen.keys("d")
        screen.shows("Make the demonstration", "demo-campaign")
        screen.keys("Enter")
        screen.shows("Nothing blocks the seal", "◇ draft")
        screen.keys("s")
        screen.shows("changed afterwards")
        screen.keys("y")
        screen.shows("Sealed as", "◆ sealed")
        screen.keys("4")
        screen.shows("15 slots open")
        screen.keys("s")
        screen.shows("▶ running", "Attempt 1 · batch-1")
        screen.keys("3")
        screen.shows("batch_size 4")
        screen.keys("5")
        screen.shows("✓ accepted", seconds=LONG)
        screen.resize(40, 12)
        screen.shows("5 Attempts", "›")
        screen.resize(80, 24)
        screen.keys("6")
        screen.shows("rtx-4090", "110.00")
        screen.keys("C-q")
        screen.shows("The run goes on without the app", "ready>")
        assert holder(folder) is not None
        screen.types("clear; gpucost demo-campaign")
        screen.shows("▶ running", "6 Pricing")
        screen.keys("4", "x")
        screen.shows("Stop the run?")
        screen.keys("y")
        screen.shows("stopped on request")
        screen.keys("C-q")
        screen.shows("ready>")
    now = status(Campaign(folder))
    assert now["accepted"] >= 1 and now["open"] == 15 - now["done"]
    assert now["last_end"] and holder(folder) is None


async def test_over_the_real_model_with_the_app_closed_on_the_way(
    tmp_path: Path, ended_after: list[Path]
) -> None:
    corpus_file(tmp_path / "mine.jsonl", 60)
    folder = tmp_path / "mine"
    ended_after.append(folder)
    first = app_on(here=tmp_path)
    async with first.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, "n")
        for name, value in (
            *(("folder", "mine"), ("corpus", "mine.jsonl"), ("model", "demo")),
            *(("right", "Our own."), ("threshold", "0.0")),
        ):
            first.screen.query_one(f"#field-{name}", Field).value = value
        await pressed(pilot, "ctrl+s")
        await until(pilot, lambda: first.current_mode == "review")
        await until(pilot, lambda: "Nothing blocks the seal" in shown(first, "banner"))
        await pressed(pilot, "s", "y")
        await until(pilot, lambda: first.snapshot.word == "sealed")
        await pressed(pilot, "4", "s")
        await until(pilot, lambda: "Attempt 1" in shown(first, "attempt"), seconds=LONG)
        await pressed(pilot, "ctrl+q")
    assert first.return_code == 0
    runner = holder(folder)
    assert runner is not None and runner.detached

    second = app_on(folder)
    async with second.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: second.current_mode == "run")
        assert second.snapshot.folder == folder
        await until(pilot, lambda: second.snapshot.word == "finished", seconds=LONG)
        await until(pilot, lambda: "✓ accepted" in shown(second, "ended"))
        await pressed(pilot, "5")
        await until(pilot, lambda: second.screen.shown is not None)
        assert second.screen.shown["corpus_accepted"].to_list() == [True] * 15
        assert second.screen.shown["notes"].str.contains("fake").sum() == 0
        await pressed(pilot, "p")
        await until(pilot, lambda: "60 of 60 entries" in screen_text(second))
        await pressed(pilot, "escape", "d")
        await until(pilot, lambda: "●" in screen_text(second))
        await pressed(pilot, "escape", "6")
        await until(pilot, lambda: second.screen.entries and second.screen.facts.name)
        highlight(second, "rtx-4090", 7)
        await until(pilot, lambda: "accepted on the CPU" in shown(second, "words"))
        assert_harmless(second)


async def test_a_run_in_another_terminal_is_shown_live(
    tmp_path: Path, fake_engine: Callable[..., None], ended_after: list[Path]
) -> None:
    fake_engine(default={"batch_s": 0.1})
    folder = sealed_campaign(tmp_path / "one").folder
    ended_after.append(folder)
    app = app_on(folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.snapshot.word == "sealed")
        await pressed(pilot, "4")
        command = [sys.executable, "-m", "gpucost_tui", "run", str(folder)]
        process = await asyncio.to_thread(
            subprocess.Popen, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        await until(pilot, lambda: "in another terminal" in shown(app, "head"))
        await until(pilot, lambda: "entries/s" in shown(app, "attempt"))
        await pressed(pilot, "ctrl+q")
    assert process.poll() is None, "closing the app ended the run of another terminal"
    process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(process.wait, 30)


async def test_prices_are_committed_at_the_end_of_the_way(
    tmp_path: Path, fake_engine: Callable[..., None], ended_after: list[Path]
) -> None:
    """From a draft to the recorded commitment, on a card that the price lists know."""
    from attempts_support import _DEVICES

    fake_engine(devices=_DEVICES)
    folder = sealed_campaign(tmp_path / "one").folder
    ended_after.append(folder)
    app = app_on(folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.snapshot.word == "sealed")
        await pressed(pilot, "4", "s")
        await until(pilot, lambda: app.snapshot.word == "finished", seconds=LONG)
        await pressed(pilot, "6")
        await until(pilot, lambda: app.screen.entries and app.screen.facts.name)
        highlight(app, "rtx-4090", 7)
        await until(pilot, lambda: "Cost per accepted corpus: 110.00 USD" in shown(app, "words"))
        await pressed(pilot, "enter", "y")
        await until(pilot, lambda: "◆ Committed" in shown(app, "words"))
    acts = [json.loads(line)["event"] for line in Campaign(folder).journal_file.open()]
    assert "committed" in " ".join(acts)
