"""What is going on right now, for anybody who looks: the progress and the control file.

Neither is truth. The progress file is rewritten a few times a second without fsync; the control
file carries wishes (pause, stop) from any terminal to the one runner that they are meant for.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from gpucost_tui.campaign.history import History
from gpucost_tui.campaign.lock import Holder
from gpucost_tui.errors import EnvironmentLacks
from gpucost_tui.files import write_atomic

_EVERY_S = 0.25
_FAILURES = 20  # the latest ones


@dataclass(slots=True)
class Progress:
    """A snapshot of the run. Durations in seconds by the runner's monotonic clock."""

    runner: int | None = None  # pid, and the process's start as the lock gives it: whose file it is
    started: str | None = None
    ready: bool = False  # the measuring process has answered
    state: str = "running"  # running, paused, ended
    asked: str | None = None  # pause or stop: a wish that was heard and is not fulfilled yet
    attempt: int | None = None
    slot: int | None = None
    variant: str | None = None
    round: int | None = None
    deliverable: str | None = None
    seed: int | None = None
    phase: str | None = None
    finished_entries: int = 0
    expected_ids: int = 0
    elapsed_s: float = 0.0  # of the attempt
    phase_s: float = 0.0  # of the phase
    done: int = 0
    open: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    devices: list[dict[str, Any]] = field(default_factory=list)
    devices_error: str | None = None  # why the devices could not be read, the last time
    rss_bytes: int | None = None
    history: dict[str, Any] = field(default_factory=dict)  # as History.to_json gives it
    updated: str = ""


class ProgressFile:
    """Writes snapshots, at most four a second."""

    def __init__(self, path: Path, runner: int, started: str) -> None:
        self._path = path
        self._written = 0.0
        self._attempt_began = self._phase_began = time.monotonic()
        self._history = History()
        self.now = Progress(runner=runner, started=started)

    def begin(self, **fields: Any) -> None:
        """Begin an attempt."""
        self._attempt_began = self._phase_began = time.monotonic()
        self.now.phase, self.now.finished_entries = None, 0
        for name, value in fields.items():
            setattr(self.now, name, value)
        self.write(force=True)

    def phase(self, name: str | None) -> None:
        self._phase_began = time.monotonic()
        self.now.phase = name
        self.write(force=True)

    def failed(self, failure: dict[str, Any]) -> None:
        self.now.failures = [*self.now.failures[-(_FAILURES - 1) :], failure]

    def memory(
        self, devices: list[dict[str, Any]], rss_bytes: int | None, error: str | None = None
    ) -> None:
        self.now.devices, self.now.rss_bytes = devices, rss_bytes
        self.now.devices_error = error
        self._history.add(devices, rss_bytes, time.monotonic())
        self.now.history = self._history.to_json()

    def write(self, *, force: bool = False) -> None:
        now = time.monotonic()
        if not force and now - self._written < _EVERY_S:
            return
        self._written = now
        self.now.elapsed_s = now - self._attempt_began
        self.now.phase_s = now - self._phase_began
        self.now.updated = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        # A disk that refuses is no reason to stop: the journal must be written, and says so itself.
        with contextlib.suppress(OSError):
            # Not asdict: it copies every list, several times a second, beside a measured pass.
            value = {one.name: getattr(self.now, one.name) for one in fields(Progress)}
            data = json.dumps(value, separators=(",", ":")).encode()
            write_atomic(self._path, data, sync=False)


def read_progress(path: Path, runner: Holder | None = None) -> dict[str, Any] | None:
    """Return the last snapshot, or none; with ``runner`` only one that this runner wrote."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict):
        return None
    if runner is not None and (value.get("runner"), value.get("started")) != (
        runner.pid,
        runner.started,
    ):
        return None
    return value


Wish = Literal["pause", "stop", "resume"]


def ask(path: Path, wish: Wish, runner: Holder) -> None:
    """Leave a wish for a runner.

    Raises:
        EnvironmentLacks: The file can't be written.
    """
    value = {"wish": wish, "at": time.time_ns(), "for": [runner.pid, runner.started]}
    try:
        write_atomic(path, json.dumps(value).encode())
    except OSError as error:
        raise EnvironmentLacks(
            f"the wish can't be written ({error.strerror})",
            where=path.name,
            fix=f"Make space, or end the runner with `kill {runner.pid}`",
        ) from None


class Control:
    """Reads wishes as they come. One that was meant for an earlier runner is no wish for this."""

    def __init__(self, path: Path, runner: int, started: str) -> None:
        self._path = path
        self._me = [runner, started]
        self._seen: int | None = None

    def look(self) -> Wish | None:
        """Return a new wish, once."""
        try:
            value = json.loads(self._path.read_bytes())
            if value["for"] != self._me or value["at"] == self._seen:
                return None
            self._seen = value["at"]
            wish = value["wish"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return wish if wish in ("pause", "stop", "resume") else None
