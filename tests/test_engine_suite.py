"""The same tests over a fake engine and a real small model, in a thread and in a child process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import engine_parts as parts
import polars as pl
import pytest

from gpucost_tui.campaign.schema import SCHEMA
from gpucost_tui.engine.attempt import COLUMNS
from gpucost_tui.engine.rows import PASS_COLUMNS
from gpucost_tui.files import sha256_file
from gpucost_tui.tasks import registry

ENTRIES = 30
HOSTS = {"thread": parts.ThreadHost, "child": parts.ChildHost}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parts.tiny_bert(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parts.write_corpus(tmp_path_factory.mktemp("corpus") / "mail.jsonl", ENTRIES)


@pytest.fixture(
    scope="module",
    params=[(policy, engine) for policy in HOSTS for engine in (parts.FAKE, parts.TORCH)],
    ids=lambda p: f"{p[0]}-{p[1].rpartition(':')[2]}",
)
def host(request: pytest.FixtureRequest) -> Iterator[parts.ThreadHost]:
    policy, engine = request.param
    slow = {"GPUCOST_FAKE": json.dumps({"default": {"batch_s": 0.002}})}
    opened = HOSTS[policy](engine, slow)
    opened.until("ready")
    yield opened
    opened.close()


@pytest.mark.parametrize("batch_size", [1, 4, 8])
def test_a_pass_predicts_every_entry_once(
    host: parts.ThreadHost, corpus: Path, model: Path, tmp_path: Path, batch_size: int
) -> None:
    job = parts.job(corpus, model, tmp_path / "predictions.parquet", batch_size=batch_size)
    outcome = host.run(job)
    assert (outcome.status, outcome.failure, outcome.error) == ("completed", None, None)
    assert outcome.finished_entries == ENTRIES
    frame = parts.read(job)
    task = registry.create(job.task)
    assert dict(frame.schema) == task.schema()
    assert frame["id"].to_list() == [f"{i:03d}" for i in range(ENTRIES)]
    assert sorted(frame["order"]) == list(range(ENTRIES))
    assert outcome.labels == parts.LABELS
    assert task.check_format(frame, labels=outcome.labels) == []
    assert outcome.row["predictions_sha256"] == sha256_file(Path(job.predictions))


def test_every_column_has_a_value_or_a_reason(
    host: parts.ThreadHost, corpus: Path, model: Path, tmp_path: Path
) -> None:
    outcome = host.run(parts.job(corpus, model, tmp_path / "p.parquet"))
    assert set(outcome.row) <= set(SCHEMA.names())
    for name in COLUMNS:
        assert (outcome.row[name] is None) == (name in outcome.missing), name
    pl.DataFrame([outcome.row], schema={k: SCHEMA[k] for k in outcome.row})
    assert outcome.row["peak_allocated_bytes"] is None
    assert outcome.missing["peak_allocated_bytes"] == "no GPU"
    assert outcome.missing["compile_s"] == "not compiled"
    phases = [outcome.row[name] for name in PASS_COLUMNS]
    assert all(value >= 0 for value in phases)
    assert sum(phases[1:]) <= phases[0] + 1e-6
    assert outcome.row["padding_ratio"] >= 1


def test_weights_are_kept_and_freed(
    host: parts.ThreadHost, corpus: Path, model: Path, tmp_path: Path
) -> None:
    first = host.run(parts.job(corpus, model, tmp_path / "1", attention="eager"))
    second = host.run(parts.job(corpus, model, tmp_path / "2", attention="eager", batch_size=4))
    third = host.run(parts.job(corpus, model, tmp_path / "3", dtype="bfloat16"))
    assert first.row["load_s"] >= 0
    assert second.row["load_s"] is None
    assert second.missing["load_s"] == "already loaded"
    assert third.row["load_s"] is not None
    assert third.row["dtype_effective"] == "bfloat16"
    assert first.row["attention_effective"] == "eager"


def test_the_reference_pass_has_no_duration(
    host: parts.ThreadHost, corpus: Path, model: Path, tmp_path: Path
) -> None:
    job = parts.job(corpus, model, tmp_path / "0.parquet", timed=False)
    outcome = host.run(job)
    assert outcome.status == "completed"
    assert parts.read(job).height == ENTRIES
    for name in PASS_COLUMNS:
        assert outcome.row[name] is None
        assert outcome.missing[name] == "reference pass: untimed"


def test_a_stop_leaves_after_a_batch(host: parts.ThreadHost, tmp_path: Path, model: Path) -> None:
    many = parts.write_corpus(tmp_path / "many.jsonl", 4000)
    job = parts.job(many, model, tmp_path / "p.parquet", warmup={"inputs": "first-batch"})
    host.submit(job)
    while host.until("progress")["finished"] < 1:
        pass
    host.stop()
    outcome = parts.outcome(host.until("outcome"))
    assert (outcome.status, outcome.failure) == ("stopped", None)
    assert 0 < outcome.finished_entries < 4000
    frame = parts.read(job)
    assert frame.height == outcome.finished_entries
    assert frame["id"].to_list() == [f"{i:03d}" for i in range(frame.height)]
    assert outcome.row["pass_s"] is None
    assert outcome.missing["pass_s"] == f"stopped after {frame.height} of 4000 entries"


def test_a_stop_does_not_reach_the_next_attempt(
    host: parts.ThreadHost, corpus: Path, model: Path, tmp_path: Path
) -> None:
    host.stop()
    assert host.run(parts.job(corpus, model, tmp_path / "p")).status == "completed"


def test_the_events_of_an_attempt(
    host: parts.ThreadHost, corpus: Path, model: Path, tmp_path: Path
) -> None:
    host.events.clear()
    host.run(parts.job(corpus, model, tmp_path / "p"))
    phases = [event["phase"] for event in host.events if event["event"] == "phase"]
    assert phases == ["load", "warm-up", "pass", "write"]
    progress = [event["finished"] for event in host.events if event["event"] == "progress"]
    assert progress[-1] == ENTRIES
    assert progress == sorted(progress)


def test_a_corpus_that_is_gone_fails_with_a_sentence(
    host: parts.ThreadHost, corpus: Path, model: Path, tmp_path: Path
) -> None:
    gone = tmp_path / "gone.jsonl"
    gone.write_bytes(corpus.read_bytes())
    job = parts.job(gone, model, tmp_path / "p")
    gone.unlink()
    outcome = host.run(job)
    assert (outcome.status, outcome.failure) == ("failed", "error")
    assert outcome.finished_entries == 0
    assert outcome.error and "gone.jsonl" in outcome.error
    assert outcome.row["predictions_path"] is None
    # A real engine reads the corpus in its warm-up, the fake one in the pass.
    ends = (f"failed after 0 of {ENTRIES} entries", "failed during the warm-up")
    assert outcome.missing["predictions_path"] in ends
    assert not Path(job.predictions).exists()
    assert host.run(parts.job(corpus, model, tmp_path / "q")).status == "completed"


def test_predictions_that_can_not_be_written(
    host: parts.ThreadHost, corpus: Path, model: Path, tmp_path: Path
) -> None:
    outcome = host.run(parts.job(corpus, model, tmp_path / "no" / "such" / "folder"))
    assert (outcome.status, outcome.failure) == ("failed", "error")
    assert outcome.finished_entries == ENTRIES
    assert outcome.row["pass_s"] is None
    assert outcome.row["predictions_path"] is None
