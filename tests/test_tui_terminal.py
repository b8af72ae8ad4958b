"""The app on real terminals: signals, connections that drop, kinds of terminals, no colours."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
import runner_parts as parts
from tui_support import fake_engine, sealed_campaign
from tui_terminal import PAINTED, Terminal, end_runner, terminal

from gpucost_tui.campaign.detach import detach
from gpucost_tui.campaign.lock import holder

__all__ = ["fake_engine"]
_TOGETHER = 5
_LEAVES_SCREEN = b"\x1b[?1049l"


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGINT, 130)]
)
def test_a_signal_ends_it_with_the_terminal_restored(
    tmp_path: Path, number: int, status: int
) -> None:
    with terminal(tmp_path) as opened:
        opened.shows(PAINTED)
        assert opened.mode() != opened.before[:4]
        opened.process.send_signal(number)
        assert opened.ended() == status
        assert opened.mode() == opened.before[:4]
        opened.shows(_LEAVES_SCREEN)


def hung_up(folder: Path, count: int) -> None:
    """Hang up on apps at several moments; none may stay, nor leave a process of its session."""
    for first in range(0, count, _TOGETHER):
        with ExitStack() as stack:
            apps = [
                stack.enter_context(terminal(folder, deaf=bool(number % 2)))
                for number in range(first, min(first + _TOGETHER, count))
            ]
            for number, app in enumerate(apps, first):
                _wait_for_a_moment(app, number)
                app.hang_up()
            for app in apps:
                status = app.ended()
                # Before the app is there, the kernel's own answer to a hang-up ends the process.
                assert status in (143, -signal.SIGHUP), status
                assert not in_session(app.process.pid)


def _wait_for_a_moment(app: Terminal, number: int) -> None:
    if number % 5 == 0:
        app.until(lambda: app.seen)  # it has just begun to paint
        return
    app.shows(PAINTED)
    if number % 5 == 1:
        app.keys(b"2")  # it is painting another place
    elif number % 5 == 2:
        app.keys(b"d")  # a dialog with a field is open
        time.sleep(0.2)
    elif number % 5 == 3:
        app.keys(b"2345612345612345612345" * 20)  # more keys than it can take


def in_session(leader: int) -> list[int]:
    """Return the processes that still belong to a session."""
    found = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == leader:
                found.append(pid)
        except OSError:
            continue
    return found


def test_ten_terminals_that_go_away_leave_nothing(tmp_path: Path) -> None:
    hung_up(tmp_path, 10)


@pytest.mark.slow
def test_fifty_terminals_that_go_away_leave_nothing(tmp_path: Path) -> None:
    hung_up(tmp_path, 50)


def test_a_run_survives_the_terminal_of_its_app(
    tmp_path: Path, fake_engine: Callable[..., None]
) -> None:
    fake_engine(default={"batch_s": 0.3})
    campaign = sealed_campaign(tmp_path / "one")
    with terminal(tmp_path, "one") as app:
        app.shows("◆ sealed".encode())
        app.keys(b"4")
        app.shows(b"slots open")
        app.keys(b"s")
        app.shows("▶ running".encode())
        app.hang_up()
        assert app.ended() == 143
    runner = holder(campaign.folder)
    assert runner is not None and runner.detached
    end_runner(campaign.folder)


@pytest.mark.parametrize("whom", ["app", "all"])
def test_kill_9_of_the_app_or_of_all(
    tmp_path: Path, fake_engine: Callable[..., None], whom: str
) -> None:
    """The run knows nothing of an app; and where all is gone, the next run goes on."""
    fake_engine(default={"batch_s": 0.1})
    campaign = sealed_campaign(tmp_path / "one")
    with terminal(tmp_path, "one") as app:
        app.shows("◆ sealed".encode())
        app.keys(b"4")
        app.shows(b"slots open")
        app.keys(b"s")
        app.shows("▶ running".encode())
        runner = holder(campaign.folder)
        assert runner is not None
        app.until(lambda: parts.running(campaign))
        child = parts.child_of(runner.pid)
        doomed = [app.process.pid] if whom == "app" else [app.process.pid, runner.pid, child]
        for pid in doomed:
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
        assert app.ended() == -signal.SIGKILL
    if whom == "app":
        assert holder(campaign.folder) == runner
        end_runner(campaign.folder)
    else:
        parts.until(lambda: parts.nobody_left(campaign))
        assert "its runner was lost" in parts.gpucost("status", campaign.folder).stdout
    assert parts.run_here(campaign).open_slots == 0
    parts.sound(campaign, range(1, 7))


def test_quitting_tells_of_the_run_that_goes_on(
    tmp_path: Path, fake_engine: Callable[..., None]
) -> None:
    fake_engine(default={"batch_s": 0.3})
    campaign = sealed_campaign(tmp_path / "one")
    runner = detach(campaign, [])
    assert runner is not None
    try:
        with terminal(tmp_path, "one") as app:
            app.shows("▶ running".encode())
            app.keys(b"\x11")
            assert app.ended() == 0
            app.shows(f"process {runner.pid}). `gpucost one` shows it again.".encode())
        assert holder(campaign.folder) == runner
    finally:
        end_runner(campaign.folder)


@pytest.mark.parametrize("kind", ["xterm", "screen", "tmux-256color", "linux", "vt100"])
def test_kinds_of_terminals(tmp_path: Path, kind: str) -> None:
    with terminal(tmp_path, environment={"TERM": kind, "COLORTERM": None}) as opened:
        opened.shows(PAINTED)
        opened.keys(b"6")
        opened.shows(b"rtx-4090")
        opened.keys(b"\x11")
        assert opened.ended() == 0
        assert opened.mode() == opened.before[:4]


def test_without_colours_all_is_grey(tmp_path: Path) -> None:
    with terminal(tmp_path, environment={"NO_COLOR": "1", "COLORTERM": "truecolor"}) as opened:
        opened.shows(PAINTED)
        opened.keys(b"6")
        opened.shows(b"rtx-4090")
        opened.keys(b"\x11")
        assert opened.ended() == 0
        colours = set(re.findall(rb"[34]8;2;(\d+);(\d+);(\d+)", opened.seen))
    assert colours and all(len(set(parts)) == 1 for parts in colours)


def test_without_a_terminal_there_is_help_or_a_sentence(tmp_path: Path) -> None:
    gpucost = [sys.executable, "-m", "gpucost_tui"]
    bare = subprocess.run(gpucost, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert bare.returncode == 0 and "Words" in bare.stdout
    asked = subprocess.run(
        [*gpucost, str(tmp_path)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert asked.returncode == 3 and "needs a terminal" in asked.stderr
    assert "Traceback" not in asked.stderr
