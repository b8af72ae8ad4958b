"""When a device's memory peaks fell, as the journal has it. Light: the app reads it too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def reached(memory: Mapping[str, Any], name: str) -> tuple[str, float] | None:
    """Return the phase in which a peak was reached and the seconds since the attempt's load.

    Args:
        memory: An entry of an attempt's ``device_memory``.
        name: Its field: ``allocated_bytes``, ``reserved_bytes``, ``used_bytes``, ``own_bytes``.

    None where it was not seen, or the journal holds something else there.
    """
    fell = memory.get("fell")
    match fell.get(name) if isinstance(fell, Mapping) else None:
        case [str(phase), int() | float() as at_s]:
            return phase, float(at_s)
    return None
