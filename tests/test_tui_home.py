"""Home: what is listed, opened, made; and what is said where something is wrong."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static
from tui_support import (
    HOSTILE,
    SIZES,
    WIDE,
    app_on,
    assert_harmless,
    at_rest,
    corpus_file,
    draft_campaign,
    pressed,
    screen_text,
    sealed_campaign,
    until,
)

from gpucost_tui import watch
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.tui.app import GpucostApp
from gpucost_tui.tui.form import Field
from gpucost_tui.tui.home import HomeScreen
from gpucost_tui.tui.listing import Lister
from gpucost_tui.tui.new_campaign import NewCampaignDialog, concerned
from gpucost_tui.tui.work import Work


async def listed(pilot: Pilot[Any], app: GpucostApp, rows: int) -> None:
    home = app.screen
    await until(pilot, lambda: home._listing is not None and len(home._listing.rows) == rows)
    if rows:
        await until(pilot, lambda: home.query("#about") and home._painted is not None)


def fill(app: GpucostApp, **values: str) -> None:
    for name, value in values.items():
        app.screen.query_one(f"#field-{name}", Field).value = value


def wrong(app: GpucostApp) -> dict[str, str]:
    return {
        field.field_name: str(field.query_one(".field-error").render())
        for field in app.screen.query(Field)
        if field.has_class("-wrong")
    }


@pytest.mark.parametrize("size", SIZES)
async def test_an_empty_folder_says_what_to_do(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_on(here=tmp_path)
    async with app.run_test(size=size) as pilot:
        await listed(pilot, app, 0)
        shown = screen_text(app)
        assert "No campaign here yet" in shown
        assert " d " in shown
        assert app.screen.check_action("open", ()) is None


async def test_campaigns_with_state_progress_and_next_step(tmp_path: Path) -> None:
    sealed_campaign(tmp_path / "one")
    draft_campaign(tmp_path / "two")
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await listed(pilot, app, 2)
        shown = screen_text(app)
        assert "◆ sealed" in shown and "0 of 6" in shown and "◇ draft" in shown
        app.screen.query_one(DataTable).move_cursor(row=0)
        await pilot.pause()
        shown = screen_text(app)
        assert "Which batch size processes the whole corpus" in shown
        assert "Next: enter, to 2 Review" in shown


async def test_enter_opens_where_the_next_step_is(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "one")
    app = app_on(here=tmp_path)
    async with app.run_test() as pilot:
        await listed(pilot, app, 1)
        await pressed(pilot, "enter")
        await until(pilot, lambda: app.snapshot.status is not None)
        assert app.current_mode == "run"
        assert app.context.folder == campaign.folder
        assert app.remembered.recent[0] == (str(campaign.folder.resolve()), "run")


async def test_the_open_campaign_is_told_by_whatever_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = sealed_campaign(tmp_path / "one")
    monkeypatch.chdir(tmp_path)
    app = app_on(campaign.folder, here=Path())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.snapshot.status is not None)
        await pressed(pilot, "1")
        await until(pilot, lambda: "open now" in screen_text(app))
        await pressed(pilot, "enter")
        assert app.snapshot.folder == campaign.folder and app.snapshot.status is not None


async def test_what_a_width_shows_does_not_hang_on_the_width_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that just fit: with a scrollbar they would not, and it would be needed."""
    lines = "\n".join(["x" * 78] * 9)
    about = "#about"
    monkeypatch.setattr(
        HomeScreen, "_about", lambda self: self.query_one(about, Static).update(lines)
    )
    sealed_campaign(tmp_path / "c")
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await listed(pilot, app, 1)
        shown = []
        for width in (70, 100):
            await pilot.resize_terminal(width, 24)
            await at_rest(pilot)
            await pilot.resize_terminal(80, 24)
            shown.append(await at_rest(pilot))
        assert shown[0] == shown[1]
        assert shown[0].count("x" * 78) == 9


