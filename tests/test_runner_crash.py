"""kill -9 of runner, child or both, at chosen and at random moments; hangs; locks of the dead."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import runner_parts as parts

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Event
from gpucost_tui.campaign.lock import RunnerLock, holder, started
from gpucost_tui.campaign.logs import BoundedLog
from gpucost_tui.campaign.measurer import ChildMeasurer
from gpucost_tui.campaign.oom import oom_kills
from gpucost_tui.campaign.runner import Options
from gpucost_tui.engine.contract import Job
from gpucost_tui.errors import Refused

SLOW = {"default": {"batch_s": 0.02}}
HANGING = {"attempts": {"2": {"fail": {"kind": "hang", "after": 8}}}}


def killed(runner: subprocess.Popen[str]) -> None:
    runner.kill()
    runner.communicate(timeout=30)


@pytest.mark.parametrize("both", [False, True], ids=["runner", "runner and child"])
def test_kill_9_of_the_runner_leaves_a_slot_open(tmp_path: Path, both: bool) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=2)
    runner = parts.start("run", made.folder, script={"default": {"batch_s": 0.05}})
    parts.until(lambda: parts.running(made, 4))
    time.sleep(0.4)
    child = parts.child_of(runner.pid)
    assert child is not None
    if both:
        os.kill(child, signal.SIGKILL)
    killed(runner)
    parts.until(lambda: not parts.alive(child), 10)
    before = parts.events(made)
    assert before[-1].event in ("attempt_started", "attempt_finished", "attempt_judged")
    said = parts.gpucost("status", made.folder).stdout
    assert "its runner was lost" in said
    done = parts.gpucost("run", made.folder)
    assert done.returncode == 0, done.stderr
    parts.sound(made, range(1, 7))
    assert parts.events(made)[: len(before)] == before
    lost = [a for a in parts.state(made).attempts.values() if a.row["status"] == "interrupted"]
    if lost:
        (one,) = lost
        assert one.number >= 4
        assert "cut off when an earlier runner was lost" in done.stderr
        assert one.row["ended_at"] is None
        assert "lower bound" in one.missing["finished_entries"]
        again = next(a for a in parts.state(made).attempts.values() if a.number == one.number + 1)
        assert again.slot == one.slot


def test_a_hanging_child_does_not_survive_its_runner(tmp_path: Path) -> None:
    """Native code holds the interpreter, so the end of input is never read: the kernel ends it."""
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    runner = parts.start("run", made.folder, script=HANGING)
    parts.until(lambda: parts.running(made, 2))
    time.sleep(0.5)
    child = parts.child_of(runner.pid)
    assert child is not None
    assert parts.alive(child)
    killed(runner)
    parts.until(lambda: not parts.alive(child), 10)


def test_a_child_that_hangs_is_taken_for_hung(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    log = BoundedLog(tmp_path / "child.log")
    measurer = ChildMeasurer(log, silence_s=2)
    before = dict(os.environ)
    os.environ.update(parts.environment({"default": {"fail": {"kind": "hang", "after": 8}}}))
    try:
        assert measurer.start(lambda _: None) is not None
        outcome = measurer.run(_job(made, tmp_path), lambda _: None)
    finally:
        os.environ.clear()
        os.environ.update(before)
        measurer.close()
    assert (outcome.status, outcome.failure) == ("failed", "killed")
    assert "no sign of life for 2 s" in (outcome.error or "")
    assert measurer.lost_in_a_row == 1


def test_a_runner_that_was_suspended_takes_nobody_for_hung(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    measurer = ChildMeasurer(BoundedLog(tmp_path / "child.log"))
    naps = iter([4])
    before = dict(os.environ)
    os.environ.update(parts.environment({"default": {"batch_s": 0.02}}))
    try:
        assert measurer.start(lambda _: None) is not None
        measurer._silence_s = 3  # from here on: a busy machine may take longer to import
        outcome = measurer.run(_job(made, tmp_path), lambda _: time.sleep(next(naps, 0)))
    finally:
        os.environ.clear()
        os.environ.update(before)
        measurer.close()
    assert outcome.status == "completed"


def test_a_child_that_dies_while_it_starts_is_started_again(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    runner = parts.start("run", made.folder, script={"import_s": 0.5})
    for _ in range(2):
        child = parts.until(lambda: parts.child_of(runner.pid), every_s=0.002)
        os.kill(child, signal.SIGKILL)
        parts.until(lambda child=child: parts.child_of(runner.pid) != child, every_s=0.002)
    said, _ = runner.communicate(timeout=60)
    assert runner.returncode == 0, said
    parts.sound(made, [1, 2, 3])


def _job(made: Campaign, tmp_path: Path) -> Job:
    protocol = made.manifest.protocol
    return Job(
        attempt=1,
        corpus=str(made.corpus_file("corpus")),
        entries=parts.ENTRIES,
        model=str(tmp_path),
        model_sha256="0",
        task=protocol.task,
        execution=protocol.settings("batch-1").model_dump(mode="json"),
        warmup=protocol.warmup.model_dump(mode="json"),
        cache="keep",
        seed=0,
        timed=True,
        predictions=str(tmp_path / "predictions.parquet"),
    )


def test_kill_9_of_the_child_alone(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    runner = parts.start("run", made.folder, script={"attempts": {"2": {"batch_s": 0.4}}})
    parts.until(lambda: parts.running(made, 2))
    time.sleep(0.6)
    child = parts.child_of(runner.pid)
    assert child is not None
    os.kill(child, signal.SIGKILL)
    said, _ = runner.communicate(timeout=60)
    assert runner.returncode == 0, said
    rows = parts.rows(made)
    assert [row["status"] for row in rows] == ["completed", "failed", "completed"]
    assert rows[1]["failure"] == "killed"
    assert rows[1]["finished_entries"] >= 4
    parts.sound(made, [1, 2, 3])


def test_three_deaths_in_a_row_end_the_run_and_the_next_goes_on(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=2)
    script = {"default": {"fail": {"kind": "exit", "after": 4}}}
    done = parts.gpucost("run", made.folder, script=script)
    assert done.returncode == 3
    assert "lost 3 times in a row" in done.stderr
    assert "ended by itself with status 7" in done.stderr
    assert [line[:2] for line in done.stderr.strip().splitlines()] == [
        *["#1", "  "],
        *["#2", "  "],
        *["#3", "  "],
        "gp",
    ]
    assert [row["failure"] for row in parts.rows(made)] == ["killed"] * 3
    assert "lost 3 times" in parts.gpucost("status", made.folder).stdout
    assert parts.run_here(made).open_slots == 0
    parts.sound(made, range(1, 7))


def test_deaths_that_are_not_in_a_row_end_nothing(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=2)
    fail = {"fail": {"kind": "exit", "after": 4}}
    parts.run_here(made, script={"attempts": {"1": fail, "2": fail, "4": fail, "6": fail}})
    assert len(parts.rows(made)) == 6


@pytest.mark.parametrize("moment", ["finished", "started"])
def test_what_a_power_cut_took_is_made_good(tmp_path: Path, moment: str) -> None:
    """The journal ends in the middle of an attempt, and no table, verdict or progress is there."""
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    parts.run_here(made)
    lines = made.journal_file.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["event"] for line in lines]
    cut = max(i for i, kind in enumerate(kinds) if kind == f"attempt_{moment}") + 1
    made.journal_file.write_bytes(b"".join(lines[:cut]) + lines[cut][:40])
    from gpucost_tui.campaign.journal import read
    from gpucost_tui.files import canonical_json

    last = read(made.folder).events[-2]
    head = canonical_json({"seq": last.seq, "hash": last.hash})
    (made.folder / "journal.head").write_bytes(head)
    for name in ("raw_results.csv", "raw_results.parquet", "device_memory.csv", "progress.json"):
        (made.folder / name).unlink()
    (made.folder / "attempts/0003-batch-8-r1/verdict.json").unlink()
    end = parts.run_here(made)
    assert end.open_slots == 0
    parts.sound(made, [1, 2, 3])
    assert len(parts.rows(made)) == (3 if moment == "finished" else 4)
    assert parts.state(made).set_aside
    assert list(made.folder.glob("journal.torn-*"))


def test_half_written_files_of_the_dead_are_swept_away(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    dead = subprocess.Popen(["true"])
    dead.wait()
    place = made.folder / "attempts/0001-batch-1-r1"
    place.mkdir(parents=True)
    ours = [place / f".predictions.parquet.{dead.pid}.part", made.folder / f".x.{dead.pid}.part"]
    theirs = [made.folder / f".control.json.{os.getpid()}.part", made.folder / ".keep.part"]
    for file in (*ours, *theirs):
        file.write_bytes(b"half")
    parts.run_here(made)
    assert not any(file.exists() for file in ours)
    assert all(file.exists() for file in theirs)


# -- the lock -------------------------------------------------------------------------------------


def test_a_second_runner_is_refused_and_a_dead_one_is_taken_over(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    runner = parts.start("run", made.folder, script={"default": {"batch_s": 0.2}})
    parts.until(lambda: parts.running(made))
    for word in ("run", "seal"):
        done = parts.gpucost(word, made.folder)
        assert done.returncode == 1
        assert f"already at work on this campaign (process {runner.pid}" in done.stderr
    killed(runner)
    assert (made.folder / "runner.lock").read_bytes(), "the dead left their lock"
    assert holder(made.folder) is None
    assert parts.gpucost("run", made.folder).returncode == 0


def test_a_reused_pid_holds_nothing(tmp_path: Path) -> None:
    with RunnerLock(tmp_path):
        mine = holder(tmp_path)
        assert mine is not None
        assert mine.pid == os.getpid()
    assert holder(tmp_path) is None
    for other in ("some boot:1", "", str(started(1))):
        reused = asdict(replace(mine, started=other))
        (tmp_path / "runner.lock").write_text(json.dumps(reused))
        assert holder(tmp_path) is None
    with RunnerLock(tmp_path):
        pass


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff\xfe", b'{"pid": 1}'])
def test_a_lock_without_sense_is_taken_over(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / "runner.lock").write_bytes(junk)
    assert holder(tmp_path) is None
    with RunnerLock(tmp_path):
        assert holder(tmp_path) is not None


def test_another_machines_lock_is_taken_over_only_on_request(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    with RunnerLock(made.folder):
        mine = holder(made.folder)
    assert mine is not None
    foreign = json.dumps(asdict(replace(mine, machine="0123456789ab", pid=77)))
    (made.folder / "runner.lock").write_text(foreign)
    done = parts.gpucost("run", made.folder)
    assert done.returncode == 1
    assert "written on another machine (process 77" in done.stderr
    assert "--take-over" in done.stderr
    now = json.loads(parts.gpucost("status", made.folder, "--json").stdout)
    assert (now["state"], now["runner"]) == ("sealed", None)
    assert now["elsewhere"]["host"] == "0123456789ab"
    assert "--take-over" in parts.gpucost("status", made.folder).stdout
    assert parts.gpucost("stop", made.folder).returncode == 1
    with pytest.raises(Refused), RunnerLock(made.folder):
        pass
    done = parts.gpucost("run", made.folder, "--take-over")
    assert done.returncode == 0, done.stderr
    assert holder(made.folder) is None


# -- the kernel's out-of-memory killer ------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "text", "own"),
    [
        ("own/memory.events", "low 0\nhigh 0\nmax 4\noom 2\noom_kill 2\n", "0::/own\n"),
        ("memory.events", "oom_kill 2\n", "0::/\n"),
        ("memory/own/memory.oom_control", "under_oom 0\noom_kill 2\n", "4:memory:/own\n0::/\n"),
        ("memory/memory.oom_control", "oom_kill 2\n", "4:cpu,memory:/elsewhere\n"),
    ],
)
def test_the_kernel_counts_those_it_killed(tmp_path: Path, place: str, text: str, own: str) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(own)
    assert oom_kills(tmp_path) is None, "unknown is not zero"
    (tmp_path / "proc").mkdir(exist_ok=True)
    (tmp_path / "proc/vmstat").write_text("pgfault 12\noom_kill 7\n")
    assert oom_kills(tmp_path) == 7
    file = tmp_path / "sys/fs/cgroup" / place
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert oom_kills(tmp_path) == 2


def test_a_child_that_the_kernel_killed_is_out_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rise of the counter is played; the death by SIGKILL is real."""
    import itertools

    from gpucost_tui.campaign import measurer

    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    counts = itertools.count()
    monkeypatch.setattr(measurer, "oom_kills", lambda: next(counts))
    parts.run_here(made, script={"attempts": {"2": {"fail": {"kind": "kill", "after": 4}}}})
    attempt = parts.state(made).attempts[2]
    assert (attempt.row["status"], attempt.row["failure"]) == ("failed", "out-of-memory")
    assert "out-of-memory killer" in (attempt.error or "")


