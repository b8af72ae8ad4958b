"""Run: the live view of recorded and real runs, every action, and that nothing here ends a run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import runner_parts as parts
from textual.pilot import Pilot
from textual.widgets import Static
from tui_support import (
    HOSTILE,
    SIZES,
    WIDE,
    app_on,
    assert_harmless,
    draft_campaign,
    fake_engine,
    pressed,
    screen_text,
    sealed_campaign,
    until,
)

from gpucost_tui.campaign.committing import Pack, commit
from gpucost_tui.campaign.detach import detach
from gpucost_tui.campaign.fold import Attempt, State
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.history import History
from gpucost_tui.campaign.lock import RunnerLock, holder
from gpucost_tui.campaign.runner import Options
from gpucost_tui.campaign.status import status
from gpucost_tui.files import write_atomic
from gpucost_tui.pricing import catalogue
from gpucost_tui.tui import run_watch
from gpucost_tui.tui.app import GpucostApp, farewell
from gpucost_tui.tui.context import Snapshot
from gpucost_tui.tui.run_memory import memory_lines, spark
from gpucost_tui.tui.run_view import Known, _moment, ended_lines, remaining, silence

__all__ = ["fake_engine"]

GIB = 1 << 30


def device(index: int, **values: Any) -> dict[str, Any]:
    """A device as the progress file has it; a value of None has its reason in ``missing``."""
    return {
        "index": index,
        "name": "NVIDIA H200",
        "uuid": f"GPU-{index}",
        "capacity_bytes": 141 * GIB,
        "allocated_bytes": (2 + index) * GIB,
        "reserved_bytes": (3 + index) * GIB,
        "used_bytes": (4 + index) * GIB,
        "utilization_percent": 97.0,
        "power_w": 512.4,
        "temperature_c": 61.0,
        "missing": {},
        **values,
    }


def progress(devices: list[dict[str, Any]], **values: Any) -> dict[str, Any]:
    """A progress file in the middle of a pass, with a minute of history."""
    history = History()
    for second in range(60):
        history.add(devices, 3 * GIB, float(second))
    return {
        "ready": True,
        "state": "running",
        "attempt": 4,
        "slot": 4,
        "variant": "batch-4",
        "round": 2,
        "deliverable": "corpus",
        "seed": 0,
        "phase": "pass",
        "finished_entries": 12,
        "expected_ids": 30,
        "elapsed_s": 9.0,
        "phase_s": 6.0,
        "failures": [],
        "devices": devices,
        "rss_bytes": 3 * GIB,
        "history": history.to_json(),
        "updated": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **values,
    }


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Callable[[dict[str, Any]], Path]]:
    """Write a progress file beside a lock that this process seems to hold."""
    folder = sealed_campaign(tmp_path / "recorded").folder
    with RunnerLock(folder, detached=True):
        me = holder(folder)
        assert me is not None

        def write(value: dict[str, Any]) -> Path:
            written = json.dumps({"runner": me.pid, "started": me.started, **value})
            write_atomic(folder / "progress.json", written.encode(), sync=False)
            return folder

        yield write


@pytest.fixture
def stopped_after(tmp_path: Path) -> Iterator[list[Campaign]]:
    """Campaigns whose runners are ended with the test, whatever happened."""
    campaigns: list[Campaign] = []
    yield campaigns
    for campaign in campaigns:
        if (runner := holder(campaign.folder)) is not None and runner.pid != os.getpid():
            os.kill(runner.pid, signal.SIGTERM)


async def opened(pilot: Pilot[Any]) -> GpucostApp:
    app = pilot.app
    assert isinstance(app, GpucostApp)
    await until(pilot, lambda: app.snapshot.status is not None or app.snapshot.problem)
    await pressed(pilot, "4")
    await until(pilot, lambda: str(app.screen.query_one("#head", Static).content))
    return app


def words(app: GpucostApp) -> str:
    """What the place says, all of it, without the window's line breaks."""
    parts = (
        app.screen.query_one(f"#{name}", Static) for name in ("head", "attempt", "ended", "memory")
    )
    return "\n".join(str(part.content) for part in parts if part.display)


# -- recorded runs -------------------------------------------------------------------------------


