"""The host record: what differs by machine and every attempt refers to (R8, R9).

It is written to ``hosts/<host>.json`` under the name that :func:`host_id` gives it. It holds no
host name, user name, home folder, path or token, and no time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpucost_tui.environment import cuda, framework, hub, program, rocm, system, visible
from gpucost_tui.environment.devices import DeviceInfo, Driver
from gpucost_tui.environment.drivers import find_driver
from gpucost_tui.files import canonical_json, sha256_bytes

#: History: 1 (2026-11-30) first.
FORMAT = 1

#: Settings of the environment that change what a pass does; shown, and no part of the host's name.
SETTINGS = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_DEFAULT_FPMATH_MODE",
    "CUDA_LAUNCH_BLOCKING",
)
#: Values of another form (a path, a secret pasted in the wrong place) are not stored.
_PLAIN = re.compile(
    r"[0-9,;:. -]{0,200}|(?:GPU|MIG)-[0-9A-Za-z,/-]{1,400}|true|false|PCI_BUS_ID|FASTEST_FIRST"
    r"|STRICT|BF16|F16|TF32|ANY"
    r"|[a-z_]+:[A-Za-z0-9_.]+(?:,[a-z_]+:[A-Za-z0-9_.]+){0,9}|:[0-9]+:[0-9]+",
)
_FRAMEWORK_KEYS = ("cuda", "hip", "cudnn", "available", "devices")


def host_record(
    *,
    driver: Driver | None = None,
    framework: dict[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    device: str = "auto",
    root: Path = Path("/"),
) -> dict[str, Any]:
    """Return what is on this machine, JSON-serializable; every gap has its reason in ``missing``.

    Args:
        driver: Where devices are asked; by default the one that is found, closed afterwards.
        framework: ``framework.describe()`` of the measuring child; None: torch was not asked.
        environ: The environment; by default that of this process.
        device: What the run asked for, to mark the device used.
        root: Where the system's files are (tests).
    """
    environ = os.environ if environ is None else environ
    mine = driver is None
    driver = find_driver() if driver is None else driver
    try:
        return _record(driver, framework, environ, device, root)
    finally:
        if mine:
            driver.close()


def _record(
    driver: Driver,
    told: dict[str, Any] | None,
    environ: Mapping[str, str],
    device: str,
    root: Path,
) -> dict[str, Any]:
    devices = driver.devices()
    versions = driver.versions()
    software = framework.installed()
    built = framework.build()
    missing = {"gpus": driver.reason} if driver.reason else {}
    facts = {
        "machine": _hidden(system.machine_id(root)),
        "product": system.product(root),
        "os": system.describe_os(root),
        "cpu": system.describe_cpu(root),
        "memory": system.describe_memory(root),
        "container": system.container(root, environ),
    }
    missing |= _gaps(facts)
    return {
        "format": FORMAT,
        **facts,
        "driver": {"vendor": driver.vendor, **versions},
        "gpus": _gpus(devices, _selected(devices, environ, device, software, built, told)),
        "software": software,
        "torch_build": built,
        "framework": _framework(told),
        "cuda": _cuda(driver, built, versions),
        "rocm": _rocm(devices, software, built, versions, root, environ),
        "program": program.describe(),
        "huggingface": hub.describe(environ),
        "settings": _settings(environ),
        "missing": missing,
    }


def host_id(record: Mapping[str, Any]) -> str:
    """Return the stable name of a host record, fit for a file: ``2x-nvidia-a100-1f0c9d2b7e54``.

    The twelve digits are a SHA-256 over what a duration depends on: the machine (hash of its id,
    product), OS version and kernel, processor with usable and allowed cores, memory limit, every
    GPU (name, UUID, capacity, ECC, MIG instances, power limit), driver version, versions of Python
    and the packages, torch's CUDA or ROCm build, and this program's source. They stay the same
    between runs and whether or not torch was asked; another driver, package or program gives
    another name, so a new record is written then. Settings, visible devices, commit, cache state
    and total memory (kernels round it differently) are shown and not hashed.
    """
    gpus = record["gpus"]
    hashed = {
        "machine": record["machine"],
        "product": record["product"],
        "os": record["os"],
        "cpu": record["cpu"],
        "memory_limit": record["memory"]["limit_bytes"],
        "driver": record["driver"],
        "gpus": [{key: gpu[key] for key in _GPU_IDENTITY} for gpu in gpus],
        "software": record["software"],
        "torch_build": record["torch_build"],
        "program": record["program"]["source_sha256"],
    }
    digits = sha256_bytes(canonical_json(hashed))[:12]
    kinds = sorted({gpu["name"] for gpu in gpus})
    kind = kinds[0] if len(kinds) == 1 else "mixed-gpus" if kinds else "cpu"
    words = re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")[:32].strip("-") or "gpu"
    return f"{len(gpus)}x-{words}-{digits}" if gpus else f"{words}-{digits}"


_GPU_IDENTITY = (
    "name",
    "uuid",
    "capacity_bytes",
    "ecc",
    "mig_mode",
    "compute_partition",
    "partitions",
    "power_limit_w",
)


def _hidden(machine: str | None) -> str | None:
    """Hash the machine id with the program's name, as machine-id(5) asks: it never leaves here."""
    if machine is None:
        return None
    return hashlib.sha256(f"gpucost-tui:{machine}".encode()).hexdigest()[:32]


