"""Whether the kernel's out-of-memory killer was at work, by the control group's own counter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def oom_kills(root: Path = Path("/")) -> int | None:
    """Return how many processes of this control group the kernel has ended for want of memory.

    Version 2 counts them in ``memory.events``, version 1 in ``memory.oom_control``. Where neither
    can be read the count of the whole machine stands for it; None where nothing is known, which is
    not zero.
    """
    counts = [count for place in _places(root) if (count := _counted(place)) is not None]
    return max(counts, default=_counted(root / "proc/vmstat"))


def _places(root: Path) -> Iterator[Path]:
    base = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield base / path.lstrip("/") / "memory.events"
        elif "memory" in controllers.split(","):
            yield base / "memory" / path.lstrip("/") / "memory.oom_control"
    # In a container the own group often is the root of what can be seen.
    yield base / "memory.events"
    yield base / "memory/memory.oom_control"


def _counted(place: Path) -> int | None:
    try:
        text = place.read_text("ascii", "replace")
    except OSError:
        return None
    for line in text.splitlines():
        name, _, number = line.partition(" ")
        if name == "oom_kill" and number.strip().isdigit():
            return int(number)
    return None
