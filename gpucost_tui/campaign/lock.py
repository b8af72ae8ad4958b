"""One runner a campaign: a lock that a dead runner can't keep, and a live one can't lose.

The kernel's file lock decides on one machine: it ends with its process, whatever pid is reused. The
file's text names pid, start time and machine for people, and for a folder that was copied or is
shared: a lock written by another machine is never taken over silently.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from gpucost_tui.campaign.journal import utc_now
from gpucost_tui.errors import EnvironmentLacks, Refused

_NAME = "runner.lock"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds, or last held, the lock. ``started``: see the function of that name."""

    pid: int
    started: str
    machine: str
    since: str
    detached: bool = False
    file: str = ""  # which lock file it is about: a copy of the folder has another

    @property
    def here(self) -> bool:
        """Whether it was written on this machine."""
        return self.machine == machine()


def machine() -> str:
    """Return a short name of this machine that gives nothing away: a hash, not the host name."""
    parts = [socket.gethostname()]
    # Many containers have no such file; the host name alone tells them apart.
    with contextlib.suppress(OSError, UnicodeDecodeError):
        parts.append(Path("/etc/machine-id").read_text(encoding="ascii").strip())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def holder(folder: Path) -> Holder | None:
    """Return the live runner of a campaign on this machine, or what another machine wrote.

    Never waits and never takes the lock for longer than the look.
    """
    written = _read(folder / _NAME)
    if written is None or not written.here:
        return written
    with contextlib.suppress(OSError):
        if written.file != _identity((folder / _NAME).stat()):
            return None
    return written if started(written.pid) == written.started else None


class RunnerLock:
    """Held by the runner for its life."""

    def __init__(self, folder: Path, *, detached: bool = False, take_over: bool = False) -> None:
        self._path = folder / _NAME
        self._detached = detached
        self._take_over = take_over
        self._handle: int | None = None

    def __enter__(self) -> Self:
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise _not_locked(error) from None
        try:
            self._take(handle)
        except OSError as error:
            os.close(handle)
            raise _not_locked(error) from None
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return self

    def _take(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"a runner is already at work on this campaign{_who(_read(self._path))}",
                fix="`gpucost status` shows it, `gpucost stop` ends it",
            ) from None
        written = _read(self._path)
        if written is not None and not written.here and not self._take_over:
            raise Refused(
                "the runner's lock was written on another machine"
                f"{_who(written)}: it may still be at work there",
                where=_NAME,
                fix="If it is not, add --take-over",
            )
        me = os.getpid()
        content = Holder(
            me,
            started(me) or "",
            machine(),
            utc_now(),
            self._detached,
            _identity(os.fstat(handle)),
        )
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(asdict(content)).encode(), 0)
        os.fsync(handle)

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None


def _identity(stat: os.stat_result) -> str:
    return f"{stat.st_dev}:{stat.st_ino}"


def _not_locked(error: OSError) -> EnvironmentLacks:
    return EnvironmentLacks(
        f"the campaign can't be locked ({error.strerror})",
        where=_NAME,
        fix="Make space or correct the folder's permissions; some network file systems know no "
        "locks",
    )


def _read(path: Path) -> Holder | None:
    try:
        value = json.loads(path.read_bytes())
        return Holder(
            int(value["pid"]),
            str(value["started"]),
            str(value["machine"]),
            str(value["since"]),
            bool(value.get("detached", False)),
            str(value.get("file", "")),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # empty after a clean end, or half-written by a runner that died at once


def started(pid: int) -> str | None:
    """Return the start of a live process as boot id and clock ticks since that boot, or none.

    Unlike a time of day it does not move with the wall clock, and a reused pid has another.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # Fields 3 and 22; the command in field 2 may hold spaces and parentheses: count from its end.
    fields = stat.rpartition(")")[2].split()
    # A zombie is dead, though its entry stays until whoever started it asks for its status.
    return None if fields[0] in ("Z", "X") else f"{boot}:{fields[19]}"


def _who(written: Holder | None) -> str:
    return f" (process {written.pid}, since {written.since})" if written else ""
