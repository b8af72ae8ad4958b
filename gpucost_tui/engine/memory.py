"""Memory and energy of the devices of a pass: torch's counters beside the driver's (R30).

The driver's figure covers every process on a device and is sampled (10 Hz while a pass runs), so
its peak is the highest sample. torch numbers the devices that it may see; the driver numbers all
of them: they are matched by UUID.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from gpucost_tui.engine.contract import DeviceMemory
from gpucost_tui.engine.devices import Accelerator
from gpucost_tui.engine.watching import PassWatch, Seen
from gpucost_tui.environment.devices import DeviceInfo, DeviceSample, Driver, Partition, find


class DeviceMeter:
    """Samples devices from any thread; keeps the highest figure since the last reset.

    Args:
        find_driver: Opens the driver; called once, on first use with a device.
    """

    def __init__(self, find_driver: Callable[[], Driver]) -> None:
        self._find_driver = find_driver
        self._driver: Driver | None = None
        self._infos: list[DeviceInfo] = []
        self._places: dict[str, tuple[DeviceInfo, Partition | None] | None] = {}
        self._peaks: dict[int, int] = {}
        self._watch: dict[int, PassWatch] = {}
        self._lock = threading.Lock()

    def reset(self) -> None:
        with self._lock:
            self._peaks.clear()
            self._watch.clear()

    def sample(self, accelerator: Accelerator) -> list[DeviceMemory]:
        """Return memory now, the driver's figures included."""
        found = accelerator.memory()
        with self._lock:
            for memory in found:
                self._fill(memory)
                if memory.used_bytes is not None:
                    before = self._peaks.get(memory.index, 0)
                    self._peaks[memory.index] = max(before, memory.used_bytes)
        return found

    def begin_pass(self, accelerator: Accelerator, own: Collection[int]) -> None:
        """Note energy and neighbours before a pass; ``own`` are the pids of this program."""
        found = accelerator.memory()
        with self._lock:
            self._watch = {}
            for memory in found:
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
            for memory in found:
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
        """Return peak memory per device since the last reset."""
        found = accelerator.peaks()
        with self._lock:
            for memory in found:
                memory.used_bytes = self._peaks.get(memory.index)
                if memory.used_bytes is None:
                    memory.missing["used_bytes"] = self._why_unread(memory)
        return found

    def _why_unread(self, memory: DeviceMemory) -> str:
        probe = DeviceMemory(index=memory.index, name=memory.name, uuid=memory.uuid)
        self._fill(probe)
        return probe.missing.get("used_bytes", "no sample fell into this attempt")

    def _fill(self, memory: DeviceMemory) -> None:
        sample = self._read(memory)
        if isinstance(sample, str):
            for name in ("used_bytes", "utilization_percent", "power_w", "temperature_c"):
                memory.missing[name] = sample
            return
        if memory.index in self._watch:
            self._watch[memory.index].take(sample)
        memory.used_bytes = sample.used_bytes
        memory.utilization_percent = sample.utilization_percent
        memory.power_w = sample.power_w
        memory.temperature_c = sample.temperature_c
        for name in ("used_bytes", "utilization_percent", "power_w", "temperature_c"):
            if getattr(memory, name) is None:
                memory.missing[name] = sample.missing.get(name, "the driver gives no figure")

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
            self._places[uuid] = find(self._infos, uuid)
        return self._places[uuid]
