"""The measuring child's line protocol, its endings, and what a runner sees of them."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import engine_parts as parts
import pytest

from gpucost_tui.tasks import registry

Opener = Callable[..., parts.ChildHost]


@pytest.fixture
def child() -> Iterator[Opener]:
    opened: list[parts.ChildHost] = []

    def open_(**script: Any) -> parts.ChildHost:
        host = parts.ChildHost(parts.FAKE, {"GPUCOST_FAKE": json.dumps(script)})
        opened.append(host)
        return host

    yield open_
    for host in opened:
        host.process.kill()
        host.close()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return parts.write_corpus(tmp_path / "mail.jsonl", 20)


def test_what_libraries_print_does_not_reach_the_pipe(child: Opener, corpus: Path) -> None:
    host = child(prints=True)
    assert host.until("ready")["pid"] == host.process.pid
    assert host.run(parts.job(corpus, corpus.parent, corpus.parent / "p")).status == "completed"
    assert "outcome" not in [event["event"] for event in host.events[:-1]]


def test_heartbeats_come_while_the_engine_is_being_built(child: Opener) -> None:
    host = child(import_s=1.2)
    host.until("ready")
    assert [event["event"] for event in host.events].count("heartbeat") >= 2


def test_the_end_of_input_ends_the_child_in_a_pass(child: Opener, corpus: Path) -> None:
    host = child(default={"batch_s": 1})
    host.until("ready")
    host.submit(parts.job(corpus, corpus.parent, corpus.parent / "p"))
    host.until("progress")
    assert host.process.stdin is not None
    host.process.stdin.close()
    assert host.process.wait(20) == 0


def test_an_interrupt_does_not_end_the_child(child: Opener, corpus: Path) -> None:
    host = child(default={"batch_s": 0.05})
    host.until("ready")
    host.submit(parts.job(corpus, corpus.parent, corpus.parent / "p"))
    host.until("progress")
    host.process.send_signal(signal.SIGINT)
    assert parts.outcome(host.until("outcome")).status == "completed"


def test_quit_ends_it_with_status_0(child: Opener) -> None:
    host = child()
    host.until("ready")
    host.send({"do": "quit"})
    assert host.process.wait(20) == 0


def test_orders_that_make_no_sense_are_refused(child: Opener, corpus: Path) -> None:
    host = child()
    host.until("ready")
    assert host.process.stdin is not None
    for line in (b"{", b"[]", b'{"do": "dance"}', b'{"do": "attempt"}', b"\xff"):
        host.process.stdin.write(line + b"\n")
        host.process.stdin.flush()
        assert host.until("refused")["error"]
    host.send({"do": "attempt", "job": {"nonsense": 1}})
    assert "nonsense" in host.until("refused")["error"]
    assert host.run(parts.job(corpus, corpus.parent, corpus.parent / "p")).status == "completed"


def test_an_engine_that_can_not_be_built(child: Opener) -> None:
    host = child(broken="No module named 'torch'")
    event = host.until("broken")
    assert event["error"] == "ImportError: No module named 'torch'"
    assert "Traceback" in event["trace"]
    assert host.process.wait(20) == 1


@pytest.mark.parametrize(("kind", "status"), [("exit", 7), ("kill", -9), ("segfault", -11)])
def test_a_child_that_dies_in_a_pass(child: Opener, corpus: Path, kind: str, status: int) -> None:
    host = child(default={"fail": {"kind": kind, "after": 8}})
    host.until("ready")
    with pytest.raises(EOFError) as ended:
        host.run(parts.job(corpus, corpus.parent, corpus.parent / "p", batch_size=4))
    assert ended.value.args == (status,)


def test_a_child_that_hangs_sends_no_heartbeat(child: Opener, corpus: Path) -> None:
    host = child(default={"fail": {"kind": "hang", "after": 0}})
    host.until("ready")
    host.submit(parts.job(corpus, corpus.parent, corpus.parent / "p"))
    with pytest.raises(TimeoutError):
        while True:
            host.next(timeout_s=2)


FAILURES = [
    ("out-of-memory", "out-of-memory"),
    ("memory-error", "out-of-memory"),
    ("device-error", "device-error"),
    ("fallback", "fallback"),
    ("raise", "error"),
]
IN_PHASES = [(phase, *one) for phase in ("load", "warm-up", "pass") for one in FAILURES]


@pytest.fixture(scope="module")
def failing() -> Iterator[parts.ChildHost]:
    """One child whose attempts 1, 2, 3, ... fail, each in its own way."""
    plans = {
        str(number): {"fail": {"kind": kind, "after": 8, "in": phase}}
        for number, (phase, kind, _) in enumerate(IN_PHASES, 1)
    }
    host = parts.ChildHost(parts.FAKE, {"GPUCOST_FAKE": json.dumps({"attempts": plans})})
    host.until("ready")
    yield host
    host.process.kill()
    host.close()


@pytest.mark.parametrize(("phase", "kind", "failure"), IN_PHASES)
def test_every_failure_is_an_outcome(
    failing: parts.ChildHost, corpus: Path, phase: str, kind: str, failure: str
) -> None:
    number = IN_PHASES.index((phase, kind, failure)) + 1
    job = parts.job(corpus, corpus.parent, corpus.parent / "p", batch_size=4, attempt=number)
    outcome = failing.run(job)
    assert (outcome.status, outcome.failure) == ("failed", failure)
    assert outcome.finished_entries == (8 if phase == "pass" else 0)
    assert outcome.poisoned == (failure == "device-error")
    assert outcome.row["pass_s"] is None
    if phase == "pass":
        assert parts.read(job).height == 8
    again = parts.job(corpus, corpus.parent, corpus.parent / "q", attempt=100)
    assert failing.run(again).status == "completed"


def test_memory_events_show_every_device(child: Opener, corpus: Path) -> None:
    cards = [{"name": f"Card {i}", "capacity_bytes": 80 << 30} for i in range(8)]
    host = child(devices=cards, default={"batch_s": 0.1})
    host.until("ready")
    host.submit(parts.job(corpus, corpus.parent, corpus.parent / "p", device="auto"))
    event = host.until("memory")
    assert [device["name"] for device in event["devices"]] == [card["name"] for card in cards]
    assert event["rss_bytes"] > 0
    outcome = parts.outcome(host.until("outcome"))
    assert outcome.row["peak_allocated_bytes"] == 2 << 30
    assert len(outcome.device_memory) == 8
    assert outcome.row["device"] == "cuda:0"


@pytest.mark.parametrize("how", ["missing", "duplicate", "extra", "wrong"])
def test_wrong_ids_are_written_as_they_are(child: Opener, corpus: Path, how: str) -> None:
    host = child(default={"ids": how})
    host.until("ready")
    job = parts.job(corpus, corpus.parent, corpus.parent / "p")
    assert host.run(job).status == "completed"
    expected = [f"{i:03d}" for i in range(20)]
    assert parts.read(job)["id"].to_list() != expected


def test_nan_scores_complete_and_fail_the_format(child: Opener, corpus: Path) -> None:
    host = child(default={"scores": "nan"})
    host.until("ready")
    job = parts.job(corpus, corpus.parent, corpus.parent / "p")
    outcome = host.run(job)
    assert outcome.status == "completed"
    assert registry.create(job.task).check_format(parts.read(job), labels=outcome.labels)


def test_ids_of_any_kind_survive(child: Opener, tmp_path: Path) -> None:
    ids = ["007", "1.0", "[/INST]", "\x1b[31m", "ü\u202e", 'a,b"c', " "]
    corpus = tmp_path / "odd.jsonl"
    corpus.write_text("".join(json.dumps({"id": i, "text": "x"}) + "\n" for i in ids), "utf-8")
    host = child()
    host.until("ready")
    job = parts.job(corpus, tmp_path, tmp_path / "p")
    host.run(job)
    assert parts.read(job)["id"].to_list() == ids