# -- at random moments ----------------------------------------------------------------------------


def kill_at_random(tmp_path: Path, moments: int, seed: int) -> Counter[str]:
    """Kill runner, child or both ``moments`` times over one campaign; return what was hit."""
    chance = random.Random(seed)
    made = parts.campaign(tmp_path / "c", measurement__rounds=50, measurement__max_rounds=50)
    hit: Counter[str] = Counter()
    known = parts.events(made)
    script = {"default": {"batch_s": 0.004}}
    while hit.total() < moments:
        runner = parts.start("run", made.folder, script=script)
        parts.until(lambda runner=runner, known=known: _begun(made, runner.poll(), known))
        time.sleep(chance.random() * 0.3)
        whom = chance.choice(["runner", "child", "both"])
        child = parts.child_of(runner.pid)
        if whom != "runner" and child is not None:
            os.kill(child, signal.SIGKILL)
        if whom == "child":
            time.sleep(chance.random() * 0.1)
        runner.kill()
        runner.communicate(timeout=30)
        if child is not None:
            parts.until(lambda child=child: not parts.alive(child), 10)
        known = _kept(made, known)
        hit[f"{whom} after {known[-1].event}"] += 1
    _whole(made)
    return hit


def kill_forked_at_random(tmp_path: Path, moments: int, seed: int) -> Counter[str]:
    """Kill runners (policy ``thread``, so both at once) that are forked ready for work."""
    chance = random.Random(seed)
    made = parts.campaign(
        tmp_path / "c",
        measurement__rounds=50,
        measurement__max_rounds=50,
        measurement__process="thread",
    )
    zygote = subprocess.Popen(
        [sys.executable, str(parts.TESTS / "runner_zygote.py"), str(made.folder)],
        env=parts.environment({"default": {"batch_s": 0.001}}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert zygote.stdin is not None
    assert zygote.stdout is not None
    hit: Counter[str] = Counter()
    known = parts.events(made)
    while hit.total() < moments:
        print(file=zygote.stdin, flush=True)
        pid = int(zygote.stdout.readline())
        if chance.random() < 0.8:  # most of them in attempts, however slow the start is here
            parts.until(lambda known=known: _begun(made, None, known), every_s=0.002)
        time.sleep(chance.random() ** 2 * 0.8)
        os.kill(pid, signal.SIGKILL)
        assert zygote.stdout.readline().strip() == str(int(signal.SIGKILL)), "it was at work"
        known = _kept(made, known)
        hit[known[-1].event] += 1
    zygote.communicate()
    _whole(made)
    return hit


def _begun(made: Campaign, ended: int | None, known: list[Event]) -> bool:
    assert ended is None
    return any(event.event == "attempt_started" for event in parts.events(made)[len(known) :])


def _kept(made: Campaign, known: list[Event]) -> list[Event]:
    """Assert that what was recorded stays as it was, and return all that is recorded now."""
    now = parts.events(made)
    assert now[: len(known)] == known
    return now


def _whole(made: Campaign) -> None:
    """Fill what is open, with one round more where none is, and assert that all is there once."""
    end = parts.run_here(made, Options(limit=3), script={})
    parts.sound(made)
    used = [a.slot for a in end.state.attempts.values() if a.uses_slot]
    assert used == list(range(1, len(used) + 1)), "filled in the planned order, none left out"
    assert end.state.attempts[max(end.state.attempts)].row["status"] == "completed"


def test_kill_9_at_10_random_moments_of_runner_and_child(tmp_path: Path) -> None:
    assert kill_at_random(tmp_path, 10, seed=5).total() == 10


def test_kill_9_at_30_random_moments_of_a_runner_with_a_thread(tmp_path: Path) -> None:
    hit = kill_forked_at_random(tmp_path, 30, seed=6)
    assert len(hit) >= 2, hit


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_kill_9_at_50_more_random_moments(tmp_path: Path, seed: int) -> None:
    hit = kill_at_random(tmp_path, 50, seed=100 + seed)
    print(json.dumps(hit, indent=1, sort_keys=True))


@pytest.mark.slow
def test_kill_9_at_100_more_random_moments_of_a_runner_with_a_thread(tmp_path: Path) -> None:
    hit = kill_forked_at_random(tmp_path, 100, seed=200)
    print(json.dumps(hit, indent=1, sort_keys=True))
