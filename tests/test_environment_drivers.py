"""Drivers over recorded answers: what is known is right, what is not has its reason (R20, R30)."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from gpucost_tui.environment import drivers, process
from gpucost_tui.environment.amd import AmdDriver
from gpucost_tui.environment.devices import (
    DeviceInfo,
    DeviceSample,
    NoDriver,
    Partition,
    ProcessUse,
    find,
)
from gpucost_tui.environment.nvidia import NvidiaDriver
from gpucost_tui.environment.recorded import RecordedDriver

RECORDED = Path(__file__).parent / "recorded"
FIELDS = (
    "used_bytes",
    "utilization_percent",
    "power_w",
    "temperature_c",
    "sm_clock_mhz",
    "throttle_reasons",
    "energy_mj",
    "processes",
)


class FakeNvml:
    """pynvml's constants and errors, with answers from a file instead of a library."""

    def __init__(self, name: str) -> None:
        data = json.loads((RECORDED / name).read_text("utf-8"))
        self.system, self.gpus = data["system"], data["devices"]
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            return getattr(pynvml, name)
        if name not in vars(pynvml):
            raise AttributeError(name)  # a spelling mistake in the driver
        return lambda *args: self._answer(name, args)

    def _answer(self, name: str, args: tuple[Any, ...]) -> Any:
        self.asked.append(name)
        if name in ("nvmlInit", "nvmlShutdown"):
            return None
        if name == "nvmlDeviceGetCount":
            return len(self.gpus)
        if name == "nvmlDeviceGetHandleByIndex":
            if args[0] >= len(self.gpus):
                raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
            return self.gpus[args[0]]
        if name == "nvmlDeviceGetHandleByUUID":
            parts = [p for gpu in self.gpus for p in gpu.get("mig", [])]
            for part in parts:
                if part["nvmlDeviceGetUUID"] == args[0]:
                    return part
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        if name == "nvmlDeviceGetMigDeviceHandleByIndex":
            gpu, place = args
            if place >= len(gpu["mig"]):
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
            return gpu["mig"][place]
        answers = self.system if name.startswith("nvmlSystem") else args[0]
        return self._shaped(name, answers)

    def _shaped(self, name: str, answers: dict[str, Any]) -> Any:
        if name not in answers:
            if "RunningProcesses" in name:
                raise pynvml.NVMLLibraryMismatchError("unversioned")
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        value = answers[name]
        if isinstance(value, dict) and "error" in value:
            raise pynvml.NVMLError(value["error"])
        if isinstance(value, dict):
            return SimpleNamespace(**value)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [SimpleNamespace(**item) for item in value]
        return value


def nvidia(name: str) -> NvidiaDriver:
    driver = NvidiaDriver.open(FakeNvml(name))
    assert isinstance(driver, NvidiaDriver)
    return driver


def explained(sample: DeviceSample) -> None:
    """Every empty field has its reason, and no reason stands beside a value."""
    for name in FIELDS:
        empty = getattr(sample, name) is None
        assert empty == (name in sample.missing), name


def test_one_card() -> None:
    driver = nvidia("nvidia-one.json")
    assert driver.versions() == {"driver": "580.82.07", "library": "13.580.82.07", "cuda": "13.0"}
    (info,) = driver.devices()
    assert (info.name, info.compute_capability, info.capacity_bytes) == (
        "NVIDIA H200",
        "9.0",
        150754820096,
    )
    assert (info.ecc, info.mig_mode, info.persistence) == (True, "disabled", True)
    assert (info.power_limit_w, info.driver_version) == (700.0, "580.82.07")
    assert info.pci_bus_id == "00000000:07:00.0"
    sample = driver.sample(0)
    explained(sample)
    assert sample.used_bytes == 78 * 2**30
    assert (sample.utilization_percent, sample.power_w, sample.temperature_c) == (97, 698.112, 63)
    assert sample.throttle_reasons == ("sw-power-cap", "sw-thermal-slowdown")
    assert sample.energy_mj == 123456789
    assert sample.used_by(4242) == (81604378624, None)
    assert sample.used_by(1)[0] is None
    json.dumps(info.to_json())


