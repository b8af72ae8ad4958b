"""The memory of the last two minutes, short enough to be rewritten with every progress file.

Of each counter the highest value of every two seconds is kept, in MiB: what a plot can show.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

#: Seconds that one value stands for, and how many values are kept.
SPAN_S, KEPT = 2.0, 60

_MIB = 1 << 20
_COUNTERS = ("allocated", "reserved", "used")

Key = tuple[Any, str]  # index of a device (None: the host), counter


class History:
    """Samples as columns; a counter that was not there in a span is None in it."""

    def __init__(self) -> None:
        self._spans: deque[dict[Key, int]] = deque(maxlen=KEPT)
        self._began = 0.0

    def add(self, devices: list[dict[str, Any]], rss_bytes: int | None, now: float) -> None:
        """Take a sample; ``now`` in seconds of a clock that never goes back."""
        if not self._spans or now - self._began >= SPAN_S:
            self._began = now
            self._spans.append({})
        span = self._spans[-1]
        for key, value in _figures(devices, rss_bytes):
            mib = round(value / _MIB)
            span[key] = max(mib, span.get(key, mib))

    def to_json(self) -> dict[str, Any]:
        """Return ``every_s``, ``rss_mib`` and for each device ``index`` and ``…_mib``: lists."""
        keys = dict.fromkeys(key for span in self._spans for key in span)
        columns = {key: [span.get(key) for span in self._spans] for key in keys}
        devices: dict[Any, dict[str, Any]] = {}
        for (index, counter), values in columns.items():
            if index is not None:
                devices.setdefault(index, {"index": index})[f"{counter}_mib"] = values
        return {
            "every_s": SPAN_S,
            "rss_mib": columns.get((None, "rss"), [None] * len(self._spans)),
            "devices": list(devices.values()),
        }


def _figures(devices: list[dict[str, Any]], rss_bytes: int | None) -> Iterator[tuple[Key, int]]:
    if rss_bytes is not None:
        yield (None, "rss"), rss_bytes
    for device in devices:
        for counter in _COUNTERS:
            value = device.get(f"{counter}_bytes")
            if value is not None:
                yield (device.get("index"), counter), value
