"""The balance and the decision: every golden case, then the edges between them."""

from __future__ import annotations

import json
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from analysis_support import frame, passes
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui import resources
from gpucost_tui.analysis.balance import Decision, decide_table
from gpucost_tui.analysis.plan_file import parse_plan, plan_from, read_plan
from gpucost_tui.analysis.table import FOR_DECIDE, read_table
from gpucost_tui.errors import InputError, Refused
from gpucost_tui.pricing import catalogue

GOLDEN = json.loads((Path(__file__).parent / "golden" / "decisions.json").read_text())
PRICES = catalogue.assembled(catalogue.built_in())
A, B = "batch-4 on 1 lot of rtx-4090", "batch-8 on 1 lot of rtx-4090"
C = "batch-8 on 1 lot of b200"
STEADY = [50.0, 51.0, 50.0, 50.0, 51.0]
QUICK = [40.0, 41.0, 40.0, 40.0, 41.0]


def toml_of(case: dict[str, Any]) -> str:
    """Write a golden case as the plan file that a person would write."""
    keys = ("deliverables", "planned_rounds", "deadline_hours", "window_basis", "quality_threshold")
    lines = [f"{key} = {json.dumps(case[key])}" for key in keys]
    if case["budget_usd"] is not None:
        lines.append(f"budget_usd = {json.dumps(case['budget_usd'])}")
    for name, values in case["configurations"].items():
        lines += ["", f"[configurations.{json.dumps(name)}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("case", GOLDEN, ids=[case["name"] for case in GOLDEN])
def test_golden_decision_through_files(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(toml_of(case))
    columns = list(case["attempts"][0])
    pl.DataFrame(
        {c: [None if (v := a[c]) is None else str(v) for a in case["attempts"]] for c in columns},
        schema=dict.fromkeys(columns, pl.String),
    ).write_csv(tmp_path / "table.csv")
    table = read_table(tmp_path / "table.csv", FOR_DECIDE).frame
    found = decide_table(table, read_plan(tmp_path / "plan.toml"), PRICES).to_json()
    json.dumps(found, allow_nan=False)
    expect = case["expect"]
    for key in set(expect) - {"not_admissible"}:
        assert found[key] == expect[key], key
    out = {r["configuration"]: r["reasons"][0] for r in found["balance"] if not r["admissible"]}
    if "not_admissible" in expect:
        assert out == expect["not_admissible"]
    assert {row["configuration"] for row in found["balance"]} == set(case["configurations"])
    assert found["notes"]
    if found["outcome"] != "decided":
        assert found["committed_usd"] == expect.get("committed_usd", found["committed_usd"])


def plan(*names: str, **more: Any) -> Any:
    gpus = {A: "rtx-4090", B: "rtx-4090", C: "b200"}
    values: dict[str, Any] = {
        "deliverables": ["orders"],
        "deadline_hours": 168,
        "window_basis": "measured",
        "configurations": {
            name: {"gpu": gpus[name], "lots": 1, "window_hours": 96} for name in names
        },
    }
    configuration = more.pop("configuration", {})
    for settings_ in values["configurations"].values():
        settings_.update(configuration)
    return plan_from({**values, **more})


def attempts(name: str, values: list[float], **more: Any) -> list[dict[str, Any]]:
    return passes(values, configuration=name, deliverable="orders", **more)


def decide(rows: list[dict[str, Any]], by: Any) -> Decision:
    return decide_table(frame(rows), by, PRICES)


def test_no_attempts_at_all() -> None:
    found = decide([], plan(A, C))
    assert found.outcome == "undecided"
    assert [row.reasons for row in found.rows] == [("missing",), ("missing",)]
    assert found.to_json()["committed_usd"] == "2181.00"
    assert found.rows[0].cost_per_accepted_usd is None
    assert "no attempt" in found.rows[0].why[0]


def test_an_unknown_configuration_is_refused() -> None:
    with pytest.raises(InputError, match="is none of the plan's") as caught:
        decide([*attempts(A, STEADY), *attempts("typo", QUICK)], plan(A))
    assert "row 6" in str(caught.value) and A in str(caught.value)


def test_an_unknown_deliverable_is_refused_and_an_unnamed_one_is_filled() -> None:
    rows = attempts(A, STEADY)
    assert decide([{**row, "deliverable": None} for row in rows], plan(A)).outcome == "decided"
    with pytest.raises(InputError, match="none of the plan's"):
        decide([{**row, "deliverable": "other"} for row in rows], plan(A))
    with pytest.raises(InputError, match="names no deliverable"):
        decide(
            [{**row, "deliverable": None} for row in rows],
            plan(A, deliverables=["orders", "returns"]),
        )


def test_each_deliverable_is_one_distinct_corpus() -> None:
    rows = attempts(A, STEADY, corpus_sha256="aa")
    again = [{**row, "deliverable": "returns"} for row in rows]
    by = plan(A, deliverables=["orders", "returns"])
    with pytest.raises(InputError, match="are one corpus"):
        decide([*rows, *again], by)
    other = [{**row, "corpus_sha256": "bb"} for row in again]
    assert decide([*rows, *other], by).rows[0].accepted_deliverables == 2
    with pytest.raises(InputError, match="'orders' read 2 different corpora"):
        decide([*rows, {**rows[0], "corpus_sha256": "bb"}], by)


def test_an_unknown_gpu_is_suggested_not_taken() -> None:
    with pytest.raises(InputError, match="rtx-4090") as caught:
        decide(attempts(A, STEADY), plan(A, configuration={"gpu": "RTX 4090"}))
    assert f"configuration '{A}'" in str(caught.value)


@pytest.mark.parametrize(("budget", "outcome"), [("110.00", "decided"), ("109.99", "undecided")])
def test_budget_equal_to_the_commitment(budget: str, outcome: str) -> None:
    assert decide(attempts(A, STEADY), plan(A, budget_usd=budget)).outcome == outcome


@pytest.mark.parametrize(("deadline", "outcome"), [(96, "decided"), (95.999999, "undecided")])
def test_deadline_equal_to_the_window(deadline: float, outcome: str) -> None:
    found = decide(attempts(A, STEADY), plan(A, deadline_hours=deadline))
    assert found.outcome == outcome
    assert found.rows[0].reasons == (() if outcome == "decided" else ("deadline",))


def test_a_failed_attempt_then_an_accepted_one_is_accepted() -> None:
    rows = attempts(A, STEADY)
    rows[0].update(status="failed", pass_s=None, corpus_accepted=False, failure="error")
    found = decide(rows, plan(A))
    assert found.outcome == "decided"
    assert (found.rows[0].failures, found.rows[0].accepted_deliverables) == (1, 1)


def test_only_excluded_attempts_are_a_missing_deliverable() -> None:
    found = decide(attempts(A, STEADY, excluded=True), plan(A))
    assert found.rows[0].reasons == ("missing",)
    assert found.rows[0].to_json()["durations_s"] == []
    assert "5 excluded" in found.rows[0].why[0]


@pytest.mark.parametrize("status", ["stopped", "interrupted"])
def test_stopped_and_interrupted_are_listed_not_counted(status: str) -> None:
    rows = [*attempts(A, STEADY), *attempts(B, STEADY)]
    rows.append({**rows[0], "status": status, "pass_s": None, "corpus_accepted": False})
    found = decide(rows, plan(A, B))
    assert found.outcome == "tied"
    assert any(f"1 {status}, listed" in note for note in found.notes)
    alone = decide([{**rows[-1]}], plan(A))
    assert alone.rows[0].reasons == ("missing",)


def test_a_fast_interruption_is_no_success() -> None:
    rows = attempts(A, [1.0], status="interrupted")
    found = decide(rows, plan(A))
    assert found.outcome == "undecided"
    assert any("marked accepted: it is no result" in note for note in found.notes)


def test_a_completed_pass_without_verdict_is_missing() -> None:
    rows = attempts(A, STEADY)
    rows[4]["corpus_accepted"] = None
    assert decide(rows, plan(A)).rows[0].reasons == ("missing",)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"quality": 0.84}, "quality"),
        ({"ids_match": False}, "identifiers"),
        ({"expected_ids": 10, "observed_ids": 9}, "identifiers"),
        ({"format_ok": False}, "format"),
        ({"subgroups_ok": False}, "quality"),
        ({"quality_ok": False}, "quality"),
    ],
)
def test_a_row_accepted_against_its_own_figures_is_rejected(
    cells: dict[str, Any], reason: str
) -> None:
    rows = attempts(A, STEADY)
    rows[2].update(cells)
    found = decide(rows, plan(A, quality_threshold=0.85))
    assert found.rows[0].reasons == (reason,)
    assert any("is marked accepted" in note for note in found.notes)


