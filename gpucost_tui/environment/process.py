"""Memory of processes on the host, and other processes on a device.

Every reading is ``(value, None)`` or ``(None, reason)``: unavailable is not 0 (R20).
"""

from __future__ import annotations

import os
import resource
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import psutil

from gpucost_tui.environment.devices import DeviceSample

_SLACK_BYTES = 16 << 20


def rss_bytes(pid: int | None = None) -> tuple[int | None, str | None]:
    """Return the resident memory of a process (default: this one), in bytes, now."""
    try:
        return int(psutil.Process(pid).memory_info().rss), None
    except psutil.NoSuchProcess:
        return None, f"process {pid} has ended"
    except psutil.AccessDenied:
        return None, f"process {pid} belongs to someone else"


def peak_rss_bytes(
    pid: int | None = None, *, proc: Path = Path("/proc")
) -> tuple[int | None, str | None]:
    """Return the peak resident memory of a process, in bytes.

    It counts from the last :func:`reset_peak_rss`, or from the process's start. Without
    ``/proc`` the peak of this process is taken from ``getrusage``, which can't be reset.
    """
    own = pid is None or pid == os.getpid()
    try:
        value = _status_kib(proc / ("self" if own else str(pid)), "VmHWM")
    except FileNotFoundError:
        value = None
        if not own:
            return None, f"process {pid} has ended"
    except OSError as error:
        return None, f"/proc can't be read ({error.strerror})"
    if value is not None:
        return value * 1024, None
    if own:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, None
    return None, "this kernel keeps no peak (VmHWM) for other processes"


def reset_peak_rss(*, proc: Path = Path("/proc")) -> str | None:
    """Start a new peak for this process through ``/proc/self/clear_refs``.

    Returns:
        None when the peak was reset, else the reason why it could not be: the peak then belongs
        to the whole life of the process and must not be shown as that of one attempt.
    """
    own = proc / "self"
    try:
        before = _status_kib(own, "VmHWM")
        if before is None:
            return "this kernel keeps no peak (VmHWM) that could be reset"
        (own / "clear_refs").write_text("5")
        after = _status_kib(own, "VmHWM")
        now = _status_kib(own, "VmRSS")
    except PermissionError:
        return "resetting the peak (/proc/self/clear_refs) is not permitted here"
    except OSError as error:
        return f"the peak can't be reset (/proc/self/clear_refs: {error.strerror})"
    # Some sandboxes accept the write and do nothing.
    if after is None or now is None or (after - now) * 1024 > _SLACK_BYTES:
        return "this kernel did not reset the peak"
    return None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Other processes on a device.

    ``pids`` exist on this machine and are not ours. ``hidden`` counts entries whose pid can't be
    seen from here (another pid namespace); where our own process is missing from the driver's
    list, one of the hidden ones may be ours. ``reason`` says why nothing is known.
    """

    pids: tuple[int, ...] = ()
    hidden: int = 0
    own_listed: bool = False
    reason: str | None = None

    def warning(self) -> str | None:
        """Return a sentence for a row's notes, or None where nobody else was seen."""
        parts = []
        if self.pids:
            shown = ", ".join(str(pid) for pid in self.pids[:5])
            more = f" and {len(self.pids) - 5} more" if len(self.pids) > 5 else ""
            parts.append(f"other processes on the device: pid {shown}{more}")
        foreign = self.hidden if self.own_listed else self.hidden - 1
        if foreign > 0:
            parts.append(f"at least {foreign} more outside this container")
        return "; ".join(parts) or None


def neighbours(sample: DeviceSample, own: Collection[int]) -> Neighbours:
    """Return who else is on the device, by the driver's list of processes.

    Args:
        sample: What the driver said.
        own: Pids of this program: the measuring child, the runner.
    """
    if sample.processes is None:
        return Neighbours(reason=sample.missing.get("processes", "the driver lists no processes"))
    listed = {process.pid for process in sample.processes}
    others = sorted(listed - set(own))
    visible = tuple(pid for pid in others if pid > 0 and psutil.pid_exists(pid))
    return Neighbours(
        pids=visible,
        hidden=len(others) - len(visible),
        own_listed=bool(listed & set(own)),
    )


def _status_kib(folder: Path, name: str) -> int | None:
    for line in (folder / "status").read_text("ascii", "replace").splitlines():
        key, _, rest = line.partition(":")
        if key == name and rest.split()[:1]:
            number = rest.split()[0]
            return int(number) if number.isdigit() else None
    return None
