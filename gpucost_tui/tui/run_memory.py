"""Memory of a run as lines: each counter of each device by itself, a missing one with its reason.

Counters are never added (R30). A figure that is not there is *unavailable*, never 0 (R20).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from textual.content import Content

from gpucost_tui.text import clean, size
from gpucost_tui.tui.safe import filled, fit

_BLOCKS = "▁▂▃▄▅▆▇█"
_COUNTERS = (
    ("allocated_bytes", "allocated"),
    ("reserved_bytes", "reserved"),
    ("used_bytes", "used"),
)
_GAUGES = (
    ("utilization_percent", "utilization", "%"),
    ("power_w", "power", "W"),
    ("temperature_c", "temperature", "°C"),
)
#: From so many devices on, one takes two lines instead of five.
_MANY = 3
_LEAST_PLOT = 8  # cells
#: Cells of a counter and its figure, beside which the plot stands; in less room than that and a
#: plot of as many cells a device takes the lines of many.
_BESIDE = 25
_MIB = 1 << 20


def memory_lines(progress: dict[str, Any], width: int) -> list[Content]:
    """Return the memory of all devices and of the host, for a width in cells."""
    kept = progress.get("history")
    history: dict[str, Any] = kept if isinstance(kept, dict) else {}
    devices = [device for device in _list(progress, "devices") if isinstance(device, dict)]
    lines: list[Content] = []
    if not devices:
        lines.append(_no_device(progress, history))
    compact = len(devices) >= _MANY or width < 2 * _BESIDE
    for device in devices:
        lines += _compact(device, history, width) if compact else _full(device, history, width)
    if compact:
        lines += _reasons(devices)
    lines.append(_host(progress, history, width))
    every, values = _number(history, "every_s"), _list(history, "rss_mib")
    if every and values:
        words = f"plots: the last {every * len(values):.0f} s, scale from 0"
        lines.append(filled("[$text-muted]$x[/]", x=words))
    return lines


def spark(values: Sequence[float | None], top: float | None, cells: int) -> str:
    """Draw values on a scale from 0 to ``top`` (default: their maximum); a gap where there is none.

    More values than cells: each cell shows the highest of its share.
    """
    if not values or cells < 1:
        return ""
    known = [value for value in values if value is not None]
    scale = top or max(known, default=0) or 1
    cells = min(cells, len(values))
    shown = []
    for cell in range(cells):
        first = cell * len(values) // cells
        share = values[first : (cell + 1) * len(values) // cells]
        highest = max((value for value in share if value is not None), default=None)
        if highest is None:
            shown.append(" ")
            continue
        level = math.ceil(min(max(highest / scale, 0), 1) * len(_BLOCKS)) - 1
        shown.append(_BLOCKS[max(level, 0)])
    return "".join(shown)


def _no_device(progress: dict[str, Any], history: dict[str, Any]) -> Content:
    if why := progress.get("devices_error"):
        return filled("GPU memory [i]unavailable[/]: $why", why=fit(why, 200))
    if not history:
        return filled("GPU memory [i]unavailable[/]: no sample yet")
    return filled("GPU memory [i]unavailable[/]: this pass uses no GPU")


def _full(device: dict[str, Any], history: dict[str, Any], width: int) -> list[Content]:
    capacity = _number(device, "capacity_bytes")
    lines = [_title(device, capacity)]
    if capacity is None:
        lines.append(_unavailable(device, "capacity_bytes", "  capacity"))
    for key, label in _COUNTERS:
        value = _number(device, key)
        if value is None:
            lines.append(_unavailable(device, key, f"  {label:<10}"))
            continue
        shown = f"{size(int(value)):>10}"
        plot = spark(_past(history, device, key), capacity, max(width - _BESIDE, 1))
        lines.append(filled("  $label $value  [$text-accent]$plot[/]",
                            label=f"{label:<10}", value=shown, plot=plot))  # fmt: skip
    known = [_gauge(device, *gauge) for gauge in _GAUGES if _number(device, gauge[0]) is not None]
    if known:
        lines.append(filled("  $x", x="  ".join(known)))
    for key, label, _ in _GAUGES:
        if _number(device, key) is None:
            lines.append(_unavailable(device, key, f"  {label}"))
    return lines


def _compact(device: dict[str, Any], history: dict[str, Any], width: int) -> list[Content]:
    capacity = _number(device, "capacity_bytes")
    parts = []
    for key, label in _COUNTERS:
        value = _number(device, key)
        parts.append(f"{label} {size(int(value)) if value is not None else 'unavailable'}")
    gauges = [
        _gauge(device, *gauge, short=True)
        for gauge in _GAUGES
        if _number(device, gauge[0]) is not None
    ]
    title = _title(device, capacity)
    room = width - title.cell_length - 2
    beside = room >= _LEAST_PLOT
    past = _past(history, device, "used_bytes")
    plot = spark(past, capacity, min(room if beside else width - 2, 30))
    drawn = filled("  [$text-accent]$plot[/]", plot=plot)
    lines = [title + drawn if beside else title, filled("  $x", x=" · ".join(parts))]
    if gauges:
        lines.append(filled("  $x", x=" · ".join(gauges)))
    return lines if beside else [*lines, drawn]


def _reasons(devices: list[dict[str, Any]]) -> Iterable[Content]:
    """Say once, for all devices that have it, why a figure is not there."""
    said: dict[tuple[str, str], list[str]] = {}
    named = {key: label for key, label, *_ in (*_COUNTERS, *_GAUGES)}
    for device in devices:
        for key, label in {**named, "capacity_bytes": "capacity"}.items():
            if _number(device, key) is None:
                said.setdefault((label, _why(device, key)), []).append(_index(device))
    for (label, why), indices in said.items():
        yield filled(
            "  $label [i]unavailable[/] on GPU $which: $why",
            label=label, which=_ranges(indices), why=why,
        )  # fmt: skip


def _ranges(indices: list[str]) -> str:
    """Return ``0-6, 8`` for device numbers."""
    runs: list[tuple[str, str]] = []
    for index in indices:
        if (
            runs
            and index.isdigit()
            and runs[-1][1].isdigit()
            and int(index) == int(runs[-1][1]) + 1
        ):
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return ", ".join(first if first == last else f"{first}-{last}" for first, last in runs)


def _title(device: dict[str, Any], capacity: float | None) -> Content:
    of = f" · capacity {size(int(capacity))}" if capacity is not None else ""
    name = fit(device.get("name") or "unnamed", 40)
    return filled("[b]GPU $n[/b] $name$of", n=_index(device), name=name, of=of)


def _unavailable(device: dict[str, Any], key: str, label: str) -> Content:
    return filled("$label [i]unavailable[/]: $why", label=label, why=_why(device, key))


def _why(device: dict[str, Any], key: str) -> str:
    missing = device.get("missing")
    reason = missing.get(key) if isinstance(missing, dict) else None
    return fit(reason or "no reason was given", 120)


def _gauge(device: dict[str, Any], key: str, label: str, unit: str, *, short: bool = False) -> str:
    value = f"{_number(device, key):.0f} {unit}"
    return value if short else f"{label} {value}"


def _host(progress: dict[str, Any], history: dict[str, Any], width: int) -> Content:
    rss = _number(progress, "rss_bytes")
    if rss is None:
        why = "no sample yet" if not history else "the system gives no figure"
        return filled("[b]Host memory[/b] [i]unavailable[/]: $why", why=why)
    plot = spark(_bytes(_list(history, "rss_mib")), None, max(width - 48, 8))
    return filled(
        "[b]Host memory[/b] of the measuring process $x  [$text-accent]$plot[/]",
        x=size(int(rss)), plot=plot,
    )  # fmt: skip


def _past(history: dict[str, Any], device: dict[str, Any], key: str) -> list[float | None]:
    for one in _list(history, "devices"):
        if isinstance(one, dict) and one.get("index") == device.get("index"):
            return _bytes(_list(one, key.replace("_bytes", "_mib")))
    return []


def _bytes(mib: list[Any]) -> list[float | None]:
    """Return a column of the history in bytes; what is no number is a gap."""
    return [None if (n := _finite(value)) is None else n * _MIB for value in mib]


def _index(device: dict[str, Any]) -> str:
    return clean(device.get("index", "?"), limit=8)


def _list(table: dict[str, Any], key: str) -> list[Any]:
    value = table.get(key)
    return value if isinstance(value, list) else []


def _number(table: dict[str, Any], key: str) -> float | None:
    """Return a finite number, or none: the file is written by another process, maybe another
    version."""
    return _finite(table.get(key))


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond every float
        return None
