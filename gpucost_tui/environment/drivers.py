"""Finds the driver of this machine."""

from __future__ import annotations

from pathlib import Path

from gpucost_tui.environment.amd import AmdDriver
from gpucost_tui.environment.devices import Driver, NoDriver
from gpucost_tui.environment.nvidia import NvidiaDriver

_KFD = Path("/dev/kfd")


def find_driver() -> Driver:
    """Return the driver of the devices that are here; never raises.

    Where there is none, a :class:`~gpucost_tui.environment.devices.NoDriver` says why.
    """
    nvidia = NvidiaDriver.open()
    if isinstance(nvidia, NvidiaDriver) and nvidia.devices():
        return nvidia
    amd = AmdDriver.open()
    if isinstance(amd, AmdDriver) and amd.devices():
        nvidia.close()
        return amd
    for driver in (nvidia, amd):
        driver.close()
    return NoDriver(_why(_reason(nvidia, "NVIDIA"), _reason(amd, "AMD")))


def _reason(driver: Driver, vendor: str) -> str:
    return driver.reason or f"the {vendor} driver lists no device"


def _why(nvidia: str, amd: str) -> str:
    """Join the two reasons; without a trace of an AMD device its half would be noise."""
    if not _KFD.exists():
        return nvidia
    return f"{nvidia}; {_KFD} shows that an AMD device may be here, but {amd}"
