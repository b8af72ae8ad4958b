"""Schedule: variants by series, the grid, the window; variants changed before the seal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomlkit
from textual.pilot import Pilot
from textual.widgets import Button, Checkbox, Input, OptionList, TextArea
from tui_support import (
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

from gpucost_tui.campaign.fold import Attempt, State
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.tui.context import Snapshot
from gpucost_tui.tui.schedule_dialog import VariantDialog
from gpucost_tui.tui.schedule_grid import SlotGrid
from gpucost_tui.tui.schedule_view import Plan, plan_of


async def opened(pilot: Pilot[Any], *, planned: bool = True) -> None:
    app = pilot.app
    await until(pilot, lambda: app.snapshot.status is not None or app.snapshot.problem)
    await pressed(pilot, "3")
    if planned:
        await until(pilot, lambda: app.screen._plan is not None)


async def dialog(pilot: Pilot[Any]) -> VariantDialog:
    await until(pilot, lambda: isinstance(pilot.app.screen, VariantDialog))
    shown = pilot.app.screen
    assert isinstance(shown, VariantDialog)
    return shown


def rewritten(campaign: Campaign, **values: Any) -> None:
    """Edit the file as a person outside would; ``__`` stands between the parts of a key."""
    document = tomlkit.parse(campaign.protocol_file.read_text())
    for dotted, value in values.items():
        *path, last = dotted.split("__")
        node: Any = document
        for part in path:
            node = node[int(part) if isinstance(node, list) else part]
        node[last] = value
    campaign.protocol_file.write_text(tomlkit.dumps(document))


def plan_for(folder: Path, state: State | None = None, word: str = "idle") -> Plan:
    campaign = Campaign(folder)
    sealed = campaign.sealed
    protocol = campaign.manifest.protocol if sealed else campaign.draft()[1]
    versions = {"manifest": (1, 1) if sealed else None}
    status = {"state": word}
    return plan_of(Snapshot(folder, status, None, state, protocol, None, versions))


# -- showing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
async def test_series_order_and_window_are_shown(tmp_path: Path, size: tuple[int, int]) -> None:
    campaign = draft_campaign(tmp_path / "c", window__tasks__2__hours=80, window__tasks__3__hours=1)
    app = app_on(campaign.folder)
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        wanted = {"batch size", "◆ batch_size 4", "○ batch-1", "82.00 h, assumed", "7 days"}
        wanted.add("2 rounds planned")

        def look() -> bool:
            wanted.difference_update([words for words in wanted if words in screen_text(app)])
            return not wanted

        for key in ("tab",) * 3 + ("down",) * 20:
            if look():
                break
            await pressed(pilot, key)
        await until(pilot, look)
        assert_harmless(app)
        await pilot.resize_terminal(40, 12)
        await pilot.resize_terminal(*size)
        await pilot.pause()
        await until(
            pilot, lambda: "◆ batch_size" in screen_text(app) or "Window" in screen_text(app)
        )


async def test_the_grid_tells_each_slot(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "c")
    state = State()
    for number, (slot, status, finished) in enumerate(
        [(1, "completed", True), (2, "failed", True), (3, "stopped", True), (4, None, False)], 1
    ):
        row = {"status": status, "failure": "out-of-memory", "corpus_accepted": True, "pass_s": 1.5}
        state.attempts[number] = Attempt(number, slot, row, finished=finished)
    rows = plan_for(campaign.folder, state, "running").rows
    cells = {(row.key, position): cell for row in rows for position, cell in row.cells.items()}
    words = {place: cell.state for place, cell in cells.items()}
    assert words == {
        ("1", 1): "done",
        ("1", 2): "failed",
        ("1", 3): "open",
        ("2", 1): "running",
        ("2", 2): "open",
        ("2", 3): "open",
    }
    assert "attempt 1 completed, accepted, 1.50 s" in cells["1", 1].detail
    assert "attempt 2 out-of-memory" in cells["1", 2].detail
    assert "attempt 3 stopped" in cells["1", 3].detail
    assert plan_for(campaign.folder, state, "idle").counts["running"] == 0


async def test_a_state_that_changes_redraws_its_cell_alone(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "c")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        grid = app.screen.query_one(SlotGrid)
        await pressed(pilot, "tab", "down", "right")
        before = grid.cursor_coordinate
        await until(pilot, lambda: "Round 2, position 2: batch-8 · open" in screen_text(app))
        state = State()
        row = {"status": "failed", "failure": "killed", "corpus_accepted": None, "pass_s": None}
        state.attempts[5] = Attempt(5, 5, row, finished=True)
        changed: list[tuple[str, str]] = []
        update = grid.update_cell
        grid.update_cell = lambda *args, **kw: changed.append(args[:2]) or update(*args, **kw)
        plan = plan_for(campaign.folder, state)
        app.screen._show_plan(plan)
        await pilot.pause()
        assert changed == [("2", "2")]
        assert grid.cursor_coordinate == before
        await until(pilot, lambda: "✗ batch-8" in screen_text(app))
        await until(pilot, lambda: "attempt 5 killed" in screen_text(app))


async def test_the_grid_takes_the_colours_of_the_theme(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "c")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        state = State()
        for slot, status in ((1, "completed"), (2, "failed")):
            row = {"status": status, "failure": "killed", "corpus_accepted": None, "pass_s": None}
            state.attempts[slot] = Attempt(slot, slot, row, finished=True)
        app.screen._show_plan(plan_for(campaign.folder, state))
        grid = app.screen.query_one(SlotGrid)

        def colours() -> list[str]:
            cells = [grid.get_cell("1", str(position)) for position in (1, 2)]
            return [cell.style.color.name for cell in cells]

        def wanted() -> list[str]:
            names = ("slot--done", "slot--failed")
            return [grid.get_component_styles(name).color.hex.lower() for name in names]

        dark = colours()
        assert dark == wanted() and len(set(dark)) == 2
        await pressed(pilot, "ctrl+t")
        await until(pilot, lambda: colours() != dark)
        assert colours() == wanted()
        assert "✗ batch-4" in screen_text(app)


def test_reference_repeats_seeds_and_deliverables_have_their_places(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    rewritten(campaign, reproduction__seeds=[1, 2], quality__tolerance=0.1)
    rewritten(campaign, quality__tolerance_variant="batch-1")
    state = State(additions=[{"rounds": 1}, {"repeats": 3, "of_slot": 3}])
    plan = plan_for(campaign.folder, state)
    assert [row.label for row in plan.rows] == ["0 ref.", "1", "2", "3", "1 again"]
    assert plan.positions == 6
    assert plan.rows[1].cells[2].label == "batch-1 seed 2"
    assert "repeats attempt 3" in plan.rows[-1].cells[2].detail
    assert plan.rounds == "3 rounds planned (1 of them added), at most 10"


def test_extra_differences_are_marked(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    rewritten(campaign, variants__batch_8={"batch_size": 16})
    rewritten(campaign, **{"variants__batch-4": {"batch_size": 4, "dtype": "bfloat16"}})
    plan = plan_for(campaign.folder)
    lines = {line.name: line for series in plan.series for line in series.variants}
    assert lines["batch-1"].factor == "batch_size 1"
    assert lines["batch-4"].extra == ("dtype bfloat16",)
    assert plan.series[-1].name == "in no series"
    assert any("R10" in sentence for sentence in plan.problems)
    assert any("'batch_8' is in no series" in sentence for sentence in plan.problems)


def test_impossible_values_and_names_are_lines_not_errors(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    rewritten(campaign, **{"variants__batch-4": {"batch_size": HOSTILE[:-2]}})
    rewritten(campaign, series__0__variants=["batch-1", "batch-4", "nowhere"])
    plan = plan_for(campaign.folder)
    lines = {line.name: line for series in plan.series for line in series.variants}
    assert lines["batch-4"].factor == "a value that can't be"
    assert lines["nowhere"].factor == "not defined"


def test_the_window_says_its_basis_or_what_is_missing(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    assert "Not known: comparison, evaluate" in plan_for(campaign.folder).window[0]
    rewritten(campaign, window__tasks__2__hours=5000, window__tasks__3__hours=0)
    long = plan_for(campaign.folder)
    assert "No single pack covers it." in long.window
    assert any("Shorten the window" in line for line in long.window)
    assert any("█" in line for line in long.timeline)
    rewritten(campaign, window__tasks__2__after=["export"])
    assert any("wait for each other" in line for line in plan_for(campaign.folder).window)


async def test_without_a_campaign_it_says_what_to_do() -> None:
    app = app_on()
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, "3")
        await until(pilot, lambda: "No campaign is open" in screen_text(app))
        await pressed(pilot, "a", "c", "e", "d")
        assert app.screen.PLACE == "schedule"


async def test_a_protocol_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    text = campaign.protocol_file.read_text()
    campaign.protocol_file.write_text(text.replace("batch_size = 4", "batch_size = = 4"))
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, planned=False)
        await until(pilot, lambda: "this is not TOML" in screen_text(app))
        campaign.protocol_file.write_text(text)
        await until(pilot, lambda: "○ batch-4" in screen_text(app))


@pytest.mark.parametrize("name", ["hostile", WIDE])
async def test_hostile_and_wide_text_is_shown_and_not_obeyed(tmp_path: Path, name: str) -> None:
    campaign = draft_campaign(tmp_path / "c")
    if name == "hostile":
        name = "".join(c if c.isprintable() else "·" for c in HOSTILE)[:150]
    rewritten(campaign, series__0__name=name)
    rewritten(campaign, window__tasks__2__name=name, window__tasks__3__after=[name])
    app = app_on(campaign.folder)
    async with app.run_test() as pilot:
        await opened(pilot)
        await pressed(pilot, "a")
        await dialog(pilot)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert_harmless(app)
        await pressed(pilot, "escape")
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert_harmless(app)


# -- changing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size", [SIZES[0], pytest.param(SIZES[1], marks=pytest.mark.slow), SIZES[2]]
)
async def test_a_variant_is_added_by_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    campaign = draft_campaign(tmp_path / "c")
    before = campaign.protocol_file.read_text()
    app = app_on(campaign.folder)
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        await pressed(pilot, "a")
        await dialog(pilot)
        await pressed(pilot, *"batch-16", "tab", *"batch_size")
        await pressed(pilot, "space", "equals_sign", "space", "1", "6", "ctrl+s")
        await until(
            pilot, lambda: app.screen.PLACE == "schedule" if hasattr(app.screen, "PLACE") else 0
        )
        await until(pilot, lambda: "batch-16" in str(app.screen._plan))
    protocol = campaign.draft()[1]
    assert protocol.variants["batch-16"] == {"batch_size": 16}
    assert protocol.series[0].variants[-1] == "batch-16"
    after = campaign.protocol_file.read_text()
    assert [line for line in before.splitlines() if "#" in line] == [
        line for line in after.splitlines() if "#" in line
    ]


async def test_a_variant_without_a_name_is_not_saved(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    before = campaign.protocol_file.read_text()
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pressed(pilot, "a")
        form = await dialog(pilot)
        for words in ("Add a variant", "Name", "Changes, one setting a line", "In series", "Save"):
            assert words in screen_text(app)
        await until(pilot, lambda: "Name the variant" in screen_text(app))
        assert "✗" not in str(form.query_one("#said").render())
        await pressed(pilot, "tab", "ctrl+s")
        await until(pilot, lambda: "✗ Name the variant" in screen_text(app))
        assert app.focused is form.query_one("#name", Input)
        await pressed(pilot, "escape")
    assert campaign.protocol_file.read_text() == before


async def test_r10_is_said_while_typing(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pressed(pilot, "c")
        form = await dialog(pilot)
        await until(pilot, lambda: "nothing is compared (R10)" in screen_text(app))
        form.query_one(TextArea).text = 'batch_size = 32\ndtype = "bfloat16"'
        await until(pilot, lambda: "a series changes one variable (R10)" in screen_text(app))
        assert str(form.query_one("#yes", Button).label) == "Save anyway"
        form.query_one(TextArea).text = "batch_size = 32"
        await until(pilot, lambda: "No rule speaks against it" in screen_text(app))
        form.query_one(TextArea).text = "batch_size = = 32"
        await until(pilot, lambda: "this is no setting" in screen_text(app))
        form.query_one(TextArea).text = "batchsize = 32"
        await until(pilot, lambda: "no execution setting" in screen_text(app))
        form.query_one(Input).value = "a b"
        await until(pilot, lambda: "✗" in screen_text(app))
        await pressed(pilot, "escape")
        assert app.screen.PLACE == "schedule"
    assert "batch-1-copy" not in campaign.protocol_file.read_text()


async def test_a_copy_that_breaks_r10_can_be_saved_and_is_marked(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    app = app_on(campaign.folder)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pressed(pilot, "c")
        form = await dialog(pilot)
        form.query_one(TextArea).text = 'batch_size = 32\ndtype = "bfloat16"'
        await pilot.click("#yes")
        await until(pilot, lambda: "✗ also differs: dtype" in screen_text(app))
        await until(pilot, lambda: "differ in dtype" in screen_text(app))


async def test_a_variant_is_renamed_and_leaves_its_series(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pressed(pilot, "down", "enter")
        form = await dialog(pilot)
        assert form.query_one(Input).value == "batch-4"
        form.query_one(Input).value = "four"
        form.query_one(Checkbox).value = False
        await pressed(pilot, "ctrl+s")
        await until(pilot, lambda: "in no series" in screen_text(app))
    assert "four" in campaign.draft()[1].variants


async def test_a_variant_is_removed_after_one_question(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await opened(pilot)
        await pressed(pilot, "d")
        await until(pilot, lambda: "Remove variant 'batch-1'?" in screen_text(app))
        await pressed(pilot, "escape")
        assert "batch-1" in campaign.draft()[1].variants
        for name in ("batch-1", "batch-4"):
            await pressed(pilot, "d")
            await until(pilot, lambda name=name: f"Remove variant '{name}'?" in screen_text(app))
            await pressed(pilot, "y")
            await until(pilot, lambda name=name: f"{name}" not in str(app.screen._plan.series))
        await pressed(pilot, "d")
        await until(pilot, lambda: "is the only variant" in screen_text(app))
    assert list(campaign.draft()[1].variants) == ["batch-8"]


async def test_an_outside_edit_is_not_overwritten(tmp_path: Path) -> None:
    campaign = draft_campaign(tmp_path / "c")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pressed(pilot, "c")
        await dialog(pilot)
        rewritten(campaign, measurement__rounds=4)
        outside = campaign.protocol_file.read_bytes()
        await pressed(pilot, "ctrl+s")
        await until(pilot, lambda: "changed outside" in screen_text(app))
        assert campaign.protocol_file.read_bytes() == outside
        await pressed(pilot, "escape")
        await until(pilot, lambda: "4 rounds planned" in screen_text(app))


async def test_after_the_seal_nothing_can_be_changed(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "c")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        before = campaign.protocol_file.read_bytes()
        await pressed(pilot, "a", "c", "e", "d", "enter")
        assert app.screen.PLACE == "schedule"
        await until(pilot, lambda: "Sealed: variants can't change" in screen_text(app))
        for action in ("add", "copy", "change", "remove"):
            assert app.screen.check_action(action, ()) is False
        assert campaign.protocol_file.read_bytes() == before


async def test_a_thousand_rounds_are_shown(tmp_path: Path) -> None:
    campaign = draft_campaign(
        tmp_path / "c", measurement__rounds=1000, measurement__max_rounds=1000
    )
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pressed(pilot, "tab", "ctrl+end")
        await until(pilot, lambda: "Round 1000, position" in screen_text(app))
        assert app.screen.query_one(OptionList).option_count == 4