async def test_recent_campaigns_elsewhere_are_listed_and_forgotten(tmp_path: Path) -> None:
    other = draft_campaign(tmp_path / "far")
    here = tmp_path / "here"
    here.mkdir()
    app = app_on(here=here)
    app.remembered.opened(other.folder, "review")
    app.remembered.opened(tmp_path / "gone", "review")
    async with app.run_test(size=(80, 24)) as pilot:
        await listed(pilot, app, 1)
        await until(pilot, lambda: "recent" in screen_text(app))
        await pressed(pilot, "f")
        await listed(pilot, app, 0)
        assert str(other.folder.resolve()) not in dict(app.remembered.recent)
        assert other.folder.is_dir()


async def test_a_campaign_made_elsewhere_appears(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    async with app.run_test() as pilot:
        await listed(pilot, app, 0)
        draft_campaign(tmp_path / "new")
        await pressed(pilot, "r")
        await listed(pilot, app, 1)


async def test_damaged_campaigns_are_rows_that_say_why(tmp_path: Path) -> None:
    damaged = sealed_campaign(tmp_path / "damaged")
    damaged.journal_file.write_bytes(b"no journal\n")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "protocol.toml").write_text("x = [")
    other = tmp_path / "nonsense"
    other.mkdir()
    (other / "manifest.json").write_bytes(b"\xff\x00{")
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await listed(pilot, app, 3)
        found = {row.folder.name: row for row in app.screen._listing.rows}
        assert found["damaged"].state == "damaged" and "journal" in found["damaged"].problem
        assert "manifest" in found["nonsense"].problem
        assert "not TOML" in found["broken"].problem
        for number in range(3):
            app.screen.query_one(DataTable).move_cursor(row=number)
            await pilot.pause()
            await until(pilot, lambda: "✗" in screen_text(app))


async def test_the_last_verdict_is_that_of_the_last_attempt(tmp_path: Path) -> None:
    from gpucost_tui.tui.listing import _verdict

    accepted = {"status": "completed", "corpus_accepted": True, "failure": None}
    failed = {"status": "failed", "corpus_accepted": False, "failure": "out-of-memory"}
    stopped = {"status": "stopped", "corpus_accepted": None, "failure": None}
    assert _verdict([]) == ""
    assert _verdict([failed, accepted, stopped]) == "✓ accepted"
    assert _verdict([accepted, failed]) == "✗ failed (out-of-memory)"
    assert _verdict([accepted | {"corpus_accepted": False}]) == "✗ rejected"


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_and_wide_names_do_no_harm(tmp_path: Path, size: tuple[int, int]) -> None:
    text = f"{WIDE} {HOSTILE}".replace("\ud83d", "").replace("\x00", "")
    campaign = draft_campaign(tmp_path / "one")
    protocol = campaign.protocol_file.read_text()
    import tomlkit

    document: Any = tomlkit.parse(protocol)
    document["name"] = "".join(c for c in text if c >= " ")[:200]
    document["decision"]["question"] = text * 40
    campaign.protocol_file.write_text(tomlkit.dumps(document))
    shutil.copytree(campaign.folder, tmp_path / "[b]x[.] \x1b]0;t\x07 \x9b31m")
    (tmp_path / "one-corpus.jsonl").unlink()
    app = app_on(here=tmp_path)
    async with app.run_test(size=size) as pilot:
        await listed(pilot, app, 2)
        for row in range(2):
            app.screen.query_one(DataTable).move_cursor(row=row)
            await pilot.pause()
            assert_harmless(app)
        await pressed(pilot, "enter")
        await until(pilot, lambda: app.snapshot.versions)
        assert_harmless(app)