@pytest.mark.parametrize("gpus", [0, 1, 8])
async def test_a_recorded_run_is_shown(
    recorded: Callable[[dict[str, Any]], Path], gpus: int
) -> None:
    app = app_on(recorded(progress([device(index) for index in range(gpus)])))
    async with app.run_test() as pilot:
        await opened(pilot)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: app.size == size and "12 of 30" in words(app))
            _assert_all_is_said(words(app), gpus)
            if size != (40, 12):
                await until(pilot, lambda: "12 of 30" in screen_text(app))
            assert_harmless(app)
            await pressed(pilot, "end")
            assert_harmless(app)
            await pressed(pilot, "home")


def _assert_all_is_said(said: str, gpus: int) -> None:
    for part in ("▶ running", "detached", "Attempt 4 · batch-4", "slot 4 of 6", "round 2 of 2",
                 "▶ pass", "12 of 30 entries (40 %)", "2.0 entries/s", "9.00 s elapsed",
                 "no pass of batch-4 has finished yet", "Host memory", "3.0 GiB"):  # fmt: skip
        assert part in said, part
    if not gpus:
        assert "this pass uses no GPU" in said
        return
    last = gpus - 1
    for part in (f"GPU {last}", f"{2 + last}.0 GiB", f"{4 + last}.0 GiB", "97 %", "512 W",
                 "61 °C", "capacity 141.0 GiB", "▁"):  # fmt: skip
        assert part in said, part
    together = sum(4 + index for index in range(gpus))
    assert gpus == 1 or f"{together}.0 GiB" not in said  # never added


@pytest.mark.parametrize("width", [30, 60, 78, 120])
@pytest.mark.parametrize("gpus", [1, 8])
def test_a_missing_figure_has_its_reason_and_is_never_zero(gpus: int, width: int) -> None:
    missing = {
        "capacity_bytes": "the device says nothing of it",
        "used_bytes": "not supported by this device",
        "power_w": "the driver requires more rights for it",
        "utilization_percent": "NVML: Unknown Error",
    }
    devices = [device(n, **dict.fromkeys(missing), missing=missing) for n in range(gpus)]
    said = "\n".join(line.plain for line in memory_lines(progress(devices), width))
    for reason in missing.values():
        assert reason in said
    assert said.count("unavailable") >= 4
    assert " 0 W" not in said and " 0 %" not in said and "0 B" not in said
    if gpus == 8 or width < 50:
        assert f"unavailable on GPU {'0-7' if gpus == 8 else '0'}: NVML: Unknown Error" in said


@pytest.mark.parametrize("gpus", [1, 2, 3, 8])
def test_no_line_of_memory_is_wider_than_its_place(gpus: int) -> None:
    value = progress([device(n, name="NVIDIA H200", power_w=None) for n in range(gpus)])
    for width in range(38, 160):
        # The host's words take two lines in a narrow window; its plot is then on the second.
        lines = [line for line in memory_lines(value, width) if "Host memory" not in line.plain]
        assert max(line.cell_length for line in lines if "▁" in line.plain) <= width, width


def test_zero_is_a_figure_and_no_figure_is_none() -> None:
    one = device(0, utilization_percent=0.0, allocated_bytes=0, missing={})
    said = "\n".join(line.plain for line in memory_lines(progress([one]), 78))
    assert "utilization 0 %" in said
    assert "0 B" in said
    assert "unavailable" not in said


def test_why_there_is_no_device_is_said() -> None:
    for value, reason in (
        (progress([], history={}), "no sample yet"),
        (progress([], devices_error="CUDA error: device lost"), "CUDA error: device lost"),
        (progress([], rss_bytes=None), "the system gives no figure"),
    ):
        assert reason in "\n".join(line.plain for line in memory_lines(value, 78))


