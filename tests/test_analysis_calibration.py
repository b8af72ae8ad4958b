"""How often the settled rules are wrong where the truth is known (the README's table)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gpucost_tui.analysis.calibration import MOST_WRONG, Line, calibrate, markdown
from gpucost_tui.analysis.settled import Rule, settle_series
from gpucost_tui.analysis.simulation import BOUNDED, normal, settle_all, simulate


def too_wrong(lines: list[Line]) -> list[Line]:
    return [line for line in lines if max(line.wrong, line.wrong_beside) > MOST_WRONG]


def test_at_most_one_series_in_a_hundred_is_settled_wrongly() -> None:
    lines = calibrate(("auto",), BOUNDED, campaigns=1500)
    assert len(lines) == len(BOUNDED) * 3 * 2 * 3
    assert too_wrong(lines) == []


def test_large_differences_are_found_and_small_ones_need_more_passes() -> None:
    lines = {
        (line.noise, line.passes, line.extended, line.variants): line
        for line in calibrate(("auto",), ["normal"], campaigns=300)
    }
    assert lines["normal", 5, False, 3].silent_large == 0
    assert lines["normal", 5, False, 2].silent_small > 0.8
    assert lines["normal", 5, True, 2].silent_small < 0.4
    assert lines["normal", 20, False, 2].silent_small < 0.3


def test_a_constant_bias_of_hosts_is_settled_as_a_difference() -> None:
    # Reported in the table, and not bounded: no rule can tell it from a difference.
    (line,) = calibrate(("auto",), ["host bias"], passes=[5], series=[3], campaigns=300)[:1]
    assert line.wrong > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["auto", "range", "interval"])
def test_the_bound_holds_for_every_rule_with_many_draws(rule: Rule) -> None:
    assert too_wrong(calibrate((rule,), BOUNDED, campaigns=20_000, seed=1)) == []


@pytest.mark.slow
def test_the_least_number_of_passes_is_where_the_bound_begins() -> None:
    for passes, variants in ((4, 2), (4, 3), (5, 6)):
        found = simulate(normal, 0.0, variants, passes, rule="range", campaigns=20_000)
        assert found.wrong <= MOST_WRONG


@pytest.mark.parametrize("rule", ["auto", "range", "interval"])
@pytest.mark.parametrize(("variants", "passes"), [(2, 3), (2, 5), (6, 4), (6, 5), (3, 9), (3, 12)])
def test_the_simulation_applies_the_rules_of_the_program(
    rule: Rule, variants: int, passes: int
) -> None:
    rng = np.random.default_rng(variants * 100 + passes)
    level = 1 + 0.02 * np.arange(variants)[:, None]
    durations = np.round(100 * level * (1 + normal(rng, 25, variants, passes)), 3)
    answers = settle_all(durations, rule=rule)
    for campaign, told in zip(durations, answers, strict=True):
        series = {str(at): list(map(float, values)) for at, values in enumerate(campaign)}
        settled = settle_series(series, rule=rule)
        for (a, b), answer in zip(itertools.combinations(series, 2), told, strict=True):
            assert settled[a, b].faster == {-1: "a", 1: "b", 0: None}[int(answer)]


def test_the_table_is_the_same_every_time_and_reads_as_markdown() -> None:
    once, again = (calibrate(campaigns=20, passes=[5], series=[2, 3]) for _ in range(2))
    assert once == again
    table = markdown(once).splitlines()
    assert table[0] == "| rule | noise | passes | one pair | 3 variants |"
    assert len(table) == 2 + 2 * (len(BOUNDED) + 1)
    assert all(line.count("|") == 6 for line in table)
