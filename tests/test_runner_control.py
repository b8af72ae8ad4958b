"""Stopping, pausing, signals, detached runs and what `status` says, by real processes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import runner_parts as parts

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.lock import holder
from gpucost_tui.campaign.status import status as look
from gpucost_tui.cli.status import lines

#: A pass takes about 24 batches of 40 ms at batch 1, 6 at batch 4, 3 at batch 8.
SLOW = {"default": {"batch_s": 0.04}}
#: A pass that ends only when it is told to.
ENDLESS = {"attempts": {"2": {"batch_s": 1.5}}}


def status(made: Campaign) -> dict[str, Any]:
    return look(made)


def words(made: Campaign) -> str:
    return "\n".join(lines(str(made.folder), look(made)))


def finish(made: Campaign, slots: int) -> None:
    assert parts.run_here(made).open_slots == 0
    parts.sound(made, range(1, slots + 1))


@pytest.mark.parametrize("policy", ["child", "thread"])
def test_sigint_once_stops_after_the_batch(tmp_path: Path, policy: str) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process=policy, measurement__rounds=1)
    runner = parts.start("run", made.folder, script=SLOW)
    parts.until(lambda: parts.running(made))
    time.sleep(0.2)
    runner.send_signal(signal.SIGINT)
    said, _ = runner.communicate(timeout=30)
    assert runner.returncode == 130, said
    assert "Stopping after this batch" in said
    assert "The run ended: stopped on request." in said
    (row,) = parts.rows(made)
    assert row["status"] == "stopped"
    assert 0 < row["finished_entries"] < 24
    assert row["observed_ids"] == row["finished_entries"], "what it finished is kept"
    assert row["pass_s"] is None
    assert row["corpus_accepted"] is False
    assert parts.state(made).attempts[1].reasons == ["missing"]
    finish(made, 3)


def test_sigint_twice_stops_at_once(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    runner = parts.start("run", made.folder, script=ENDLESS)
    parts.until(lambda: parts.running(made, 2))
    child = parts.child_of(runner.pid)
    runner.send_signal(signal.SIGINT)
    time.sleep(0.3)
    runner.send_signal(signal.SIGINT)
    runner.communicate(timeout=30)
    assert runner.returncode == 130
    row = parts.rows(made)[1]
    assert row["status"] == "stopped"
    assert row["predictions_path"] is None
    assert "ended at once" in parts.table(made)["notes"][1]
    assert child is not None
    assert not parts.alive(child)
    finish(made, 3)


@pytest.fixture(autouse=True)
def hang_ups_count() -> Iterator[None]:
    """Under `nohup` a hang-up is ignored, and what is started here would inherit that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_record_interrupted(tmp_path: Path, number: int) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    runner = parts.start("run", made.folder, script=ENDLESS)
    parts.until(lambda: parts.running(made, 2))
    runner.send_signal(number)
    runner.communicate(timeout=30)
    assert runner.returncode == 143
    assert [row["status"] for row in parts.rows(made)] == ["completed", "interrupted"]
    assert status(made)["last_end"] == "interrupted by a signal"
    finish(made, 3)


def test_nohup_is_respected(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    program = [sys.executable, "-m", "gpucost_tui"]
    runner = subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$@" run "$0"', made.folder, *program],
        env=parts.environment({"default": {"batch_s": 0.02}}),
        stderr=subprocess.DEVNULL,
    )
    parts.until(lambda: parts.running(made))
    runner.send_signal(signal.SIGHUP)
    assert runner.wait(60) == 0
    parts.sound(made, [1, 2, 3])


