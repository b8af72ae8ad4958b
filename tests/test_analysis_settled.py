"""When a difference is settled: golden cases, both rules, the exact distribution behind them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from gpucost_tui.analysis.ranksum import (
    holm_levels,
    lower_tail,
    p_value,
    shift_interval,
)
from gpucost_tui.analysis.settled import chosen_rule, least_passes, settle_pair, settle_series

GOLDEN = json.loads((Path(__file__).parent / "golden" / "comparisons.json").read_text())
durations = st.lists(st.floats(0.1, 1000, allow_nan=False), min_size=5, max_size=9)


@pytest.mark.parametrize("case", GOLDEN, ids=[case["why"][:40] for case in GOLDEN])
def test_golden_comparison(case: dict) -> None:
    found = settle_pair(case["a"], case["b"], planned=case.get("planned"))
    assert found.settled is case["settled"]
    assert found.faster == case["faster"]
    for key in ("gap_s", "larger_range_s"):
        if key in case:
            assert getattr(found, key) == pytest.approx(case[key], abs=1e-9)
    assert found.why.endswith(".")


@pytest.mark.parametrize("case", GOLDEN, ids=[case["why"][:40] for case in GOLDEN])
def test_golden_comparison_turned_round(case: dict) -> None:
    found = settle_pair(case["b"], case["a"], planned=case.get("planned"))
    assert found.settled is case["settled"]
    assert found.faster == {"a": "b", "b": "a", None: None}[case["faster"]]


def test_the_boundary_is_judged_on_the_decimals_as_written() -> None:
    # In binary floats 10.3 - 10.1 is above 0.2 and 10.5 - 10.2 below 0.3.
    low = [10.1, 10.1, 10.2, 10.3, 10.3]
    high = [10.4, 10.4, 10.5, 10.6, 10.6]
    assert settle_pair(low, high, factor=1.5).settled
    assert not settle_pair(low, [*high[:4], 10.60000001], factor=1.5).settled


def test_a_shorter_factor_settles_and_a_longer_one_does_not() -> None:
    low, high = [10.0, 10.5, 11.0, 11.5, 12.0], [12.1, 12.6, 13.1, 13.6, 14.1]
    assert settle_pair(low, high, factor=1.05).settled
    assert not settle_pair(low, high, factor=1.06).settled
    with pytest.raises(ValueError):
        settle_pair(low, high, factor=0)


@given(a=durations, b=durations)
@settings(max_examples=150, deadline=None)
def test_range_rule_is_what_its_words_say(a: list[float], b: list[float]) -> None:
    found = settle_pair(a, b, rule="range", planned=5)
    apart = max(a) < min(b) or max(b) < min(a)
    if found.settled:
        assert apart
        assert found.gap_s is not None and found.larger_range_s is not None
        assert found.gap_s >= 1.5 * found.larger_range_s * (1 - 1e-12)
        assert found.faster == ("a" if np.median(a) < np.median(b) else "b")
    else:
        assert found.faster is None
        assert not apart or found.gap_s < 1.5 * found.larger_range_s * (1 + 1e-12)


@pytest.mark.parametrize(("passes", "variants", "settles"), [(3, 2, False), (4, 2, True)])
def test_few_passes_settle_nothing(passes: int, variants: int, settles: bool) -> None:
    found = settle_pair([1.0] * passes, [2.0] * passes)
    assert found.settled is settles
    if not settles:
        assert "Too few durations" in found.why


def test_a_long_series_needs_five_passes() -> None:
    four = {name: [float(level)] * 4 for level, name in enumerate("abcdef", 1)}
    assert not any(s.settled for s in settle_series(four).values())
    five = {name: [*values, values[0]] for name, values in four.items()}
    assert all(s.settled for s in settle_series(five).values())
    assert least_passes(3) == 4 and least_passes(4) == 5


def test_no_durations_at_all() -> None:
    found = settle_pair([], [1.0, 2.0], planned=2)
    assert (found.settled, found.gap_s, found.larger_range_s) == (False, None, None)
    assert "a has 0 of 2" in found.why
    assert "0 of 1" in settle_pair([], []).why


def test_auto_reads_intervals_from_ten_rounds_on() -> None:
    assert chosen_rule("auto", 9) == "range"
    assert chosen_rule("auto", 10) == "interval"
    assert chosen_rule("range", 30) == "range"
    low = [10 + 0.1 * i for i in range(10)]
    high = [10.9 + 0.1 * i for i in range(10)]
    assert not settle_pair(low, high, rule="range").settled
    found = settle_pair(low, high)
    assert found.settled and found.faster == "a" and found.rule == "interval"
    assert found.interval_s is not None and found.interval_s[0] > 0
    assert found.confidence == pytest.approx(0.99)


def test_a_lost_pass_is_made_good_by_an_extension() -> None:
    low = [10 + 0.1 * i for i in range(9)]
    high = [12 + 0.1 * i for i in range(10)]
    assert settle_pair(low, high, planned=5, rounds=10).settled
    assert not settle_pair(low, high, planned=10, rounds=10).settled


def test_the_interval_rule_waits_for_its_tenth_round() -> None:
    found = settle_pair([1.0] * 6, [2.0] * 6, rule="interval")
    assert not found.settled
    assert "from 10 rounds on; there are 6" in found.why


def test_the_gap_must_exceed_the_interquartile_range() -> None:
    rng = np.random.default_rng(3)
    a = list(rng.normal(10, 1, 60))
    b = list(rng.normal(11, 1, 60))
    found = settle_pair(a, b)
    assert found.interval_s is not None and found.interval_s[0] > 0
    assert not found.settled
    assert "does not exceed the larger interquartile range" in found.why


def test_equal_durations_settle_nothing_by_either_rule() -> None:
    assert not settle_pair([5.0] * 5, [5.0] * 5).settled
    assert not settle_pair([5.0] * 12, [5.0] * 12).settled


def test_holm_uses_every_pair_of_the_series() -> None:
    rng = np.random.default_rng(4)
    series = {f"v{i}": list(100 + i * 0.9 + rng.normal(0, 1, 10)) for i in range(6)}
    alone = settle_pair(series["v0"], series["v2"])
    together = settle_series(series)["v0", "v2"]
    assert together.pairs == 15
    assert together.confidence is not None and alone.confidence is not None
    assert together.confidence > alone.confidence


def test_holm_levels_stop_at_the_first_failure() -> None:
    levels = holm_levels([0.001, 0.2, 0.004, 0.3], 0.01)
    assert levels == [0.01 / 4, 0.01 / 3, 0.01 / 3, 0.01 / 3]
    assert holm_levels([], 0.01) == []
    # 0.0065 would pass at 0.01, had 0.006 not failed at 0.005 before it.
    values = [0.006, 0.0065, 0.001]
    passed = [p <= level for p, level in zip(values, holm_levels(values, 0.01), strict=True)]
    assert passed == [False, False, True]


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (5, 5), (10, 10), (20, 20), (9, 13)])
def test_exact_distribution_has_all_arrangements(n: int, m: int) -> None:
    tail = lower_tail(n, m)
    assert len(tail) == n * m + 1
    assert tail[0] == pytest.approx(1 / math.comb(n + m, n), rel=1e-12)
    assert tail[-1] == pytest.approx(1)
    assert np.all(np.diff(tail) > 0)
    assert tail[:-1] == pytest.approx(1 - tail[::-1][1:], abs=1e-12)  # symmetric


@given(
    a=st.lists(st.integers(0, 10**6), min_size=3, max_size=12, unique=True),
    b=st.lists(st.integers(0, 10**6), min_size=3, max_size=12, unique=True),
)
@settings(max_examples=60, deadline=None)
def test_p_value_is_scipys_where_nothing_is_tied(a: list[int], b: list[int]) -> None:
    b = [value + 0.5 for value in b]
    expected = mannwhitneyu(a, b, method="exact").pvalue
    assert p_value(a, b) == pytest.approx(expected, rel=1e-9)


def test_normal_approximation_is_near_scipys() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, 80), rng.normal(0.4, 1, 90)
    expected = mannwhitneyu(a, b, method="asymptotic").pvalue
    assert p_value(list(a), list(b)) == pytest.approx(expected, rel=1e-6)


@given(
    a=st.lists(st.floats(0, 100), min_size=4, max_size=12),
    b=st.lists(st.floats(0, 100), min_size=4, max_size=12),
    alpha=st.sampled_from([0.05, 0.01, 0.01 / 3, 0.01 / 15]),
)
@settings(max_examples=150, deadline=None)
def test_interval_leaves_out_zero_exactly_where_the_p_value_says(
    a: list[float], b: list[float], alpha: float
) -> None:
    interval = shift_interval(a, b, alpha)
    out = interval is not None and (interval[0] > 0 or interval[1] < 0)
    assert out is (p_value(a, b) <= alpha)
    if interval is not None:
        assert interval[0] <= interval[1]


def test_interval_covers_a_known_shift_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(400):
        a, b = rng.exponential(1, 10), 2.0 + rng.exponential(1, 10)
        interval = shift_interval(list(a), list(b), 0.05)
        assert interval is not None
        hits += interval[0] <= 2.0 <= interval[1]
    assert hits >= 0.93 * 400