def test_eight_cards_are_eight() -> None:
    driver = nvidia("nvidia-eight.json")
    infos = driver.devices()
    assert [info.index for info in infos] == list(range(8))
    assert len({info.uuid for info in infos}) == 8
    assert [driver.sample(i).energy_mj for i in range(8)] == [123456789 + i for i in range(8)]
    assert driver.sample(0).processes == ()  # nobody there is not "unknown"


def test_mig_instances_are_listed_and_sampled_apart() -> None:
    driver = nvidia("nvidia-mig.json")
    (info,) = driver.devices()
    assert info.mig_mode == "enabled"
    assert [part.capacity_bytes for part in info.partitions] == [10200547328] * 2
    whole = driver.sample(0)
    # A pid in two instances has two shares of memory; they add up.
    assert whole.processes == (ProcessUse(900, 1610612736), ProcessUse(901, 2147483648))
    assert whole.missing["utilization_percent"] == "not supported by this device"
    part = driver.sample(0, info.partitions[1].uuid)
    explained(part)
    assert part.used_bytes == 200547328
    assert part.energy_mj is None
    gone = driver.sample(0, "MIG-gone")
    explained(gone)
    assert "Not Found" in gone.missing["used_bytes"]


def test_a_container_hides_figures_which_are_not_zero() -> None:
    sample = nvidia("nvidia-container.json").sample(0)
    assert sample.processes == (ProcessUse(3999999, None),)
    value, reason = sample.used_by(3999999)
    assert value is None and "container" in str(reason)
    seen = process.neighbours(sample, own={1})
    assert seen.pids == () and seen.hidden == 1
    assert seen.warning() is None  # the hidden one may be ourselves


def test_a_pid_in_two_lists_counts_once() -> None:
    sample = nvidia("nvidia-two-lists.json").sample(0)
    assert sample.processes == (ProcessUse(77, 3221225472), ProcessUse(78, 268435456))


def test_an_old_driver_and_card() -> None:
    driver = nvidia("nvidia-old.json")
    (info,) = driver.devices()
    assert info.mig_mode is None and info.missing["mig_mode"] == "not supported by this device"
    assert info.ecc is None and "ecc" in info.missing
    sample = driver.sample(0)
    explained(sample)
    assert sample.temperature_c == 44  # by the older call
    assert sample.throttle_reasons == ("unknown-0x800",)
    assert sample.missing["utilization_percent"] == "NVML: NVML Error with code 21"
    assert sample.processes == ()


def test_all_process_lists_refused_is_unknown() -> None:
    fake = FakeNvml("nvidia-one.json")
    for name in list(fake.gpus[0]):
        if "RunningProcesses" in name:
            fake.gpus[0][name] = {"error": pynvml.NVML_ERROR_NO_PERMISSION}
    sample = NvidiaDriver.open(fake).sample(0)
    explained(sample)
    assert "rights" in sample.missing["processes"]
    assert process.neighbours(sample, own=set()).reason == sample.missing["processes"]


def test_a_lost_card_leaves_reasons_and_no_error() -> None:
    fake = FakeNvml("nvidia-eight.json")
    lost = {"error": pynvml.NVML_ERROR_GPU_IS_LOST}
    fake.gpus[3] = dict.fromkeys(fake.gpus[3], lost)
    driver = NvidiaDriver.open(fake)
    infos = driver.devices()
    assert len(infos) == 8 and infos[3].name == "unnamed"
    assert "GPU is lost" in infos[3].missing["uuid"]
    explained(driver.sample(3))
    explained(driver.sample(99))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "libnvidia-ml.so.1 is not on this machine"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "not loaded"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "reboot"),
        (pynvml.NVML_ERROR_UNKNOWN, "Unknown Error"),
    ],
)
def test_nvml_that_does_not_start(code: int, words: str) -> None:
    fake = FakeNvml("nvidia-one.json")

    def init() -> None:
        raise pynvml.NVMLError(code)

    fake.nvmlInit = init  # type: ignore[attr-defined]
    driver = NvidiaDriver.open(fake)
    assert isinstance(driver, NoDriver) and words in str(driver.reason)
    assert driver.devices() == []
    explained(driver.sample(0))


