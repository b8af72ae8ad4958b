"""One runner a campaign: a lock that a dead runner can't keep, and a live one can't lose.

The kernel's file lock decides on one machine: it ends with its process, whatever pid is reused. The
file's text names pid, start time and machine for people, and for a folder that was copied or is
shared: a lock written by another machine is never taken over silently. Whoever needs the record at
rest (a seal, an export) holds the same lock. A clean end leaves no file.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self

from gpucost_tui.campaign.journal import utc_now
from gpucost_tui.errors import EnvironmentLacks, Refused

_NAME = "runner.lock"
#: How long a holder that has not signed is waited for, and how often it is looked at.
_PATIENCE_S, _LOOK_S = 2.0, 0.01
Work = Literal["run", "seal", "export"]
#: What holds the lock, in words, and what to do about one that is at work here.
_WORDS: dict[str, tuple[str, str]] = {
    "run": ("a runner", "`gpucost status` shows it, `gpucost stop` ends it"),
    "seal": ("a seal", "Try again when it has ended"),
    "export": ("an export", "Try again when it has ended"),
}


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds, or last held, the lock. ``started``: see the function of that name."""

    pid: int
    started: str
    machine: str
    since: str
    detached: bool = False
    file: str = ""  # which lock file it is about: a copy of the folder has another
    work: str = "run"

    @property
    def here(self) -> bool:
        """Whether it was written on this machine."""
        return self.machine == machine()

    @property
    def words(self) -> str:
        """What it is, as *a runner*."""
        return _WORDS.get(self.work, _WORDS["run"])[0]


def machine() -> str:
    """Return a short name of this machine that gives nothing away: a hash, not the host name."""
    parts = [socket.gethostname()]
    # Many containers have no such file; the host name alone tells them apart.
    with contextlib.suppress(OSError, UnicodeDecodeError):
        parts.append(Path("/etc/machine-id").read_text(encoding="ascii").strip())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def holder(folder: Path) -> Holder | None:
    """Return the live runner of a campaign on this machine, or what another machine wrote.

    A seal or an export here is no runner. Never waits and never takes the lock.
    """
    written = _read(folder / _NAME)
    if written is None or not written.here:
        return written
    if written.work != "run":
        return None
    with contextlib.suppress(OSError):
        if written.file != _identity((folder / _NAME).stat()):
            return None
    return written if _alive(written) else None


def _alive(written: Holder) -> bool:
    return started(written.pid) == written.started


class RunnerLock:
    """Held by a runner, a seal or an export while it is at work.

    Args:
        folder: The campaign's.
        work: What is to be done under it.
        detached: Whether the runner is.
        take_over: Take a lock that another machine wrote.
    """

    def __init__(
        self,
        folder: Path,
        work: Work = "run",
        *,
        detached: bool = False,
        take_over: bool = False,
    ) -> None:
        self._path = folder / _NAME
        self._work = work
        self._detached = detached
        self._take_over = take_over
        self._handle: int | None = None

    def __enter__(self) -> Self:
        try:
            last = time.monotonic() + _PATIENCE_S
            while self._handle is None:
                self._handle = self._taken(patient=time.monotonic() < last)
        except OSError as error:
            raise EnvironmentLacks(
                f"the campaign can't be locked ({error.strerror})",
                where=_NAME,
                fix="Make space or correct the folder's permissions; some network file systems "
                "know no locks",
            ) from None
        return self

    def _taken(self, *, patient: bool) -> int | None:
        """Take the lock; None where it is about to change hands, and must be looked at again."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not self._alone(handle, patient) or not _stands_at(self._path, handle):
                os.close(handle)
                return None
            try:
                self._sign(handle)
            except OSError:
                self._path.unlink(missing_ok=True)  # it has nothing to say
                raise
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _alone(self, handle: int, patient: bool) -> bool:
        """Lock the file; False where whoever has it has not signed yet, or is just leaving it."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            written = _read(self._path)
            if patient and (written is None or (written.here and not _alive(written))):
                time.sleep(_LOOK_S)
                return False
            what, fix = _WORDS[written.work if written and written.work in _WORDS else "run"]
            raise Refused(
                f"{what} is already at work on this campaign{_who(written)}", fix=fix
            ) from None
        written = _read(self._path)
        if written is not None and not written.here and not self._take_over:
            raise Refused(
                f"the lock was written on another machine{_who(written)}: {written.words} may "
                "still be at work there",
                where=_NAME,
                fix=f"If it is not, `gpucost {self._work} --take-over` goes on here",
            )
        return True

    def _sign(self, handle: int) -> None:
        me = os.getpid()
        content = Holder(
            me,
            started(me) or "",
            machine(),
            utc_now(),
            self._detached,
            _identity(os.fstat(handle)),
            self._work,
        )
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(asdict(content)).encode(), 0)
        os.fsync(handle)

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)
                self._path.unlink()  # while it is held: nobody else can have it yet
            os.close(self._handle)
            self._handle = None


def _identity(stat: os.stat_result) -> str:
    return f"{stat.st_dev}:{stat.st_ino}"


def _stands_at(path: Path, handle: int) -> bool:
    try:
        return _identity(path.stat()) == _identity(os.fstat(handle))
    except FileNotFoundError:
        return False


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
            str(value.get("work", "run")),
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
