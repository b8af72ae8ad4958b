"""Memory and energy of the devices of a pass: torch's counters beside the driver's (R30).

The driver's figures are sampled (10 Hz while an attempt runs), so their peaks are the highest
samples; torch counts its peaks itself, and the same samples tell when they rose last. A sample is
taken at each end of a phase too: the phase of a peak is exact, its second is that of the sample.
torch numbers the devices that it may see; the driver numbers all of them: they are matched by UUID.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection

from gpucost_tui.engine.contract import DeviceMemory
from gpucost_tui.engine.devices import Accelerator
from gpucost_tui.engine.watching import PassWatch, Seen
from gpucost_tui.environment.devices import DeviceInfo, DeviceSample, Driver, Partition, find
from gpucost_tui.environment.visible import select

_COUNTED = ("allocated_bytes", "reserved_bytes")
_SAMPLED = ("used_bytes", "own_bytes")
_SHOWN = ("used_bytes", "utilization_percent", "power_w", "temperature_c")


class _Peaks:
    """The highest figures of one device in an attempt, each with when it was reached."""

    def __init__(self) -> None:
        self.highest: dict[str, int] = {}
        self.fell: dict[str, tuple[str, float]] = {}

    def take(self, memory: DeviceMemory, names: Collection[str], when: tuple[str, float]) -> None:
        for name in names:
            value = getattr(memory, name)
            if value is not None and value > self.highest.get(name, -1):
                self.highest[name], self.fell[name] = value, when


class DeviceMeter:
    """Samples devices from any thread; keeps the highest figures since the last reset.

    Args:
        find_driver: Opens the driver; called once, on first use with a device.
        clock: Seconds, monotonic.
    """

    def __init__(
        self, find_driver: Callable[[], Driver], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._find_driver = find_driver
        self._clock = clock
        self._driver: Driver | None = None
        self._infos: list[DeviceInfo] = []
        self._places: dict[str, tuple[DeviceInfo, Partition | None] | None] = {}
        self._peaks: dict[int, _Peaks] = {}
        self._watch: dict[int, PassWatch] = {}
        self._lock = threading.Lock()
        self._began = clock()
        self._phase = ""

    def reset(self, phase: str) -> None:
        """Begin an attempt, in this phase: torch's counters have been reset."""
        with self._lock:
            self._peaks.clear()
            self._watch.clear()
            self._began, self._phase = self._clock(), phase

    def enter(self, accelerator: Accelerator, phase: str) -> None:
        """End a phase with a sample and begin the next one."""
        self.sample(accelerator)
        with self._lock:
            self._phase = phase

    def sample(self, accelerator: Accelerator) -> list[DeviceMemory]:
        """Return memory now, the driver's figures included."""
        with self._lock:
            when = (self._phase, self._clock() - self._began)
            # Inside the lock: a peak read before a reset must not count after it.
            found = accelerator.memory()
            for now, peak in found:
                self._fill(now)
                kept = self._peaks.setdefault(now.index, _Peaks())
                kept.take(peak, _COUNTED, when)
                kept.take(now, _SAMPLED, when)
        return [now for now, _ in found]

    def begin_pass(self, accelerator: Accelerator, own: Collection[int]) -> None:
        """Note energy and neighbours before a pass; ``own`` are the pids of this program."""
        found = accelerator.memory()
        with self._lock:
            self._watch = {}
            for memory, _ in found:
                sample = self._read(memory)
                if isinstance(sample, DeviceSample):
                    self._watch[memory.index] = PassWatch(sample, own)

    def end_pass(self, accelerator: Accelerator) -> Seen:
        """Return what the driver saw of the devices since :meth:`begin_pass`.

        Energy is the sum over the devices used; one that can't tell makes the sum unknown.
        """
        found = accelerator.memory()
        if not found:
            return Seen(reason="no GPU")
        total = Seen(energy_j=0.0)
        with self._lock:
            for memory, _ in found:
                sample, watch = self._read(memory), self._watch.pop(memory.index, None)
                if not isinstance(sample, DeviceSample) or watch is None:
                    why = sample if isinstance(sample, str) else "the driver came late"
                    seen = Seen(reason=why)
                else:
                    seen = watch.end(sample)
                total.notes += seen.notes
                total.reason = total.reason or seen.reason
                if total.energy_j is not None:
                    known = seen.energy_j is not None
                    total.energy_j = total.energy_j + (seen.energy_j or 0.0) if known else None
        return total

    def peaks(self, accelerator: Accelerator) -> list[DeviceMemory]:
        """Return peak memory per device since the last reset, and when each peak fell."""
        self.sample(accelerator)
        peaks = [peak for _, peak in accelerator.memory()]
        with self._lock:
            for memory in peaks:
                kept = self._peaks.get(memory.index, _Peaks())
                memory.fell = dict(kept.fell)
                for name in _SAMPLED:
                    setattr(memory, name, kept.highest.get(name))
                self._explain(memory)
        return peaks

    def _explain(self, memory: DeviceMemory) -> None:
        """Say why the driver's peaks are missing: what it answers now."""
        gone = [name for name in _SAMPLED if getattr(memory, name) is None]
        if not gone:
            return
        probe = DeviceMemory(index=memory.index, name=memory.name, uuid=memory.uuid)
        self._fill(probe)
        for name in gone:
            memory.missing[name] = probe.missing.get(name, "no sample fell into this attempt")

    def _fill(self, memory: DeviceMemory) -> None:
        sample = self._read(memory)
        if isinstance(sample, str):
            for name in (*_SHOWN, "own_bytes"):
                memory.missing[name] = sample
            return
        if memory.index in self._watch:
            self._watch[memory.index].take(sample)
        for name in _SHOWN:
            value = getattr(sample, name)
            setattr(memory, name, value)
            if value is None:
                memory.missing[name] = sample.missing.get(name, "the driver gives no figure")
        memory.own_bytes, why = sample.used_by(os.getpid())
        if why is not None:
            memory.missing["own_bytes"] = why

    def _read(self, memory: DeviceMemory) -> DeviceSample | str:
        """Return the driver's sample of a device of torch's, or why there is none."""
        driver = self._opened()
        place = self._place(memory.uuid)
        if place is None:
            return driver.reason or "the driver lists no device with this UUID"
        device, partition = place
        return driver.sample(device.index, partition.uuid if partition else None)

    def _opened(self) -> Driver:
        if self._driver is None:
            self._driver = self._find_driver()
            self._infos = self._driver.devices()
        return self._driver

    def _place(self, uuid: str | None) -> tuple[DeviceInfo, Partition | None] | None:
        if uuid is None:
            # An old torch gives no UUID: with a single device there is nothing to confuse.
            return (self._infos[0], None) if len(self._infos) == 1 else None
        if uuid not in self._places:
            self._places[uuid] = self._found(find(self._infos, uuid))
        return self._places[uuid]

    def _found(
        self, place: tuple[DeviceInfo, Partition | None] | None
    ) -> tuple[DeviceInfo, Partition | None] | None:
        """Narrow a device that is divided down to the instance that this process was given.

        CUDA gives a process one MIG instance, and may state the UUID of the whole device for it.
        """
        if place is None or place[1] is not None or place[0].mig_mode != "enabled":
            return place
        device = place[0]
        given = select([device], os.environ, "cuda")
        parts = [part for part in device.partitions if part.uuid == given.partition]
        return (device, parts[0]) if parts else place
