"""The app's skeleton: places, keys, palette, help, theme, memory, sizes."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.binding import Binding
from tui_support import (
    SIZES,
    app_on,
    assert_harmless,
    at_rest,
    pressed,
    screen_text,
    sealed_campaign,
    until,
)

from gpucost_tui.campaign.lock import RunnerLock
from gpucost_tui.tui.context import Snapshot
from gpucost_tui.tui.messages import StateChanged, WorkProgressed
from gpucost_tui.tui.palette import entries
from gpucost_tui.tui.places import PLACES
from gpucost_tui.tui.remembered import Remembered, recall, state_file
from gpucost_tui.tui.safe import cell, filled, fit, plain
from gpucost_tui.tui.work import Work


async def test_each_place_is_one_key_from_every_other() -> None:
    app = app_on()
    async with app.run_test(size=SIZES[0]) as pilot:
        walk = [1, 2, 3, 4, 5, 6, 4, 2, 6, 3, 1, 5, 3, 6, 5, 1, 4]
        for size, part in ((SIZES[0], walk), (SIZES[1], walk[:6]), (SIZES[2], walk[:6])):
            await pilot.resize_terminal(*size)
            for place in (PLACES[number - 1] for number in part):
                await pressed(pilot, place.key)
                assert app.current_mode == place.name
        await pressed(pilot, "ctrl+q")
    assert app.return_code == 0


async def test_a_snapshot_reaches_the_place_in_front(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.snapshot.status is not None)
        assert app.snapshot.word == "sealed"
        assert app.snapshot.status["open"] == 6


async def test_the_places_are_reached_by_mouse(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "6 Pricing" in screen_text(app))
        tabs = screen_text(app).splitlines()[0]
        for place in PLACES:
            await pilot.click(offset=(tabs.index(place.label) + 1, 0))
            await until(pilot, lambda name=place.name: app.current_mode == name)


async def test_the_palette_has_every_place_and_every_action(tmp_path: Path) -> None:
    titles = [entry.title for entry in entries()]
    for place in PLACES:
        assert f"Go to {place.label}" in titles
        for binding in place.screen_class().BINDINGS:
            assert not isinstance(binding, Binding) or (
                f"{place.label}: {binding.description}" in titles
            )
    for words in ("Help", "Light or dark", "Quit"):
        assert words in titles
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, "5", "ctrl+p")
        await pilot.press(*"Home: Demo")
        await until(pilot, lambda: "Home: Demo" in screen_text(app))
        await pressed(pilot, "enter")
        await until(pilot, lambda: type(app.screen).__name__ == "DemoDialog")
        assert app.current_mode == "home"


async def test_what_is_not_possible_now_is_said(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    async with app.run_test() as pilot:
        await app.act("review", "seal")
        await until(pilot, lambda: app._notifications)
        assert "not possible here and now" in [*app._notifications][-1].message


def test_every_action_is_explained() -> None:
    for place in PLACES:
        screen = place.screen_class()
        assert place.name == screen.PLACE and screen.HELP
        for binding in Binding.make_bindings(screen.BINDINGS):
            assert binding.description and binding.tooltip, (place.name, binding)


@pytest.mark.parametrize("place", [place.name for place in PLACES])
async def test_the_footer_fits_80_columns(tmp_path: Path, place: str) -> None:
    app = app_on(sealed_campaign(tmp_path / "one").folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.snapshot.status is not None)
        app.action_place(place)

        def last() -> int:
            return max((key.region.right for key in app.screen.query("FooterKey")), default=0)

        await until(pilot, lambda: app.current_mode == place and last() > 0)
        assert last() <= 80


async def test_the_help_keeps_its_title_in_sight_at_every_size(tmp_path: Path) -> None:
    app = app_on(sealed_campaign(tmp_path / "c").folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, "5", "question_mark")
        for size in (*SIZES, (80, 40), (100, 30), (60, 20), (40, 12)):
            await pilot.resize_terminal(*size)
            assert "Help  escape closes" in await at_rest(pilot), size
            assert not app.screen.query_one(".dialog").show_vertical_scrollbar, size


async def test_help_tells_of_what_has_the_focus(tmp_path: Path) -> None:
    app = app_on(sealed_campaign(tmp_path / "one").folder, here=tmp_path)
    async with app.run_test(size=(80, 40)) as pilot:
        await until(pilot, lambda: app.current_mode == "review")
        await pressed(pilot, "1")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "campaigns")
        await pressed(pilot, "question_mark")
        shown = screen_text(app)
        for words in ("In focus: a table (Campaigns)", "Everywhere", "Leave; a run goes on"):
            assert words in shown
        await pressed(pilot, "escape", "d", "f1")
        await until(pilot, lambda: "a text field (Folder)" in screen_text(app))


async def test_theme_and_place_come_back(tmp_path: Path) -> None:
    folder = sealed_campaign(tmp_path / "one").folder
    app = app_on(folder)
    async with app.run_test() as pilot:
        dark = app.current_theme.dark
        await pressed(pilot, "ctrl+t", "6")
        assert app.current_theme.dark is not dark
    again = app_on(folder)
    async with again.run_test() as pilot:
        await until(pilot, lambda: again.current_mode == "pricing")
        assert again.current_theme.dark is not dark
    without = app_on(here=tmp_path)
    async with without.run_test() as pilot:
        await until(pilot, lambda: without.current_mode == "pricing")
        assert without.context.folder.name == "one"
    elsewhere = app_on(here=tmp_path / "one")
    async with elsewhere.run_test() as pilot:
        await pilot.pause(0.2)
        assert elsewhere.current_mode == "home"


@pytest.mark.parametrize("spoiled", [b"", b"\xff", b"[]", b'{"theme": 1}', b'{"recent": [[1]]}'])
async def test_a_spoiled_memory_is_an_empty_one(tmp_path: Path, spoiled: bytes) -> None:
    state_file().parent.mkdir(parents=True, exist_ok=True)
    state_file().write_bytes(spoiled)
    assert recall() == Remembered()


async def test_a_memory_that_cannot_be_kept_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GPUCOST_STATE_HOME", str(tmp_path / "file"))
    app = app_on(here=tmp_path)
    async with app.run_test() as pilot:
        await pressed(pilot, "ctrl+t", "ctrl+t")
        said = [note.message for note in app._notifications]
        assert len(said) == 1 and "can't be remembered" in said[0]


async def test_a_run_elsewhere_reaches_the_screen(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.snapshot.word == "sealed")
        with RunnerLock(campaign.folder):
            await until(pilot, lambda: app.snapshot.word == "running")
        await until(pilot, lambda: app.snapshot.word == "sealed")


async def test_a_journal_that_is_damaged_is_told(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.snapshot.word == "sealed")
        campaign.journal_file.write_bytes(b"nonsense\n")
        await until(pilot, lambda: app.snapshot.word == "damaged")
        assert "journal" in app.snapshot.problem


async def test_quitting_asks_while_files_are_written(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    held = threading.Event()
    async with app.run_test() as pilot:
        await pilot.pause()
        app.screen.work("writing", lambda work: held.wait(20), writes=True)
        await pressed(pilot, "ctrl+q")
        await until(pilot, lambda: "Leave now?" in screen_text(app))
        await pressed(pilot, "n")
        held.set()
        await until(pilot, lambda: not app.writing())
        await pressed(pilot, "ctrl+q")
    assert app.return_code == 0


async def test_work_reports_fails_and_is_superseded(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    told: list[str] = []
    async with app.run_test() as pilot:
        await pilot.pause()
        screen, first = app.screen, threading.Event()
        screen.work("a", lambda work: first.wait(20), done=lambda v: told.append("stale"))
        screen.work("a", lambda work: "fresh", done=told.append)
        await until(pilot, lambda: told == ["fresh"])
        first.set()

        def broken(work: Work) -> None:
            work.report("half", 1, 2)
            raise ValueError("[/x] \x1b[31m")

        screen.work(
            "b", broken, failed=told.append, progress=lambda t, d, n: told.append(f"{t} {d}/{n}")
        )
        await until(pilot, lambda: len(told) == 3)
        assert told[1] == "half 1/2"
        assert "program itself: ValueError" in told[2] and "\x1b" not in told[2]
        app.say(told[2], severity="error")
        await pilot.pause()
        assert_harmless(app)


def test_snapshots_replace_one_another() -> None:
    first, second = StateChanged(Snapshot()), StateChanged(Snapshot())
    assert first.can_replace(second)
    work = Work(_Nobody(), "a", None, None, None, False)
    other = Work(_Nobody(), "b", None, None, None, False)
    assert WorkProgressed(work, "", 1, 2).can_replace(WorkProgressed(work, "", 2, 2))
    assert not WorkProgressed(work, "", 1, 2).can_replace(WorkProgressed(other, "", 2, 2))


class _Nobody:
    def post_message(self, message: object) -> bool:
        return False


@pytest.mark.parametrize(
    ("text", "cells"), [("한국어", 4), ("x" * 99, 10), ("👩‍💻", 1), ("\x1b[31m", 3), ("", 5)]
)
def test_text_is_cut_by_cells(text: str, cells: int) -> None:
    shown = fit(text, cells)
    assert cell_len(shown) <= cells and "\x1b" not in shown


def test_templates_take_hostile_values() -> None:
    shown = filled("[b]$a[/b] $b", a="[/b] $b [red]", b="\x1b]52;c;x\x07 $a")
    assert shown.plain == "[/b] $b [red] \\x1b]52;c;x\\x07 $a"
    assert cell("[/INST] list[int]").plain == "[/INST] list[int]"
    assert plain("\u202eevil", one_line=True).plain == "\\u202eevil"


def test_it_starts_without_what_is_heavy() -> None:
    probe = (
        "import sys; import gpucost_tui.tui.app, gpucost_tui.tui.home;"
        "bad = [m for m in sys.modules if m.partition('.')[0] in ('polars', 'pydantic', 'torch')"
        " or m.startswith(('gpucost_tui.campaign', 'gpucost_tui.protocol'))]; print(bad)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_named_campaign_is_shown_and_not_the_list(tmp_path: Path) -> None:
    folder = sealed_campaign(tmp_path / "one").folder
    app = app_on(folder)
    app.remembered.opened(folder, "home")
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.current_mode == "review")
