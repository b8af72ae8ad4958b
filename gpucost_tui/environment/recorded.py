"""A driver that replays recorded answers: how the program behaves on a machine that is not here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpucost_tui.environment.devices import (
    DeviceInfo,
    DeviceSample,
    NoDriver,
    Partition,
    ProcessUse,
    Vendor,
)


class RecordedDriver:
    """Answers from plain data: ``vendor``, ``versions``, ``devices``, ``samples`` (by index).

    A device that has several samples gives them in turn and then repeats the last one.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.vendor: Vendor | None = data.get("vendor")
        self.reason: str | None = data.get("reason")
        self._versions = dict(data.get("versions", {}))
        self._devices = [_device(device) for device in data.get("devices", [])]
        self._samples = {int(k): list(v) for k, v in data.get("samples", {}).items()}

    @classmethod
    def read(cls, path: Path) -> RecordedDriver:
        return cls(json.loads(path.read_text("utf-8")))

    def versions(self) -> dict[str, str]:
        return dict(self._versions)

    def devices(self) -> list[DeviceInfo]:
        return list(self._devices)

    def sample(self, index: int, partition: str | None = None) -> DeviceSample:
        samples = self._samples.get(index)
        if not samples:
            return NoDriver("nothing was recorded for this device").sample(index)
        data = dict(samples.pop(0) if len(samples) > 1 else samples[0])
        processes = data.pop("processes", None)
        reasons = data.pop("throttle_reasons", None)
        return DeviceSample(
            index=index,
            processes=None if processes is None else tuple(ProcessUse(*p) for p in processes),
            throttle_reasons=None if reasons is None else tuple(reasons),
            **data,
        )

    def close(self) -> None:
        """Nothing is open."""


def _device(data: Mapping[str, Any]) -> DeviceInfo:
    parts = tuple(Partition(**part) for part in data.get("partitions", ()))
    return DeviceInfo(**{**data, "partitions": parts})
