"""NVIDIA devices through NVML (nvidia-ml-py)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any, Literal

from gpucost_tui.environment.devices import (
    DeviceInfo,
    DeviceSample,
    Driver,
    NoDriver,
    Partition,
    ProcessUse,
    Vendor,
)

_LIBRARY = "libnvidia-ml.so.1"

#: bit of nvmlDeviceGetCurrentClocksEventReasons -> name (nvml.h, nvmlClocksEventReason*)
_THROTTLE = {
    0x001: "gpu-idle",
    0x002: "applications-clocks-setting",
    0x004: "sw-power-cap",
    0x008: "hw-slowdown",
    0x010: "sync-boost",
    0x020: "sw-thermal-slowdown",
    0x040: "hw-thermal-slowdown",
    0x080: "hw-power-brake-slowdown",
    0x100: "display-clock-setting",
    0x200: "board-limit",
    0x400: "reliability",
}
_PROCESS_LISTS = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)


class NvidiaDriver:
    """Devices that NVML lists. Make one with :meth:`open`."""

    vendor: Vendor | None = "nvidia"

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._handles: dict[tuple[int, str | None], Any] = {}
        self.reason: str | None = None

    @classmethod
    def open(cls, nvml: Any = None) -> Driver:
        """Start NVML; where that fails, return a ``NoDriver`` with the reason."""
        if nvml is None:
            try:
                nvml = importlib.import_module("pynvml")
            except ImportError:
                return NoDriver("the Python package nvidia-ml-py is not installed")
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            return NoDriver(_why_no_start(nvml, error))
        driver = cls(nvml)
        missing: dict[str, str] = {}
        count = driver._ask(missing, "devices", nvml.nvmlDeviceGetCount)
        if not count:
            driver.reason = missing.get("devices", "the NVIDIA driver lists no device")
        return driver

    def versions(self) -> dict[str, str]:
        nvml, missing = self._nvml, {}  # type: ignore[var-annotated]
        found = {
            "driver": self._ask(missing, "driver", nvml.nvmlSystemGetDriverVersion),
            "library": self._ask(missing, "library", nvml.nvmlSystemGetNVMLVersion),
        }
        cuda = self._ask(missing, "cuda", nvml.nvmlSystemGetCudaDriverVersion_v2)
        if cuda:  # 12040 is 12.4
            found["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
        return {name: str(value) for name, value in found.items() if value is not None}

    def devices(self) -> list[DeviceInfo]:
        count = self._ask({}, "devices", self._nvml.nvmlDeviceGetCount) or 0
        version = self.versions().get("driver")
        return [self._info(index, version) for index in range(count)]

    def sample(self, index: int, partition: str | None = None) -> DeviceSample:
        nvml, gaps = self._nvml, {}  # type: ignore[var-annotated]
        handle = self._handle(gaps, index, partition)
        if handle is None:
            reason = gaps.pop("handle")
            return NoDriver(reason).sample(index)
        memory = self._ask(gaps, "used_bytes", nvml.nvmlDeviceGetMemoryInfo, handle)
        rates = self._ask(gaps, "utilization_percent", nvml.nvmlDeviceGetUtilizationRates, handle)
        milliwatts = self._ask(gaps, "power_w", nvml.nvmlDeviceGetPowerUsage, handle)
        return DeviceSample(
            index=index,
            used_bytes=None if memory is None else int(memory.used),
            utilization_percent=None if rates is None else float(rates.gpu),
            power_w=None if milliwatts is None else milliwatts / 1000,
            temperature_c=self._temperature(gaps, handle),
            sm_clock_mhz=self._ask(
                gaps, "sm_clock_mhz", nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM
            ),
            throttle_reasons=self._throttle(gaps, handle),
            energy_mj=self._ask(
                gaps, "energy_mj", nvml.nvmlDeviceGetTotalEnergyConsumption, handle
            ),
            processes=self._processes(gaps, handle),
            missing=gaps,
        )

    def close(self) -> None:
        self._handles.clear()
        self._ask({}, "close", self._nvml.nvmlShutdown)

    def _ask(self, gaps: dict[str, str], name: str, call: Callable[..., Any], *args: Any) -> Any:
        """Return a call's answer, or None and its reason in ``gaps``."""
        nvml = self._nvml
        try:
            return call(*args)
        except nvml.NVMLError as error:
            gaps[name] = _words(nvml, error)
        except nvml.NVMLLibraryMismatchError:
            gaps[name] = "this driver's NVML is too old for the question"
        except UnicodeDecodeError:
            gaps[name] = "the driver's answer is not text"
        return None

    def _first(self, gaps: dict[str, str], name: str, calls: Iterable[tuple[str, Any]]) -> Any:
        """Try an old and a new spelling of one question; only the last failure is a gap."""
        for function, args in calls:
            call = getattr(self._nvml, function, None)
            if call is None:
                gaps.setdefault(name, "the installed nvidia-ml-py does not know the question")
                continue
            answer = self._ask(gaps, name, call, *args)
            if answer is not None:
                gaps.pop(name, None)
                return answer
        return None

    def _handle(self, gaps: dict[str, str], index: int, partition: str | None = None) -> Any:
        key = (index, partition)
        if key not in self._handles:
            nvml = self._nvml
            if partition is None:
                handle = self._ask(gaps, "handle", nvml.nvmlDeviceGetHandleByIndex, index)
            else:
                handle = self._ask(gaps, "handle", nvml.nvmlDeviceGetHandleByUUID, partition)
            if handle is None:
                return None
            self._handles[key] = handle
        return self._handles[key]

    def _info(self, index: int, version: str | None) -> DeviceInfo:
        nvml, gaps = self._nvml, {}  # type: ignore[var-annotated]
        handle = self._handle(gaps, index)
        if handle is None:
            reason = gaps.pop("handle")
            return DeviceInfo(
                index,
                "nvidia",
                "unreadable",
                driver_version=version,
                missing={
                    "uuid": reason,
                    "capacity_bytes": reason,
                    "compute_capability": reason,
                },
            )
        memory = self._ask(gaps, "capacity_bytes", nvml.nvmlDeviceGetMemoryInfo, handle)
        capability = self._ask(
            gaps, "compute_capability", nvml.nvmlDeviceGetCudaComputeCapability, handle
        )
        ecc = self._ask(gaps, "ecc", nvml.nvmlDeviceGetEccMode, handle)
        pci = self._ask(gaps, "pci_bus_id", nvml.nvmlDeviceGetPciInfo, handle)
        persistence = self._ask(gaps, "persistence", nvml.nvmlDeviceGetPersistenceMode, handle)
        limit = self._ask(gaps, "power_limit_w", nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        mig = self._mig_mode(gaps, handle)
        name = self._ask(gaps, "name", nvml.nvmlDeviceGetName, handle)
        if version is None:
            gaps["driver_version"] = "NVML did not say"
        gaps["gfx_target"] = gaps["compute_partition"] = "an NVIDIA device has none"
        return DeviceInfo(
            index=index,
            vendor="nvidia",
            name=name or "unnamed",
            uuid=self._ask(gaps, "uuid", nvml.nvmlDeviceGetUUID, handle),
            pci_bus_id=None if pci is None else _text(pci.busId),
            capacity_bytes=None if memory is None else int(memory.total),
            compute_capability=None if capability is None else f"{capability[0]}.{capability[1]}",
            driver_version=version,
            ecc=None if ecc is None else ecc[0] == nvml.NVML_FEATURE_ENABLED,
            mig_mode=mig,
            persistence=None if persistence is None else persistence == nvml.NVML_FEATURE_ENABLED,
            power_limit_w=None if limit is None else limit / 1000,
            partitions=self._partitions(handle) if mig == "enabled" else (),
            missing=gaps,
        )

    def _mig_mode(self, gaps: dict[str, str], handle: Any) -> Literal["enabled", "disabled"] | None:
        mode = self._ask(gaps, "mig_mode", self._nvml.nvmlDeviceGetMigMode, handle)
        if mode is None:
            return None
        return "enabled" if mode[0] == self._nvml.NVML_DEVICE_MIG_ENABLE else "disabled"

    def _partitions(self, handle: Any) -> tuple[Partition, ...]:
        nvml = self._nvml
        found = []
        for place in range(self._ask({}, "mig", nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
            # Places without an instance answer "Not Found": they are no gap.
            part = self._ask({}, "mig", nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place)
            uuid = part and self._ask({}, "uuid", nvml.nvmlDeviceGetUUID, part)
            if not uuid:
                continue
            gaps: dict[str, str] = {}
            memory = self._ask(gaps, "capacity_bytes", nvml.nvmlDeviceGetMemoryInfo, part)
            name = self._ask(gaps, "name", nvml.nvmlDeviceGetName, part)
            capacity = None if memory is None else int(memory.total)
            found.append(Partition(uuid, name, capacity, gaps))
        return tuple(found)

    def _temperature(self, gaps: dict[str, str], handle: Any) -> float | None:
        sensor = (handle, self._nvml.NVML_TEMPERATURE_GPU)
        value = self._first(
            gaps,
            "temperature_c",
            [("nvmlDeviceGetTemperatureV", sensor), ("nvmlDeviceGetTemperature", sensor)],
        )
        return None if value is None else float(value)

    def _throttle(self, gaps: dict[str, str], handle: Any) -> tuple[str, ...] | None:
        bits = self._first(
            gaps,
            "throttle_reasons",
            [
                ("nvmlDeviceGetCurrentClocksEventReasons", (handle,)),
                ("nvmlDeviceGetCurrentClocksThrottleReasons", (handle,)),
            ],
        )
        if bits is None:
            return None
        known = tuple(name for bit, name in _THROTTLE.items() if bits & bit)
        rest = bits & ~sum(_THROTTLE)
        return (*known, f"unknown-{rest:#x}") if rest else known

    def _processes(self, gaps: dict[str, str], handle: Any) -> tuple[ProcessUse, ...] | None:
        """Join the lists: a pid that stands in several of them counts once.

        Every list states the whole of a process's memory on the device, so the larger figure is
        kept; a pid in two MIG instances has two shares, which do add up.
        """
        shares: dict[tuple[int, Any, Any], int | None] = {}
        answered = False
        failures: dict[str, str] = {}
        for name in _PROCESS_LISTS:
            entries = self._ask(failures, name, getattr(self._nvml, name), handle)
            if entries is None:
                continue
            answered = True
            for entry in entries:
                key = (
                    int(entry.pid),
                    getattr(entry, "gpuInstanceId", None),
                    getattr(entry, "computeInstanceId", None),
                )
                shares[key] = _larger(shares.get(key), entry.usedGpuMemory)
        if not answered:
            gaps["processes"] = failures.get(_PROCESS_LISTS[0], "the driver lists no processes")
            return None
        totals: dict[int, int | None] = {}
        for (pid, _, _), used in shares.items():
            totals[pid] = used if pid not in totals else _sum(totals[pid], used)
        return tuple(ProcessUse(pid, used) for pid, used in sorted(totals.items()))


def _larger(one: int | None, other: int | None) -> int | None:
    known = [int(value) for value in (one, other) if value is not None]
    return max(known) if known else None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


def _why_no_start(nvml: Any, error: Any) -> str:
    if error.value == nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return f"{_LIBRARY} is not on this machine (no NVIDIA driver)"
    if error.value == nvml.NVML_ERROR_DRIVER_NOT_LOADED:
        return "the NVIDIA driver is installed but not loaded"
    if error.value == nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return "NVIDIA's library and kernel module have different versions; a reboot mends it"
    return f"NVML did not start: {_words(nvml, error)}"


def _words(nvml: Any, error: Any) -> str:
    if error.value == nvml.NVML_ERROR_NOT_SUPPORTED:
        return "not supported by this device"
    if error.value == nvml.NVML_ERROR_NO_PERMISSION:
        return "the driver requires more rights for it"
    if error.value == nvml.NVML_ERROR_FUNCTION_NOT_FOUND:
        return "this driver's NVML is too old for the question"
    return f"NVML: {error}"
