"""The place Attempts: every action, at every size, over campaigns that the fake engine ran."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from attempts_support import MIXED, exclude_attempt, finished, hostile, run
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.widgets import Input, OptionList, Static
from tui_support import (
    HOSTILE,
    SIZES,
    WIDE,
    app_on,
    assert_harmless,
    corpus_file,
    pressed,
    screen_text,
    sealed_campaign,
    until,
)

from gpucost_tui.analysis.table import read_table
from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.schema import SCHEMA
from gpucost_tui.campaign.seal import seal
from gpucost_tui.campaign.table import raw_table
from gpucost_tui.errors import InputError
from gpucost_tui.tui.app import GpucostApp
from gpucost_tui.tui.attempts import AttemptsScreen
from gpucost_tui.tui.attempts_data import of_file
from gpucost_tui.tui.attempts_details import read_details, reasons_of
from gpucost_tui.tui.attempts_page import page
from gpucost_tui.tui.attempts_prediction_rows import read_predictions
from gpucost_tui.tui.attempts_query import Query, apply
from gpucost_tui.tui.table_view import Column, FrameRows, ListRows, VirtualTable
from gpucost_tui.tui.tick import Tick
from gpucost_tui.tui.work import Work


def place(app: Any) -> AttemptsScreen:
    """Return the place, whatever dialog is over it."""
    found = [s for s in app.screen_stack if isinstance(s, AttemptsScreen)]
    assert found, screen_text(app)
    return found[0]


def numbers(app: Any) -> list[int]:
    shown = place(app).shown
    return [] if shown is None else shown["attempt"].to_list()


async def there(pilot: Any) -> None:
    """Go to the place, once the campaign has been opened (which goes to a place of its own)."""
    await until(pilot, lambda: pilot.app.snapshot.status is not None)
    await pressed(pilot, "5")


async def opened(pilot: Any, rows: int = 6) -> None:
    await there(pilot)
    await until(pilot, lambda: len(numbers(pilot.app)) == rows)


async def settled(pilot: Any, found: Sequence[int]) -> None:
    await until(pilot, lambda: numbers(pilot.app) == list(found))


# The table


@pytest.mark.parametrize("size", SIZES)
async def test_every_attempt_has_its_row(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_on(finished(tmp_path / "one").folder)
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        assert numbers(app) == [1, 2, 3, 4, 5, 6]
        text = screen_text(app)
        assert "batch-1" in text and "6 attempts" in text
        if size[0] >= 80:
            assert "✗ failed" in text and "✗ rejected" in text and "✓ accepted" in text


async def test_a_shrunk_window_loses_nothing(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one").folder)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pressed(pilot, "j", "down")
        await settled(pilot, [3, 4])
        await pressed(pilot, "down")
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        await until(pilot, lambda: "›4" in screen_text(app))
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert numbers(app) == [3, 4]
        assert place(app).highlighted()["attempt"] == 4


async def test_empty_states_say_what_to_do(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    async with app.run_test() as pilot:
        await pressed(pilot, "5")
        await until(pilot, lambda: "No campaign is open" in screen_text(app))
        await until(pilot, lambda: "opens a raw table file" in screen_text(app))
    app = app_on(sealed_campaign(tmp_path / "one").folder)
    async with app.run_test() as pilot:
        await there(pilot)
        await until(pilot, lambda: "No attempt yet" in screen_text(app))
        await until(pilot, lambda: "Run makes its attempts" in screen_text(app))


async def test_new_attempts_appear_while_a_run_goes_on(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    async with app.run_test() as pilot:
        await there(pilot)
        await until(pilot, lambda: "No attempt yet" in screen_text(app))
        await asyncio.to_thread(run, campaign.folder, MIXED)
        await settled(pilot, [1, 2, 3, 4, 5, 6])


async def test_quick_filters_add_up_and_escape_takes_them_back(tmp_path: Path) -> None:
    campaign = finished(tmp_path / "one")
    exclude_attempt(campaign, 6)
    app = app_on(campaign.folder)
    async with app.run_test() as pilot:
        await opened(pilot)
        for key, found in (("f", [2]), ("j", [3, 4]), ("x", [6])):
            await pressed(pilot, key)
            await settled(pilot, found)
            await pressed(pilot, key)
            await settled(pilot, [1, 2, 3, 4, 5, 6])
        await pressed(pilot, "home", "down", "v")
        await settled(pilot, [2, 4])
        await pressed(pilot, "f")
        await settled(pilot, [2])
        await until(pilot, lambda: "failed · variant batch-4" in screen_text(app))
        await pressed(pilot, "x")
        await until(pilot, lambda: "No attempt is left" in screen_text(app))
        await pressed(pilot, "escape")
        await settled(pilot, [1, 2, 3, 4, 5, 6])


async def test_a_typed_text_filters_while_it_is_typed(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one").folder)
    async with app.run_test() as pilot:
        await opened(pilot)
        await pressed(pilot, "slash", *"OUT-OF-MEM")
        await settled(pilot, [2])
        app.screen.query_one(Input).value = "variant:batch-8 completed"
        await settled(pilot, [3, 5])
        await pressed(pilot, "enter")
        assert isinstance(app.focused, VirtualTable)
        assert numbers(app) == [3, 5]
        await pressed(pilot, "slash", *"[/INST]")
        await until(pilot, lambda: "No attempt is left" in screen_text(app))
        await pressed(pilot, "escape")
        await settled(pilot, [1, 2, 3, 4, 5, 6])


async def test_sort_by_any_column_and_turn_it_round(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one").folder)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pressed(pilot, "s")
        options = app.screen.query_one(OptionList)
        options.highlighted = 1 + list(SCHEMA).index("variant")
        await pressed(pilot, "enter")
        await settled(pilot, [1, 6, 2, 4, 3, 5])
        await until(pilot, lambda: "by variant ↑" in screen_text(app))
        await pressed(pilot, "r")
        await settled(pilot, [3, 5, 2, 4, 1, 6])
        await pilot.click(VirtualTable, offset=(1, 0))
        await settled(pilot, [1, 2, 3, 4, 5, 6])
        await pilot.click(VirtualTable, offset=(1, 0))
        await settled(pilot, [6, 5, 4, 3, 2, 1])


async def test_empty_cells_come_last_in_either_order(tmp_path: Path) -> None:
    frame = raw_table(fold(finished(tmp_path / "one").events()))
    for descending in (False, True):
        found = apply(Query(sort="pass_s", descending=descending), frame)
        assert found["pass_s"].to_list()[-1] is None


async def test_columns_are_chosen_and_the_ids_stay(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one").folder)
    async with app.run_test() as pilot:
        await opened(pilot)
        await pressed(pilot, "c", "a", "enter")
        assert set(place(app).chosen) == set(SCHEMA) - {"attempt"}
        await pressed(pilot, "c", "d", "space", "enter")
        await until(pilot, lambda: place(app).chosen[-1] != "started_at")
        assert "campaign" in place(app).chosen and "manifest" not in place(app).chosen
        await pressed(pilot, *["right"] * 5)
        line = next(line for line in screen_text(app).splitlines() if line.startswith("›"))
        assert line.startswith("›1 ") and "batch-1" not in line
        await pressed(pilot, "c", "escape")
        assert "campaign" in place(app).chosen


# Details


async def test_details_have_every_part(tmp_path: Path) -> None:
    campaign = finished(tmp_path / "one")
    rows = raw_table(fold(campaign.events())).with_columns(_folder=pl.lit(str(campaign.folder)))
    texts = {
        row["attempt"]: page(read_details(row), 100).plain for row in rows.iter_rows(named=True)
    }
    assert "✓ accepted" in texts[1] and "█" in texts[1] and "batch_size" in texts[1]
    assert "allocated: tensors of this process" in texts[1] and "2.0 GiB" in texts[1]
    assert "✗ failed" in texts[2] and "Traceback: scripted out-of-memory" in texts[2]
    assert "failed after 8 of 30 entries" in texts[2]
    assert "✗ identifiers: 29 predictions for 30 entries" in texts[3] and "1 missing" in texts[3]
    assert "✗ format" in texts[4] and "scores that are not finite" in texts[4]
    assert "install_s" in texts[1] and "before the campaign" in texts[1]


async def test_details_open_and_go_to_the_next(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one").folder)
    async with app.run_test() as pilot:
        await opened(pilot)
        await pressed(pilot, "enter")
        await until(pilot, lambda: "Attempt 1" in screen_text(app))
        await pressed(pilot, "n")
        await until(pilot, lambda: "Attempt 2" in screen_text(app))
        await until(pilot, lambda: "✗ failed" in screen_text(app))
        await pressed(pilot, "b")
        await until(pilot, lambda: "Attempt 1" in screen_text(app))
        await pressed(pilot, "p")
        await until(pilot, lambda: "Predictions of attempt 1" in screen_text(app))
        await pressed(pilot, "escape", "escape")
        assert isinstance(app.screen, AttemptsScreen)


async def test_a_damaged_verdict_is_said_and_the_journal_speaks(tmp_path: Path) -> None:
    campaign = finished(tmp_path / "one")
    rows = raw_table(fold(campaign.events())).with_columns(_folder=pl.lit(str(campaign.folder)))
    row = rows.row(2, named=True)
    verdict = next(campaign.folder.glob("attempts/0003-*/verdict.json"))
    for spoiled in (b"[[[[", b"{}", b'{"details": {"identifiers": 7, "subgroups": [1]}}', None):
        verdict.unlink() if spoiled is None else verdict.write_bytes(spoiled)
        text = page(read_details(row), 80).plain
        assert "✗ identifiers" in text
    assert "verdict.json is not there" in text


def test_reasons_are_split_at_columns_not_at_semicolons() -> None:
    text = "load_s: already loaded; by attempt 1; see: its note; energy_j: no GPU"
    assert list(reasons_of(text)) == [
        ("load_s", "already loaded; by attempt 1; see: its note"),
        ("energy_j", "no GPU"),
    ]
    assert list(reasons_of(None)) == []


# Predictions


class _Silent:
    def post_message(self, message: object) -> bool:
        return True


def work() -> Work:
    return Work(_Silent(), "test", None, None, None, False)  # type: ignore[arg-type]


def rows_of(campaign: Campaign) -> list[dict[str, Any]]:
    table = raw_table(fold(campaign.events()))
    return table.with_columns(_folder=pl.lit(str(campaign.folder))).to_dicts()


def test_wrong_predictions_stand_first_with_text_and_reference(tmp_path: Path) -> None:
    rows = rows_of(finished(tmp_path / "one"))
    found = read_predictions(work(), rows[0])
    marks = found.frame["what"].to_list()
    assert found.wrong == 3 and marks == ["wrong"] * 3 + ["right"] * 27
    first = found.frame.row(0, named=True)
    assert first["reference"] != first["prediction"]
    assert first["text"].startswith("My order") and first["score"] == pytest.approx(0.9)
    missing = read_predictions(work(), rows[2]).frame
    assert missing["what"].to_list()[0] == "missing" and missing.height == 30


def test_ids_that_do_not_belong_are_shown(tmp_path: Path) -> None:
    script = {**MIXED, "attempts": {"1": {"ids": "duplicate"}, "2": {"ids": "extra"}}}
    rows = rows_of(finished(tmp_path / "one", script))
    for row, what in zip(rows, ("repeated", "not asked for"), strict=False):
        assert read_predictions(work(), row).frame["what"].to_list().count(what) == 1


def test_vectors_are_told_by_their_likeness_to_the_reference_pass(tmp_path: Path) -> None:
    corpus = corpus_file(tmp_path / "corpus.jsonl", 12)
    settings = [("corpus.right_of_use", "Made up for a test."), ("measurement.rounds", 1)]
    inputs = Inputs(
        protocol="embedding-batch", corpus=[str(corpus)], model="demo", settings=settings
    )
    campaign = create(tmp_path / "one", inputs)
    seal(campaign)
    run(campaign.folder, {"attempts": {"3": {"scores": "nan"}}})
    passed, batch_1, batch_4, _ = rows_of(campaign)
    reference = read_predictions(work(), passed)
    assert set(reference.frame["what"]) == {"no reference"}
    assert "the others are held against it" in reference.notes[0]
    found = read_predictions(work(), batch_1)
    assert found.measure == "cosine" and found.frame["score"].to_list() == pytest.approx([1.0] * 12)
    broken = read_predictions(work(), batch_4)
    assert broken.frame["score"].null_count() == 12 and "not finite" in broken.notes[0]
    assert broken.frame["id"].to_list() == [f"t{n:03d}" for n in range(12)]


def test_no_predictions_is_a_sentence(tmp_path: Path) -> None:
    campaign = finished(tmp_path / "one")
    row = rows_of(campaign)[0]
    with pytest.raises(InputError, match="row of a table file"):
        read_predictions(work(), {**row, "_folder": None})
    with pytest.raises(InputError, match="has no predictions: it is not finished"):
        read_predictions(work(), {**row, "predictions_path": None, "status": None})
    (campaign.folder / row["predictions_path"]).write_bytes(b"no parquet")
    with pytest.raises(InputError, match="can't be read"):
        read_predictions(work(), row)


async def test_predictions_filter_search_and_show_the_whole_text(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one").folder)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pressed(pilot, "p")
        await until(pilot, lambda: "30 of 30 entries · 3 not right" in screen_text(app))
        await pressed(pilot, "w")
        await until(pilot, lambda: "3 of 30 entries" in screen_text(app))
        await pressed(pilot, "w", "slash", *"t007")
        await until(pilot, lambda: "1 of 30 entries" in screen_text(app))
        await pressed(pilot, "enter")
        await until(pilot, lambda: "order 7 has" in str(app.screen.query_one("#entry").render()))
        await pressed(pilot, "escape")
        await until(pilot, lambda: "30 of 30 entries" in screen_text(app))
        await pressed(pilot, "escape")
        assert isinstance(app.screen, AttemptsScreen)


# Durations


@pytest.mark.parametrize("size", [SIZES[0], SIZES[2]])
async def test_one_dot_a_pass(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_on(finished(tmp_path / "one").folder)
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        await pressed(pilot, "d")
        await until(pilot, lambda: "batch-8" in screen_text(app))
        dots = str(app.screen.query_one("#dots", Static).render())
        assert dots.count("●") == 5  # of six attempts one failed
        assert "median s" in dots and "1 failed" in dots
        await pressed(pilot, "escape", "j")
        await settled(pilot, [3, 4])
        await pressed(pilot, "d")
        await until(pilot, lambda: "Only what is shown: rejected" in screen_text(app))
        assert not app.screen.busy("predictions")  # those of all passes are not those of two


async def test_quality_and_flips_stand_below_the_durations(tmp_path: Path) -> None:
    campaign = finished(tmp_path / "one")
    app = app_on(campaign.folder)

    def said() -> str:
        return str(app.screen.query_one("#dots", Static).render())

    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pressed(pilot, "d")
        await until(pilot, lambda: "Entries predicted differently" in said())
        assert said().index("●") < said().index("Quality, the lowest of the passes:")
        assert "batch-1 and batch-4" in said().split("Entries predicted differently")[1]
        assert "0 of 30" in said()
        await pressed(pilot, "escape")
        next(campaign.folder.glob("attempts/0001-*/predictions.parquet")).unlink()
        await pressed(pilot, "d")
        await until(pilot, lambda: "not compared, the predictions of attempt 1" in said())
        assert "●" in said()


# Export and table files


async def test_what_is_shown_is_exported_and_opens_again(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one").folder, here=tmp_path)
    async with app.run_test() as pilot:
        await opened(pilot)
        await pressed(pilot, "j", "e", "enter")
        await until(pilot, lambda: isinstance(app.screen, AttemptsScreen))
        csv = (tmp_path / "attempts.csv").read_text()
        assert csv.splitlines()[0].startswith("attempt,variant,round,status,corpus_accepted")
        assert [line.split(",")[0] for line in csv.splitlines()[1:]] == ["3", "4"]
        await pressed(pilot, "escape", "e", "enter")
        await until(pilot, lambda: "enter once more replaces it" in screen_text(app))
        assert (tmp_path / "attempts.csv").read_text() == csv
        app.screen.query_one(Tick).toggle()
        app.screen.query_one(Input).value = "whole.parquet"
        await pressed(pilot, "enter")
        await until(pilot, lambda: (tmp_path / "whole.parquet").exists())
        read = read_table(tmp_path / "whole.parquet").frame
        assert read.equals(raw_table(fold(Campaign(tmp_path / "one").events())))


@pytest.mark.parametrize("name", ["attempts.xlsx", "no-such-folder/a.csv", ""])
async def test_an_export_that_cannot_be_is_a_sentence(tmp_path: Path, name: str) -> None:
    app = app_on(finished(tmp_path / "one").folder, here=tmp_path)
    async with app.run_test() as pilot:
        await opened(pilot)
        await pressed(pilot, "e")
        app.screen.query_one(Input).value = name
        await pressed(pilot, "enter")
        await until(pilot, lambda: "✗" in screen_text(app).split("Export what")[1])
        assert sorted(p.name for p in tmp_path.iterdir()) == ["one"]


async def test_a_table_filled_by_hand_opens(tmp_path: Path) -> None:
    sheet = tmp_path / "mine.csv"
    sheet.write_text(
        "\ufeffvariant;status;pass_s;corpus_accepted;notes;mine\r\n"
        "007;completed;1.5;yes;[/INST] list[int];x\r\nb;failed;;no;;\r\n",
        "utf-8",
    )
    app = app_on(here=tmp_path)
    async with app.run_test() as pilot:
        await pressed(pilot, "5", "o")
        app.screen.query_one(Input).value = "mine.csv"
        await pressed(pilot, "enter")
        await until(pilot, lambda: "2 attempts" in screen_text(app))
        await until(pilot, lambda: "007" in screen_text(app) and "✗ failed" in screen_text(app))
        await pressed(pilot, "enter")
        await until(pilot, lambda: "Attempt of line 2" in screen_text(app))
        await pressed(pilot, "p")
        await until(pilot, lambda: "has no predictions here" in screen_text(app))
        await pressed(pilot, "escape", "escape", "d")
        await until(pilot, lambda: "●" in screen_text(app))
        assert_harmless(app)


async def test_a_wrong_table_stays_in_the_dialog(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("variant,status,pass_s\na,completed,NaN\n")
    app = app_on(here=tmp_path)
    async with app.run_test() as pilot:
        await pressed(pilot, "5", "o")
        app.screen.query_one(Input).value = "bad.csv"
        await pressed(pilot, "enter")
        await until(pilot, lambda: "line 2" in screen_text(app))
        await pressed(pilot, "escape")
        assert isinstance(app.screen, AttemptsScreen)


async def test_the_command_opens_a_table(tmp_path: Path) -> None:
    sheet = tmp_path / "mine.csv"
    sheet.write_text("variant,status\na,completed\n")
    app = GpucostApp(table=sheet)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "1 attempt" in screen_text(app))
        assert app.current_mode == "attempts"


def test_the_command_refuses_what_is_no_table() -> None:
    from click.testing import CliRunner

    from gpucost_tui.cli import group

    gone = CliRunner().invoke(group, ["gone.csv"])
    assert isinstance(gone.exception, InputError) and "no such file" in str(gone.exception)


# All campaigns


async def test_all_known_campaigns_together(tmp_path: Path) -> None:
    finished(tmp_path / "one")
    finished(tmp_path / "two")
    damaged = finished(tmp_path / "three")
    damaged.journal_file.write_bytes(damaged.journal_file.read_bytes()[:-400])
    app = app_on(tmp_path / "one", here=tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pressed(pilot, "a")
        await until(pilot, lambda: len(numbers(app)) == 12)
        await until(pilot, lambda: "not read: three" in screen_text(app))
        await until(pilot, lambda: screen_text(app).count("ran ") >= 2)
        await pressed(pilot, "d")
        await until(pilot, lambda: "median s" in screen_text(app))
        await pressed(pilot, "escape", "end", "enter")
        await until(pilot, lambda: "Attempt 6" in screen_text(app))
        await pressed(pilot, "escape", "a")
        await until(pilot, lambda: len(numbers(app)) == 6)


async def test_opening_a_campaign_leaves_a_table_file(tmp_path: Path) -> None:
    sheet = tmp_path / "mine.csv"
    sheet.write_text("variant,status\na,completed\n")
    campaign = finished(tmp_path / "one")
    app = GpucostApp(table=sheet)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "mine.csv" in screen_text(app))
        app.open_campaign(campaign.folder, place="attempts")
        await settled(pilot, [1, 2, 3, 4, 5, 6])


# Hostile text, wide text, many rows


async def test_hostile_text_steers_nothing(tmp_path: Path) -> None:
    app = app_on(hostile(tmp_path / "hostile").folder, here=tmp_path)
    async with app.run_test(size=SIZES[2]) as pilot:  # test_tui_hostile.py has the others
        await opened(pilot, 3)
        for keys in (["down"], ["enter"], ["end"], ["escape", "home", "p"], ["down"], ["down"]):
            await pressed(pilot, *keys)
            await until(pilot, lambda: "Reading" not in screen_text(app))
            await pilot.pause(0.1)
            assert_harmless(app)
        await pressed(pilot, "escape", "d")
        await until(pilot, lambda: "Comparing" not in screen_text(app))
        assert_harmless(app)
        await pressed(pilot, "escape", "a")
        await pilot.pause(0.3)
        assert_harmless(app)
        await pressed(pilot, "question_mark")
        assert_harmless(app)


async def test_any_cell_of_a_table_file_may_be_hostile(tmp_path: Path) -> None:
    text = HOSTILE.replace("\ud83d", "")
    row = {name: (text if kind == pl.String else None) for name, kind in SCHEMA.items()}
    row |= {"status": "failed", "failure": "error", "notes": text + "x" * 1_000_000}
    pl.DataFrame([row], schema=SCHEMA).write_parquet(tmp_path / "t.parquet")
    app = GpucostApp(table=tmp_path / "t.parquet")
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: len(place_rows(app)) == 1)
        await pressed(pilot, "c", "a", "enter")
        table = app.screen.query_one(VirtualTable)
        for x in range(0, table.virtual_size.width, 80):
            table.scroll_to(x=x, animate=False)
            await pilot.pause()
            assert_harmless(app)
        await pressed(pilot, "enter")
        await until(pilot, lambda: "Attempt of line" in screen_text(app))
        for _ in range(8):
            await pressed(pilot, "pagedown")
            assert_harmless(app)


def place_rows(app: Any) -> list[Any]:
    if not isinstance(app.screen, AttemptsScreen) or app.screen.shown is None:
        return []
    return app.screen.shown.rows()


class TableApp(App[None]):
    """A table alone."""

    def compose(self) -> ComposeResult:
        yield VirtualTable()


_WIDE = [
    WIDE,
    "plain",
    "한" * 30,
    "👩‍💻" * 20,
    "العربية" * 9,
    "e\u0301" * 40,
    "",
    "żółć",
    "🚀\ufe0f",
    HOSTILE,
]


async def test_wide_text_keeps_columns_aligned() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.query_one(VirtualTable)
        names = ("id", "text", "mark")
        rows = ListRows([(str(n), text, "|") for n, text in enumerate(_WIDE)], names)
        table.fill(rows, [Column("id"), Column("text", widest=24), Column("mark")])
        await pilot.pause()
        for x in (0, 3, 7, 11):
            table.scroll_to(x=x, animate=False)
            await pilot.pause()
            places = set()
            for y in range(1, len(_WIDE) + 1):
                strip = table.render_line(y)
                assert strip.cell_length == table.size.width
                places.add(cell_len(strip.text[: strip.text.index("|")]))
            assert len(places) == 1


class CountedRows:
    """Rows that are made when they are asked for, and remember which were."""

    def __init__(self, height: int) -> None:
        self.height = height
        self.asked: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return self.height

    def page(self, first: int, count: int, columns: Sequence[str]) -> Sequence[Sequence[Any]]:
        self.asked.append((first, count))
        return [(n, f"row {n}") for n in range(first, min(first + count, self.height))]


async def test_only_rows_in_sight_are_fetched() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.query_one(VirtualTable)
        rows = CountedRows(1_000_000)
        table.fill(rows, [Column("id"), Column("text")])
        await pilot.pause()
        table.focus()
        await pressed(pilot, "end", "pageup", "home", "pagedown", "down")
        await until(pilot, lambda: "row 24" in screen_text(app) or "row 23" in screen_text(app))
        table.cursor = 654_321
        await pilot.pause()
        await until(pilot, lambda: "row 654321" in screen_text(app))
        assert sum(count for _, count in rows.asked) < 3_000


async def test_mouse_highlights_then_opens() -> None:
    chosen: list[int] = []

    class Listening(TableApp):
        def on_virtual_table_chosen(self, event: VirtualTable.Chosen) -> None:
            chosen.append(event.row)

    app = Listening()
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.query_one(VirtualTable)
        table.fill(ListRows([(n,) for n in range(50)], ("id",)), [Column("id")])
        await pilot.pause()
        await pilot.click(VirtualTable, offset=(3, 5))
        assert table.cursor == 4 and not chosen
        await pilot.click(VirtualTable, offset=(3, 5))
        assert chosen == [4]


def test_an_empty_frame_is_a_table_too() -> None:
    frame = pl.DataFrame(schema=SCHEMA)
    assert len(FrameRows(frame)) == 0
    assert apply(Query("failed", "a", "x attempt:1 y:z", "pass_s", True), frame).is_empty()


# Keys, palette, sizes


def test_every_action_is_in_the_palette() -> None:
    from gpucost_tui.tui.palette import entries

    titles = {entry.title for entry in entries()}
    for word in ("Details", "Predictions", "Durations", "Filter", "Failed", "Rejected", "Excluded"):
        assert f"Attempts: {word}" in titles
    for word in ("Variant", "Sort", "Columns", "Export", "All campaigns", "Open table"):
        assert f"Attempts: {word}" in titles


@pytest.fixture
def colourless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NO_COLOR", "1")
    yield


async def test_without_colours_states_have_glyph_and_word(tmp_path: Path, colourless: None) -> None:
    app = app_on(finished(tmp_path / "one").folder)
    async with app.run_test() as pilot:
        await opened(pilot)
        await until(pilot, lambda: "›1" in screen_text(app) and "✗ failed" in screen_text(app))


async def test_help_and_footer(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one").folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        footer = screen_text(app).splitlines()[-1]
        for word in ("Details", "Predictions", "Durations", "Filter", "Quit", "Help"):
            assert word in footer
        await pressed(pilot, "question_mark")
        await until(pilot, lambda: "Arrows move" in screen_text(app))


def test_a_table_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("status,pass_s\ncompleted,1\n\nfailed,\n")
    read = of_file(tmp_path / "a.csv")
    assert read.frame["_line"].to_list() == [2, 4] and read.title == "a.csv"
