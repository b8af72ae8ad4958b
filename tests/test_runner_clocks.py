"""Wall clocks that step, and time zones: they reach no duration; the journal stays UTC."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import runner_parts as parts

from gpucost_tui.campaign import journal
from gpucost_tui.campaign.status import status
from gpucost_tui.dossier.verify import verify

DURATIONS = [
    *("load_s", "warmup_s", "pass_s", "read_s", "tokenize_s", "transfer_s", "forward_s"),
    *("materialize_s", "evaluate_s", "write_s"),
]
THREAD = {"measurement__process": "thread", "measurement__rounds": 2}


def stepping(step: timedelta) -> Iterator[str]:
    """Yield a wall clock that steps at every look, as no real one does."""
    now = datetime.now(UTC)
    while True:
        now += step
        yield now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize("step", [timedelta(hours=-1), timedelta(days=400)], ids=["back", "on"])
def test_a_wall_clock_that_steps_reaches_no_duration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: timedelta
) -> None:
    made = parts.campaign(tmp_path / "c", **THREAD)
    times = stepping(step)
    monkeypatch.setattr(journal, "utc_now", lambda: next(times))
    began, real = time.perf_counter(), time.time
    steps = iter(range(10**6))
    monkeypatch.setattr(time, "time", lambda: real() + step.total_seconds() * next(steps))
    parts.run_here(made, script={"default": {"batch_s": 0.002}})
    took = time.perf_counter() - began
    parts.sound(made, range(1, 7))
    for row in parts.rows(made):
        durations = {name: row[name] for name in DURATIONS if row[name] is not None}
        assert len(durations) >= 8
        assert all(0 <= value <= took for value in durations.values()), durations
    answer = verify([made.folder])
    assert answer.ok, answer.findings.differences
    said = status(made)["clock"]
    if step < timedelta(0):
        assert len(said) == len(parts.events(made)) - 1
        assert "the wall clock went backwards: the line before is 2" in said[0]
        assert "The wall clock went backwards" in parts.gpucost("status", made.folder).stdout
    else:
        assert said == []


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/St_Johns", "no/such/zone"])
def test_the_zone_of_a_machine_is_not_in_the_journal(tmp_path: Path, zone: str) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    assert parts.gpucost("run", made.folder, TZ=zone).returncode == 0
    for event in parts.events(made):
        assert event.time.endswith("Z")
        written = datetime.fromisoformat(event.time)
        assert abs(datetime.now(UTC) - written) < timedelta(minutes=60), "no zone is this near"
    said: dict[str, Any] = parts.rows(made)[0]
    assert said["started_at"].endswith("Z")
    assert verify([made.folder]).ok
