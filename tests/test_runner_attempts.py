"""What becomes of attempts: order, status, failure, verdict, raw table; by real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import runner_parts as parts

from gpucost_tui.campaign.fold import State
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.runner import Options
from gpucost_tui.campaign.schema import SCHEMA
from gpucost_tui.campaign.table import raw_table

ROTATED = ["batch-1", "batch-4", "batch-8", "batch-4", "batch-8", "batch-1"]
POLICIES = ["child", "thread", "child-per-attempt"]
#: Cells that may be empty with nothing to explain.
_NEVER_EXPLAINED = {"failure", "exclusion_cause", "notes", "missing"}


def explained(row: dict[str, Any]) -> None:
    """Assert that every empty measured cell has its reason, and no reason is a stopgap (R20)."""
    said = dict(part.split(": ", 1) for part in (row["missing"] or "").split("; ") if ": " in part)
    for name in SCHEMA:
        if name not in _NEVER_EXPLAINED and row[name] is None:
            assert said.get(name), f"{name} of attempt {row['attempt']} is empty without a reason"
            assert "no end is recorded" not in said[name]
            assert "not judged" not in said[name]


def table(made: Campaign) -> list[dict[str, Any]]:
    return raw_table(parts.state(made)).to_dicts()


def run(made: Campaign, options: Options | None = None, **script: Any) -> list[dict[str, Any]]:
    parts.run_here(made, options, script=script)
    parts.sound(made)
    rows = table(made)
    for row in rows:
        explained(row)
    return rows


@pytest.mark.parametrize("policy", POLICIES)
def test_every_slot_in_rotated_order(tmp_path: Path, policy: str) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process=policy)
    rows = run(made)
    started = [e.data["row"] for e in parts.events(made) if e.event == "attempt_started"]
    assert [row["variant"] for row in started] == ROTATED
    assert [(row["round"], row["position"]) for row in started] == [
        (r, p) for r in (1, 2) for p in (1, 2, 3)
    ]
    assert {row["status"] for row in rows} == {"completed"}
    assert {row["corpus_accepted"] for row in rows} == {True}
    assert {row["process_policy"] for row in rows} == {policy}
    assert [row["batch_size"] for row in rows] == [1, 4, 8, 4, 8, 1]
    assert {row["configuration"] for row in rows} == {f"batch-{n} on CPU" for n in (1, 4, 8)}
    loaded = [row["load_s"] is not None for row in rows]
    assert loaded == ([True] * 6 if policy == "child-per-attempt" else [True] + [False] * 5)
    kinds = [event.event for event in parts.events(made)]
    assert kinds[:3] == ["sealed", "run_started", "host_seen"]
    assert kinds[3:-1] == ["attempt_started", "attempt_finished", "attempt_judged"] * 6
    assert kinds[-1] == "run_ended"


@pytest.mark.parametrize("policy", ["child", "thread"])
@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("out-of-memory", "out-of-memory"),
        ("fallback", "fallback"),
        ("raise", "error"),
        ("memory-error", "out-of-memory"),
    ],
)
def test_a_failure_keeps_its_row_and_its_entries(
    tmp_path: Path, policy: str, kind: str, failure: str
) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process=policy)
    rows = run(made, attempts={"2": {"fail": {"kind": kind, "after": 8}}})
    assert [row["status"] for row in rows] == ["completed", "failed", *["completed"] * 4]
    row = rows[1]
    assert row["failure"] == failure
    assert row["finished_entries"] == row["observed_ids"] == 8
    assert row["pass_s"] is None
    assert row["corpus_accepted"] is False
    assert row["configuration"] == "batch-4 on CPU"
    assert parts.state(made).attempts[2].reasons == ["failed", "identifiers"]
    predictions = pl.read_parquet(made.folder / row["predictions_path"])
    assert predictions["id"].to_list() == [
        "007",
        "1.0",
        "1e5",
        "[/INST]",
        "ü",
        'a,b"c',
        "100",
        "101",
    ]
    assert (made.folder / "attempts/0002-batch-4-r1/failure.txt").read_text("utf-8").strip()


@pytest.mark.parametrize("kind", ["exit", "kill", "segfault"])
def test_a_child_that_dies_costs_one_row(tmp_path: Path, kind: str) -> None:
    made = parts.campaign(tmp_path / "c")
    fail = {"kind": kind, "after": 8}
    rows = run(made, attempts={"2": {"batch_s": 0.3, "fail": fail}})
    assert [row["status"] for row in rows] == ["completed", "failed", *["completed"] * 4]
    assert rows[1]["failure"] == "killed"
    # Exact, though nothing was said through the pipe for a while: the shared page outlives it.
    assert rows[1]["finished_entries"] == 8
    assert "the batch that failed: 4 entries, padded length 16" in rows[1]["notes"]
    assert rows[1]["peak_rss_bytes"] > 1 << 20
    assert "finished_entries:" not in rows[1]["missing"]
    assert rows[1]["configuration"] == "batch-4 on CPU"
    assert rows[2]["load_s"] is not None, "a fresh child loads again"
    assert "lost" in (made.folder / "attempts/0002-batch-4-r1/failure.txt").read_text("utf-8")


def test_a_poisoned_device_gets_a_fresh_child(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c")
    rows = run(made, attempts={"2": {"fail": {"kind": "device-error", "after": 8}}})
    assert rows[1]["failure"] == "device-error"
    assert rows[1]["finished_entries"] == 8
    assert rows[2]["load_s"] is not None


def test_a_poisoned_device_ends_a_run_in_a_thread(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread")
    script = {"attempts": {"2": {"fail": {"kind": "device-error", "after": 8}}}}
    done = parts.gpucost("run", made.folder, script=script)
    assert done.returncode == 3
    assert "can't be used again" in done.stderr
    assert len(run(made, **script)) == 6


@pytest.mark.parametrize(
    ("spoiled", "reasons"),
    [
        ({"ids": "missing"}, ["identifiers"]),
        ({"ids": "duplicate"}, ["identifiers"]),
        ({"ids": "extra"}, ["identifiers"]),
        ({"ids": "wrong"}, ["identifiers"]),
        ({"scores": "nan"}, ["format", "quality"]),
        ({"scores": "inf"}, ["format", "quality"]),
        ({"ids": "extra", "scores": "nan"}, ["identifiers", "format"]),
        ({"accuracy": 0.0}, ["quality"]),
    ],
)
def test_a_verdict_names_every_reason(
    tmp_path: Path, spoiled: dict[str, Any], reasons: list[str]
) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    rows = run(made, attempts={"1": spoiled})
    assert rows[0]["status"] == "completed"
    assert rows[0]["pass_s"] is not None, "a rejected pass has a duration all the same"
    assert rows[0]["corpus_accepted"] is False
    assert parts.state(made).attempts[1].reasons == reasons
    verdict = json.loads((made.folder / "attempts/0001-batch-1-r1/verdict.json").read_bytes())
    assert verdict["reasons"] == reasons
    assert verdict["accepted"] is False
    assert rows[1]["corpus_accepted"] is True


def test_subgroups_are_judged_apart(tmp_path: Path) -> None:
    rows = parts.corpus_rows()
    for i, row in enumerate(rows):
        row["size"] = "many" if i % 8 else "few"
    made = parts.campaign(
        tmp_path / "c",
        rows=rows,
        measurement__process="thread",
        measurement__rounds=1,
        quality__threshold=0.1,
        quality__subgroups=[
            {"column": "team", "threshold": 1.0},
            {"column": "size", "threshold": 1.0, "min_entries": 10},
        ],
    )
    judged = run(made, default={"accuracy": 0.6})
    assert judged[0]["quality_ok"] is True
    assert judged[0]["subgroups_ok"] is False
    assert parts.state(made).attempts[1].reasons == ["quality"]
    verdict = json.loads((made.folder / "attempts/0001-batch-1-r1/verdict.json").read_bytes())
    groups = {(g["column"], g["value"]): g for g in verdict["details"]["subgroups"]}
    assert groups["size", "few"]["ok"] is None
    assert groups["size", "few"]["note"] == "fewer than 10 entries"
    assert groups["size", "many"]["ok"] is False
    whole = run(parts.campaign(tmp_path / "d", rows=rows), default={"accuracy": 1.0})
    assert whole[0]["corpus_accepted"] is True


def test_an_interval_is_shown_or_decides_as_sealed(tmp_path: Path) -> None:
    sealed = {"measurement__process": "thread", "measurement__rounds": 1}
    found = {}
    for word in ("shown", "lower-bound"):
        made = parts.campaign(
            tmp_path / word, quality__threshold=0.75, quality__interval=word, **sealed
        )
        row = run(made, default={"accuracy": 0.82})[0]
        verdict = json.loads((made.folder / "attempts/0001-batch-1-r1/verdict.json").read_bytes())
        interval = verdict["details"]["interval"]
        assert interval["low"] < 0.75 <= row["quality"] <= interval["high"]
        assert (interval["level"], interval["method"]) == (0.95, "wilson")
        assert parts.state(made).attempts[1].interval == interval
        found[word] = row, verdict
    assert found["shown"][0]["quality_ok"] is True
    row, verdict = found["lower-bound"]
    assert (row["quality_ok"], row["corpus_accepted"]) == (False, False)
    assert verdict["reasons"] == ["quality"]
    assert any("interval of accuracy begins at" in note for note in verdict["notes"])
    manifests = [json.loads((tmp_path / w / "manifest.json").read_bytes()) for w in found]
    assert ["interval" in one["protocol"]["quality"] for one in manifests] == [False, True]


def test_neighbours_of_a_subgroup_are_those_of_the_whole_corpus(tmp_path: Path) -> None:
    rows = parts.corpus_rows()
    for i, row in enumerate(rows):
        row["half"] = "even" if i % 2 else "odd"
    made = parts.campaign(
        tmp_path / "c",
        rows=rows,
        protocol="embedding-batch",
        measurement__rounds=1,
        quality__metric="recall_at_k",
        quality__threshold=0.9,
        quality__subgroups=[{"column": "half", "threshold": 0.5}],
    )
    judged = run(made)
    assert [row["quality"] for row in judged if row["round"]] == [1.0] * 3
    verdict = json.loads((made.folder / "attempts/0002-batch-1-r1/verdict.json").read_bytes())
    assert [group["quality"] for group in verdict["details"]["subgroups"]] == [1.0, 1.0]
    assert verdict["details"]["interval"]["method"] == "bootstrap"


def test_memory_of_every_device_has_its_own_table(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    cards = [{"name": "Card", "uuid": f"GPU-{i}", "capacity_bytes": 80 << 30} for i in range(2)]
    rows = run(made, devices=cards)
    assert {row["gpu"] for row in rows} == {"Card"}
    assert {row["configuration"] for row in rows} == {f"batch-{n} on Card" for n in (1, 4, 8)}
    assert rows[0]["peak_allocated_bytes"] == 2 << 30
    memory = pl.read_csv(made.folder / "device_memory.csv", infer_schema=False)
    assert memory["attempt"].to_list() == ["1", "1", "2", "2", "3", "3"]
    assert memory["peak_allocated_bytes"].to_list()[:2] == [str(2 << 30), None]
    assert memory["peak_device_used_bytes"].to_list()[:2] == [str(4 << 30)] * 2
    assert "peak_allocated_bytes: not used by this pass" in memory["missing"][1]
    assert memory["uuid"].to_list()[:2] == ["GPU-0", "GPU-1"]


def test_the_written_tables_are_the_fold(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    run(made, attempts={"2": {"fail": {"kind": "out-of-memory", "after": 8}}})
    folded = raw_table(parts.state(made))
    assert pl.read_parquet(made.folder / "raw_results.parquet").equals(folded)
    text = parts.table(made)
    assert text.columns == list(SCHEMA)
    for name, kind in SCHEMA.items():
        column = text[name]
        if kind == pl.Boolean:
            read = column == "true"
            read = pl.select(pl.when(column.is_not_null()).then(read)).to_series()
        elif isinstance(kind, pl.Datetime):
            read = column.str.to_datetime("%Y-%m-%dT%H:%M:%S%.6fZ", time_unit="us", time_zone="UTC")
        else:
            read = column.cast(kind)
        assert read.equals(folded[name]), name


def test_ids_survive_as_they_were_written(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    rows = run(made)
    predictions = pl.read_parquet(made.folder / rows[0]["predictions_path"])
    assert predictions["id"].to_list() == [row["id"] for row in parts.corpus_rows()]


# -- reference passes -----------------------------------------------------------------------------


def test_a_reference_variant_makes_an_untimed_round_0(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", protocol="embedding-batch", measurement__rounds=1)
    rows = run(made)
    assert [(row["round"], row["variant"]) for row in rows] == [
        (0, "batch-1"),
        (1, "batch-1"),
        (1, "batch-4"),
        (1, "batch-8"),
    ]
    assert rows[0]["pass_s"] is None
    assert "pass_s: reference pass: untimed" in rows[0]["missing"]
    assert [row["corpus_accepted"] for row in rows] == [None, True, True, True]
    assert [row["quality"] for row in rows[1:]] == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("kind", ["kill", "out-of-memory"])
def test_a_failed_reference_pass_ends_the_run_until_it_is_repeated(
    tmp_path: Path, kind: str
) -> None:
    made = parts.campaign(tmp_path / "c", protocol="embedding-batch", measurement__rounds=1)
    script = {"attempts": {"1": {"fail": {"kind": kind, "after": 4}}}}
    done = parts.gpucost("run", made.folder, script=script)
    assert done.returncode == 1
    assert "nothing can be judged" in done.stderr
    assert "--repeat 1" in done.stderr
    again = parts.gpucost("run", made.folder, script=script)
    assert again.returncode == 1, "a run without a reference would measure in vain"
    assert len(parts.rows(made)) == 1
    done = parts.gpucost("run", made.folder, "--repeat", "1", script=script)
    assert done.returncode == 0, done.stderr
    rows = table(made)
    assert [row["round"] for row in rows] == [0, 0, 1, 1, 1]
    assert [row["corpus_accepted"] for row in rows] == [False, None, True, True, True]


def test_a_reference_of_the_wrong_form_can_not_be_repeated(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", protocol="embedding-batch", measurement__rounds=1)
    done = parts.gpucost("run", made.folder, script={"attempts": {"1": {"scores": "nan"}}})
    assert done.returncode == 1
    assert "(format)" in done.stderr
    assert "make a new campaign" in done.stderr


def test_a_tolerance_is_held_against_the_reference_variant(tmp_path: Path) -> None:
    made = parts.campaign(
        tmp_path / "c",
        measurement__rounds=1,
        quality__threshold=0.2,
        quality__tolerance=0.05,
        quality__tolerance_variant="batch-1",
    )
    rows = run(made, default={"accuracy": 1.0}, attempts={"3": {"accuracy": 0.7}})
    assert [row["round"] for row in rows] == [0, 1, 1, 1]
    assert [row["corpus_accepted"] for row in rows] == [None, True, False, True]
    assert parts.state(made).attempts[3].reasons == ["quality"]
    assert "loses more than 0.05" in rows[2]["notes"]


# -- more slots -----------------------------------------------------------------------------------


def test_whole_rounds_up_to_the_sealed_maximum(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    run(made)
    rows = run(made, Options(more_rounds=2))
    assert [row["variant"] for row in rows[3:]] == [
        *("batch-4", "batch-8", "batch-1"),
        *("batch-8", "batch-1", "batch-4"),
    ]
    before = len(parts.events(made))
    done = parts.gpucost("run", made.folder, "--more-rounds", "2")
    assert done.returncode == 1
    assert "more than the sealed maximum of 4 (R26)" in done.stderr
    assert "At most 1 can be added" in done.stderr
    assert len(parts.events(made)) == before


def test_a_failed_attempt_is_repeated_and_stays(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    script = {"attempts": {"2": {"fail": {"kind": "raise", "after": 8}}}}
    run(made, **script)
    rows = run(made, Options(repeat=2), **script)
    assert [(row["variant"], row["status"]) for row in rows] == [
        ("batch-1", "completed"),
        ("batch-4", "failed"),
        ("batch-8", "completed"),
        ("batch-4", "completed"),
    ]
    for number, words in ((9, "there is no attempt 9"), (1, "attempt 1 is completed")):
        done = parts.gpucost("run", made.folder, "--repeat", str(number))
        assert done.returncode == (2 if number == 9 else 1)
        assert words in done.stderr
    assert len(parts.rows(made)) == 4


def test_a_repeat_that_is_refused_adds_no_rounds(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    done = parts.gpucost("run", made.folder, "--more-rounds", "1", "--repeat", "5")
    assert done.returncode == 2
    assert parts.state(made).additions == []


def test_a_limit_leaves_the_rest_open(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    done = parts.gpucost("run", made.folder, "--limit", "2")
    assert done.returncode == 0
    assert "the limit of 2 attempts is reached" in done.stdout
    assert "1 slot open" in done.stdout
    assert len(run(made)) == 3


def test_what_can_not_run_is_said(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    done = parts.gpucost("run", made.folder, script={"broken": "No module named 'torch'"})
    assert done.returncode == 3
    assert "could not start: ImportError: No module named 'torch'" in done.stderr
    assert "Traceback" not in done.stderr
    assert parts.rows(made) == []
    (made.folder / "corpus/corpus.jsonl").write_text('{"id": "1", "text": "another"}\n')
    done = parts.gpucost("run", made.folder)
    assert done.returncode == 1
    assert "the corpus is not what was sealed" in done.stderr
    missing = parts.gpucost("run", tmp_path / "nowhere")
    assert missing.returncode == 2


def test_the_fold_of_nothing_is_an_empty_table() -> None:
    empty = raw_table(State())
    assert empty.schema == SCHEMA
    assert empty.is_empty()
