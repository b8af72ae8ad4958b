"""Durations and comparisons over a raw table: nothing pooled, nothing dropped, nothing invented."""

from __future__ import annotations

import json
from typing import Any

import pytest
from analysis_support import frame, passes
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.analysis.causes import causes, more_rounds, one_host
from gpucost_tui.analysis.compare import Reading, compare, sealed_reading
from gpucost_tui.analysis.durations import Durations, durations, highest_round
from gpucost_tui.analysis.settled import settle_pair
from gpucost_tui.protocol.load import find, load

STEADY = [10.0, 10.2, 10.1, 10.3, 10.1]
SLOW = [14.0, 14.1, 14.3, 13.9, 14.2]


def two(a: list[float] = STEADY, b: list[float] = SLOW, **more: Any) -> list[dict[str, Any]]:
    return [*passes(a, variant="a", **more), *passes(b, variant="b", **more)]


def test_counts_and_raw_durations() -> None:
    rows = [
        *passes([3.0, 1.0, 2.0, 9.0], variant="v"),
        {"variant": "v", "status": "failed", "round": 5, "pass_s": 1.0},
        {"variant": "v", "status": "stopped", "round": 6},
        {"variant": "v", "status": "interrupted", "round": 6},
        {"variant": "v", "status": "completed", "round": 7, "pass_s": 99.0, "excluded": True},
        {"variant": "v", "status": "failed", "round": 7, "excluded": True},
        {"variant": "v", "status": "completed", "round": 0, "corpus_accepted": None},
    ]
    (group,) = durations(frame(rows))
    assert group.durations_s == (3.0, 1.0, 2.0, 9.0)
    assert (group.median_s, group.min_s, group.max_s) == (2.5, 1.0, 9.0)
    counts = (group.succeeded, group.failed, group.stopped, group.interrupted, group.excluded)
    assert counts == (4, 1, 1, 1, 2)


def test_a_rejected_pass_has_a_duration() -> None:
    rows = passes([5.0], variant="v", corpus_accepted=False)
    assert durations(frame(rows))[0].durations_s == (5.0,)


def test_rows_out_of_order_come_back_in_the_order_of_the_rounds() -> None:
    rows = passes([1.0, 2.0, 3.0], variant="v")
    assert durations(frame(reversed(rows)))[0].durations_s == (1.0, 2.0, 3.0)


def test_seeds_hosts_and_deliverables_stay_apart() -> None:
    rows = [
        *two(deliverable="x", seed=0, host="h"),
        *two(deliverable="x", seed=1, host="h"),
        *two(deliverable="y", seed=0, host="h"),
        *two(SLOW, STEADY, deliverable="x", seed=0, host="k"),
    ]
    found = compare(frame(rows))
    assert len(found.variants) == 8
    same = [pair for pair in found.pairs if not pair.between_hosts]
    assert [(p.a.place, p.to_json()["faster"]) for p in same] == [
        (("x", 0, "h"), "a"),
        (("x", 1, "h"), "a"),
        (("y", 0, "h"), "a"),
        (("x", 0, "k"), "b"),
    ]


def test_one_variant_on_two_hosts_is_a_hardware_pair() -> None:
    rows = [
        *passes(STEADY, variant="a", host="h"),
        *passes(SLOW, variant="a", host="k"),
    ]
    (pair,) = compare(frame(rows)).pairs
    told = pair.to_json()
    assert (told["a"], told["b"], told["host"]) == ("a on h", "a on k", None)
    assert told["settled"] and told["faster"] == "a on h"
    assert "bias of one host" in told["could_settle"][0]


def test_json_has_the_promised_keys_and_is_json() -> None:
    found = compare(frame(two())).to_json()
    json.dumps(found, allow_nan=False)
    assert set(found["variants"][0]) >= {
        *("variant", "deliverable", "seed", "host", "durations_s", "median_s", "min_s", "max_s"),
        *("succeeded", "failed", "stopped", "interrupted", "excluded"),
    }
    assert set(found["pairs"][0]) >= {
        *("a", "b", "deliverable", "seed", "host", "gap_s", "larger_range_s"),
        *("settled", "faster", "why"),
    }


def test_no_percentile_above_the_median_is_told_of_a_handful() -> None:
    text = json.dumps(compare(frame(two())).to_json()).lower()
    assert not any(word in text for word in ("p95", "p90", "p99", "percentile"))


def test_a_missing_pass_leaves_the_pair_unsettled() -> None:
    rows = [*passes(STEADY[:3], variant="a"), *passes(SLOW, variant="b")]
    (pair,) = compare(frame(rows)).pairs
    assert not pair.settlement.settled
    assert "a has 3 of 5" in pair.settlement.why
    assert pair.could_settle[0].startswith("2 more whole rounds would make good")


