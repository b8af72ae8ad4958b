"""What the driver saw of a device during one pass: energy, clocks, throttling, neighbours.

Energy is the difference of the driver's counter between the two ends of the pass, over the whole
device: whoever else computed there is in it. Clocks, throttle reasons and other processes are
sampled (10 Hz while a pass runs, and at both ends), so a shorter event can be missed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from gpucost_tui.environment.devices import SLOWING, DeviceSample
from gpucost_tui.environment.process import neighbours
from gpucost_tui.text import listed


@dataclass(slots=True)
class Seen:
    """The result for a row: ``energy_j`` or the reason why there is none, and notes."""

    energy_j: float | None = None
    reason: str | None = None
    notes: list[str] = field(default_factory=list)


class PassWatch:
    """Takes a device's samples from the start of a pass to its end.

    Args:
        first: Sampled before the pass begins.
        own: Pids of this program: the measuring process, the runner.
    """

    def __init__(self, first: DeviceSample, own: Collection[int]) -> None:
        self._first = first
        self._own = frozenset(own)
        self._clocks: list[int] = []
        self._slowed: set[str] = set()
        self._warnings: dict[str, str] = {}  # warning -> when it was first seen
        self._take(first, "before the pass")

    def take(self, sample: DeviceSample) -> None:
        """Take a sample of the running pass."""
        self._take(sample, "during the pass")

    def _take(self, sample: DeviceSample, when: str) -> None:
        if sample.sm_clock_mhz is not None and when != "before the pass":
            self._clocks.append(sample.sm_clock_mhz)
        if when != "before the pass":
            self._slowed |= set(sample.throttle_reasons or ()) & SLOWING
        warning = neighbours(sample, self._own).warning()
        if warning is not None:
            self._warnings.setdefault(warning, when)

    def end(self, last: DeviceSample) -> Seen:
        """Return what was seen; ``last`` is sampled when the pass has ended."""
        self._take(last, "at the end of the pass")
        seen = Seen(notes=[f"{warning} ({when})" for warning, when in self._warnings.items()])
        if self._slowed:
            reasons = listed(sorted(self._slowed))
            seen.notes.append(f"the device was slowed down during the pass: {reasons}")
        if self._clocks:
            low, high = min(self._clocks), max(self._clocks)
            shown = f"{low}" if low == high else f"{low} to {high}"
            seen.notes.append(f"SM clock {shown} MHz in {len(self._clocks)} samples")
        before, after = self._first.energy_mj, last.energy_mj
        if before is None or after is None:
            gaps = self._first.missing if before is None else last.missing
            seen.reason = gaps.get("energy_mj", "the driver counts no energy")
        elif after < before:
            seen.reason = "the driver's energy counter began anew during the pass"
        else:
            seen.energy_j = (after - before) / 1000
        return seen
