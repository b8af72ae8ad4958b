"""Small sealed campaigns run over the fake engine, on hosts whose drivers' answers are recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import runner_parts as parts
from click.testing import CliRunner, Result

from gpucost_tui.campaign import hosts
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.runner import Options
from gpucost_tui.cli import group
from gpucost_tui.environment.host import host_record
from gpucost_tui.environment.recorded import RecordedDriver
from gpucost_tui.errors import GpucostError

RTX = "NVIDIA GeForce RTX 4090"
B200 = "NVIDIA B200"
#: Durations of five rounds, apart by far.
TIMES = {
    "batch-1": [10.0, 10.1, 10.0, 10.2, 10.1],
    "batch-4": [5.0, 5.1, 5.0, 5.2, 5.1],
    "batch-8": [3.0, 3.1, 3.0, 3.2, 3.1],
}


def use_host(
    monkeypatch: pytest.MonkeyPatch, gpu: str | None, *, gpus: int = 1, driver: str = "570.1"
) -> None:
    """Let the runner find a machine with these GPUs, whatever this one has."""
    devices = [
        {"index": i, "vendor": "nvidia", "name": gpu, "uuid": f"GPU-{gpu}-{i}"} for i in range(gpus)
    ]
    data: dict[str, Any] = {"vendor": "nvidia", "versions": {"driver": driver}, "devices": devices}
    if gpu is None:
        data = {"reason": "no driver was recorded"}
    kept: dict[str, Any] = {}

    def record(*, framework: dict[str, Any] | None = None, device: str) -> dict[str, Any]:
        # Once a machine: the program's sources change under the tests while it is being written.
        if not kept:
            driver = RecordedDriver(data)
            kept.update(host_record(driver=driver, framework=framework, device=device))
        return kept

    monkeypatch.setattr(hosts, "host_record", record)


def script(
    made: Campaign, times: Mapping[str, Sequence[float]], gpu: str | None = RTX, **more: Any
) -> dict[str, Any]:
    """Return a script in which the n-th pass of a variant takes its n-th duration."""
    slots = parts.state(made).slots(made.manifest.protocol)
    attempts = {
        str(slot.slot): {"pass_s": times[slot.variant][(slot.round - 1) % len(times[slot.variant])]}
        for slot in slots
        if slot.round
    }
    for number, plan in more.pop("attempts", {}).items():
        attempts.setdefault(number, {}).update(plan)
    devices = [{"index": 0, "name": gpu}] if gpu else []
    return {"devices": devices, "attempts": attempts, "default": {"accuracy": 1.0}, **more}


def ran(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    gpu: str | None = RTX,
    gpus: int = 1,
    driver: str = "570.1",
    times: Mapping[str, Sequence[float]] = TIMES,
    exported: bool = True,
    script_: Mapping[str, Any] | None = None,
    options: Options | None = None,
    **settings: Any,
) -> Campaign:
    """Make, seal and run a campaign of five rounds; its export is recorded as measured."""
    made = parts.campaign(
        folder, **{"measurement__rounds": 5, "measurement__max_rounds": 10, **settings}
    )
    go_on(made, monkeypatch, gpu=gpu, gpus=gpus, driver=driver, times=times, options=options,
          script_=script_)  # fmt: skip
    if exported:
        Journal(folder).append("exported", {"seconds": 36.0})
    return made


def go_on(
    made: Campaign,
    monkeypatch: pytest.MonkeyPatch,
    *,
    gpu: str | None = RTX,
    gpus: int = 1,
    driver: str = "570.1",
    times: Mapping[str, Sequence[float]] = TIMES,
    script_: Mapping[str, Any] | None = None,
    options: Options | None = None,
) -> None:
    use_host(monkeypatch, gpu, gpus=gpus, driver=driver)
    if options is not None and options.more_rounds:
        parts.run_here(made, Options(limit=0, more_rounds=options.more_rounds))
        options = None
    parts.run_here(made, options, script=script(made, times, gpu, **dict(script_ or {})))


def gpucost(*words: str | Path) -> Result:
    """Run a word in this process; an error of the program is left to be raised."""
    return CliRunner().invoke(group, [str(word) for word in words])


def told(*words: str | Path) -> str:
    """Return what a word prints; it ends well, or with the answer no."""
    found = gpucost(*words)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return str(found.stdout)


def document(*words: str | Path, status: int = 0) -> Any:
    found = gpucost(*words, "--json")
    assert found.exit_code == status, (found.output, found.exception)
    return json.loads(found.stdout)


def refused(*words: str | Path) -> GpucostError:
    """Return the error in which a word ends."""
    found = gpucost(*words)
    assert isinstance(found.exception, GpucostError), (found.output, found.exception)
    return found.exception