def _gaps(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return why a fact of the system is empty, by its dotted name."""
    reasons = {
        "machine": "this system has no machine id",
        "product": "the firmware's tables can't be read here",
        "container": "no trace of a container",
        "cpu.model": "the kernel names no processor",
        "cpu.physical_cores": "the kernel does not tell",
        "cpu.quota_cores": "no limit is set",
        "memory.limit_bytes": "no limit is set",
        "os.id": "there is no os-release file",
        "os.version": "os-release states no version",
    }
    empty = {}
    for name, reason in reasons.items():
        table, _, key = name.partition(".")
        value = facts[table][key] if key else facts[table]
        if value is None:
            empty[name] = reason
    return empty


def _selected(
    devices: list[DeviceInfo],
    environ: Mapping[str, str],
    device: str,
    software: Mapping[str, str | None],
    built: Mapping[str, str | None],
    told: Mapping[str, Any] | None,
) -> visible.Selection | None:
    """Return which devices are visible, and the one that torch would compute on."""
    if not devices:
        return None
    selection = visible.select(devices, environ, device)
    why = None
    if software["torch"] is not None and built["cuda"] is None and built["hip"] is None:
        why = "the installed torch is built for the CPU alone"
    elif told is not None and told.get("available") is False:
        why = "torch finds no device that it can use"
    if why is None or selection.used is None:
        return selection
    return dataclasses.replace(selection, used=None, partition=None, reason=why)


def _gpus(devices: list[DeviceInfo], selection: visible.Selection | None) -> list[dict[str, Any]]:
    result = []
    for info in devices:
        data = info.to_json()
        data["partitions"] = [dataclasses.asdict(part) for part in info.partitions]
        assert selection is not None  # noqa: S101 - there are devices
        data["visible"] = info.index in selection.visible
        data["used"] = None if selection.used is None else info.index == selection.used
        if selection.used is None and selection.reason:
            data["missing"] = {**data["missing"], "used": selection.reason}
        data["used_partition"] = selection.partition if data["used"] else None
        result.append(data)
    return result


def _framework(told: dict[str, Any] | None) -> dict[str, Any]:
    """Keep the known keys of what the child told; each one absent has its reason."""
    if told is None:
        missing = dict.fromkeys(_FRAMEWORK_KEYS, framework.NOT_ASKED)
        return {**dict.fromkeys(_FRAMEWORK_KEYS), "missing": missing}
    missing = {str(key): str(value) for key, value in told.get("missing", {}).items()}
    reason = missing.pop("torch", "torch did not say")
    kept = {key: told.get(key) for key in _FRAMEWORK_KEYS}
    for key in ("cudnn", "available", "devices"):
        if kept[key] is None:
            missing.setdefault(key, reason)
    for key, words in (("cuda", "not a CUDA build"), ("hip", "not a ROCm build")):
        if kept[key] is None:
            missing.setdefault(key, reason if kept["available"] is None else words)
    return {**kept, "missing": missing}


def _cuda(
    driver: Driver, built: Mapping[str, str | None], versions: Mapping[str, str]
) -> dict[str, Any]:
    found = versions.get("driver") if driver.vendor == "nvidia" else None
    answer = cuda.compare(built["cuda"], found)
    return {**answer, "driver_cuda": versions.get("cuda")}


def _rocm(
    devices: list[DeviceInfo],
    software: Mapping[str, str | None],
    built: Mapping[str, str | None],
    versions: Mapping[str, str],
    root: Path,
    environ: Mapping[str, str],
) -> dict[str, Any] | None:
    """Look up an AMD machine; None where neither an AMD device nor a ROCm build is here."""
    targets = [info.gfx_target for info in devices if info.gfx_target]
    if not built["hip"] and not any(info.vendor == "amd" for info in devices):
        return None
    release = system.rocm_release(root, environ) or versions.get("rocm")
    listing = rocm.look_up(
        os_release=system.os_release(root),
        gpu_targets=targets,
        rocm=release,
        torch=software["torch"],
    )
    found = {"rocm": release, "torch_hip": built["hip"], "gpu_targets": sorted(set(targets))}
    return {**dataclasses.asdict(listing), "found": found}


def _settings(environ: Mapping[str, str]) -> dict[str, str]:
    found = {name: environ[name] for name in SETTINGS if name in environ}
    return {
        name: value if _PLAIN.fullmatch(value) else "set, to a value that is not stored"
        for name, value in found.items()
    }
