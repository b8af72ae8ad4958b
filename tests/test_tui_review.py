"""Manifest review: facts, problems, edits noticed, the seal, and hostile text."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from campaign_parts import made
from textual.pilot import Pilot
from tui_support import (
    CATEGORIES,
    HOSTILE,
    SIZES,
    WIDE,
    app_on,
    assert_harmless,
    draft_campaign,
    pressed,
    screen_text,
    sealed_campaign,
    until,
)

from gpucost_tui import watch as watching
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.tui.app import GpucostApp
from gpucost_tui.tui.dialogs import ConfirmDialog
from gpucost_tui.tui.review import SECTIONS, ReviewScreen, find_editor
from gpucost_tui.tui.review_corpus import stacked
from gpucost_tui.tui.review_host import host
from gpucost_tui.tui.review_text import wrapped
from gpucost_tui.tui.work import Work


async def reviewed(pilot: Pilot[Any], app: GpucostApp) -> ReviewScreen:
    """Wait until the campaign in front has been looked at."""
    await until(pilot, lambda: app.current_mode == "review")
    screen = app.screen
    assert isinstance(screen, ReviewScreen)
    await until(pilot, lambda: screen._review is not None and not screen.busy("check"))
    return screen


def change(campaign: Campaign, **settings: Any) -> None:
    """Edit the protocol from outside; ``table__key`` names a place."""
    document: Any = tomlkit.parse(campaign.protocol_file.read_text())
    for dotted, value in settings.items():
        node = document
        *path, key = dotted.split("__")
        for part in path:
            node = node[part]
        node[key] = value
    campaign.protocol_file.write_text(tomlkit.dumps(document))


def shown(screen: ReviewScreen) -> str:
    return str(screen.query_one("#section").render())


def unbroken(screen: ReviewScreen) -> str:
    """What is shown, without blanks: hashes are broken between lines."""
    return "".join(shown(screen).split())


def banner(screen: ReviewScreen) -> str:
    return str(screen.query_one("#banner").render())


@pytest.mark.parametrize("size", SIZES)
async def test_every_section_shows_its_facts(tmp_path: Path, size: tuple[int, int]) -> None:
    campaign = draft_campaign(
        tmp_path / "one", corpus__source_distribution=dict.fromkeys(CATEGORIES, 1 / 6)
    )
    expected = {
        "problems": ["stratum 'short' has", "600 are declared"],
        "decision": ["Which batch size", "168 h", "accuracy at least 0", "Made up for a test."],
        "corpus": ["30 (", "short", "medium", "long", "billing", "16.7%", "no tuning data"],
        "model": ["5f5c92ce46df1fa9", "4d996e07aee75e50", "billing", "946,310"],
        "settings": ["batch_size", "truncation_side", "every-shape", "rounds", "other-process"],
        "host": ["GPU", "Driver", "CUDA", "ROCm", "torch"],
    }
    app = app_on(campaign.folder)
    async with app.run_test(size=size) as pilot:
        screen = await reviewed(pilot, app)
        await until(pilot, lambda: "Nothing blocks the seal" in banner(screen))
        for name in SECTIONS:
            screen.action_show_section(name)
            await pilot.pause()
            assert_harmless(app)
            for words in expected[name]:
                await until(pilot, lambda w=words: w in shown(screen).replace("\n  ", " "))


@pytest.mark.parametrize("tuning", [False, True])
async def test_every_section_shows_its_facts_after_the_seal(tmp_path: Path, tuning: bool) -> None:
    more: dict[str, Any] = {}
    if tuning:
        (tmp_path / "tuning.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
        more = {"tuning": [str(tmp_path / "tuning.jsonl")]}
    campaign = made(tmp_path / "one", **more)
    app = app_on(campaign.folder)
    seen: list[dict[str, str]] = []
    async with app.run_test(size=(100, 40)) as pilot:
        screen = await reviewed(pilot, app)
        for sealed in (False, True):
            if sealed:
                await pressed(pilot, "s", "y")
                await until(
                    pilot, lambda: "Sealed as" in banner(screen) and not screen.busy("check")
                )
            seen.append({})
            for name in SECTIONS:
                screen.action_show_section(name)
                await pilot.pause()
                seen[-1][name] = shown(screen)
    before, after = seen
    assert ("Tuning data" in after["corpus"]) is tuning
    for name in ("decision", "corpus", "model"):
        assert after[name] == before[name], name
    # The seal writes out a task's options, defaults too.
    assert set(before["settings"].splitlines()) < set(after["settings"].splitlines())


async def test_a_sealed_campaign_says_what_was_sealed_though_its_files_are_gone(
    tmp_path: Path,
) -> None:
    campaign = sealed_campaign(tmp_path / "one")
    sealed = campaign.manifest.json
    campaign.corpus_file("corpus").unlink()
    campaign.strata_file("corpus").write_bytes(b"spoiled")
    (campaign.folder / "sources.json").unlink()
    app = app_on(campaign.folder)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await reviewed(pilot, app)
        assert "differs" in banner(screen)
        screen.action_show_section("corpus")
        await until(pilot, lambda: sealed["corpora"]["corpus"]["sha256"] in unbroken(screen))
        screen.action_show_section("model")
        await until(pilot, lambda: sealed["model"]["tokenizer_sha256"] in unbroken(screen))


async def test_sections_by_keys_and_back(tmp_path: Path) -> None:
    app = app_on(draft_campaign(tmp_path / "one").folder)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await reviewed(pilot, app)
        seen = []
        for _ in SECTIONS:
            await pressed(pilot, "right")
            seen.append(screen._section)
        assert sorted(seen) == sorted(SECTIONS)
        await pressed(pilot, "left")
        assert screen._section != seen[-1]


async def test_sealing_asks_once_and_shows_the_hash(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await reviewed(pilot, app)
        await pressed(pilot, "s")
        assert isinstance(app.screen, ConfirmDialog)
        await until(pilot, lambda: "changed afterwards" in screen_text(app))
        await pressed(pilot, "escape")
        assert not campaign.sealed
        await pressed(pilot, "s", "y")
        await until(pilot, lambda: app.snapshot.word == "sealed")
        await until(pilot, lambda: "Sealed as" in banner(screen) and not screen.busy("check"))
        sha256 = Campaign.open(campaign.folder).manifest.sha256
        await until(pilot, lambda: sha256 in banner(screen))
        assert screen.check_action("seal", ()) is None
        assert screen.check_action("edit", ()) is None


async def test_enter_in_the_dialog_takes_the_careful_answer(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    async with app.run_test(size=(40, 12)) as pilot:
        await reviewed(pilot, app)
        await pressed(pilot, "s", "enter")
        assert not campaign.sealed


async def test_what_blocks_is_listed_and_nothing_is_sealed(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "one")
    change(campaign, corpus__right_of_use="", decision__scenario="serving")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await reviewed(pilot, app)
        assert screen._section == "problems"
        await until(pilot, lambda: "2 problems block the seal" in banner(screen))
        for words in ("BLOCKS", "(R5)", "(R2)", "protocol.toml, line", "→ "):
            await until(pilot, lambda w=words: w in shown(screen))
        await pressed(pilot, "s")
        assert isinstance(app.screen, ReviewScreen) and not campaign.sealed


async def test_an_edit_from_outside_is_noticed(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await reviewed(pilot, app)
        change(campaign, corpus__right_of_use="")
        await until(pilot, lambda: "1 problem blocks the seal" in banner(screen))
        campaign.protocol_file.write_text("x = [")
        await until(pilot, lambda: "can't be read" in shown(screen))
        screen.action_show_section("problems")
        await until(pilot, lambda: "not TOML" in shown(screen))


async def test_editing_lends_the_terminal_to_the_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = draft_campaign(tmp_path / "one")
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\nsed -i "s/deadline_hours = 168.0/deadline_hours = 24.0/" "$2"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", f"'{editor}' --wait")
    app = app_on(campaign.folder)
    monkeypatch.setattr(app, "suspend", contextlib.nullcontext)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await reviewed(pilot, app)
        await pressed(pilot, "e")
        await until(pilot, lambda: app.snapshot.protocol.decision.deadline_hours == 24)
        screen.action_show_section("decision")
        await until(pilot, lambda: "24 h" in shown(screen))


@pytest.mark.parametrize(
    ("editor", "words"), [("/nowhere/editor", "can't be started"), ("false", "status 1")]
)
async def test_an_editor_that_fails_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editor: str, words: str
) -> None:
    monkeypatch.setenv("VISUAL", editor)
    app = app_on(draft_campaign(tmp_path / "one").folder)
    monkeypatch.setattr(app, "suspend", contextlib.nullcontext)
    async with app.run_test(size=(80, 24)) as pilot:
        await reviewed(pilot, app)
        await pressed(pilot, "e")
        assert words in [*app._notifications][-1].message


async def test_a_terminal_that_cannot_be_lent_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "true")
    app = app_on(draft_campaign(tmp_path / "one").folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await reviewed(pilot, app)
        await pressed(pilot, "e")
        assert "can't be lent" in [*app._notifications][-1].message


def test_the_editor_is_the_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "code --wait")
    monkeypatch.setenv("EDITOR", "ed")
    assert find_editor() == ["code", "--wait"]
    monkeypatch.setenv("VISUAL", "'unclosed")
    assert find_editor() == ["ed"]
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("EDITOR")
    assert find_editor() is None


@pytest.fixture
def held_at_tokens(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold work in the middle of counting tokens, until the event is set; every step is told."""
    monkeypatch.setattr(watching, "_EVERY_S", 0.0)
    go, real = threading.Event(), Work.report

    def report(self: Work, text: str, done: int | None = None, total: int | None = None) -> None:
        real(self, text, done, total)
        if text.startswith("Counting the tokens") and done == 7:
            go.wait(20)

    monkeypatch.setattr(Work, "report", report)
    yield go
    go.set()


