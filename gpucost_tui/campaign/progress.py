"""What is going on right now, for anybody who looks: the progress and the control file.

Neither is truth. The progress file is rewritten a few times a second without fsync; the control
file carries wishes (pause, stop) from any terminal to the runner.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpucost_tui.files import write_atomic

_EVERY_S = 0.25
_HISTORY = 240  # memory samples kept for a history plot: two minutes at two a second


@dataclass(slots=True)
class Progress:
    """A snapshot of the run. Durations in seconds by the runner's monotonic clock."""

    state: str = "running"  # running, paused, ended
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
    rss_bytes: int | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    updated: str = ""


class ProgressFile:
    """Writes snapshots, at most four a second; a disk that refuses is no reason to stop a run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = 0.0
        self._attempt_began = self._phase_began = time.monotonic()
        self.now = Progress()

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

    def memory(self, devices: list[dict[str, Any]], rss_bytes: int | None) -> None:
        self.now.devices, self.now.rss_bytes = devices, rss_bytes
        sample = {"rss": rss_bytes, "devices": [_brief(device) for device in devices]}
        self.now.history = [*self.now.history[-(_HISTORY - 1) :], sample]

    def write(self, *, force: bool = False) -> None:
        now = time.monotonic()
        if not force and now - self._written < _EVERY_S:
            return
        self._written = now
        self.now.elapsed_s = now - self._attempt_began
        self.now.phase_s = now - self._phase_began
        self.now.updated = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            write_atomic(self._path, json.dumps(asdict(self.now)).encode(), sync=False)
        except OSError:
            return  # the journal is what must be written, and it says so itself when it can't


def _brief(device: dict[str, Any]) -> dict[str, Any]:
    keys = ("index", "allocated_bytes", "reserved_bytes", "used_bytes", "capacity_bytes")
    return {key: device.get(key) for key in keys}


def read_progress(path: Path) -> dict[str, Any] | None:
    """Return the last snapshot, or none."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


Wish = Literal["pause", "stop", "resume"]


def ask(path: Path, wish: Wish) -> None:
    """Leave a wish for the runner."""
    write_atomic(path, json.dumps({"wish": wish, "at": time.time_ns()}).encode())


class Control:
    """Reads wishes as they come; what was written before the run began is no wish for it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.unlink(missing_ok=True)
        self._seen: int | None = None

    def look(self) -> Wish | None:
        """Return a new wish, once."""
        try:
            value = json.loads(self._path.read_bytes())
            if value["at"] == self._seen:
                return None
            self._seen = value["at"]
            wish = value["wish"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return wish if wish in ("pause", "stop", "resume") else None
