"""The main journeys over the real demonstration model: one run, one kill -9, one thread."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
import runner_parts as parts

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.demo.generate import corpus

ENTRIES = 60
REAL = {"GPUCOST_ENGINE": "gpucost_tui.engine.torch_engine:TorchEngine"}


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    made_up = itertools.islice(corpus(), ENTRIES)
    rows = [{"id": one.id, "text": one.text, "label": one.label} for one in made_up]
    return parts.write_corpus(tmp_path / "tickets.jsonl", rows)


def made(tmp_path: Path, texts: Path, *settings: str) -> Campaign:
    """Make and seal a campaign by the command."""
    folder = tmp_path / "c"
    values = [
        "corpus.right_of_use=synthetic",
        "corpus.strata=[]",
        "quality.threshold=0.5",
        "quality.subgroups=[]",
        "measurement.rounds=1",
        *settings,
    ]
    words = [word for value in values for word in ("--set", value)]
    new = ["new", folder, "--protocol", "classification-batch", "--model", "demo"]
    done = parts.gpucost(*new, "--corpus", texts, *words)
    assert done.returncode == 0, done.stderr
    sealed = parts.gpucost("seal", folder)
    assert sealed.returncode == 0, sealed.stderr
    return Campaign(folder)


def test_a_runner_killed_in_the_middle_and_the_next_one(tmp_path: Path, texts: Path) -> None:
    campaign = made(tmp_path, texts)
    runner = parts.start("run", campaign.folder, engine=REAL["GPUCOST_ENGINE"])
    parts.until(lambda: len(parts.events(campaign)) > 6, every_s=0.02)
    child = parts.child_of(runner.pid)
    runner.send_signal(signal.SIGKILL)
    runner.communicate(timeout=30)
    assert child is not None
    parts.until(lambda: not parts.alive(child), 10)
    done = parts.gpucost("run", campaign.folder, **REAL)
    assert done.returncode == 0, done.stderr
    parts.sound(campaign, [1, 2, 3])
    rows = [row for row in parts.rows(campaign) if row["status"] == "completed"]
    assert [row["variant"] for row in rows] == ["batch-1", "batch-4", "batch-8"]
    assert {row["corpus_accepted"] for row in rows} == {True}
    assert {row["dtype_effective"] for row in rows} == {"float32"}
    frames = [pl.read_parquet(campaign.folder / row["predictions_path"]) for row in rows]
    assert all(frame["id"].to_list() == frames[0]["id"].to_list() for frame in frames)
    assert all(frame["prediction"].equals(frames[0]["prediction"]) for frame in frames)
    for row in rows:
        parts_s = [row[name] for name in ("read_s", "tokenize_s", "forward_s", "materialize_s")]
        assert 0 < sum(parts_s) <= row["pass_s"]
    one, _, eight = (row["padding_ratio"] for row in rows)
    assert one == 1.0
    assert eight > 1.0


@pytest.mark.slow
def test_kill_9_at_12_random_moments_over_the_real_engine(tmp_path: Path, texts: Path) -> None:
    chance, hit = random.Random(9), Counter[str]()
    campaign = made(tmp_path, texts, "measurement.rounds=6", "measurement.max_rounds=6")
    known = parts.events(campaign)
    while hit.total() < 12:
        runner = parts.start("run", campaign.folder, engine=REAL["GPUCOST_ENGINE"])
        begun = len(known)
        if chance.random() < 0.8:  # else while torch is loaded, or before
            parts.until(
                lambda begun=begun: any(
                    one.event == "attempt_started" for one in parts.events(campaign)[begun:]
                )
            )
        time.sleep(chance.random() * 1.5)
        child, whom = parts.child_of(runner.pid), chance.choice(["runner", "child", "both"])
        if whom != "runner" and child is not None:
            os.kill(child, signal.SIGKILL)
        if whom != "child":
            runner.kill()
            runner.communicate(timeout=30)
        else:
            parts.until(lambda child=child: child is None or not parts.alive(child))
            runner.send_signal(signal.SIGTERM)
            runner.communicate(timeout=60)
        now = parts.events(campaign)
        assert now[: len(known)] == known
        known = now
        hit[f"{whom} after {known[-1].event}"] += 1
    print(json.dumps(hit, indent=1, sort_keys=True))
    assert parts.gpucost("run", campaign.folder, **REAL).returncode == 0
    parts.sound(campaign, range(1, 19))
    rows = [row for row in parts.rows(campaign) if row["status"] == "completed"]
    assert {row["corpus_accepted"] for row in rows} == {True}


def test_the_worker_thread_in_the_runner_itself(tmp_path: Path, texts: Path) -> None:
    campaign = made(tmp_path, texts, "measurement.process=thread")
    done = parts.gpucost("run", campaign.folder, **REAL)
    assert done.returncode == 0, done.stderr
    parts.sound(campaign, [1, 2, 3])
    rows = parts.rows(campaign)
    assert {row["process_policy"] for row in rows} == {"thread"}
    assert {row["status"] for row in rows} == {"completed"}
    assert {row["corpus_accepted"] for row in rows} == {True}


def test_a_model_that_is_not_what_was_sealed(tmp_path: Path, texts: Path) -> None:
    campaign = made(tmp_path, texts)
    empty = tmp_path / "another"
    empty.mkdir()
    done = parts.gpucost("run", campaign.folder, "--model", empty, **REAL)
    assert done.returncode in (1, 3)
    assert "Traceback" not in done.stderr
    assert parts.rows(campaign) == []