def test_a_terminal_that_hangs_up_ends_a_foreground_run(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    master, slave = pty.openpty()
    runner = subprocess.Popen(
        [sys.executable, "-m", "gpucost_tui", "run", str(made.folder)],
        env=parts.environment(ENDLESS),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )
    os.close(slave)
    parts.until(lambda: parts.running(made, 2))
    child = parts.child_of(runner.pid)
    os.close(master)
    assert runner.wait(30) == 143
    assert child is not None
    assert not parts.alive(child)
    assert [row["status"] for row in parts.rows(made)] == ["completed", "interrupted"]
    finish(made, 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_measuring_process_is_ready_begins_nothing(
    tmp_path: Path, number: int
) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    runner = parts.start("run", made.folder, script={"import_s": 30})
    parts.until(lambda: made.progress_file.exists())
    parts.until(lambda: parts.child_of(runner.pid))
    runner.send_signal(number)
    said, _ = runner.communicate(timeout=30)
    assert runner.returncode == (130 if number == signal.SIGINT else 143), said
    assert parts.rows(made) == []
    assert parts.events(made)[-1].event == "run_ended"
    finish(made, 3)


def test_stop_and_pause_from_another_terminal(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=2)
    assert parts.gpucost("pause", made.folder).returncode == 1, "there is nobody to ask"
    runner = parts.start("run", made.folder, script=SLOW)
    parts.until(lambda: parts.running(made))
    asked = parts.gpucost("pause", made.folder)
    assert f"Asked the runner (process {runner.pid})" in asked.stdout
    parts.until(lambda: status(made)["state"] == "paused", every_s=0.2)
    assert parts.rows(made)[0]["status"] == "completed"
    assert parts.child_of(runner.pid) is None, "a paused run gives the device back"
    assert "gpucost run" in words(made)
    refused = parts.gpucost("run", made.folder, "--more-rounds", "1")
    assert refused.returncode == 1
    assert "takes no options" in refused.stderr
    resumed = parts.gpucost("run", made.folder)
    assert "goes on" in resumed.stdout
    parts.until(lambda: parts.running(made, 2))
    assert status(made)["state"] == "running"
    assert "Asked" in parts.gpucost("stop", made.folder).stdout
    said, _ = runner.communicate(timeout=30)
    assert runner.returncode == 0, said
    assert "stopped on request" in said
    finish(made, 6)


def test_a_paused_run_can_be_stopped(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    runner = parts.start("run", made.folder, script=SLOW)
    parts.until(lambda: parts.running(made))
    parts.gpucost("pause", made.folder)
    parts.until(lambda: status(made)["state"] == "paused", every_s=0.2)
    parts.gpucost("stop", made.folder)
    runner.communicate(timeout=30)
    assert runner.returncode == 0
    finish(made, 3)


def test_a_wish_for_an_earlier_runner_is_none_for_the_next(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    wish = {"wish": "stop", "at": 1, "for": [os.getpid(), "some boot:1"]}
    for content in (json.dumps(wish), "{", "[]", '{"wish": "dance", "for": null}'):
        made.control_file.write_text(content)
        parts.run_here(made)
    assert len(parts.rows(made)) == 3


# -- detached -------------------------------------------------------------------------------------


def test_a_detached_run_outlives_its_shell_and_hang_ups(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=2)
    command = f"{sys.executable} -m gpucost_tui run {made.folder} --detach"
    shell = subprocess.run(
        ["sh", "-c", command],
        env=parts.environment(SLOW),
        capture_output=True,
        text=True,
        timeout=60,
        start_new_session=True,
        check=True,
    )
    runner = holder(made.folder)
    assert runner is not None
    assert runner.detached
    assert f"Running detached (process {runner.pid})" in shell.stdout
    assert os.getsid(runner.pid) == runner.pid, "its own session"
    os.kill(runner.pid, signal.SIGHUP)
    second = parts.gpucost("run", made.folder, "--detach")
    assert second.returncode == 1
    assert "already at work" in second.stderr
    assert "detached" in words(made)
    parts.until(lambda: parts.nobody_left(made))
    parts.sound(made, range(1, 7))
    log = (made.folder / "logs/runner.log").read_text()
    assert "every slot is done" in log
    assert str(made.folder) not in log
    assert "#6" in log


def test_a_detached_run_that_can_not_start_says_why(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    script = {"broken": "No module named 'torch'"}
    done = parts.gpucost("run", made.folder, "--detach", script=script)
    assert done.returncode == 3
    assert "could not start: ImportError: No module named 'torch'" in done.stderr
    draft = parts.gpucost("run", tmp_path, "--detach")
    assert draft.returncode == 2
    assert parts.gpucost("run", made.folder, "--detach", "--repeat", "7").returncode == 2
    assert parts.gpucost("run", made.folder).returncode == 0
    done = parts.gpucost("run", made.folder, "--detach")
    assert done.returncode == 0
    assert "done already" in done.stdout


def test_over_ssh_it_says_how_to_detach(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    over = {"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}
    done = parts.gpucost("run", made.folder, "--limit", "1", **over)
    assert "--detach` outlives a dropped connection" in done.stderr
    done = parts.gpucost("run", made.folder, "--limit", "1", **over, TMUX="x")
    assert "--detach" not in done.stderr


# -- status ---------------------------------------------------------------------------------------


def test_status_the_next_day(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    assert status(made)["state"] == "sealed"
    assert f"Next: gpucost run {made.folder}" in parts.gpucost("status", made.folder).stdout
    assert json.loads(parts.gpucost("status", made.folder, "--json").stdout) == status(made)
    failing = {"attempts": {"2": {"fail": {"kind": "raise", "after": 2}}}}
    parts.gpucost("run", made.folder, "--limit", "2", script=failing)
    now = status(made)
    assert (now["state"], now["runner"], now["attempt"]) == ("idle", None, None)
    assert (now["done"], now["open"], now["failures"], now["accepted"]) == (2, 1, 1, 1)
    said = words(made)
    assert "The last run ended: the limit of 2 attempts is reached" in said
    assert "Committed by now: nothing is recorded; gpucost commit does it" in said
    assert f"Next: gpucost run {made.folder} fills the open slots" in said
    parts.run_here(made)
    assert status(made)["state"] == "finished"
    assert f"Next: gpucost attempts {made.folder}" in words(made)


def test_status_of_a_draft_and_of_a_damaged_journal(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c")
    path = made.journal_file
    path.write_bytes(path.read_bytes().replace(b"small", b"SMALL"))
    done = parts.gpucost("status", made.folder)
    assert done.returncode == 1
    assert "not the one that was written" in done.stderr
    for name in ("journal.jsonl", "journal.head", "manifest.json"):
        (made.folder / name).unlink()
    assert status(made)["state"] == "draft"
    assert "gpucost check" in words(made)


# -- attempts -------------------------------------------------------------------------------------


def test_the_raw_table_fits_a_terminal_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    parts.run_here(made)
    leader, follower = pty.openpty()
    words = [sys.executable, "-m", "gpucost_tui", "attempts", str(made.folder)]
    subprocess.run(words, stdout=follower, env=parts.environment(COLUMNS="64"), check=True)
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError), os.fdopen(leader, "rb", buffering=0) as terminal:
        while piece := terminal.read(4096):
            shown += piece
    said = shown.decode()
    head = said.splitlines()[0]
    assert "outcome" in head and "padding" not in head and len(head) <= 64
    assert "Too wide for this terminal: padding" in said
    assert "padding" in parts.gpucost("attempts", made.folder).stdout.splitlines()[0]


def test_the_views_of_the_raw_table(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    assert "No attempt yet" in parts.gpucost("attempts", made.folder).stdout
    script = {
        "attempts": {"2": {"fail": {"kind": "raise", "after": 2, "text": "\x1b]0;x\x07[/b]"}}}
    }
    parts.run_here(made, script=script)
    shown = parts.gpucost("attempts", made.folder, "--notes").stdout
    assert "\x1b" not in shown
    assert "accepted" in shown
    assert "empty, no GPU was used: gpu\n" in shown
    failed = next(line.split() for line in shown.splitlines() if " failed " in line)
    assert failed[1:] == ["batch-4", "1", "failed", "0/24", "error", "-", "-", "-", *failed[-2:]]
    listed = json.loads(parts.gpucost("attempts", made.folder, "--json").stdout)
    assert [row["status"] for row in listed] == ["completed", "failed", "completed"]
    assert listed[0]["started_at"].endswith("Z")
    for name in ("raw_results.csv", "raw_results.parquet"):
        from_file = json.loads(parts.gpucost("attempts", made.folder / name, "--json").stdout)
        assert [row["pass_s"] for row in from_file] == [row["pass_s"] for row in listed]
    assert parts.gpucost("attempts", tmp_path / "nothing").returncode == 2