def test_an_excluded_pass_is_no_duration() -> None:
    rows = two()
    rows[0]["excluded"] = True
    found = compare(frame(rows))
    assert not found.pairs[0].settlement.settled
    assert found.variants[0].excluded == 1
    assert "1 excluded pass" in found.notes[0]


def test_before_and_after_more_rounds() -> None:
    early = two([10.0, 10.5, 11.0, 11.5, 12.0], [12.1, 12.6, 13.1, 13.6, 14.1])
    more = two([10.0, 10.4, 11.0, 11.3, 12.0] * 2, [12.1, 12.5, 13.1, 13.4, 14.1] * 2)
    assert not compare(frame(early)).pairs[0].settlement.settled
    found = compare(frame(more), Reading(planned=5, rounds=10))
    assert found.rule == "interval" and found.pairs[0].settlement.settled
    assert found.before is not None
    assert found.before[0].settlement.rule == "range"
    assert not found.before[0].settlement.settled


def test_series_bound_the_pairs_that_are_compared() -> None:
    rows = [
        *passes(STEADY, variant="a", series="batch"),
        *passes(SLOW, variant="b", series="batch | precision"),
        *passes(SLOW, variant="c", series="precision"),
    ]
    names = [pair.names for pair in compare(frame(rows)).pairs]
    assert names == [("a", "b"), ("b", "c")]


def test_a_table_without_variants_uses_configurations() -> None:
    rows = [*passes(STEADY, configuration="x"), *passes(SLOW, configuration="y")]
    assert compare(frame(rows)).pairs[0].names == ("x", "y")


def test_an_empty_table() -> None:
    found = compare(frame([]))
    assert found.variants == () and found.pairs == () and found.planned == 0
    assert highest_round(frame([])) == 0


def test_a_table_without_rounds_counts_attempts() -> None:
    rows = [{**row, "round": None} for row in two()]
    assert highest_round(frame(rows)) == 5
    assert compare(frame(rows)).pairs[0].settlement.settled


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.sampled_from(["completed", "failed", "stopped", "interrupted"]),
            st.booleans(),
            st.none() | st.floats(0.1, 100),
            st.integers(0, 4),
        ),
        max_size=25,
    )
)
@settings(max_examples=60, deadline=None)
def test_every_row_of_a_round_is_counted_once(rows: list[tuple]) -> None:
    table = frame(
        {"variant": v, "status": s, "excluded": e, "pass_s": p, "round": r}
        for v, s, e, p, r in rows
    )
    groups = durations(table)
    counted = sum(g.succeeded + g.failed + g.stopped + g.interrupted + g.excluded for g in groups)
    assert counted == sum(r != 0 for *_, r in rows)
    json.dumps(compare(table).to_json(), allow_nan=False)


def test_a_sealed_protocol_says_how_its_durations_are_read() -> None:
    protocol = load(find("classification-batch"))
    how = sealed_reading(protocol, rounds=7)
    assert (how.rule, how.factor, how.planned, how.rounds) == ("auto", 1.5, 5, 7)
    assert how.series == {s.name: s.variants for s in protocol.series}
    assert how.hardware == ()
    a, b, *_ = protocol.order()
    rows = [
        *passes(STEADY, variant=a, host="h"),
        *passes(SLOW, variant=b, host="h"),
        *passes(SLOW, variant=a, host="k"),
    ]
    found = compare(frame(rows), how)
    assert [pair.names for pair in found.pairs] == [(a, b)]
    hardware = protocol.series[0].model_copy(update={"factor": "hardware"})
    how = sealed_reading(protocol.model_copy(update={"series": (hardware,)}), rounds=5)
    assert [pair.names for pair in compare(frame(rows), how).pairs] == [(f"{a} on h", f"{a} on k")]


def group(values: list[float], **more: Any) -> Durations:
    return durations(frame(passes(values, variant="v", **more)))[0]


def test_more_rounds_are_judged_by_the_observed_spread() -> None:
    a, b = group([10.0, 10.5, 11.0, 11.5, 12.0]), group([12.1, 12.6, 13.1, 13.6, 14.1])
    verdict = settle_pair(a.durations_s, b.durations_s)
    assert more_rounds(a, b, verdict, 5) == 5
    near = group([10.2, 10.7, 11.2, 11.7, 12.2])
    assert more_rounds(a, near, settle_pair(a.durations_s, near.durations_s), 5) is None


