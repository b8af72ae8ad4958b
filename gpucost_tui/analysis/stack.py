"""In what the software and hardware of several hosts differ: every entry is named (R9).

Where two trials had different stacks, a difference between them is one of whole configurations: no
single entry can be said to be its cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpucost_tui.text import clean, listed

WHOLE = (
    "The hosts differ in the entries below: what is concluded between them is about whole "
    "configurations, and no single entry is shown to be the cause (R9)."
)
#: Tables of a host record that belong to its stack.
_TABLES = ("os", "cpu", "memory", "driver", "software", "torch_build", "program")
#: Entries that differ between equal machines: total memory is rounded by kernels.
_ASIDE = frozenset({"memory.total_bytes"})
#: What a device is, without its serial identity.
_DEVICE = ("name", "capacity_bytes", "compute_capability", "gfx_target", "ecc", "mig_mode",
           "compute_partition", "power_limit_w")  # fmt: skip


@dataclass(frozen=True, slots=True)
class StackDifference:
    """One entry of the host records that is not the same on all hosts. ``values`` by host."""

    entry: str
    values: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        return {"entry": self.entry, "values": self.values}

    @property
    def sentence(self) -> str:
        told = [f"{value} on {host}" for host, value in self.values.items()]
        return f"{clean(self.entry, limit=80)}: {listed(told, limit=12)}"


def stack_differences(records: Mapping[str, Mapping[str, Any]]) -> list[StackDifference]:
    """Return every entry in which host records differ, in the records' order.

    Args:
        records: Host name -> host record.
    """
    if len(records) < 2:
        return []
    flat = {host: dict(_entries(record)) for host, record in records.items()}
    names = dict.fromkeys(name for entries in flat.values() for name in entries)
    found = []
    for name in names:
        values = {host: entries.get(name, "not there") for host, entries in flat.items()}
        if len(set(values.values())) > 1:
            found.append(StackDifference(name, values))
    return found


def stack_notes(records: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """Return sentences on differing stacks and on host records that are not here."""
    there = {host: record for host, record in records.items() if record is not None}
    notes = [
        f"The host record of {clean(host, limit=80)} is not here: its stack can't be compared."
        for host in records
        if host not in there
    ]
    found = stack_differences(there)
    if found:
        notes += [WHOLE, *(f"{difference.sentence}." for difference in found)]
    return notes


def _entries(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    framework = record.get("framework")
    framework = framework if isinstance(framework, Mapping) else {}
    yield "gpus", _gpus(record.get("gpus") or framework.get("devices"))
    for name in ("product", "container"):
        yield name, _shown(record.get(name))
    for table in _TABLES:
        yield from _leaves(table, record.get(table))
    cuda = record.get("cuda")
    if isinstance(cuda, Mapping):
        yield "cuda.verdict", _shown(cuda.get("verdict"))
    for name in ("cuda", "hip", "cudnn"):
        yield f"framework.{name}", _shown(framework.get(name))
    rocm = record.get("rocm")
    if isinstance(rocm, Mapping):
        yield from _leaves("rocm", {"status": rocm.get("status"), "found": rocm.get("found")})
    yield from _leaves("settings", record.get("settings"))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key in value:
            if key != "missing":  # reasons of gaps: the gaps themselves are compared
                yield from _leaves(f"{name}.{key}", value[key])
    elif name not in _ASIDE:
        yield name, _shown(value)


def _gpus(devices: Any) -> str:
    if not isinstance(devices, list) or not devices:
        return "none"
    kinds: dict[str, int] = {}
    for device in devices:
        facts = device if isinstance(device, Mapping) else {"name": device}
        told = [_shown(facts[key]) for key in _DEVICE if facts.get(key) is not None]
        kind = " ".join(told) or "unnamed"
        kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(f"{number} x {kind}" for kind, number in kinds.items())


def _shown(value: Any) -> str:
    return "not known" if value is None else str(value)