async def test_the_demonstration_is_made_and_opened(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await listed(pilot, app, 0)
        await pressed(pilot, "d", "enter")
        await until(pilot, lambda: app.current_mode == "review")
        assert Campaign.open(tmp_path / "demo-campaign").draft()[1].corpus.synthetic


async def test_the_demonstration_can_be_cancelled_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_EVERY_S", 0.0)
    go, real = threading.Event(), Work.report

    def report(self: Work, text: str, done: int | None = None, total: int | None = None) -> None:
        real(self, text, done, total)
        if text.startswith("Writing the tuning data") and done == 7:
            go.wait(20)

    monkeypatch.setattr(Work, "report", report)
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await listed(pilot, app, 0)
        await pressed(pilot, "d", "enter")
        await until(pilot, lambda: "Writing the tuning data: 7 entries" in screen_text(app))
        assert app.writing() == ["making the demonstration"]
        await pressed(pilot, "escape")
        await until(pilot, lambda: "Cancelling" in screen_text(app))
        go.set()
        await until(pilot, lambda: "nothing was made" in screen_text(app))
        await pressed(pilot, "escape")
        assert app.current_mode == "home" and not app.writing()
    assert not list(tmp_path.iterdir())


async def test_a_taken_folder_is_said_in_place(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, "d")
        fill(app, folder="taken")
        await pressed(pilot, "enter")
        await until(pilot, lambda: wrong(app))
        assert "exists and is not empty" in wrong(app)["folder"]
        fill(app, folder="")
        await pressed(pilot, "enter")
        assert "Name a folder" in wrong(app)["folder"]
        await pressed(pilot, "escape")
        assert app.current_mode == "home" and (tmp_path / "taken" / "file").exists()


async def test_a_campaign_is_made_from_the_form(tmp_path: Path) -> None:
    corpus = corpus_file(tmp_path / "mine.jsonl")
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, "n")
        fill(
            app,
            folder="my-campaign",
            corpus=corpus.name,
            model="demo",
            right="Our own texts.",
            threshold="0.5",
            deadline="48",
            budget="500.00",
        )
        await pressed(pilot, "ctrl+s")
        await until(pilot, lambda: app.current_mode == "review")
    protocol = Campaign.open(tmp_path / "my-campaign").draft()[1]
    assert protocol.name == "my-campaign"
    assert protocol.corpus.right_of_use == "Our own texts."
    assert (protocol.quality.threshold, protocol.decision.deadline_hours) == (0.5, 48)
    assert str(protocol.decision.budget_usd) == "500.00"
    text = (tmp_path / "my-campaign" / "protocol.toml").read_text()
    assert "# a corpus below it is not accepted" in text  # the template's comments are kept


async def test_answers_in_a_file_and_no_class_column(tmp_path: Path) -> None:
    corpus = tmp_path / "mine.csv"
    corpus.write_text("key,body\na,one\nb,two\n")
    (tmp_path / "answers.jsonl").write_text(
        '{"key": "a", "answer": "billing"}\n{"key": "b", "answer": "praise"}\n'
    )
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, "n")
        fill(app, folder="c", corpus="mine.csv", id="key", text="body", model="demo")
        fill(app, classes="", answers="answers.jsonl", statement="", tuning="mine.csv")
        await pressed(pilot, "ctrl+s")
        await until(pilot, lambda: app.current_mode == "review" or wrong(app))
        assert not wrong(app)
    protocol = Campaign.open(tmp_path / "c").draft()[1]
    assert protocol.corpus.label_column is None and protocol.reference.column is None
    assert protocol.tuning.declared == "files"


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"threshold": "much"}, "threshold", "much"),
        ({"corpus": "nowhere.jsonl"}, "corpus", "nowhere.jsonl"),
        ({"model": "./nowhere"}, "model", "nowhere"),
        ({"folder": ""}, "folder", "Name a new folder"),
        ({"answers": "mine.jsonl"}, "answers", "mine.jsonl"),
    ],
)
async def test_errors_are_shown_at_their_field(
    tmp_path: Path, values: dict[str, str], field: str, words: str
) -> None:
    corpus_file(tmp_path / "mine.jsonl")
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 40)) as pilot:
        await pressed(pilot, "n")
        fill(app, **{"folder": "c", "corpus": "mine.jsonl", "model": "demo", **values})
        await pressed(pilot, "ctrl+s")
        await until(pilot, lambda: wrong(app))
        assert words in wrong(app)[field], wrong(app)
        assert app.focused is app.screen.query_one(f"#{field}", Input)
        assert not (tmp_path / "c").exists()
        assert not list(tmp_path.glob(".gpucost-new-*"))