def test_the_estimate_settles_when_the_spread_repeats() -> None:
    a, b = [10.0, 10.9, 10.3, 10.1, 10.2], [10.8, 11.3, 10.85, 11.2, 11.0]
    one, other = group(a), group(b)
    verdict = settle_pair(a, b)
    assert not verdict.settled
    more = more_rounds(one, other, verdict, 5)
    assert more is not None
    times = -(-(5 + more) // 5)
    assert settle_pair(a * times, b * times, planned=5).settled


def test_a_sealed_range_rule_is_not_helped_by_more_rounds() -> None:
    rows = two([10.0, 10.5, 11.0, 11.5, 12.0], [12.1, 12.6, 13.1, 13.6, 14.1])
    (pair,) = compare(frame(rows), Reading(rule="range")).pairs
    assert "ranges only grow" in pair.could_settle[0]
    assert pair.more_rounds is None


def test_the_sealed_maximum_is_named_where_it_stands_in_the_way() -> None:
    rows = two([10.0, 10.5, 11.0, 11.5, 12.0], [12.1, 12.6, 13.1, 13.6, 14.1])
    (pair,) = compare(frame(rows), Reading(max_rounds=8)).pairs
    assert "the sealed maximum is 8" in pair.could_settle[0]
    assert pair.more_rounds is None
    (pair,) = compare(frame(rows), Reading(max_rounds=10)).pairs
    assert pair.more_rounds == 5 and "5 more whole rounds (to 10)" in pair.could_settle[0]
    (pair,) = compare(frame([row for row in rows if row["round"] < 4])).pairs
    assert (pair.more_rounds, pair.could_settle[0][:18]) == (1, "1 more whole round")


def told(*groups: Durations) -> str:
    return " ".join(causes(*groups))


def test_a_slow_first_pass_is_named() -> None:
    assert "the first pass took 15 s" in told(group([15.0, 10.0, 10.2, 10.1, 10.3]))
    assert "first pass" not in told(group([10.3, 10.0, 10.2, 10.1, 10.3]))


def test_an_incident_is_named_with_its_attempt() -> None:
    rows = passes([10.0, 10.1, 10.2, 10.1, 16.0], variant="v")
    table = frame({**row, "attempt": at} for at, row in enumerate(rows, 11))
    text = told(durations(table)[0])
    assert "attempt 15 took 16 s, the others 10 to 10.2 s" in text
    assert "It stays" in text


def test_drift_is_named_with_its_size() -> None:
    a = group([10.0, 10.1, 10.2, 10.3, 10.4])
    b = group([20.0, 20.2, 20.4, 20.6, 20.8])
    assert "got slower from round to round, about 3.9 %" in told(a, b)
    assert "round to round" not in told(group(STEADY), group(SLOW))


def test_the_phase_that_carries_the_spread_is_named() -> None:
    extra = [0.0, 1.0, 0.2, 2.0, 0.1]
    rows = [
        {**row, "tokenize_s": 1.0 + more, "forward_s": 9.0}
        for row, more in zip(
            passes([10.0 + more for more in extra], variant="v"), extra, strict=True
        )
    ]
    assert "tokenize_s carries 100 % of the variance" in told(durations(frame(rows))[0])


def test_memory_of_other_processes_is_named() -> None:
    rows = [
        {**row, "peak_reserved_bytes": 2 << 30, "peak_device_used_bytes": used}
        for row, used in zip(
            passes(STEADY, variant="v"), [3 << 30, 3 << 30, 9 << 30, 3 << 30, 3 << 30], strict=True
        )
    ]
    assert "from 1,024 to 7,168 MiB" in told(durations(frame(rows))[0])


def test_notes_on_temperature_are_repeated_cleaned() -> None:
    rows = passes(STEADY, variant="v", notes="Temperature rose \x1b[31m")
    text = told(durations(frame(rows))[0])
    assert "Temperature rose" in text and "\x1b" not in text


def test_one_host_with_a_larger_spread_is_named() -> None:
    wild = [10.0, 13.0, 11.0, 12.0, 10.5]
    rows = [*passes(STEADY, variant="v", host="h"), *passes(wild, variant="v", host="k")]
    (sentence,) = one_host(durations(frame(rows)))
    assert "27 % of the median on k" in sentence
    assert sentence in compare(frame(rows)).notes


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0], [5.0] * 5])
def test_nothing_is_suggested_where_nothing_is_seen(values: list[float]) -> None:
    if not values:
        rows = [{"variant": "v", "status": "failed", "round": 1}]
        assert causes(*durations(frame(rows))) == ()
    else:
        assert causes(group(values)) == ()