async def test_a_check_is_cancelled_in_the_middle_of_a_stage(
    tmp_path: Path, held_at_tokens: threading.Event
) -> None:
    app = app_on(draft_campaign(tmp_path / "one").folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.current_mode == "review" and app.screen.busy("check"))
        screen = app.screen
        words = "Counting the tokens of corpus 'corpus': 7 of 30 entries (23 %)  escape cancels"
        await until(pilot, lambda: words in banner(screen))
        work = screen._works["check"]
        await pressed(pilot, "escape")
        await until(pilot, lambda: "Cancelled. r looks again." in banner(screen))
        held_at_tokens.set()
        await until(pilot, lambda: not work.alive)
        await until(pilot, lambda: screen._review is None and "Cancelled" in banner(screen))
        await pressed(pilot, "r")
        await until(pilot, lambda: screen._review is not None)
        await until(pilot, lambda: "Nothing blocks the seal" in banner(screen))


async def test_a_seal_is_cancelled_before_it_is_written(
    tmp_path: Path, held_at_tokens: threading.Event
) -> None:
    campaign = draft_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    held_at_tokens.set()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await reviewed(pilot, app)
        held_at_tokens.clear()
        await pressed(pilot, "s", "y")
        await until(pilot, lambda: "Sealing: Counting the tokens" in banner(screen))
        await until(
            pilot,
            lambda: "7 of 30 entries" in banner(screen) and "escape cancels" in banner(screen),
        )
        assert app.writing() == ["sealing"]
        await pressed(pilot, "escape")
        await until(pilot, lambda: "Cancelling" in banner(screen))
        held_at_tokens.set()
        await until(pilot, lambda: not screen.busy("sealing"))
        await until(pilot, lambda: "Not sealed: cancelled. s seals." in banner(screen))
        assert not campaign.sealed and not campaign.manifest_file.exists()
        await pressed(pilot, "s", "y")
        await until(pilot, lambda: app.snapshot.word == "sealed")
        await until(pilot, lambda: "Sealed as" in banner(screen))