async def test_what_was_typed_is_there_again(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    async with app.run_test(size=(40, 12)) as pilot:
        await pressed(pilot, "n")
        fill(app, folder="kept", right=HOSTILE.replace("\ud83d", ""))
        await pilot.pause()
        assert_harmless(app)
        await pressed(pilot, "escape", "n")
        assert app.screen.query_one("#field-folder", Field).value == "kept"


async def test_making_can_be_cancelled_and_leaves_nothing(tmp_path: Path) -> None:
    corpus_file(tmp_path / "large.jsonl", 200_000)
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, "n")
        fill(app, folder="c", corpus="large.jsonl", model="demo")
        await pressed(pilot, "ctrl+s")
        await until(pilot, lambda: list(tmp_path.glob(".gpucost-new-*")))
        assert app.writing() == ["making the campaign"]
        await pressed(pilot, "escape")
        await until(pilot, lambda: "nothing was made" in screen_text(app))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["large.jsonl"]


async def test_the_template_fills_what_it_has(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 40)) as pilot:
        await pressed(pilot, "n")
        assert isinstance(app.screen, NewCampaignDialog)
        app.screen.query_one("#template").value = "embedding-batch"
        threshold = app.screen.query_one("#field-threshold", Field)
        await until(pilot, lambda: threshold.value == "0.999")
        assert not app.screen.query_one("#field-classes").display


def test_errors_find_their_field() -> None:
    assert concerned("protocol.toml, line 14, [decision] deadline_hours: input", {}) == "deadline"
    assert concerned("no model's name, [model] source", {"answers": "a/m.csv"}) == "model"
    budget = "protocol.toml, line 9, [decision] budget_usd: an amount of US dollars is expected"
    assert concerned(budget, {}) == "budget"
    assert concerned("deliverable 'corpus' has no corpus. Add --corpus.", {}) == "corpus"
    assert concerned("m.csv, line 2: no id", {"answers": "a/m.csv", "corpus": "c.csv"}) == "answers"
    assert concerned("something of which nobody has heard", {}) is None


def test_only_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpucost_tui.tui import listing

    campaign = sealed_campaign(tmp_path / "one")
    draft_campaign(tmp_path / "two")
    reads: list[str] = []
    real = listing.describe
    monkeypatch.setattr(
        listing, "describe", lambda folder, here: reads.append(folder.name) or real(folder, here)
    )
    work = Work(_Silent(), "list", None, None, None, False)
    lister = Lister()
    assert len(lister.list(work, tmp_path, []).rows) == 2
    Journal(campaign.folder).append("note", {})
    lister.list(work, tmp_path, [])
    assert sorted(reads) == ["one", "one", "two"]


def test_many_campaigns_are_cut_and_counted(tmp_path: Path) -> None:
    from gpucost_tui.tui.listing import MOST

    for number in range(MOST + 3):
        folder = tmp_path / f"c{number}"
        folder.mkdir()
        (folder / "protocol.toml").write_text("")
    found = Lister().list(Work(_Silent(), "list", None, None, None, False), tmp_path, [])
    assert (len(found.rows), found.more) == (MOST, 3)


def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    work = Work(_Silent(), "list", None, None, None, False)
    assert "can't be read" in Lister().list(work, tmp_path / "gone", []).problem


class _Silent:
    """Takes messages and forgets them."""

    def post_message(self, message: object) -> bool:
        return True
