"""The window that a campaign needs, from its sealed tasks and from what was measured (R32)."""

from __future__ import annotations

from typing import Any

import pytest
from campaign_parts import template

from gpucost_tui.campaign.fold import Attempt, State
from gpucost_tui.campaign.schema import SCHEMA
from gpucost_tui.campaign.slots import schedule
from gpucost_tui.campaign.window import need
from gpucost_tui.errors import InputError
from gpucost_tui.protocol.load import Source, parse
from gpucost_tui.protocol.model import Protocol


def protocol(*changes: tuple[str, str]) -> Protocol:
    text = template()
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return parse(Source(text, "p.toml"))


def done(sealed: Protocol, **columns: Any) -> State:
    """Every slot with an attempt of a minute's pass, three minutes long from start to end."""
    state = State()
    for slot in schedule(sealed):
        row = dict.fromkeys(SCHEMA)
        row.update(
            status="completed", variant=slot.variant, deliverable=slot.deliverable, pass_s=60.0,
            evaluate_s=6.0, write_s=3.0, started_at="2026-11-30T10:00:00.000000Z",
            ended_at="2026-11-30T10:03:00.000000Z",
        )  # fmt: skip
        state.attempts[slot.slot] = Attempt(slot.slot, slot.slot, row, finished=True, judged=True)
    first = state.attempts[1].row
    first.update({"load_s": 30.0, "compile_s": 10.0, "warmup_s": 20.0, **columns})
    return state


def test_before_anything_is_measured() -> None:
    found = need(protocol(), State())
    assert (found.hours, found.basis, found.unknown) == (
        None,
        "assumed",
        ("comparison", "evaluate"),
    )
    given = protocol(
        ('measured = ["load"', 'hours = 2.0\nmeasured = ["load"'),
        ('measured = ["evaluate"]', 'hours = 0.5\nmeasured = ["evaluate"]'),
    )
    found = need(given, State())
    assert (found.hours, found.basis) == (0.5 + 0.25 + 2.0 + 0.5 + 0.25, "assumed")


def test_measured_phases_take_the_place_of_hours() -> None:
    sealed = protocol()
    found = need(sealed, done(sealed), export_s=36.0)
    # 15 passes, one load, compilation and warm-up; evaluating and writing of each
    seconds = 15 * 60 + 30 + 10 + 20 + 15 * 9 + 36
    assert found.hours == pytest.approx(0.75 + seconds / 3600) and found.basis == "measured"
    # an export that was not measured is the sealed figure
    found = need(sealed, done(sealed))
    assert found.hours == pytest.approx(0.75 + (seconds - 36) / 3600 + 0.25)
    assert found.basis == "assumed"


def test_an_open_slot_leaves_the_window_assumed() -> None:
    sealed = protocol()
    state = done(sealed)
    state.attempts[3].row["status"] = "stopped"
    assert need(sealed, state, 36.0).basis == "assumed"


def test_a_failed_attempt_kept_the_rental_too() -> None:
    sealed = protocol()
    state = done(sealed)
    state.attempts[2].row.update(status="failed", pass_s=None)
    whole = need(sealed, done(sealed), 36.0).hours
    found = need(sealed, state, 36.0)
    assert whole is not None and found.basis == "measured"
    assert found.hours == pytest.approx(whole + (180 - 60) / 3600)
    # its own load and warm-up are counted once
    state = done(sealed, status="failed", pass_s=None)
    assert need(sealed, state, 36.0).hours == pytest.approx(whole + (180 - 60 - 60) / 3600)


def test_a_phase_that_was_never_measured_is_not_zero() -> None:
    sealed = protocol()
    state = done(sealed, warmup_s=None)
    found = need(sealed, state, 36.0)
    assert (found.hours, found.basis, found.unknown) == (None, "assumed", ("comparison",))


def test_one_pass_of_each_deliverable() -> None:
    scope = ('measured = ["load", "warm-up", "pass"]', 'scope = "deliverable"\nmeasured = ["pass"]')
    two = ("[[deliverables]]\n", '[[deliverables]]\nname = "mails"\n[[deliverables]]\n')
    sealed = protocol(scope, two)
    state = done(sealed)
    state.attempts[2].row["pass_s"] = 90.0  # batch-1, the second deliverable
    evaluate = 30 * 9 + 36
    slowest = need(sealed, state, 36.0)
    assert slowest.hours == pytest.approx(0.75 + (60 + 90 + evaluate) / 3600)
    chosen = need(sealed, state, 36.0, variant="batch-4")
    assert chosen.hours == pytest.approx(0.75 + (60 + 60 + evaluate) / 3600)


def test_tasks_beside_each_other_count_once() -> None:
    sealed = protocol(('after = ["install"]', "after = []"))
    found = need(sealed, done(sealed), 36.0)
    assert found.schedule is not None and found.hours is not None
    longest = 15 * 60 + 60 + 15 * 9 + 36
    assert found.hours == pytest.approx(max(0.5, 0.25 + longest / 3600))


def test_a_draft_in_no_order() -> None:
    draft = protocol(
        ('name = "install"', 'name = "install"\nafter = ["checks"]'),
        ('measured = ["load", "warm-up", "pass"]', "hours = 1"),
        ('measured = ["evaluate"]', "hours = 1"),
    )
    with pytest.raises(InputError, match="wait for each other"):
        need(draft, State())
