"""AMD devices through AMD SMI (amdsmi, the extra ``amd`` or ROCm's own copy)."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable
from typing import Any

from gpucost_tui.environment.devices import (
    DeviceInfo,
    DeviceSample,
    Driver,
    NoDriver,
    ProcessUse,
    Vendor,
)

_NO_MIG = "MIG is NVIDIA's; an AMD device has a compute partition"


class AmdDriver:
    """Devices that AMD SMI lists. Make one with :meth:`open`."""

    vendor: Vendor | None = "amd"

    def __init__(self, smi: Any, handles: list[Any]) -> None:
        self._smi = smi
        self._handles = handles
        self.reason: str | None = None if handles else "the AMD driver lists no device"

    @classmethod
    def open(cls, smi: Any = None) -> Driver:
        """Start AMD SMI; where that fails, return a ``NoDriver`` with the reason."""
        if smi is None:
            try:
                smi = _import()
            except ImportError:
                return NoDriver("the Python package amdsmi is not installed (extra 'amd')")
            except Exception as error:
                # The module loads libamd_smi.so while it is imported and fails with whatever
                # its first look-up meets (KeyError, AttributeError, OSError).
                return NoDriver(f"libamd_smi.so can't be loaded ({type(error).__name__})")
        try:
            smi.amdsmi_init()
            return cls(smi, list(smi.amdsmi_get_processor_handles()))
        except smi.AmdSmiException as error:
            return NoDriver(f"AMD SMI did not start: {_words(error)}")

    def versions(self) -> dict[str, str]:
        gaps: dict[str, str] = {}
        found: dict[str, str] = {}
        if self._handles:
            info = self._ask(gaps, "driver", "amdsmi_get_gpu_driver_info", self._handles[0])
            version = _known((info or {}).get("driver_version"))
            if version is not None:
                found["driver"] = str(version)
        answer = self._ask(gaps, "rocm", "amdsmi_get_rocm_version")
        if isinstance(answer, tuple) and answer[0]:
            found["rocm"] = str(answer[1])
        library = self._ask(gaps, "library", "amdsmi_get_lib_version")
        if isinstance(library, dict):
            found["library"] = ".".join(
                str(library[key]) for key in ("major", "minor", "release") if key in library
            )
        return found

    def devices(self) -> list[DeviceInfo]:
        version = self.versions().get("driver")
        return [self._info(index, version) for index in range(len(self._handles))]

    def sample(self, index: int, partition: str | None = None) -> DeviceSample:
        if not 0 <= index < len(self._handles):
            return NoDriver(f"the AMD driver lists no device {index}").sample(index)
        smi, handle = self._smi, self._handles[index]
        gaps: dict[str, str] = {}
        vram = smi.AmdSmiMemoryType.VRAM
        clocks = self._ask(
            gaps, "sm_clock_mhz", "amdsmi_get_clock_info", handle, smi.AmdSmiClkType.GFX
        )
        activity = self._ask(gaps, "utilization_percent", "amdsmi_get_gpu_activity", handle)
        clock = _pick(gaps, "sm_clock_mhz", clocks, "clk", "cur_clk")
        return DeviceSample(
            index=index,
            used_bytes=self._ask(gaps, "used_bytes", "amdsmi_get_gpu_memory_usage", handle, vram),
            utilization_percent=_pick(gaps, "utilization_percent", activity, "gfx_activity"),
            power_w=self._power(gaps, handle),
            temperature_c=self._temperature(gaps, handle),
            sm_clock_mhz=None if clock is None else int(clock),
            throttle_reasons=self._throttle(gaps, handle),
            energy_mj=self._energy(gaps, handle),
            processes=self._processes(gaps, handle),
            missing=gaps,
        )

    def close(self) -> None:
        self._handles = []
        self._ask({}, "close", "amdsmi_shut_down")

    def _ask(self, gaps: dict[str, str], name: str, function: str, *args: Any) -> Any:
        """Return a call's answer, or None and its reason in ``gaps``."""
        call: Callable[..., Any] | None = getattr(self._smi, function, None)
        if call is None:
            gaps[name] = "the installed amdsmi does not know the question"
            return None
        try:
            return call(*args)
        except self._smi.AmdSmiException as error:
            gaps[name] = _words(error)
        except UnicodeDecodeError:
            gaps[name] = "the driver's answer is not text"
        return None

    def _info(self, index: int, version: str | None) -> DeviceInfo:
        handle = self._handles[index]
        gaps: dict[str, str] = {"mig_mode": _NO_MIG, "persistence": "AMD devices have no such mode"}
        gaps["compute_capability"] = "an AMD device has a gfx target instead"
        asic = self._ask(gaps, "gfx_target", "amdsmi_get_gpu_asic_info", handle)
        power = self._ask(gaps, "power_limit_w", "amdsmi_get_power_info", handle)
        ecc = self._ask(gaps, "ecc", "amdsmi_get_gpu_ecc_enabled", handle)
        if version is None:
            gaps["driver_version"] = "AMD SMI did not say"
        return DeviceInfo(
            index=index,
            vendor="amd",
            name=str(_known((asic or {}).get("market_name")) or "unnamed"),
            uuid=self._ask(gaps, "uuid", "amdsmi_get_gpu_device_uuid", handle),
            pci_bus_id=self._ask(gaps, "pci_bus_id", "amdsmi_get_gpu_device_bdf", handle),
            capacity_bytes=self._ask(
                gaps,
                "capacity_bytes",
                "amdsmi_get_gpu_memory_total",
                handle,
                self._smi.AmdSmiMemoryType.VRAM,
            ),
            gfx_target=_pick(gaps, "gfx_target", asic, "target_graphics_version"),
            driver_version=version,
            ecc=None if ecc is None else ecc != 0,
            compute_partition=self._ask(
                gaps, "compute_partition", "amdsmi_get_gpu_compute_partition", handle
            ),
            power_limit_w=_watts(_pick(gaps, "power_limit_w", power, "power_limit")),
            missing=gaps,
        )

    def _power(self, gaps: dict[str, str], handle: Any) -> float | None:
        # Newer devices state the current power, older ones only an average.
        answer = self._ask(gaps, "power_w", "amdsmi_get_power_info", handle)
        keys = ("current_socket_power", "average_socket_power", "socket_power")
        if isinstance(answer, dict):  # not every release says N/A for what it can't read
            answer = {k: v for k, v in answer.items() if not isinstance(v, int) or v < 0xFFFF}
        value = _pick(gaps, "power_w", answer, *keys)
        return None if value is None else float(value)

    def _temperature(self, gaps: dict[str, str], handle: Any) -> float | None:
        smi = self._smi
        now = smi.AmdSmiTemperatureMetric.CURRENT
        for sensor in (smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureType.EDGE):
            value = self._ask(gaps, "temperature_c", "amdsmi_get_temp_metric", handle, sensor, now)
            if value is not None:
                gaps.pop("temperature_c", None)
                # Releases before 6.0 answered in thousandths of a degree.
                return float(value) / 1000 if value > 1000 else float(value)
        return None

    def _throttle(self, gaps: dict[str, str], handle: Any) -> tuple[str, ...] | None:
        metrics = self._ask(gaps, "throttle_reasons", "amdsmi_get_gpu_metrics_info", handle)
        status = _pick(gaps, "throttle_reasons", metrics, "throttle_status")
        if status is None:
            return None
        return ("throttled",) if status else ()

    def _energy(self, gaps: dict[str, str], handle: Any) -> float | None:
        answer = self._ask(gaps, "energy_mj", "amdsmi_get_energy_count", handle)
        counted = _pick(gaps, "energy_mj", answer, "energy_accumulator", "power")
        unit = _pick(gaps, "energy_mj", answer, "counter_resolution")  # microjoules a count
        return None if counted is None or unit is None else float(counted) * float(unit) / 1000

    def _processes(self, gaps: dict[str, str], handle: Any) -> tuple[ProcessUse, ...] | None:
        entries = self._ask(gaps, "processes", "amdsmi_get_gpu_process_list", handle)
        if entries is None:
            return None
        totals: dict[int, int | None] = {}
        for entry in entries:
            if not isinstance(entry, dict):
                gaps["processes"] = "this release of amdsmi lists processes in another form"
                return None
            used = _known((entry.get("memory_usage") or {}).get("vram_mem"))
            # Where the figure can't be read AMD SMI says 0, and 0 is not "unavailable" (R20).
            share = int(used) if used else None
            previous = totals.get(int(entry["pid"]))
            known = [value for value in (previous, share) if value is not None]
            totals[int(entry["pid"])] = max(known) if known else None
        return tuple(ProcessUse(pid, used) for pid, used in sorted(totals.items()))


def _import() -> Any:
    # Without its library amdsmi prints two lines on standard output while it is imported.
    with contextlib.redirect_stdout(io.StringIO()):
        return importlib.import_module("amdsmi")


def _known(value: Any) -> Any:
    """Return a value, or None for AMD SMI's spellings of "not available"."""
    return None if value in (None, "", "N/A") else value


def _pick(gaps: dict[str, str], name: str, answer: Any, *keys: str) -> Any:
    """Return the first key that has a value; the gap's reason is set where none has."""
    if not isinstance(answer, dict):
        return None
    for key in keys:
        value = _known(answer.get(key))
        if value is not None:
            return value
    gaps[name] = "AMD SMI says N/A"
    return None


def _watts(limit: Any) -> float | None:
    """Return a power limit in watts; releases after 7.0 state millionths of it."""
    if limit is None:
        return None
    return float(limit) / 1e6 if limit > 100_000 else float(limit)


def _words(error: Exception) -> str:
    info = str(getattr(error, "err_info", "") or error)
    return f"AMD SMI: {' '.join(info.split())[:160]}"
