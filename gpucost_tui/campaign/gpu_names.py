"""Which GPU of a price list is which device of a host record: an explicit table, nothing else.

A list says ``rtx-4090``, a driver ``NVIDIA GeForce RTX 4090``. Names that are not paired here are
never paired by likeness: an A100 with 40 GB is no A100 with 80 GB, an H100 PCIe no H100 SXM.
Whoever rents a GPU that is not in the table names the device (``--host-gpu``): that is recorded.

Sources: device names as NVML, ROCm and torch report them.
"""

from __future__ import annotations

from typing import Any

#: Id in price lists -> names that drivers give the device.
HOST_NAMES: dict[str, tuple[str, ...]] = {
    "a10": ("NVIDIA A10",),
    "a100-40gb": ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"),
    "a100-pcie-40gb": ("NVIDIA A100-PCIE-40GB",),
    "a100-pcie-80gb": ("NVIDIA A100 80GB PCIe",),
    "a100-sxm-40gb": ("NVIDIA A100-SXM4-40GB",),
    "a100-sxm-80gb": ("NVIDIA A100-SXM4-80GB",),
    "a40": ("NVIDIA A40",),
    "b200": ("NVIDIA B200",),
    "gh200": ("NVIDIA GH200 480GB", "NVIDIA GH200 144G HBM3e"),
    "h100-nvl": ("NVIDIA H100 NVL",),
    "h100-pcie": ("NVIDIA H100 PCIe",),
    "h100-sxm": ("NVIDIA H100 80GB HBM3",),
    "h200": ("NVIDIA H200",),
    "h200-nvl": ("NVIDIA H200 NVL",),
    "l4": ("NVIDIA L4",),
    "l40": ("NVIDIA L40",),
    "l40s": ("NVIDIA L40S",),
    "mi300x": ("AMD Instinct MI300X", "AMD Instinct MI300X OAM"),
    "quadro-rtx-6000": ("Quadro RTX 6000",),
    "rtx-3090": ("NVIDIA GeForce RTX 3090",),
    "rtx-4090": ("NVIDIA GeForce RTX 4090",),
    "rtx-5090": ("NVIDIA GeForce RTX 5090",),
    "rtx-6000-ada": ("NVIDIA RTX 6000 Ada Generation",),
    "rtx-a6000": ("NVIDIA RTX A6000",),
    "t4": ("Tesla T4",),
    "v100-16gb": ("Tesla V100-SXM2-16GB", "Tesla V100-PCIE-16GB"),
}


def is_called(gpu: str, host_gpu: str, name: str | None) -> bool:
    """Whether a device's name is one of a rented GPU.

    Driver and torch may spell it differently; both spellings stand in the table.

    Args:
        gpu: Id in price lists.
        host_gpu: The name that the commitment was recorded with.
        name: The device's name.
    """
    return name is not None and (name == host_gpu or name in HOST_NAMES.get(gpu, ()))


def devices_of(record: dict[str, Any]) -> dict[str, int]:
    """Return the device names of a host record with their numbers.

    Those that the driver gives, and those that only torch gives.

    Raises:
        TypeError, AttributeError, KeyError: The record is none.
    """
    by_driver = _counted(record.get("gpus") or [])
    by_torch = _counted((record.get("framework") or {}).get("devices") or [])
    return {**by_torch, **by_driver}


def _counted(devices: list[dict[str, Any]]) -> dict[str, int]:
    names: dict[str, int] = {}
    for device in devices:
        name = str(device["name"])
        names[name] = names.get(name, 0) + 1
    return names
