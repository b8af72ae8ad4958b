"""Which of the listed devices this program may see, and which one it would use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpucost_tui.environment.devices import DeviceInfo, Partition, find


@dataclass(frozen=True, slots=True)
class Selection:
    """``visible`` in the framework's order: its first is ``cuda:0``. ``used`` is an index or None.

    Where the order can't be known without the framework, ``used`` is None and ``reason`` says so.
    """

    visible: tuple[int, ...]
    used: int | None
    partition: str | None = None  # UUID of the MIG instance used
    reason: str | None = None


def select(
    devices: list[DeviceInfo], environ: Mapping[str, str], device: str = "auto"
) -> Selection:
    """Apply CUDA_VISIBLE_DEVICES (or AMD's ROCR_ and HIP_VISIBLE_DEVICES) and ``--device``.

    Args:
        devices: What the driver lists, in its order.
        environ: The environment of the process that would measure.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N`` (N counts visible devices).
    """
    chosen: list[tuple[DeviceInfo, Partition | None]] = [(d, None) for d in devices]
    for name in _lists(devices, environ):
        chosen = _filter(chosen, environ[name])
    visible = tuple(dict.fromkeys(info.index for info, _ in chosen))
    if device == "cpu":
        return Selection(visible, None, reason="the CPU was asked for")
    wanted = int(device.partition(":")[2] or 0)
    if wanted >= len(chosen):
        seen = "no device is visible" if not chosen else f"only {len(chosen)} visible"
        return Selection(visible, None, reason=f"there is no cuda:{wanted} ({seen})")
    if _order_unknown(devices, environ):
        reason = "devices differ and CUDA_DEVICE_ORDER is not PCI_BUS_ID: the order is torch's"
        return Selection(visible, None, reason=reason)
    info, part = chosen[wanted]
    if part is None and info.mig_mode == "enabled":
        part = info.partitions[0] if info.partitions else None
    return Selection(visible, info.index, part.uuid if part else None)


def _lists(devices: list[DeviceInfo], environ: Mapping[str, str]) -> list[str]:
    if any(info.vendor == "amd" for info in devices):
        # HIP reads CUDA_VISIBLE_DEVICES where its own variable is not set; ROCR filters first.
        hip = "HIP_VISIBLE_DEVICES" if "HIP_VISIBLE_DEVICES" in environ else "CUDA_VISIBLE_DEVICES"
        names = ["ROCR_VISIBLE_DEVICES", hip]
    else:
        names = ["CUDA_VISIBLE_DEVICES"]
    return [name for name in names if name in environ]


def _filter(
    chosen: list[tuple[DeviceInfo, Partition | None]], value: str
) -> list[tuple[DeviceInfo, Partition | None]]:
    """Keep what a list names, in its order; it ends, as CUDA's does, where a name fits nothing."""
    kept: list[tuple[DeviceInfo, Partition | None]] = []
    for entry in (part.strip() for part in value.split(",")):
        if re.fullmatch(r"[0-9]{1,6}", entry):
            found = chosen[int(entry)] if int(entry) < len(chosen) else None
        else:
            found = find([info for info, _ in chosen], entry) if "-" in entry[1:] else None
        if found is None:
            break
        if found in kept:  # CUDA takes a list with a device twice for an empty one
            return []
        kept.append(found)
    return kept


def _order_unknown(devices: list[DeviceInfo], environ: Mapping[str, str]) -> bool:
    """Tell whether CUDA may count otherwise than the driver: fastest first, if devices differ."""
    if environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or devices[0].vendor == "amd":
        return False
    entries = environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")
    if not any(entry.strip().isdigit() for entry in entries):
        return False
    return len({info.name for info in devices}) > 1