async def test_a_sealed_campaign_that_was_changed_says_so(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "one")
    with campaign.corpus_file("corpus").open("a") as stream:
        stream.write('{"id": "more", "text": "more", "label": "praise"}\n')
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await reviewed(pilot, app)
        await until(pilot, lambda: "differs" in banner(screen))
        screen.action_show_section("problems")
        await until(pilot, lambda: "is not what was sealed" in shown(screen))


async def test_nothing_is_checked_beside_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpucost_tui.campaign.lock import RunnerLock

    campaign = sealed_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    app.remembered.opened(campaign.folder, "review")
    with RunnerLock(campaign.folder):
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: app.snapshot.word in ("running", "paused"))
            screen = app.screen
            assert screen._review is None and not screen.busy("check")
            await until(pilot, lambda: "would disturb it" in banner(screen))
            screen.action_show_section("decision")
            await until(pilot, lambda: "Which batch size" in shown(screen))
            screen.action_show_section("corpus")
            await until(pilot, lambda: "Not looked at beside the run" in shown(screen))
            await pressed(pilot, "r")
            await until(pilot, lambda: screen._review is not None)


async def test_without_a_campaign_the_way_home_is_named(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    async with app.run_test(size=(40, 12)) as pilot:
        await pressed(pilot, "2")
        await until(pilot, lambda: "No campaign is open" in screen_text(app))
        assert app.screen.check_action("look", ()) is None


async def test_hostile_text_does_no_harm(tmp_path: Path) -> None:
    printable = "".join(c for c in HOSTILE if c >= " " and c != "\ud83d")
    long = "x" * 1_000_000
    lines = [
        {"id": HOSTILE.replace("\ud83d", ""), "text": HOSTILE.replace("\ud83d", ""), "label": WIDE},
        {"id": long, "text": long, "label": printable},
        {"id": WIDE, "text": WIDE, "label": HOSTILE.replace("\ud83d", "")},
    ]
    campaign = draft_campaign(tmp_path / "one")
    campaign.corpus_file("corpus").write_text("\n".join(map(json.dumps, lines)))
    change(
        campaign,
        name=printable[:150],
        decision__question=HOSTILE.replace("\ud83d", "").replace("\x00", ""),
        corpus__right_of_use=WIDE,
        decision__scenario=printable[:150],
        corpus__source_distribution={printable: 0.5, WIDE: 0.5},
    )
    app = app_on(campaign.folder)
    async with app.run_test(size=SIZES[0]) as pilot:
        screen = await reviewed(pilot, app)
        assert len(screen._review.survey.problems) >= 2
        for name in SECTIONS:
            screen.action_show_section(name)
            for size in (*SIZES, SIZES[0]):
                await pilot.resize_terminal(*size)
                assert_harmless(app)
            for _ in range(6):
                await pilot.press("pagedown")
            await pilot.pause()
            assert_harmless(app)


async def test_a_shrunk_window_loses_nothing(tmp_path: Path) -> None:
    app = app_on(draft_campaign(tmp_path / "one").folder)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await reviewed(pilot, app)
        screen.action_show_section("corpus")
        await pilot.pause()
        before = screen_text(app)
        await pilot.resize_terminal(40, 12)
        await pilot.pause(0.2)
        await until(pilot, lambda: "Corpus (3 of 6)" in screen_text(app))
        await pilot.resize_terminal(120, 40)
        await pilot.pause(0.2)
        await until(pilot, lambda: screen_text(app) == before)


@pytest.mark.parametrize(
    ("parts", "width", "cells"),
    [([600, 300, 100], 50, 50), ([1, 1_000_000], 10, 10), ([0, 0], 10, 7), ([5], 10, 10)],
)
def test_a_part_that_is_there_has_a_cell(parts: list[int], width: int, cells: int) -> None:
    bar = stacked(parts, width)
    assert len(bar) == cells
    if sum(parts):
        assert all(("█▓"[n] in bar.plain) == bool(part) for n, part in enumerate(parts[:2]))


def test_lines_are_broken_between_words_by_cells() -> None:
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("한국어 텍스트", 6) == ["한국어", "텍스트"]
    assert wrapped("x" * 10, 4) == ["xxxx", "xxxx", "xx"]
    assert wrapped("a\n\nb", 9) == ["a", "", "b"]
    assert wrapped("", 9) == [""]


@pytest.mark.parametrize(
    ("status", "words"),
    [("listed", "✓ listed"), ("not listed", "✗ not listed"), ("unknown", "? unknown")],
)
def test_the_host_record_says_how_rocm_is_listed(status: str, words: str) -> None:
    from gpucost_tui.environment.host import host_record

    record = host_record()
    record["rocm"] = {"status": status, "reason": "because", "snapshot": "2026-09"}

    class Review:
        host = record
        host_id = "x"

    text = "\n".join(line.plain for line in host(Review(), 80))
    assert words in text and "because" in text