@pytest.mark.parametrize(
    "spoiled",
    [
        {"devices": None, "history": None, "rss_bytes": "many"},
        {"devices": [3, {"index": "x", "missing": 5}], "history": [7, {"devices": 3}]},
        {"history": {"every_s": "x", "rss_mib": ["y", 10**400], "devices": [7, {"index": 0}]}},
        {"rss_bytes": 10**400, "history": {"rss_mib": 3, "devices": {"index": 0}}},
        {"phase": None, "ready": False},
        {"phase": HOSTILE, "variant": HOSTILE, "deliverable": WIDE},
        {"finished_entries": "x", "expected_ids": 0, "phase_s": float("nan")},
        {"updated": "yesterday", "elapsed_s": None, "round": None, "slot": None},
        {"finished_entries": 10**30, "expected_ids": 1, "phase_s": 1e-9},
        {"devices": [{"name": HOSTILE, "missing": {"power_w": HOSTILE * 50}}]},
        {"devices": [device(0, name=WIDE)]},
    ],
)
async def test_a_spoiled_progress_file_ends_nothing(
    recorded: Callable[[dict[str, Any]], Path], spoiled: dict[str, Any]
) -> None:
    app = app_on(recorded(progress([device(0)]) | spoiled))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await until(pilot, lambda: "Attempt 4" in words(app))
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert_harmless(app)
    assert app.return_code in (0, None)


def test_the_plot_keeps_gaps_and_scale() -> None:
    assert spark([0, 50, 100], 100, 10) == "▁▄█"
    assert spark([1, None, 1], 1, 10) == "█ █"
    assert spark([1, 9, 2, 3], 9, 2) == "█▃"
    assert spark([], 1, 5) == "" == spark([1], 1, 0)
    assert spark([0, 0], None, 5) == "▁▁"
    assert len(spark([5.0] * 240, 10, 33)) == 33


# -- what remains --------------------------------------------------------------------------------


def attempt(number: int, slot: int, variant: str, pass_s: float | None, **row: Any) -> Attempt:
    values = {
        "status": "completed", "failure": None, "variant": variant, "deliverable": "corpus",
        "round": 1, "pass_s": pass_s, "corpus_accepted": True, "load_s": None, "compile_s": None,
        "warmup_s": 1.0, "write_s": 0.5, "evaluate_s": 0.5, **row,
    }  # fmt: skip
    return Attempt(number, slot, values, finished=True)


def forecast(tmp_path: Path, attempts: list[Attempt], **now: Any) -> list[str]:
    campaign = sealed_campaign(tmp_path / "c")
    state = State(attempts={one.number: one for one in attempts})
    protocol = campaign.manifest.protocol
    value = progress([], **now)
    snapshot = Snapshot(campaign.folder, {"state": "running"}, value, state, protocol)
    return remaining(value, snapshot, Known.of(state))


def test_the_forecast_rests_on_medians_and_says_so(tmp_path: Path) -> None:
    attempts = [
        attempt(1, 1, "batch-4", 10.0),
        attempt(2, 2, "batch-4", 30.0),
        attempt(3, 3, "batch-4", 11.0),
        attempt(4, 4, "batch-1", None, status="failed", failure="killed"),
    ]
    this, run = forecast(tmp_path, attempts, slot=5, attempt=5)
    assert this == "This pass: about 5.00 s left (median of 3 finished passes of batch-4)."
    # Open: batch-8 (being measured as slot 5 in the schedule) and batch-1; no median of either.
    assert run == "The run: no forecast before a first attempt has finished."
    over, _ = forecast(tmp_path / "b", attempts, phase_s=12.0)
    assert over.startswith("This pass: 1.00 s over the median of 3 finished passes")


def test_without_a_finished_pass_the_basis_is_the_rate_or_nothing(tmp_path: Path) -> None:
    this, run = forecast(tmp_path, [])
    assert this.startswith("This pass: about 9.00 s left at its rate so far (no pass of batch-4")
    assert "no forecast" in run
    (this, _) = forecast(tmp_path / "b", [], phase="load", finished_entries=0)
    assert this == "This pass: no pass of batch-4 has finished yet, so there is no forecast."
    (this, _) = forecast(tmp_path / "c", [], round=0)
    assert "untimed" in this


def test_the_run_sums_open_slots_and_names_variants_without_a_pass(tmp_path: Path) -> None:
    attempts = [attempt(1, 1, "batch-1", 8.0), attempt(2, 2, "batch-4", 3.0)]
    # Open slots: 3 batch-8, 4 batch-4 (running, 4 s of its 5 s gone), 5 batch-8, 6 batch-1.
    _, run = forecast(tmp_path, attempts, elapsed_s=4.0)
    assert run == (
        "The run: about 11.0 s left for 2 of 4 open slots "
        "(medians of finished attempts; none yet of batch-8)."
    )


