"""Exactly the expected ids (R13, R19), as the golden file has them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucost_tui.corpus.identifiers import KEPT, compare_ids
from gpucost_tui.errors import InputError

GOLDEN = json.loads((Path(__file__).parent / "golden" / "identifiers.json").read_text("utf-8"))
IDS = st.lists(
    st.sampled_from(["a", "b", "c", "01", "1", "1.0", "é", "e\u0301", "", " a"]), max_size=9
)


@pytest.mark.parametrize("case", GOLDEN)
@pytest.mark.parametrize("as_series", [False, True])
def test_golden(case: dict, as_series: bool) -> None:
    expected, observed = case["expected"], case["predicted"]
    if as_series:
        expected, observed = pl.Series("x", expected), pl.Series("y", observed)
    found = compare_ids(expected, observed).to_json()
    for key, value in case.items():
        if key not in ("expected", "predicted", "note"):
            assert found[key] == value, key
    assert found["in_order"] == (case["expected"] == case["predicted"])


@given(expected=IDS, observed=IDS | st.none(), shuffled=st.randoms())
def test_it_is_what_counting_one_by_one_gives(expected: list, observed: list, shuffled) -> None:
    if observed is None:
        observed = list(expected)
        shuffled.shuffle(observed)
    counts = Counter(observed)
    found = compare_ids(expected, observed)
    assert found.expected_ids == len(expected)
    assert found.observed_ids == len(observed)
    assert found.in_order == (expected == observed)
    assert found.duplicates == [name for name, times in counts.items() if times > 1]
    assert found.missing == [name for name in dict.fromkeys(expected) if name not in counts]
    assert found.extra == [name for name in counts if name not in expected]
    assert found.ids_match == (
        set(expected) == set(observed) and max(counts.values(), default=1) == 1
    )
    assert found.ids_match == (not found.explain())
    kinds = (found.duplicates_count, found.missing_count, found.extra_count)
    assert kinds == (len(found.duplicates), len(found.missing), len(found.extra))


def test_lists_are_capped_and_counts_are_not() -> None:
    expected = [f"e{i}" for i in range(3 * KEPT)]
    observed = [f"o{i}" for i in range(2 * KEPT)] * 2
    found = compare_ids(expected, observed)
    assert (found.missing_count, found.extra_count, found.duplicates_count) == (3000, 2000, 2000)
    assert found.missing == expected[:KEPT]
    assert found.extra == found.duplicates == observed[:KEPT]
    assert "3,000 ids missing (e0, e1, e2, e3, e4, …)" in found.explain()


def test_a_prediction_without_an_id_is_no_match() -> None:
    found = compare_ids(["a", "b"], pl.Series(["a", "b", None, None], dtype=pl.String))
    assert not found.ids_match and not found.in_order
    assert (found.observed_ids, found.unnamed_count) == (4, 2)
    assert found.explain() == "2 predictions without an id"
    assert compare_ids(["a"], pl.Series([None], dtype=pl.Null)).missing == ["a"]


def test_categories_are_text_and_numbers_are_not() -> None:
    assert compare_ids(["a", "b"], pl.Series(["a", "b"], dtype=pl.Categorical)).in_order
    with pytest.raises(InputError, match="the ids are Int64, not text"):
        compare_ids(["1"], pl.Series([1]))
    for wrong in (["1", 1], [1.5], ["\ud800"]):
        with pytest.raises(InputError, match="the ids are not all text"):
            compare_ids(["1"], wrong)


def test_nothing_against_something() -> None:
    assert compare_ids([], []).ids_match
    assert compare_ids(["a"], []).missing == ["a"]
    assert compare_ids([], ["a"]).extra == ["a"]
