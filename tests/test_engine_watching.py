"""Energy, clocks, throttling and neighbours of a pass, by recorded driver answers (R30)."""

from __future__ import annotations

import dataclasses
import os
from types import SimpleNamespace
from typing import Any

import pytest

from gpucost_tui.engine.contract import DeviceMemory
from gpucost_tui.engine.memory import DeviceMeter
from gpucost_tui.environment.devices import NoDriver
from gpucost_tui.environment.recorded import RecordedDriver

UUID = "GPU-11111111-2222-3333-4444-555555555555"
ME = os.getpid()


class Card:
    """An accelerator with one device, as far as a meter needs it."""

    def memory(self) -> list[tuple[DeviceMemory, DeviceMemory]]:
        one = DeviceMemory(index=0, name="H200", uuid=UUID.removeprefix("GPU-"))
        return [(one, dataclasses.replace(one))]


def meter(*samples: dict[str, Any]) -> DeviceMeter:
    device = {"index": 0, "vendor": "nvidia", "name": "H200", "uuid": UUID}
    driver = RecordedDriver(
        {"vendor": "nvidia", "devices": [device], "samples": {"0": list(samples)}}
    )
    return DeviceMeter(lambda: driver)


def watched(*samples: dict[str, Any]) -> Any:
    """Begin a pass on the first sample, take those between, end on the last."""
    card: Any = Card()
    one = meter(*samples)
    one.begin_pass(card, {ME})
    for _ in samples[1:-1]:
        one.sample(card)
    return one.end_pass(card)


def test_energy_is_the_difference_of_the_counter() -> None:
    seen = watched(
        {"energy_mj": 1_000_000.0, "sm_clock_mhz": 345},
        {"energy_mj": 1_400_000.0, "sm_clock_mhz": 1980},
        {"energy_mj": 1_750_500.0, "sm_clock_mhz": 1410},
    )
    assert seen.energy_j == pytest.approx(750.5)
    assert seen.reason is None
    assert seen.notes == ["SM clock 1410 to 1980 MHz in 2 samples"]


def test_a_counter_that_is_missing_or_begins_anew_gives_no_energy() -> None:
    gap = {"missing": {"energy_mj": "not supported by this device"}}
    seen = watched(gap, gap)
    assert (seen.energy_j, seen.reason) == (None, "not supported by this device")
    seen = watched({"energy_mj": 9e9}, {"energy_mj": 12.0})
    assert seen.energy_j is None
    assert "began anew" in seen.reason


def test_throttling_of_the_pass_is_said_and_idling_before_it_is_not() -> None:
    seen = watched(
        {"throttle_reasons": ["gpu-idle", "hw-thermal-slowdown"]},
        {"throttle_reasons": ["sw-power-cap", "gpu-idle"]},
        {"throttle_reasons": []},
    )
    assert seen.notes == ["the device was slowed down during the pass: sw-power-cap"]


def test_neighbours_are_a_warning_with_their_time() -> None:
    own, other = [ME, 5 << 30], [os.getppid(), None]
    seen = watched({"processes": [own]}, {"processes": [own, other]}, {"processes": [own]})
    assert seen.notes == [f"other processes on the device: pid {other[0]} (during the pass)"]
    seen = watched({"processes": [own, other]}, {"processes": [own]})
    assert seen.notes == [f"other processes on the device: pid {other[0]} (before the pass)"]
    assert watched({"processes": [own]}, {"processes": [own]}).notes == []
    assert watched({"processes": []}, {}).notes == []


def test_without_a_driver_or_a_device_the_reason_stays() -> None:
    card: Any = Card()
    none = DeviceMeter(lambda: NoDriver("libnvidia-ml.so.1 is not on this machine"))
    none.begin_pass(card, {ME})
    assert none.end_pass(card).reason == "libnvidia-ml.so.1 is not on this machine"
    cpu: Any = SimpleNamespace(memory=list)
    none.begin_pass(cpu, {ME})
    assert none.end_pass(cpu).reason == "no GPU"


def test_a_pass_that_never_began_has_no_energy() -> None:
    card: Any = Card()
    one = meter({"energy_mj": 5.0})
    assert one.end_pass(card).energy_j is None
    one.begin_pass(card, {ME})
    one.reset("load")
    assert one.end_pass(card).energy_j is None
