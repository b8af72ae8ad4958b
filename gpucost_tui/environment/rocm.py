"""Looks up the combination that was found in the dated ROCm compatibility matrix (R9).

A match says that the vendor's matrix of that date lists the combination; a document proves
nothing about what is installed, so only parts found on this machine are looked up.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpucost_tui import resources
from gpucost_tui.errors import InputError

_COLUMNS = ("rocm", "operating_systems", "gpu_targets", "pytorch", "matrix_snapshot")
#: ID of /etc/os-release -> name in the matrix
_FAMILIES = {
    "ubuntu": "Ubuntu",
    "rhel": "RHEL",
    "sles": "SLES",
    "ol": "Oracle Linux",
    "debian": "Debian",
    "azurelinux": "Azure Linux",
    "centos": "CentOS",
}


@dataclass(frozen=True, slots=True)
class Listing:
    """``status`` with its reason; ``snapshot`` is the date of the matrix that was read."""

    status: Literal["listed", "not listed", "unknown"]
    reason: str
    snapshot: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """A ROCm version of the matrix; ``systems`` as (family, version), such as (SLES, 15 SP6)."""

    rocm: str
    systems: tuple[tuple[str, str], ...]
    targets: tuple[str, ...]
    pytorch: tuple[str, ...]
    snapshot: str


def read(path: Path | None = None) -> list[Row]:
    """Read the matrix, by default the shipped one.

    Raises:
        InputError: A column is missing or a row is incomplete.
    """
    path = path or resources.file("data", "rocm-compatibility.csv")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        absent = [name for name in _COLUMNS if name not in (reader.fieldnames or [])]
        if absent:
            raise InputError(f"column '{absent[0]}' is missing", where=str(path))
        rows = []
        for record in reader:
            if any(not (record[name] or "").strip() for name in _COLUMNS):
                raise InputError("a cell is empty", where=f"{path}, line {reader.line_num}")
            rows.append(_row(record))
    return rows


def _row(record: Mapping[str, str]) -> Row:
    return Row(
        rocm=record["rocm"].strip(),
        systems=_systems(record["operating_systems"]),
        targets=tuple(part.strip() for part in record["gpu_targets"].split(";")),
        pytorch=tuple(part.strip() for part in record["pytorch"].split(",")),
        snapshot=record["matrix_snapshot"].strip(),
    )


def _systems(cell: str) -> tuple[tuple[str, str], ...]:
    """Expand ``RHEL 9.5, 9.4; SLES 15 SP6, SP5`` into one pair a version."""
    pairs = []
    for group in cell.split(";"):
        first, *others = [part.strip() for part in group.split(",")]
        family = next((f for f in _FAMILIES.values() if first.startswith(f + " ")), "")
        version = first[len(family) :].strip()
        pairs.append((family, version))
        head = version.rsplit(" ", 1)[0]
        pairs.extend((family, f"{head} {o}" if o.startswith("SP") else o) for o in others)
    return tuple(pairs)


def system_of(os_release: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the matrix's (family, version) for an ``/etc/os-release``, or None.

    Ubuntu states its point release only in ``VERSION`` (24.04.2 LTS), SLES writes 15.6 for SP6.
    """
    family = _FAMILIES.get(os_release.get("ID", ""))
    version = os_release.get("VERSION_ID", "")
    if family is None or not version:
        return None
    if family == "Ubuntu":
        found = re.match(r"\d+\.\d+(\.\d+)?", os_release.get("VERSION", ""))
        return (family, found.group()) if found else None
    if family == "SLES":
        major, _, pack = version.partition(".")
        return (family, f"{major} SP{pack}" if pack else major)
    return family, version


def look_up(
    *,
    os_release: Mapping[str, str],
    gpu_targets: list[str],
    rocm: str | None,
    torch: str | None,
    rows: list[Row] | None = None,
) -> Listing:
    """Look up what was found on this machine.

    Args:
        os_release: Keys of ``/etc/os-release``.
        gpu_targets: gfx targets of the devices, such as ``gfx942`` (features behind a colon are
            left out).
        rocm: The installed release, such as ``6.3.3``.
        torch: torch's version, such as ``2.4.1+rocm6.3``.
        rows: The matrix; by default the shipped one.
    """
    rows = read() if rows is None else rows
    snapshot = max((row.snapshot for row in rows), default=None)
    system = system_of(os_release)
    targets = sorted({target.split(":")[0] for target in gpu_targets if target})
    release = re.match(r"\d+\.\d+\.\d+", rocm or "")
    framework = re.match(r"\d+\.\d+", torch or "")
    gaps = [
        name
        for name, found in (
            ("the GPU target", targets),
            ("the ROCm release", release),
            ("the operating system and its point release", system),
            ("torch", framework),
        )
        if not found
    ]
    if gaps or system is None or release is None or framework is None:
        return Listing("unknown", f"not found on this machine: {', '.join(gaps)}", snapshot)
    row = next((row for row in rows if row.rocm == release.group()), None)
    if row is None:
        reason = f"ROCm {release.group()} is not in the matrix"
        return Listing("unknown", reason, snapshot)
    return _compare(row, system, targets, framework.group())


def _compare(row: Row, system: tuple[str, str], targets: list[str], torch: str) -> Listing:
    name = " ".join(system)
    if system[0] == "CentOS" and "." not in system[1]:
        reason = "not found on this machine: the point release of CentOS"
        return Listing("unknown", reason, row.snapshot)
    outside = [target for target in targets if target not in row.targets]
    if system not in row.systems:
        outside.append(name)
    if torch not in row.pytorch:
        outside.append(f"PyTorch {torch}")
    what = f"ROCm {row.rocm} with {name}, {', '.join(targets)}, PyTorch {torch}"
    if outside:
        reason = f"ROCm {row.rocm} is in the matrix, but not with {', '.join(outside)}"
        return Listing("not listed", reason, row.snapshot)
    return Listing("listed", what, row.snapshot)
