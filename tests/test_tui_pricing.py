"""The place Pricing: price lists, windows, lots, cost per accepted corpus, the commitment."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from attempts_support import GPU, SOUND, TEXT, finished, run
from pricing_support import HOURLY_HEADER, PACK_HEADER
from textual import events
from textual.widgets import Input, OptionList, Static
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

from gpucost_tui.campaign.fold import fold
from gpucost_tui.pricing import kept
from gpucost_tui.pricing.catalogue import load
from gpucost_tui.tui.pricing import PricingScreen
from gpucost_tui.tui.pricing_facts import Facts
from gpucost_tui.tui.pricing_state import Asked, entries, first_row, fit_of, rounded_hours
from gpucost_tui.tui.pricing_words import ByHand, pack_panel
from gpucost_tui.tui.table_view import VirtualTable
from gpucost_tui.tui.tick import Tick

RTX_7 = next(r for r in load().packs if (r.gpu, r.days) == ("rtx-4090", 7))
HOUR = Fraction(3600)


def place(app: Any) -> PricingScreen:
    found = [s for s in app.screen_stack if isinstance(s, PricingScreen)]
    assert found, screen_text(app)
    return found[0]


async def opened(pilot: Any) -> None:
    if pilot.app._first is not None:
        await until(pilot, lambda: pilot.app.snapshot.status is not None)
    await pressed(pilot, "6")
    await until(pilot, lambda: place(pilot.app).entries)
    if pilot.app._first is not None:
        await until(pilot, lambda: place(pilot.app).facts.name)


def words(app: Any) -> str:
    return str(place(app).query_one("#words", Static).render())


def highlight(app: Any, gpu: str, days: int) -> None:
    """Put the cursor on a pack."""
    packs = [e.price for e in place(app).entries]
    row = next(n for n, p in enumerate(packs) if (p.gpu, p.days) == (gpu, days))
    place(app).query_one(VirtualTable).cursor = row


async def typed(pilot: Any, **fields: str) -> None:
    for name, text in fields.items():
        pilot.app.screen.query_one(f"#{name}", Input).value = text
    await pilot.pause()


# The price lists


@pytest.mark.parametrize("size", SIZES)
async def test_packs_are_listed_without_a_campaign(size: tuple[int, int]) -> None:
    app = app_on()
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        await until(pilot, lambda: "b200" in screen_text(app))
        assert len(place(app).entries) == 6
        await pilot.resize_terminal(40, 12)
        await pilot.resize_terminal(*size)
        await pilot.pause()
        assert len(place(app).entries) == 6


def under_cursor(app: Any) -> tuple[str, int]:
    price = place(app).entries[place(app).query_one(VirtualTable).cursor].price
    return price.gpu, price.days


async def test_it_begins_at_a_price_and_stays_where_it_is_put(tmp_path: Path) -> None:
    app = app_on(here=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        assert under_cursor(app) == ("b200", 7)  # the first pack that has a price
        await until(pilot, lambda: "2071.00 USD committed" in words(app))
        app.open_campaign(finished(tmp_path / "one", SOUND).folder, place="pricing")
        await until(pilot, lambda: under_cursor(app) == ("rtx-4090", 7))  # what it ran on
        await until(pilot, lambda: "110.00 USD committed" in words(app))
        await pressed(pilot, "up")
        assert under_cursor(app) == ("rtx-4090", 3)
        await pressed(pilot, "plus", "d", "d", "d", "d")
        assert under_cursor(app)[0] == "rtx-4090" and place(app).asked.lots == 2
        await pressed(pilot, "d", "d")
        assert {e.price.days for e in place(app).entries} == {7}
        assert under_cursor(app) == ("rtx-4090", 7)


def test_where_no_pack_has_a_price_it_begins_at_the_top() -> None:
    gaps = [e for e in entries(load(), Asked(), None) if e.price.usd_per_lot is None]
    assert gaps and first_row(gaps, ("rtx-4090",)) == 0 == first_row([], ())


def test_a_committed_gpu_comes_before_those_it_ran_on() -> None:
    ids = {"rtx-4090": frozenset({GPU}), "b200": frozenset({"NVIDIA B200"})}
    ran = Facts("c", accepted={GPU: {}, None: {}}, ids=ids)
    assert ran.gpus == ("rtx-4090",)
    assert Facts("c", accepted={GPU: {}}, ids=ids, committed={"b200": "-"}).gpus == ("b200",)
    assert Facts().gpus == ()


async def test_gaps_stand_with_their_reason() -> None:
    app = app_on()
    async with app.run_test() as pilot:
        await opened(pilot)
        await until(pilot, lambda: "6 packs, 4 without a price" in screen_text(app))
        await until(pilot, lambda: screen_text(app).count("not stated by the source") >= 4)
        highlight(app, "rtx-4090", 30)
        await until(pilot, lambda: "No price for 1 lot of rtx-4090, 30 days" in words(app))
        await until(pilot, lambda: "pack-prices.csv, line 4" in words(app))


async def test_filters_by_gpu_days_and_provider() -> None:
    app = app_on()
    async with app.run_test() as pilot:
        await opened(pilot)
        await pressed(pilot, "d", "d")
        assert {e.price.days for e in place(app).entries} == {7}
        await pressed(pilot, "g")
        app.screen.query_one(OptionList).highlighted = 1 + load().gpus().index("b200")
        await pressed(pilot, "enter")
        assert [e.price.gpu for e in place(app).entries] == ["b200"]
        await until(pilot, lambda: "b200, 7 days" in screen_text(app))
        await pressed(pilot, "v", "end", "enter")
        await until(pilot, lambda: "No price for that choice" in screen_text(app))
        await pressed(pilot, "escape")
        assert len(place(app).entries) == 6
        await pressed(pilot, "g", "escape", "v", "home", "enter")
        assert len(place(app).entries) == 6


async def test_hourly_offers_stand_apart() -> None:
    app = app_on()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await opened(pilot)
        await pressed(pilot, "h")
        await until(
            pilot, lambda: "hourly offers (pay-as-you-go, no commitment)" in screen_text(app)
        )
        assert not any(hasattr(e.price, "days") for e in place(app).entries)
        await until(pilot, lambda: "another billing kind" in words(app))
        place(app).action_commit()
        await until(pilot, lambda: "Only a pack with a price" in screen_text(app))
        await pressed(pilot, "w")
        await typed(
            pilot, start="2026-09-28T09:00", end="2026-10-02T09:00", timezone="Europe/Paris"
        )
        await pressed(pilot, "enter", "h")
        await until(pilot, lambda: "~" in screen_text(app))
        await pressed(pilot, "p")
        assert len(place(app).entries) == 6


# Lots, and what they commit


async def test_amounts_follow_each_key() -> None:
    app = app_on()
    async with app.run_test() as pilot:
        await opened(pilot)
        highlight(app, "rtx-4090", 7)
        await pressed(pilot, "plus")
        await until(
            pilot,
            lambda: "220.00 USD committed for 2 GPUs: 2 lots of rtx-4090, 7 days" in words(app),
        )
        await pressed(pilot, "minus", "minus")
        await until(pilot, lambda: "110.00 USD committed for 1 GPU" in words(app))
        await pilot.click("#plus")
        await until(pilot, lambda: "220.00 USD" in words(app))
        await pressed(pilot, "l", "backspace", *"10000", "enter")
        await until(pilot, lambda: "1100000.00 USD committed for 10,000 GPUs" in words(app))
        await pressed(pilot, "plus")
        assert place(app).asked.lots == 10_000
        highlight(app, "b200", 7)
        await pressed(pilot, "l")
        await typed(pilot, lots="1")
        await until(pilot, lambda: "2071.00 USD committed for 2 GPUs: 1 lot of b200" in words(app))
        assert place(app).query_one("#lots", Input).value == "1"


async def test_by_hand_counts_only_with_the_box() -> None:
    app = app_on()
    async with app.run_test() as pilot:
        await opened(pilot)
        highlight(app, "rtx-4090", 7)
        await pressed(pilot, "plus")
        await until(
            pilot, lambda: "No corpus is accepted yet: no cost per result is invented" in words(app)
        )
        await pressed(pilot, "n", "3")
        await until(pilot, lambda: "until you tick 'quality checked by me'" in words(app))
        await pressed(pilot, "enter", "k")
        await until(pilot, lambda: "Cost per accepted corpus: 73.33 USD" in words(app))
        await until(
            pilot, lambda: "3 accepted results, count and quality as stated by you" in words(app)
        )
        await pressed(pilot, "n", "backspace", "0", "enter")
        await until(pilot, lambda: "undefined: no corpus accepted" in words(app))
        await pressed(pilot, "k")
        assert not place(app).query_one(Tick).value


# Windows


async def test_a_window_by_dates_says_what_covers_it_and_what_not() -> None:
    app = app_on()
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pressed(pilot, "c")
        await until(pilot, lambda: "No window is given" in screen_text(app))
        await pressed(pilot, "w")
        await typed(
            pilot, start="2026-09-28T09:00", end="2026-10-02T09:00", timezone="Europe/Paris"
        )
        await until(pilot, lambda: "96 h" in screen_text(app))
        await pressed(pilot, "enter")
        text = screen_text(app)
        assert "96 h, 2026-09-28T09:00 to 2026-10-02T09:00, Europe/Paris" in text
        assert "✗ 24 h short" in text and "✓ 72 h to spare" in text
        assert "4 cover the window" in text
        order = [(e.price.gpu, e.price.days) for e in place(app).entries]
        assert order[:2] == [("rtx-4090", 7), ("b200", 7)] and order[-1][1] == 3


@pytest.mark.parametrize(
    ("start", "end", "zone", "said"),
    [
        ("2026-10-25T02:30", "2026-10-26T09:00", "Europe/Paris", "happens twice"),
        ("2026-03-29T02:30", "2026-03-30T09:00", "Europe/Paris", "does not exist"),
        ("2026-10-26T09:00", "2026-10-25T09:00", "Europe/Paris", "end is not after start"),
        ("2026-10-25T09:00", "2026-10-26T09:00", "Europe/Pairs", "unknown time zone"),
        ("2026-10-25T09:00", "2026-10-26T09:00", "", "neither a time zone nor an offset"),
        ("[/INST] list[int]", "2026-10-26T09:00", "", "no moment"),
    ],
)
async def test_a_wrong_window_is_refused_in_place(
    start: str, end: str, zone: str, said: str
) -> None:
    app = app_on()
    async with app.run_test() as pilot:
        await opened(pilot)
        await pressed(pilot, "w")
        await typed(pilot, start=start, end=end, timezone=zone)
        await pressed(pilot, "enter")
        errors = app.screen.query(".field-error").results(Static)
        shown = " ".join(str(error.render()) for error in errors)
        assert said in shown and "--" not in shown
        assert_harmless(app)
        await pressed(pilot, "escape")
        assert place(app).seconds is None


async def test_packs_in_sequence_only_when_asked() -> None:
    app = app_on()
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pressed(pilot, "w")
        await typed(pilot, start="2026-09-01T00:00Z", end="2026-10-15T00:00Z")
        await pressed(pilot, "enter")
        await until(pilot, lambda: "0 cover the window" in screen_text(app))
        await until(pilot, lambda: "Renewal is never assumed" in words(app))
        await pressed(pilot, "w")
        await typed(pilot, periods="7")
        await pressed(pilot, "enter")
        highlight(app, "rtx-4090", 7)
        await until(pilot, lambda: "770.00 USD committed" in words(app))
        await until(pilot, lambda: "7 packs in sequence" in screen_text(app))


async def test_the_window_of_the_schedule(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one", SOUND).folder)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pressed(pilot, "s")
        await until(pilot, lambda: "1 h, by the schedule of ran, assumed" in screen_text(app))
        assert place(app).asked.view == "window"


async def test_a_schedule_that_is_not_known_is_said(tmp_path: Path) -> None:
    app = app_on(sealed_campaign(tmp_path / "one").folder)
    async with app.run_test(notifications=True) as pilot:
        await opened(pilot)
        await pressed(pilot, "s")
        await until(pilot, lambda: "These tasks have neither" in screen_text(app))
        assert place(app).seconds is None
    app = app_on()
    async with app.run_test(notifications=True) as pilot:
        await opened(pilot)
        await pressed(pilot, "s")
        await until(pilot, lambda: "No campaign with a schedule is open" in screen_text(app))


async def test_what_is_pasted_steers_nothing() -> None:
    app = app_on()
    async with app.run_test() as pilot:
        await opened(pilot)
        await pressed(pilot, "w")
        for text in (HOSTILE, "2026-\x1b]0;x\x07", "\u202e2026", "2026-09-28T09:00"):
            app.screen.query_one("#start", Input).post_message(events.Paste(text))
            await pilot.pause()
            assert_harmless(app)
        assert app.screen.query_one("#start", Input).value == "2026-09-28T09:00"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(96 * HOUR, "96"), (Fraction(1), "0.000278"), (72 * HOUR + 1, "72"), (HOUR * 3 / 2, "1.5")],
)
def test_hours_are_rounded_where_they_are_shown(seconds: Fraction, shown: str) -> None:
    assert rounded_hours(seconds) == shown


def test_one_second_too_long_does_not_fit() -> None:
    assert fit_of(RTX_7, 168 * HOUR, 1).covers
    late = fit_of(RTX_7, 168 * HOUR + 1, 1)
    assert not late.covers and late.words == "✗ 0.000278 h short"
    rows = entries(load(), Asked("window", gpu="rtx-4090"), 168 * HOUR + 1)
    assert [row.price.days for row in rows] == [30, 7, 3]


# The campaign's verdicts and its commitment


async def test_cost_by_the_campaigns_verdicts(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one", SOUND).folder)
    async with app.run_test() as pilot:
        await opened(pilot)
        highlight(app, "rtx-4090", 7)
        await until(pilot, lambda: "Cost per accepted corpus: 110.00 USD" in words(app))
        await until(
            pilot, lambda: "by the campaign's verdicts, 1 of 1 expected corpus" in words(app)
        )
        await until(pilot, lambda: f"batch-1 on {GPU}" in words(app))
        highlight(app, "b200", 7)
        await until(pilot, lambda: "no cost per result is invented" in words(app))
        await until(pilot, lambda: f"accepted on {GPU}" in words(app))


async def test_the_cpu_is_no_rented_gpu(tmp_path: Path) -> None:
    app = app_on(finished(tmp_path / "one", {"default": {}}).folder)
    async with app.run_test() as pilot:
        await opened(pilot)
        highlight(app, "rtx-4090", 7)
        await until(pilot, lambda: "accepted on the CPU" in words(app))
        assert "Cost per accepted corpus: 1" not in words(app)


def test_five_passes_are_one_corpus_and_none_is_undefined() -> None:
    ids = {"rtx-4090": frozenset({GPU})}
    many = Facts("c", expected=1, accepted={GPU: {"corpus": ("a", "b", "c", "d", "e")}}, ids=ids)
    none = Facts("c", expected=1, accepted={GPU: {}}, ids=ids)
    text = pack_panel(RTX_7, Asked(lots=2), None, many, ByHand()).plain
    assert "Cost per accepted corpus: 220.00 USD" in text
    assert "undefined" in pack_panel(RTX_7, Asked(lots=2), None, none, ByHand()).plain
    stated = pack_panel(RTX_7, Asked(lots=2), None, many, ByHand("2000000", True)).plain
    assert "✗" in stated and "1,000,000" in stated


async def test_a_choice_is_recorded_once_and_corrected_with_a_question(tmp_path: Path) -> None:
    campaign = finished(tmp_path / "one", SOUND)
    app = app_on(campaign.folder)
    async with app.run_test() as pilot:
        await opened(pilot)
        highlight(app, "rtx-4090", 7)
        await pressed(pilot, "plus", "enter")
        await until(pilot, lambda: "Record this commitment?" in screen_text(app))
        await pressed(pilot, "escape")
        assert not fold(campaign.events()).acts.commitments
        await pressed(pilot, "enter", "y")
        await until(pilot, lambda: fold(campaign.events()).acts.commitments)
        recorded = fold(campaign.events()).acts.commitments["rtx-4090"]
        assert (recorded.lots, recorded.days, str(recorded.usd)) == (2, 7, "220.00")
        await until(pilot, lambda: "◆ Committed: 2 lots of rtx-4090 for 7 days" in words(app))
        await pressed(pilot, "minus", "enter")
        await until(pilot, lambda: "Recorded already: 2 lots" in screen_text(app))
        await pressed(pilot, "y")
        await until(pilot, lambda: fold(campaign.events()).acts.commitments["rtx-4090"].lots == 1)
        assert fold(campaign.events()).acts.corrected[0].lots == 2


async def test_what_cannot_be_committed_is_said(tmp_path: Path) -> None:
    campaign = finished(tmp_path / "one", SOUND)
    app = app_on(campaign.folder)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await opened(pilot)
        highlight(app, "b200", 7)
        await pressed(pilot, "enter", "y")
        await until(pilot, lambda: "not that of a host record" in screen_text(app))
        highlight(app, "b200", 30)
        place(app).action_commit()
        await until(pilot, lambda: "Only a pack with a price" in screen_text(app))
        place(app).ask(Asked(periods=2))
        highlight(app, "rtx-4090", 7)
        place(app).action_commit()
        await until(pilot, lambda: "One pack is committed at a time" in screen_text(app))
    assert not fold(campaign.events()).acts.commitments


async def test_a_draft_records_nothing(tmp_path: Path) -> None:
    app = app_on(draft_campaign(tmp_path / "draft").folder)
    async with app.run_test(notifications=True) as pilot:
        await opened(pilot)
        highlight(app, "rtx-4090", 7)
        place(app).action_commit()
        await until(pilot, lambda: "sealed campaign first" in screen_text(app))


async def test_verdicts_arrive_while_one_looks(tmp_path: Path) -> None:
    import asyncio

    campaign = sealed_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    async with app.run_test() as pilot:
        await opened(pilot)
        highlight(app, "rtx-4090", 7)
        await until(pilot, lambda: "No corpus is accepted yet" in words(app))
        await asyncio.to_thread(run, campaign.folder, SOUND)
        await until(pilot, lambda: "Cost per accepted corpus: 110.00 USD" in words(app))


# Lists from outside


@pytest.mark.parametrize("size", [SIZES[0], SIZES[2]])
async def test_hostile_and_wide_price_lists(size: tuple[int, int]) -> None:
    text = TEXT.replace('"', "").replace("\n", " ")
    line = f'"{WIDE} [/INST]",rtx-4090,1,3,99.00,2026-11-01,\n'
    gap = f'{WIDE},rtx-4090,1,30,,2026-11-01,"{text}"\n'
    kept.keep((PACK_HEADER + line + gap).encode(), "mine.csv")
    offer = f'{WIDE},h200,1,on-demand,3.99,"{text}",2026-11-01,"{text}","{text}"\n'
    kept.keep((HOURLY_HEADER + offer).encode(), "mine-hourly.csv")
    app = app_on()
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        for key in ("c", "p", "end", "h", "end", "v", "end", "enter", "p", "question_mark"):
            await pressed(pilot, key)
            assert_harmless(app)


async def test_a_damaged_list_is_a_sentence_and_can_be_read_again() -> None:
    path = kept.keep((PACK_HEADER + "x,rtx-4090,1,7,cheap,2026-11-01,\n").encode(), "bad.csv").path
    app = app_on()
    async with app.run_test() as pilot:
        await pressed(pilot, "6")
        await until(pilot, lambda: "bad.csv" in screen_text(app))
        await until(pilot, lambda: "line 2" in screen_text(app))
        path.unlink()
        await pressed(pilot, "r")
        await until(pilot, lambda: len(place(app).entries) == 6)
        await until(pilot, lambda: "110.00" in screen_text(app))


def test_every_action_is_in_the_palette() -> None:
    from gpucost_tui.tui.palette import entries as palette

    titles = {entry.title for entry in palette()}
    for word in ("Commit", "Covering", "Window", "Schedule", "Packs", "Hourly", "Lots +", "Lots -"):
        assert f"Pricing: {word}" in titles
    for word in ("Lots", "Accepted", "Checked", "GPU", "Days", "Provider", "Look again"):
        assert f"Pricing: {word}" in titles


async def test_the_footer_fits() -> None:
    app = app_on()
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        footer = screen_text(app).splitlines()[-1]
        for word in ("Covering", "Window", "Lots", "Quit", "Help"):
            assert word in footer


def test_the_place_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    code = (
        "import sys, gpucost_tui.tui.pricing, gpucost_tui.tui.attempts\n"
        "heavy = {'polars', 'pydantic', 'torch', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