def test_failures_have_kind_and_first_line() -> None:
    state = State()
    for number in range(1, 9):
        failed = attempt(number, number, "batch-4", None, status="failed", failure="out-of-memory")
        failed.error = f"\n  CUDA out of memory {number}\nsecond line {HOSTILE}"
        state.attempts[number] = failed
    state.attempts[9] = attempt(9, 9, "batch-1", 2.0, corpus_accepted=False)
    state.attempts[9].reasons = ["quality"]
    state.attempts[10] = attempt(10, 10, "batch-1", None, status="stopped", corpus_accepted=False)
    said = "\n".join(line.plain for line in ended_lines(state))
    assert said.startswith("8 failures\n  ✗ #8 batch-4 r1  out-of-memory  CUDA out of memory 8\n")
    assert "second line" not in said
    assert "and 3 earlier" in said
    assert "✓ completed #9 batch-1 r1  2.00 s  ✗ rejected (quality)" in said
    assert "■ stopped #10 batch-1 r1" in said


def test_a_silent_runner_is_noticed() -> None:
    assert silence({"updated": "2026-09-28T09:00:00Z"}, now=1790586000.0 + 60) == 60.0
    assert silence({"updated": "2026-09-28T09:00:00Z"}, now=1790586000.0 + 1) is None
    assert silence({}) is None
    assert _moment("2026-09-28T09:00:00.51Z") == "2026-09-28 09:00:00 UTC"
    assert _moment("\x1b[31mnow") == "\\x1b[31mnow"


# -- acting --------------------------------------------------------------------------------------


async def test_without_a_campaign_and_before_the_seal(tmp_path: Path) -> None:
    app = app_on()
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, "4")
        await until(pilot, lambda: "No campaign is open" in screen_text(app))
        await pressed(pilot, "s", "p", "r", "x")
        app.open_campaign(draft_campaign(tmp_path / "c").folder)
        await until(pilot, lambda: "Not sealed yet" in screen_text(app))
        await pressed(pilot, "s", "p", "r", "x")
        assert app.screen.PLACE == "run"
        assert not app.screen.check_action("start", ())


@pytest.mark.parametrize(
    "size", [SIZES[0], *(pytest.param(s, marks=pytest.mark.slow) for s in SIZES[1:])]
)
async def test_start_pause_resume_stop_and_to_the_end(
    tmp_path: Path,
    fake_engine: Callable[..., None],
    stopped_after: list[Campaign],
    size: tuple[int, int],
) -> None:
    fail = {"fail": {"kind": "out-of-memory", "after": 8}}
    go = tmp_path / "go"
    held = {"hold": {"after": 8, "until": str(go)}}
    fake_engine(default={"batch_s": 0.02}, attempts={"2": fail, "4": held})
    campaign = sealed_campaign(tmp_path / "c")
    stopped_after.append(campaign)
    app = app_on(campaign.folder)
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        await pressed(pilot, "s")
        await until(pilot, lambda: app.snapshot.word == "running")
        await until(pilot, lambda: "out-of-memory  scripted out-of-memory" in words(app))
        await until(pilot, lambda: "Attempt 4" in words(app))
        await pressed(pilot, "p")
        await until(pilot, lambda: "it pauses after this attempt" in words(app))
        go.touch()
        await until(pilot, lambda: app.snapshot.word == "paused")
        await until(pilot, lambda: "4 of 6" in screen_text(app))
        pid = app.snapshot.status["runner"]["pid"]
        await pressed(pilot, "r")
        await until(pilot, lambda: app.snapshot.word in ("running", "finished"))
        await until(pilot, lambda: app.snapshot.word == "finished")
        await until(pilot, lambda: "every slot is done" in words(app))
        await until(pilot, lambda: not app.runs)
        assert pid not in app.runs.values()
        assert not app.screen.check_action("start", ())
    rows = [a.row["status"] for a in fold_of(campaign).attempts.values()]
    assert rows == ["completed", "failed", *["completed"] * 4]


def fold_of(campaign: Campaign) -> State:
    from gpucost_tui.campaign.fold import fold

    return fold(campaign.events())


