"""Durations and balance in a terminal: every pass a dot, no line too wide, nothing obeyed."""

from __future__ import annotations

import pytest
from analysis_support import frame, passes
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from gpucost_tui.analysis.balance import decide_table
from gpucost_tui.analysis.compare import Reading, compare
from gpucost_tui.analysis.durations import durations
from gpucost_tui.analysis.plan_file import plan_from
from gpucost_tui.analysis.render import compare_lines, decision_lines, dot_lines
from gpucost_tui.pricing import catalogue

PRICES = catalogue.assembled(catalogue.built_in())
PICTURE = [
    "                                                      median s    min s    max s",
    "                                              o",
    "batch-1                                       o o  o      50.5       50       52",
    "                   o  o",
    "batch-8            o  o                                   40.5       40       41",
]
HOSTILE = "\x1b[31mred\x07 [/INST] \u202e 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字 " + "x" * 90


def comparison(names: tuple[str, str], a: list[float], b: list[float], **more: object):
    rows = [*passes(a, variant=names[0], **more), *passes(b, variant=names[1], **more)]
    return compare(frame(rows), Reading(planned=min(len(a), len(b))))


def test_the_picture_of_a_small_series() -> None:
    found = comparison(("batch-1", "batch-8"), [50, 51, 50, 52], [40, 41, 40, 41])
    lines = [line.rstrip() for line in dot_lines(found.variants, unicode=False)]
    assert lines == PICTURE
    dotted = [line.rstrip() for line in dot_lines(found.variants)]
    assert dotted == [line.replace("o", "●") if at else line for at, line in enumerate(PICTURE)]


@given(
    a=st.lists(st.floats(0.001, 1e6), min_size=1, max_size=12),
    b=st.lists(st.floats(0.001, 1e6), min_size=1, max_size=12),
    width=st.sampled_from([60, 80, 120]),
)
@settings(max_examples=60, deadline=None)
def test_one_dot_a_pass_within_the_width(a: list[float], b: list[float], width: int) -> None:
    found = comparison(("a", HOSTILE), a, b, deliverable=HOSTILE, host=HOSTILE)
    lines = compare_lines(found, width=width)
    assert max(map(cell_len, lines)) <= width
    assert not any(ord(char) < 32 or char in "\u202e\x7f" for line in lines for char in line)
    dots = dot_lines(found.variants, width=width)
    if max(len(a), len(b)) <= 10:
        assert sum(line.count("●") for line in dots) == len(a) + len(b)


@pytest.mark.parametrize("value", [0.0004142, 0.00004142, 12.3456, 999.96, 123456.7, 4e8, 1e-12])
def test_figures_stand_apart(value: float) -> None:
    found = durations(frame(passes([value] * 3, variant="a")))
    _, _, *figures = dot_lines(found)[-1].split()
    assert len(figures) == 3 and len(set(figures)) == 1
    assert float(figures[0]) == pytest.approx(value, rel=0.05)


def test_other_outcomes_and_empty_variants_are_told() -> None:
    rows = [
        *passes([1.0, 2.0], variant="a"),
        {"variant": "b", "status": "failed", "round": 1},
        {"variant": "b", "status": "completed", "round": 2, "pass_s": 1.0, "excluded": True},
    ]
    text = "\n".join(dot_lines(durations(frame(rows))))
    assert "1 failed, 1 excluded" in text
    assert dot_lines([])[0].endswith("max s")


def test_before_and_after_are_both_shown() -> None:
    found = comparison(("a", "b"), [1.0, 1.1] * 5, [2.0, 2.1] * 5)
    wide = compare(
        frame([*passes([1.0] * 10, variant="a"), *passes([2.0] * 10, variant="b")]),
        Reading(planned=5, rounds=10),
    )
    assert not any("Before more rounds" in line for line in compare_lines(found))
    text = "\n".join(compare_lines(wide))
    assert "Before more rounds (after 5):" in text
    assert text.count("a and b: settled, a is faster.") == 2


def test_pairs_stand_below_the_dots_of_their_place_and_those_between_hosts_at_the_end() -> None:
    rows = []
    for host, b in (("h", 2.0), ("k", 3.0)):
        rows += passes([1.0, 1.1] * 3, variant="a", deliverable="x", seed=0, host=host)
        rows += passes([b, b + 0.1] * 3, variant="b", deliverable="x", seed=0, host=host)
    lines = compare_lines(compare(frame(rows), Reading(planned=6)))
    heads = [at for at, line in enumerate(lines) if line.startswith("x, seed 0, on ")]
    pairs = [at for at, line in enumerate(lines) if line.startswith("a and b: settled")]
    between = [at for at, line in enumerate(lines) if " on h and " in line]
    assert len(heads) == len(pairs) == len(between) == 2
    assert heads[0] < pairs[0] < heads[1] < pairs[1] < min(between)
    assert all("(x, seed 0)" in lines[at] for at in between)
    text = "\n".join(lines)
    assert "\n\n\n" not in text and lines[-1]
    assert text.count("seed 0, on") == 2, "named once, above the dots"


def balance(
    name: str, other: str, values: list[float], *, width: int = 80, **more: object
) -> list[str]:
    plan = plan_from(
        {
            "deliverables": ["orders"],
            "deadline_hours": 168,
            "window_basis": "measured",
            "configurations": {
                name: {"gpu": "rtx-4090", "lots": 1, "window_hours": 96},
                other: {"gpu": "b200", "lots": 1, "window_hours": 96},
            },
        }
    )
    rows = passes(values, configuration=name, deliverable="orders", **more)
    return decision_lines(decide_table(frame(rows), plan, PRICES), width=width)


def test_the_balance_has_a_row_for_each_and_the_answer() -> None:
    lines = balance("cheap", "dear", [5.0] * 5)
    text = "\n".join(lines)
    assert any(line.startswith("* cheap") and "110.00" in line for line in lines)
    assert any(line.startswith("x dear") and "2071.00" in line for line in lines)
    assert "not admissible: missing" in text
    assert "Decided: cheap." in text
    assert max(map(cell_len, lines)) <= 80


def test_undecided_tells_what_stays_committed() -> None:
    text = "\n".join(balance("cheap", "dear", [5.0], corpus_accepted=False))
    assert "Undecided: no configuration is admissible. 2181.00 USD stay committed." in text


@pytest.mark.parametrize("width", [60, 80, 100])
def test_hostile_names_in_the_balance(width: int) -> None:
    name = HOSTILE.replace("\x1b", "").replace("\x07", "")[:190]
    lines = balance(name, "dear", [5.0] * 5, width=width)
    assert max(map(cell_len, lines)) <= width
    assert not any("\u202e" in line for line in lines)