def test_every_reason_is_told_in_order() -> None:
    rows = attempts(C, STEADY, corpus_accepted=False, quality=0.1, ids_match=False)
    by = plan(
        C,
        window_basis="assumed",
        deadline_hours=10,
        budget_usd="1.00",
        quality_threshold=0.85,
        deliverables=["orders", "returns"],
    )
    expected = ("identifiers", "missing", "quality", "deadline", "budget", "window")
    assert decide(rows, by).rows[0].reasons == expected


def test_a_window_that_is_not_given_and_one_that_nothing_covers() -> None:
    rows = attempts(A, STEADY)
    unknown = decide(rows, plan(A, configuration={"window_hours": None}))
    assert unknown.rows[0].reasons == ("window",) and unknown.committed_usd is None
    long = decide(rows, plan(A, configuration={"window_hours": 721}, deadline_hours=1000))
    assert long.rows[0].reasons == ("window",)
    short = decide(
        rows, plan(A, configuration={"window_hours": 169, "days": 7}, deadline_hours=200)
    )
    assert short.rows[0].reasons == ("window",)
    assert short.to_json()["committed_usd"] == "110.00"
    assert "1 h are over" in short.rows[0].why[0]
    priceless = decide(rows, plan(A, configuration={"window_hours": 169}, deadline_hours=200))
    assert priceless.rows[0].reasons == ("price",)


