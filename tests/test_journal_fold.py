"""Folding any prefix of any journal, and the schedule of slots: properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.campaign.fold import State, advance, fold, missing_text
from gpucost_tui.campaign.journal import Event
from gpucost_tui.campaign.schema import DEVICE_SCHEMA, SCHEMA
from gpucost_tui.campaign.slots import rotated, schedule
from gpucost_tui.campaign.table import device_table, raw_table, rows_json
from gpucost_tui.errors import Differs
from gpucost_tui.protocol.load import find, parse, read_source
from gpucost_tui.protocol.model import Protocol

TIME = "2026-05-01T10:00:00.000000Z"


def protocol(**tables: Any) -> Protocol:
    base = parse(read_source(find("classification-batch"))).model_dump(mode="json")
    for dotted, value in tables.items():
        table, _, key = dotted.partition("__")
        if key:
            base[table][key] = value
        else:
            base[table] = value
    return Protocol.model_validate(base)


SMALL = protocol(measurement__rounds=2)


def event(seq: int, kind: str, data: dict[str, Any]) -> Event:
    return Event(seq, TIME, kind, "cpu-1", data, "", "")


def started(attempt: int, slot: int) -> tuple[str, dict[str, Any]]:
    row = {"variant": "batch-1", "round": 1, "position": 1, "deliverable": "corpus", "seed": 0}
    data = {"attempt": attempt, "slot": slot, "folder": f"attempts/{attempt}", "row": row}
    return "attempt_started", data


def finished(attempt: int, status: str) -> tuple[str, dict[str, Any]]:
    done = status == "completed"
    data = {
        "attempt": attempt,
        "status": status,
        "failure": "error" if status == "failed" else None,
        "finished_entries": 7,
        "row": {"pass_s": 1.5, "observed_ids": 7, "device": "cpu"} if done else {},
        "missing": {"*": "not measured"} if done else {"*": f"the pass was {status}"},
        "notes": ["a note; with a semicolon", "[/INST] \x1b[31m"],
        "device_memory": [
            {"index": 0, "name": "Card", "used_bytes": 5, "missing": {"uuid": "none"}}
        ],
        "error": None,
    }
    return "attempt_finished", data


def judged(attempt: int, accepted: bool) -> tuple[str, dict[str, Any]]:
    data = {
        "attempt": attempt,
        "reasons": [] if accepted else ["quality"],
        "row": {"corpus_accepted": accepted, "quality": 0.5, "evaluate_s": 0.1},
        "missing": {"subgroups_ok": "no subgroup is planned"},
        "notes": [],
    }
    return "attempt_judged", data


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Draw what a runner may have written, over several runs, crashes between any two lines."""
    made: list[tuple[str, dict[str, Any]]] = [("sealed", {"manifest": "a" * 64})]
    state = State()
    number = 0
    for _ in range(draw(st.integers(0, 3))):
        made.append(("run_started", {"detached": False}))
        if draw(st.booleans()):
            made.append(("rounds_added", {"rounds": draw(st.integers(1, 2))}))
        for _ in range(draw(st.integers(0, 4))):
            number += 1
            state = fold(event(i, *one) for i, one in enumerate(made, 1))
            left = state.open_slots(SMALL)
            if not left:
                break
            status = draw(st.sampled_from(["completed", "failed", "stopped", "interrupted"]))
            made.append(started(number, left[0].slot))
            made.append(finished(number, status))
            made.append(judged(number, draw(st.booleans()) and status == "completed"))
            if status == "failed" and draw(st.booleans()):
                made.append(("slot_added", {"repeats": number, "of_slot": left[0].slot}))
        made.append(("run_ended", {"why": "every slot is done"}))
        made.append(("from_a_later_version", {"anything": [1, {"a": None}]}))
    return [event(i, *one) for i, one in enumerate(made, 1)]


@settings(max_examples=60, deadline=None)
@given(histories(), st.data())
def test_any_prefix_folds_to_rows_of_the_schema(history: list[Event], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(history)))
    state = fold(history[:cut])
    table = raw_table(state)
    assert table.schema == SCHEMA
    assert device_table(state).schema == DEVICE_SCHEMA
    assert table.height == len(state.attempts)
    json.dumps(rows_json(table))
    for attempt in state.attempts.values():
        said = missing_text(attempt) or ""
        for name in SCHEMA:
            if attempt.row[name] is None and name not in ("failure", "exclusion_cause"):
                assert f"{name}: " in said or name in ("notes", "missing")
    # Used slots are filled once; the others stay open in the planned order.
    used = [a.slot for a in state.attempts.values() if a.uses_slot]
    assert len(used) == len(set(used))
    left = [slot.slot for slot in state.open_slots(SMALL)]
    assert left == sorted(left)
    assert sorted([*used, *left]) == [slot.slot for slot in state.slots(SMALL)]
    # Going on from a prefix is the same as folding it all.
    assert raw_table(advance(state, history[cut:])).equals(raw_table(fold(history)))