async def test_stop_asks_once_and_leaves_the_slot_open(
    tmp_path: Path, fake_engine: Callable[..., None], stopped_after: list[Campaign]
) -> None:
    fake_engine(default={"hold": {"after": 8, "until": "never"}})
    campaign = sealed_campaign(tmp_path / "c")
    stopped_after.append(campaign)
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await opened(pilot)
        await pressed(pilot, "s")
        await until(pilot, lambda: "▶ pass" in words(app))
        await pressed(pilot, "x")
        await until(pilot, lambda: "Stop the run?" in screen_text(app))
        await pressed(pilot, "escape")
        assert app.snapshot.word == "running"
        await pressed(pilot, "x", "y")
        await until(pilot, lambda: app.snapshot.word == "idle")
        await until(pilot, lambda: "The last run ended: stopped on request" in words(app))
        await until(pilot, lambda: "run of c ended" in screen_text(app))
    assert status(Campaign(campaign.folder))["open"] == 6


async def test_a_run_from_elsewhere_is_shown_and_outlives_the_app(
    tmp_path: Path, fake_engine: Callable[..., None], stopped_after: list[Campaign]
) -> None:
    go = tmp_path / "go"
    first, second = ({"hold": {"after": 8, "until": str(file)}} for file in (go, tmp_path / "no"))
    fake_engine(attempts={"1": first, "2": second})
    campaign, other = sealed_campaign(tmp_path / "c"), sealed_campaign(tmp_path / "other")
    stopped_after.append(campaign)
    runner = await asyncio.to_thread(detach, campaign, [])
    assert runner is not None
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await opened(pilot)
        await until(pilot, lambda: "8 of 30 entries" in words(app) and "entries/s" in words(app))
        go.touch()
        await until(pilot, lambda: "Attempt 2" in words(app) and "8 of 30 entries" in words(app))
        await pressed(pilot, "1", "4")
        app.open_campaign(other.folder, place="run")
        await until(pilot, lambda: "6 slots open" in words(app))
        await until(pilot, lambda: "The run of classification-batch" in screen_text(app).replace(
            "\n", " ") or "goes on" in screen_text(app))  # fmt: skip
        assert app.runs == {campaign.folder: runner.pid}
        await pressed(pilot, "ctrl+q")
    assert app.return_code == 0
    said = farewell(app.snapshot, {campaign.folder: runner.pid})
    assert said is not None and f"process {runner.pid}" in said and "goes on" in said
    assert holder(campaign.folder) == runner


async def test_a_failure_is_told_in_another_place(
    tmp_path: Path, fake_engine: Callable[..., None], stopped_after: list[Campaign]
) -> None:
    go = tmp_path / "go"
    fail = {"fail": {"kind": "raise", "text": "[/b] first\nsecond", "after": 8}}
    fake_engine(attempts={"1": {"hold": {"after": 8, "until": str(go)}}, "2": fail})
    campaign = sealed_campaign(tmp_path / "c")
    stopped_after.append(campaign)
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await opened(pilot)
        await pressed(pilot, "s")
        await until(pilot, lambda: "8 of 30 entries" in words(app) and app.runs)
        await pressed(pilot, "3")
        go.touch()
        await until(pilot, lambda: "attempt 2 (batch-4)" in screen_text(app).replace("▌", ""))
        assert_harmless(app)


def test_what_failed_just_before_the_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sealed_campaign(tmp_path / "c").folder
    lock = RunnerLock(folder, detached=True).__enter__()
    me = holder(folder)
    assert me is not None

    def write(*failures: dict[str, Any]) -> None:
        value = {"runner": me.pid, "started": me.started, "failures": [*failures]}
        (folder / "progress.json").write_text(json.dumps(value))

    def between_two_looks(_: float) -> None:
        write({"attempt": 1}, {"attempt": 2, "kind": "killed"}, {"attempt": [3]})
        lock.__exit__(None, None, None)

    write({"attempt": 1})
    monkeypatch.setattr(run_watch, "time", SimpleNamespace(sleep=between_two_looks))
    told: list[Any] = []
    run_watch.supervise(folder, me.pid, told.append, lambda: False)
    assert [type(one).__name__ for one in told] == ["AttemptFailed", "AttemptFailed", "RunEnded"]
    assert [one.failure["attempt"] for one in told[:2]] == [2, [3]]