def test_a_pack_covers_its_last_second() -> None:
    rows = attempts(A, STEADY)
    exact = parse_plan(toml_plan(A, "168.0"), "plan.toml")
    assert decide(rows, exact).outcome == "decided"
    over = parse_plan(toml_plan(A, "168.0000001", deadline="200"), "plan.toml")
    assert decide(rows, over).rows[0].reasons == ("price",)


def test_nothing_is_called_cheapest_beside_an_unknown_price() -> None:
    rows = [*attempts(A, STEADY), *attempts(C, QUICK)]
    by = plan_from(
        {
            "deliverables": ["orders"],
            "deadline_hours": 168,
            "window_basis": "measured",
            "configurations": {
                A: {"gpu": "rtx-4090", "lots": 1, "window_hours": 60, "days": 3},
                C: {"gpu": "b200", "lots": 1, "window_hours": 60},
            },
        }
    )
    found = decide(rows, by)
    assert found.configuration == C
    assert any("nothing is called cheapest" in note for note in found.notes)


def test_one_rental_shared_by_two_variants_is_one_commitment() -> None:
    assert decide([], plan(A, B)).committed_usd == Decimal("110.00")
    assert decide([], plan(A, B, C)).committed_usd == Decimal("2181.00")


def test_failures_are_a_rate_per_planned_attempt() -> None:
    failed = {"status": "failed", "pass_s": None, "corpus_accepted": False}
    rows = [
        *attempts(A, STEADY, host="h"),
        *attempts(A, STEADY, host="k"),
        *attempts(B, STEADY, host="h"),
    ]
    rows[0].update(failed)  # one of ten planned for A
    rows[10].update(failed)  # one of five planned for B
    found = decide(rows, plan(A, B))
    assert [row.planned_attempts for row in found.rows] == [10, 5]
    assert found.configuration == A


def test_a_settled_difference_must_be_alike_in_every_seed() -> None:
    rows = [
        *attempts(A, QUICK, seed=0),
        *attempts(A, STEADY, seed=1),
        *attempts(B, STEADY, seed=0),
        *attempts(B, QUICK, seed=1),
    ]
    found = decide(rows, plan(A, B))
    assert found.outcome == "tied"
    assert any("One is faster for some of the work" in note for note in found.notes)
    assert found.rows[0].to_json()["median_s"] is None
    for row in rows[5:10]:
        row["pass_s"] -= 30
    assert decide(rows, plan(A, B)).configuration == A


def test_a_seed_that_one_lacks_settles_nothing() -> None:
    rows = [*attempts(A, QUICK, seed=0), *attempts(A, QUICK, seed=1), *attempts(B, STEADY, seed=0)]
    found = decide(rows, plan(A, B, planned_rounds=5))
    assert found.outcome == "tied"
    assert any("lacks durations" in note for note in found.notes)


def test_configurations_on_different_hosts_are_compared() -> None:
    rows = [*attempts(A, QUICK, host="h"), *attempts(B, STEADY, host="k")]
    assert decide(rows, plan(A, B)).configuration == A


def test_three_that_are_equal_but_for_one_slow_one_are_tied_without_it() -> None:
    slow = plan_from(
        {
            "deliverables": ["orders"],
            "deadline_hours": 168,
            "window_basis": "measured",
            "configurations": {
                n: {"gpu": "rtx-4090", "lots": 1, "window_hours": 96} for n in (A, B, "slow")
            },
        }
    )
    rows = [*attempts(A, STEADY), *attempts(B, STEADY), *attempts("slow", [500.0] * 5)]
    found = decide(rows, slow)
    assert found.outcome == "tied" and found.tied == (A, B)


def test_planned_rounds_default_to_the_highest_round() -> None:
    rows = [*attempts(A, QUICK), *attempts(B, STEADY[:4])]
    assert decide(rows, plan(A, B)).outcome == "tied"
    assert decide(rows, plan(A, B, planned_rounds=4)).configuration == A