def test_lines_that_do_not_fit_are_a_sentence() -> None:
    for kind, data in (
        ("attempt_finished", finished(9, "completed")[1]),
        ("attempt_started", {"attempt": 1}),
        ("sealed", {}),
        ("attempt_judged", {"attempt": None}),
        ("rounds_added", {"rounds": 1, "attempt": []}),
    ):
        if kind == "rounds_added":
            data["clock"] = "backwards"
        with pytest.raises(Differs, match=r"line 1 \("):
            fold([event(1, kind, data)])


def test_an_attempt_knows_where_the_clock_went_backwards() -> None:
    kind, data = started(1, 1)
    state = fold([event(1, kind, {**data, "clock": "the wall clock went backwards: x"})])
    assert state.attempts[1].notes == ["journal line 1: the wall clock went backwards: x"]


def test_an_attempt_cut_off_has_no_end_time() -> None:
    kind, data = finished(1, "interrupted")
    data["missing"]["ended_at"] = "the runner was lost; found at the next start"
    state = fold([event(1, *started(1, 1)), event(2, kind, data)])
    assert state.attempts[1].row["ended_at"] is None
    assert "ended_at: the runner was lost" in (missing_text(state.attempts[1]) or "")


# -- slots ----------------------------------------------------------------------------------------


def test_the_rotation_is_the_golden_one(golden: Path) -> None:
    right = json.loads((golden / "rotation.json").read_text())
    for number, order in enumerate(right["order"], 1):
        assert rotated(right["variants"], number) == order
    assert len(right["order"]) == right["rounds"]


@given(st.lists(st.integers(), min_size=1, max_size=8, unique=True), st.integers(1, 50))
def test_each_variant_stands_once_in_each_position(numbers: list[int], start: int) -> None:
    variants = [f"v{n}" for n in numbers]
    rounds = [rotated(variants, start + i) for i in range(len(variants))]
    for position in range(len(variants)):
        assert sorted(order[position] for order in rounds) == sorted(variants)


@settings(max_examples=40, deadline=None)
@given(
    rounds=st.integers(1, 6),
    deliverables=st.integers(1, 3),
    seeds=st.integers(1, 3),
    reference=st.booleans(),
    more=st.lists(st.integers(1, 3), max_size=3),
)
def test_slots_are_whole_rounds_numbered_once(
    rounds: int, deliverables: int, seeds: int, reference: bool, more: list[int]
) -> None:
    made = protocol(
        measurement__rounds=rounds,
        deliverables=[{"name": f"d{i}"} for i in range(deliverables)],
        reproduction={"aim": "business-quality", "stochastic": True, "seeds": list(range(seeds))},
        **(
            {"quality__tolerance": 0.1, "quality__tolerance_variant": "batch-4"}
            if reference
            else {}
        ),
    )
    additions = [{"rounds": n} for n in more]
    slots = schedule(made, additions)
    assert [slot.slot for slot in slots] == list(range(1, len(slots) + 1))
    assert slots[: len(schedule(made))] == schedule(made), "given numbers never change"
    zero = [slot for slot in slots if slot.round == 0]
    assert len(zero) == (deliverables if reference else 0)
    for number in range(1, rounds + sum(more) + 1):
        own = [slot for slot in slots if slot.round == number]
        assert [slot.position for slot in own] == list(range(1, 3 * deliverables * seeds + 1))
        places = {(slot.variant, slot.deliverable, slot.seed) for slot in own}
        assert len(places) == len(own)
        variants = list(dict.fromkeys(slot.variant for slot in own))
        assert variants == rotated(made.order(), number)


def test_a_repeat_is_a_slot_of_its_own_and_a_reference_comes_first() -> None:
    made = protocol(quality__tolerance=0.1, quality__tolerance_variant="batch-4")
    slots = schedule(made, [{"repeats": 3, "of_slot": 2}, {"repeats": 1, "of_slot": 1}])
    assert (slots[-2].variant, slots[-2].round, slots[-2].repeats) == ("batch-1", 1, 3)
    assert slots[-1].round == 0
    state = State(additions=[{"repeats": 1, "of_slot": 1}])
    assert [slot.slot for slot in state.open_slots(made)][:2] == [1, len(slots) - 1]