async def test_what_does_not_start_is_said(
    tmp_path: Path, fake_engine: Callable[..., None]
) -> None:
    fake_engine(broken="no module named torch")
    campaign = sealed_campaign(tmp_path / "c")
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await opened(pilot)
        await pressed(pilot, "s")
        await until(pilot, lambda: "Starting a detached runner" in words(app))
        await until(pilot, lambda: "no module named torch" in " ".join(
            n.message for n in app._notifications))  # fmt: skip
        await until(pilot, lambda: "Starting" not in words(app))
        assert app.screen.check_action("start", ())


async def test_a_lock_of_another_machine_is_taken_over_only_after_a_question(
    tmp_path: Path, fake_engine: Callable[..., None], stopped_after: list[Campaign]
) -> None:
    campaign = sealed_campaign(tmp_path / "c")
    stopped_after.append(campaign)
    lock = {"pid": 7, "started": "x", "machine": "elsewhere", "since": "2026-09-28T09:00:00Z"}
    (campaign.folder / "runner.lock").write_text(json.dumps(lock))
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await until(pilot, lambda: "A runner on another machine left its lock" in words(app))
        await pressed(pilot, "p", "x", "s")
        await until(pilot, lambda: "Take over the lock" in screen_text(app))
        await pressed(pilot, "escape")
        assert not fold_of(campaign).running
        await pressed(pilot, "s", "y")
        await until(pilot, lambda: app.snapshot.word == "finished", seconds=60)


async def test_a_runner_that_is_killed_is_noticed(
    tmp_path: Path, fake_engine: Callable[..., None], stopped_after: list[Campaign]
) -> None:
    fake_engine(default={"hold": {"after": 8, "until": "never"}})
    campaign = sealed_campaign(tmp_path / "c")
    stopped_after.append(campaign)
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pressed(pilot, "s")
        await until(pilot, lambda: "▶ pass" in words(app))
        os.kill(app.snapshot.status["runner"]["pid"], signal.SIGKILL)
        await until(pilot, lambda: app.snapshot.word == "idle" and not app.runs)
        await until(pilot, lambda: "goes on with a detached runner" in words(app))
        assert app.screen.check_action("start", ())


async def test_at_most_four_repaints_a_second(recorded: Callable[[dict[str, Any]], Path]) -> None:
    folder = recorded(progress([device(0)]))
    app = app_on(folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        paints: list[float] = []
        paint = app.screen._paint
        app.screen._paint = lambda: (paints.append(time.monotonic()), paint())
        for number in range(40):  # twenty writes a second
            recorded(progress([device(0)], finished_entries=number % 30))
            await pilot.pause(0.05)
        apart = [after - before for before, after in pairwise(paints)]
        assert paints and sum(gap < 0.25 for gap in apart) == 0


async def test_the_next_day_a_folder_opens_at_what_it_came_to(tmp_path: Path) -> None:
    """`gpucost DIR`: what is done, what is open, what it costs by now, what to press."""
    campaign = sealed_campaign(tmp_path / "one")
    parts.run_here(
        campaign, Options(limit=2), script={"devices": [{"name": "NVIDIA GeForce RTX 4090"}]}
    )
    commit(campaign, Pack("rtx-4090", 7, 2), catalogue.load())
    app = app_on(campaign.folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Committed by now" in screen_text(app))
        assert app.current_mode == "run"
        said = " ".join(screen_text(app).split())
        for words_ in (
            "2 of 6 done",
            "4 slots open. s goes on with a detached runner.",
            "The last run ended: the limit of 2 attempts is reached.",
            "Committed by now: 220.00 USD (2 lots of rtx-4090 for 7 days).",
        ):
            assert words_ in said, said


async def test_a_folder_without_a_run_opens_at_its_review(tmp_path: Path) -> None:
    folder = sealed_campaign(tmp_path / "one").folder
    (folder / "journal.jsonl").write_text("spoiled\n")
    for place in (folder, draft_campaign(tmp_path / "two").folder):
        app = app_on(place)
        async with app.run_test() as pilot:
            await until(pilot, lambda app=app: app.current_mode == "review")