def test_other_spending_is_for_all_or_for_none() -> None:
    rows = [*attempts(A, STEADY), *attempts(C, QUICK)]
    one = [{"configuration": A, "usd": "12.50", "reason": "storage"}]
    with pytest.raises(Refused, match="b200"):
        decide(rows, plan(A, C, spending=one))
    both = [*one, {"configuration": C, "usd": "0.00", "reason": "none needed"}]
    found = decide(rows, plan(A, C, spending=both)).to_json()
    assert found["balance"][0]["other_spending"]["total_usd"] == "12.50"
    assert found["committed_usd"] == "110.00"


@given(st.permutations(range(10)))
@settings(max_examples=15, deadline=None)
def test_the_order_of_the_rows_changes_nothing(order: list[int]) -> None:
    rows = [*attempts(A, STEADY), *attempts(B, QUICK)]
    assert decide([rows[at] for at in order], plan(A, B)).configuration == B


def toml_plan(name: str, window: str, *, deadline: str = "168", more: str = "") -> str:
    return (
        f'deliverables = ["orders"]\ndeadline_hours = {deadline}\nwindow_basis = "measured"\n{more}'
        f'[configurations."{name}"]\ngpu = "rtx-4090"\nlots = 1\nwindow_hours = {window}\n'
    )


def test_the_template_is_a_plan() -> None:
    path = resources.file("data", "decision_plan_template.toml")
    found = read_plan(path)
    assert found.budget_usd == Decimal("500.00") and found.window_basis == "assumed"
    uncommented = path.read_text().replace("\n# [[", "\n[[").replace("\n# usd", "\nusd")
    uncommented = uncommented.replace("\n# configuration =", "\nconfiguration =")
    uncommented = uncommented.replace("\n# reason", "\nreason")
    assert len(tomllib.loads(uncommented)["spending"]) == 1
    assert len(parse_plan(uncommented, "plan.toml").spending) == 1


@pytest.mark.parametrize("budget", ['"1500.00"', "1500", "1500.00"])
def test_a_budget_as_people_write_it(budget: str) -> None:
    found = parse_plan(toml_plan(A, "96", more=f"budget_usd = {budget}\n"), "plan.toml")
    assert found.budget_usd == Decimal(1500)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("planed_rounds = 5\n", ("line 4", "planed_rounds", "unknown")),
        ("planned_rounds = 0\n", ("line 4", "planned_rounds")),
        ("planned_rounds = 5.0\n", ("planned_rounds",)),
        ("planned_rounds = true\n", ("planned_rounds",)),
        ('budget_usd = "-1"\n', ("budget_usd", "500.00")),
        ("budget_usd = -1.5\n", ("budget_usd", "500.00")),
        ("budget_usd = 1.234\n", ("two decimals",)),
        ("budget_usd = nan\n", ("budget_usd",)),
        ("quality_threshold = nan\n", ("finite",)),
        ('quality_threshold = "0.85"\n', ("a number is expected",)),
        ("settled_factor = 0\n", ("above 0",)),
        ('settled_rule = "median"\n', ("'auto', 'range' or 'interval'",)),
        ('spending = "none"\n', ("spending is no list",)),
        ('question = "\n', ("not TOML",)),
    ],
)
def test_mistakes_in_a_plan_are_located(more: str, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        parse_plan(toml_plan(A, "96", more=more), "plan.toml")
    for word in ("plan.toml", *words):
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("window_hours = 96", "window_hours = -1", ("line 7", "hours above 0")),
        ("window_hours = 96", "window_hours = inf", ("finite",)),
        ("window_hours = 96", 'window_hours = "96"', ("a number is expected",)),
        ("lots = 1", "lots = 1.5", ("line 6", "lots")),
        ("lots = 1", "lots = 0", ("lots",)),
        ("lots = 1", "lots = 10001", ("lots",)),
        ("lots = 1\n", "", ("'lots' is missing",)),
        ("lots = 1", "lots = 1\ndays = 5", ("expected 3, 7 or 30",)),
        ("lots = 1", "lots = 1\ncolour = 5", ("unknown here",)),
        ('["orders"]', "[]", ("deliverables",)),
        ('["orders"]', '["orders", "orders"]', ("named twice",)),
        ("deadline_hours = 168\n", "", ("'deadline_hours' is missing",)),
    ],
)
def test_mistakes_in_a_configuration_are_located(old: str, new: str, words: tuple) -> None:
    text = toml_plan(A, "96")
    assert old in text
    with pytest.raises(InputError) as caught:
        parse_plan(text.replace(old, new), "plan.toml")
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a = \x00", b"", b"\xef\xbb\xbf", b"[" * 5000])
def test_files_that_are_no_plan(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_plan(path)
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "absent.toml")


def test_a_plan_with_bom_and_crlf(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_bytes(("\ufeff" + toml_plan(A, "96").replace("\n", "\r\n")).encode())
    assert list(read_plan(path).configurations) == [A]
