"""What a driver can say about devices: plain data, every gap with its reason (R20).

A field that is ``None`` has its reason in ``missing`` under the field's name; ``None`` is never 0.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Vendor = Literal["nvidia", "amd"]

#: Throttle reasons that slow a pass down. The others (idle, a clock set by somebody) are states.
SLOWING = frozenset(
    {
        "sw-power-cap",
        "hw-slowdown",
        "sw-thermal-slowdown",
        "hw-thermal-slowdown",
        "hw-power-brake-slowdown",
        "board-limit",
        "reliability",
        "throttled",
    }
)


@dataclass(frozen=True, slots=True)
class Partition:
    """A MIG instance: the part of an NVIDIA device that a process can be given."""

    uuid: str
    name: str | None
    capacity_bytes: int | None
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What stays the same while a campaign runs.

    ``index`` counts as the driver does (NVIDIA: by PCI bus), which is not always torch's order:
    match by ``uuid`` (:func:`find`).
    """

    index: int
    vendor: Vendor
    name: str
    uuid: str | None = None
    pci_bus_id: str | None = None
    capacity_bytes: int | None = None
    compute_capability: str | None = None  # NVIDIA, "9.0"
    gfx_target: str | None = None  # AMD, "gfx942"
    driver_version: str | None = None
    ecc: bool | None = None
    mig_mode: Literal["enabled", "disabled"] | None = None
    compute_partition: str | None = None  # AMD, "SPX"
    persistence: bool | None = None
    power_limit_w: float | None = None
    partitions: tuple[Partition, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """A process with a context on a device; ``used_bytes`` is None where the driver won't say."""

    pid: int
    used_bytes: int | None


@dataclass(frozen=True, slots=True)
class DeviceSample:
    """A device at one moment.

    ``used_bytes`` is the driver's figure over every process, its own reservation included.
    ``energy_mj`` counts millijoules from an arbitrary start: only differences mean something.
    ``throttle_reasons`` is empty when the device runs freely.
    """

    index: int
    used_bytes: int | None = None
    utilization_percent: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: int | None = None
    throttle_reasons: tuple[str, ...] | None = None
    energy_mj: float | None = None
    processes: tuple[ProcessUse, ...] | None = None
    missing: dict[str, str] = field(default_factory=dict)

    def used_by(self, pid: int) -> tuple[int | None, str | None]:
        """Return the bytes that one process uses here by the driver, or None and the reason."""
        if self.processes is None:
            return None, self.missing.get("processes", "the driver lists no processes")
        for process in self.processes:
            if process.pid == pid:
                if process.used_bytes is not None:
                    return process.used_bytes, None
                return None, "the driver gives no figure for this process (usual in a container)"
        return None, "this process is not in the driver's list (a container hides process ids)"


class Driver(Protocol):
    """A narrow window on a vendor's library. Only ``devices`` and ``sample`` touch hardware."""

    vendor: Vendor | None
    reason: str | None  # why there are no devices; None where there are some

    def versions(self) -> dict[str, str]:
        """Return those known of ``driver``, ``cuda`` (newest supported), ``rocm``, ``library``."""

    def devices(self) -> list[DeviceInfo]: ...

    def sample(self, index: int, partition: str | None = None) -> DeviceSample:
        """Read a device, or one of its MIG instances by UUID. Raises nothing: gaps have reasons."""

    def close(self) -> None: ...


class NoDriver:
    """Stands where no driver was found, and says why."""

    vendor: Vendor | None = None

    def __init__(self, reason: str) -> None:
        self.reason: str | None = reason

    def versions(self) -> dict[str, str]:
        return {}

    def devices(self) -> list[DeviceInfo]:
        return []

    def sample(self, index: int, partition: str | None = None) -> DeviceSample:
        reason = self.reason or "there is no device"
        names = [f.name for f in dataclasses.fields(DeviceSample)]
        return DeviceSample(
            index, missing=dict.fromkeys((n for n in names if n not in _NOT_READ), reason)
        )

    def close(self) -> None:
        """Nothing is open."""


_NOT_READ = ("index", "missing")


def find(devices: list[DeviceInfo], uuid: str) -> tuple[DeviceInfo, Partition | None] | None:
    """Return the device that a UUID names, with its MIG instance where it names one.

    torch writes the bare UUID, NVIDIA's driver puts ``GPU-`` or ``MIG-`` before it. AMD's HIP has
    the sixteen digits of the serial number, which torch writes out once more as the bytes of a
    UUID, and which AMD SMI weaves into its own. An abbreviation works where it names one device.
    """
    wanted = _bare(uuid)
    wanted = _spelled_out(wanted) or wanted
    if not wanted:
        return None
    found: list[tuple[DeviceInfo, Partition | None]] = []
    for device in devices:
        if device.uuid and _same(_bare(device.uuid), wanted):
            found.append((device, None))
        found.extend((device, p) for p in device.partitions if _same(_bare(p.uuid), wanted))
    return found[0] if len(found) == 1 else None


def _bare(uuid: str) -> str:
    text = uuid.strip().lower()
    return text.split("-", 1)[1] if text.startswith(("gpu-", "mig-")) else text


def _spelled_out(uuid: str) -> str | None:
    """Return the digits whose characters are the bytes of a UUID, if they are."""
    try:
        digits = bytes.fromhex(uuid.replace("-", "")).decode("ascii")
    except ValueError:
        return None
    return digits if re.fullmatch(r"[0-9a-f]{16}", digits.lower()) else None


def _same(full: str, wanted: str) -> bool:
    if full.startswith(wanted):
        return True
    digits = full.replace("-", "")
    # AMD SMI: two digits of the serial number stand first, the other fourteen last.
    woven = re.fullmatch(r"[0-9a-f]{16}", wanted) and digits[:2] + digits[-14:] == wanted
    return bool(woven) or (len(wanted) >= 12 and digits.endswith(wanted))