def test_here_a_driver_is_found_or_the_reason_is(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = drivers.find_driver()
    assert bool(driver.devices()) != bool(driver.reason)
    driver.close()


def test_a_trace_of_amd_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(drivers, "_KFD", tmp_path)
    monkeypatch.setattr(NvidiaDriver, "open", lambda: NoDriver("no NVIDIA"))
    monkeypatch.setattr(AmdDriver, "open", lambda: NoDriver("amdsmi is not installed"))
    reason = str(drivers.find_driver().reason)
    assert "no NVIDIA" in reason and "amdsmi is not installed" in reason


class AmdSmiException(Exception):
    def __init__(self, info: str) -> None:
        super().__init__(info)
        self.err_info = info


def fake_amd(name: str = "amd-mi300x.json") -> SimpleNamespace:
    data = json.loads((RECORDED / name).read_text("utf-8"))
    module = SimpleNamespace(
        AmdSmiException=AmdSmiException,
        AmdSmiMemoryType=enum.Enum("M", ["VRAM"]),
        AmdSmiClkType=enum.Enum("C", ["GFX"]),
        AmdSmiTemperatureType=enum.Enum("T", ["EDGE", "HOTSPOT"]),
        AmdSmiTemperatureMetric=enum.Enum("Metric", ["CURRENT"]),
        amdsmi_init=lambda: None,
        amdsmi_shut_down=lambda: None,
        amdsmi_get_processor_handles=lambda: list(data["devices"]),
        amdsmi_get_rocm_version=lambda: tuple(data["system"]["amdsmi_get_rocm_version"]),
        amdsmi_get_lib_version=lambda: data["system"]["amdsmi_get_lib_version"],
    )
    for call in data["devices"][0]:
        setattr(module, call, _amd_call(call))
    return module


def _amd_call(name: str) -> Callable[..., Any]:
    def call(handle: dict[str, Any], *args: Any) -> Any:
        value = handle[name]
        if name == "amdsmi_get_temp_metric":
            if args[0].name not in value:
                raise AmdSmiException("AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported")
            return value[args[0].name]
        return value

    return call


def test_an_amd_card() -> None:
    driver = AmdDriver.open(fake_amd())
    assert driver.versions() == {"driver": "6.10.5", "rocm": "6.3.3", "library": "24.7.1"}
    (info,) = driver.devices()
    assert (info.vendor, info.name, info.gfx_target) == ("amd", "AMD Instinct MI300X", "gfx942")
    assert (info.capacity_bytes, info.ecc, info.compute_partition) == (205998014464, True, "SPX")
    assert info.mig_mode is None and "MIG" in info.missing["mig_mode"]
    sample = driver.sample(0)
    explained(sample)
    assert (sample.used_bytes, sample.power_w, sample.temperature_c) == (298844160, 138.0, 41.0)
    assert sample.missing["throttle_reasons"] == "AMD SMI says N/A"
    assert sample.energy_mj == pytest.approx(123000000 * 15.259 / 1000)
    # 0 for a process that can't be read is "unavailable".
    assert sample.processes == (ProcessUse(5150, 297795584), ProcessUse(5151, None))
    explained(driver.sample(5))
    driver.close()


def test_power_of_an_amd_card_in_every_release_s_spelling() -> None:
    module = fake_amd()
    told = {"current_socket_power": 0xFFFFFFFF, "average_socket_power": 240}
    module.amdsmi_get_power_info = lambda handle: {**told, "power_limit": 750_000_000}
    driver = AmdDriver.open(module)
    assert driver.devices()[0].power_limit_w == 750
    assert driver.sample(0).power_w == 240
    module.amdsmi_get_power_info = lambda handle: {"power_limit": 750}
    assert driver.devices()[0].power_limit_w == 750
    assert driver.sample(0).missing["power_w"] == "AMD SMI says N/A"


def test_an_amd_library_that_fails_or_lacks_calls() -> None:
    module = fake_amd()
    del module.amdsmi_get_energy_count

    def refuse(*_: Any) -> None:
        raise AmdSmiException("AMDSMI_STATUS_NO_PERM - Permission Denied")

    module.amdsmi_get_gpu_process_list = refuse
    module.amdsmi_get_temp_metric = lambda *_: 41000
    sample = AmdDriver.open(module).sample(0)
    explained(sample)
    assert "does not know" in sample.missing["energy_mj"]
    assert "Permission Denied" in sample.missing["processes"]
    assert sample.temperature_c == 41.0
    module.amdsmi_init = refuse
    assert "did not start" in str(AmdDriver.open(module).reason)


def test_amdsmi_is_not_installed_or_broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "amdsmi.py").write_text("print('noise')\n{}['libamd_smi.so']\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "can't be loaded (KeyError)" in str(AmdDriver.open().reason)
    assert capsys.readouterr().out == ""


def test_uuids_match_in_every_spelling() -> None:
    part = Partition("MIG-11112222-3333-4444-5555-666677778888", "1g", 10)
    devices = [
        DeviceInfo(0, "nvidia", "A", uuid="GPU-aaaa1111-bbbb-cccc-dddd-eeeeffff0000"),
        DeviceInfo(1, "nvidia", "A", uuid="GPU-aaaa2222-0", partitions=(part,)),
    ]
    assert find(devices, "aaaa1111-bbbb-cccc-dddd-eeeeffff0000") == (devices[0], None)
    assert find(devices, "GPU-aaaa2") == (devices[1], None)
    assert find(devices, "GPU-aaaa") is None  # names two
    assert find(devices, part.uuid) == (devices[1], part)
    assert find(devices, "") is None
    amd = [DeviceInfo(0, "amd", "M", uuid="b9ff74a1-0000-1000-80b2-fd6a2a5d3f8c")]
    assert find(amd, "GPU-80b2fd6a2a5d3f8c") == (amd[0], None)
    # HIP's sixteen digits, and torch's way to write them: each character as a byte of a UUID.
    assert find(amd, "GPU-b9b2fd6a2a5d3f8c") == (amd[0], None)
    assert find(amd, "62396232-6664-3661-3261-356433663863") == (amd[0], None)
    assert find(amd, "62396232-6664-3661-3261-356433663864") is None


def test_a_recorded_driver_replays() -> None:
    driver = RecordedDriver(
        {
            "vendor": "nvidia",
            "versions": {"driver": "1"},
            "devices": [{"index": 0, "vendor": "nvidia", "name": "X", "uuid": "GPU-1"}],
            "samples": {
                "0": [{"used_bytes": 1, "processes": [[5, None]]}, {"used_bytes": 2}],
            },
        }
    )
    assert [driver.sample(0).used_bytes for _ in range(3)] == [1, 2, 2]
    assert "nothing was recorded" in driver.sample(1).missing["used_bytes"]


def test_neighbours_are_told_from_ourselves() -> None:
    import os

    mine, parent = os.getpid(), os.getppid()
    uses = (ProcessUse(mine, 1), ProcessUse(parent, 1), ProcessUse(2**22 + 5, 1))
    seen = process.neighbours(DeviceSample(0, processes=uses), own={mine})
    assert seen.pids == (parent,) and seen.hidden == 1 and seen.own_listed
    assert str(parent) in str(seen.warning()) and "outside" in str(seen.warning())
    alone = process.neighbours(DeviceSample(0, processes=uses[:1]), own={mine})
    assert alone.warning() is None
