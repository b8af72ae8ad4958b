"""Operating system, processor, memory and container of this machine, from files of the kernel."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

_ROOT = Path("/")


def os_release(root: Path = _ROOT) -> dict[str, str]:
    """Return the keys of ``/etc/os-release`` (or ``/usr/lib/os-release``); empty without one."""
    for name in ("etc/os-release", "usr/lib/os-release"):
        text = _read(root / name)
        if text is not None:
            pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
            return {
                key.strip(): value.strip().strip("\"'")
                for key, _, value in pairs
                if not key.startswith("#")
            }
    return {}


def describe_os(root: Path = _ROOT) -> dict[str, Any]:
    release = os_release(root)
    return {
        "id": release.get("ID"),
        "version": release.get("VERSION_ID"),
        "name": release.get("PRETTY_NAME") or platform.system(),
        "kernel": platform.release(),
        "arch": platform.machine(),
    }


def describe_cpu(root: Path = _ROOT) -> dict[str, Any]:
    """Return model and cores: physical, logical, usable (affinity), and the container's quota."""
    quota = cpu_quota(root)
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    logical = psutil.cpu_count(logical=True)
    return {
        "model": cpu_model(root),
        "physical_cores": psutil.cpu_count(logical=False),
        "logical_cores": logical,
        "usable_cores": affinity or logical,
        "quota_cores": quota,
    }


def cpu_model(root: Path = _ROOT) -> str | None:
    """Return the processor's name; Arm kernels give none and are named by their part number."""
    text = _read(root / "proc/cpuinfo") or ""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, found, value = line.partition(":")
        if found:
            fields.setdefault(key.strip().lower(), value.strip())
    name = fields.get("model name") or fields.get("hardware")
    if name:
        return re.sub(r"\s+", " ", name)
    part = fields.get("cpu part")
    implementer = fields.get("cpu implementer", "?")
    return f"Arm implementer {implementer} part {part}" if part else platform.processor() or None


def cpu_quota(root: Path = _ROOT) -> float | None:
    """Return the cores that the control group allows, or None without a limit."""
    folder = _group(root, "cpu")
    text = _read(folder / "cpu.max") if folder else None
    if text:
        quota, _, period = text.partition(" ")
        return round(int(quota) / int(period), 2) if quota.isdigit() and int(period) else None
    base = root / "sys/fs/cgroup/cpu"
    limit, span = _number(base / "cpu.cfs_quota_us"), _number(base / "cpu.cfs_period_us")
    return round(limit / span, 2) if limit and span and limit > 0 else None


def describe_memory(root: Path = _ROOT) -> dict[str, Any]:
    total = int(psutil.virtual_memory().total)
    limit = memory_limit(root)
    # Without a limit version 1 shows a number near 2**63.
    return {"total_bytes": total, "limit_bytes": limit if limit and limit < total else None}


def memory_limit(root: Path = _ROOT) -> int | None:
    """Return the bytes that the control group allows, or None without a limit."""
    folder = _group(root, "memory")
    candidates = [folder / "memory.max"] if folder else []
    candidates.append(root / "sys/fs/cgroup/memory/memory.limit_in_bytes")
    return next((n for n in map(_number, candidates) if n is not None and n > 0), None)


def container(root: Path = _ROOT, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the kind of container that this process shows traces of, or None."""
    environ = os.environ if environ is None else environ
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    if "SINGULARITY_CONTAINER" in environ or "APPTAINER_CONTAINER" in environ:
        return "apptainer"
    groups = _read(root / "proc/1/cgroup") or ""
    for word in ("kubepods", "docker", "libpod", "containerd", "lxc"):
        if word in groups:
            return {"kubepods": "kubernetes", "libpod": "podman"}.get(word, word)
    kind = environ.get("container", "")
    return kind if re.fullmatch(r"[a-z-]{1,20}", kind) else None


def product(root: Path = _ROOT) -> str | None:
    """Return what the firmware calls the machine (a cloud's instance type often stands here)."""
    base = root / "sys/class/dmi/id"
    words = [(_read(base / name) or "").strip() for name in ("sys_vendor", "product_name")]
    return " ".join(word for word in words if word) or None


def machine_id(root: Path = _ROOT) -> str | None:
    """Return systemd's machine id, or None. It is private: only a hash of it may be stored."""
    for name in ("etc/machine-id", "var/lib/dbus/machine-id"):
        text = (_read(root / name) or "").strip()
        if re.fullmatch(r"[0-9a-f]{32}", text):
            return text
    return None


def rocm_release(root: Path = _ROOT, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the installed ROCm release (``6.3.3``) by its own version file, or None."""
    environ = os.environ if environ is None else environ
    homes = [environ.get("ROCM_PATH", ""), environ.get("ROCM_HOME", "")]
    folders = [Path(home) for home in homes if home] + [root / "opt/rocm"]
    for folder in folders:
        found = re.match(r"\d+\.\d+\.\d+", _read(folder / ".info/version") or "")
        if found:
            return found.group()
    return None


def _group(root: Path, controller: str) -> Path | None:
    """Return this process's folder under version 2, or the root of the hierarchy."""
    base = root / "sys/fs/cgroup"
    if not (base / "cgroup.controllers").exists():
        return None
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        if line.startswith("0::/"):
            own = base / line[4:]
            if (own / f"{controller}.max").exists():
                return own
    return base


def _number(path: Path) -> int | None:
    text = (_read(path) or "").strip()
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return None
