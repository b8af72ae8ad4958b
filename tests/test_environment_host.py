"""The host record: true, without secrets, and named the same as long as nothing changed."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpucost_tui.cli import env as env_word
from gpucost_tui.environment import cuda, disk, framework, hub, process, rocm, system, visible
from gpucost_tui.environment.devices import DeviceInfo, NoDriver, Partition
from gpucost_tui.environment.host import host_id, host_record
from gpucost_tui.environment.recorded import RecordedDriver
from gpucost_tui.errors import InputError

UBUNTU = {"ID": "ubuntu", "VERSION_ID": "24.04", "VERSION": "24.04.2 LTS (Noble Numbat)"}


def eight() -> RecordedDriver:
    devices = [
        {
            "index": i,
            "vendor": "nvidia",
            "name": "NVIDIA A100-SXM4-80GB",
            "uuid": f"GPU-{i}{i}{i}{i}aaaa-0000-0000-0000-00000000000{i}",
            "capacity_bytes": 85899345920,
            "compute_capability": "8.0",
            "ecc": True,
            "mig_mode": "disabled",
            "persistence": False,
            "power_limit_w": 400.0,
        }
        for i in range(8)
    ]
    versions = {"driver": "570.124.06", "cuda": "12.8"}
    return RecordedDriver({"vendor": "nvidia", "versions": versions, "devices": devices})


def amd() -> RecordedDriver:
    device = {"index": 0, "vendor": "amd", "name": "AMD Instinct MI300X", "gfx_target": "gfx942"}
    return RecordedDriver({"vendor": "amd", "versions": {"rocm": "6.3.3"}, "devices": [device]})


def test_the_record_leaks_nothing_private(tmp_path: Path) -> None:
    import getpass
    import socket

    secrets = {
        "HF_TOKEN": "hf_SECRETtoken123",
        "HF_HOME": "/home/alice-private/hf",
        "HF_HUB_CACHE": "/home/alice-private/hub",
        "HF_ENDPOINT": "http://alice-private.example",
        "HOME": "/home/alice-private",
        "USER": "alice-private",
        "CUDA_VISIBLE_DEVICES": "/home/alice-private",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    }
    told = {"cuda": None, "available": False, "devices": [], "path": "/home/alice-private"}
    record = host_record(driver=eight(), environ=secrets, framework=told)
    text = json.dumps(record)
    for word in ("alice-private", "hf_SECRET", str(Path.home()) + "/"):
        assert word not in text
    for name in (socket.gethostname(), getpass.getuser()):
        assert not re.search(rf"\b{re.escape(name)}\b", text) or len(name) < 5
    machine = system.machine_id()
    assert machine is None or machine not in text
    assert record["huggingface"]["token"] == "set"
    assert record["settings"]["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert "not stored" in record["settings"]["CUDA_VISIBLE_DEVICES"]


def test_the_name_is_stable_and_follows_the_stack() -> None:
    plain = host_record(driver=eight(), environ={})
    asked = host_record(
        driver=eight(),
        environ={"CUDA_VISIBLE_DEVICES": "3", "HF_HUB_OFFLINE": "1"},
        framework={"cuda": "12.8", "available": True, "devices": [], "cudnn": 91002},
    )
    assert host_id(plain) == host_id(asked)
    assert re.fullmatch(r"8x-nvidia-a100-sxm4-80gb-[0-9a-f]{12}", host_id(plain))
    assert len(host_id(plain)) <= 64
    names = {host_id(plain)}
    for path in (
        ("software", "torch"),
        ("software", "tokenizers"),
        ("driver", "driver"),
        ("os", "kernel"),
        ("program", "source_sha256"),
        ("torch_build", "cuda"),
        ("cpu", "usable_cores"),
        ("memory", "limit_bytes"),
        ("machine",),
    ):
        changed: Any = copy.deepcopy(plain)
        table = changed
        for key in path[:-1]:
            table = table[key]
        table[path[-1]] = "other"
        names.add(host_id(changed))
    for key, value in (("uuid", "GPU-other"), ("power_limit_w", 250.0), ("ecc", False)):
        changed = copy.deepcopy(plain)
        changed["gpus"][7][key] = value
        names.add(host_id(changed))
    assert len(names) == 13


def test_the_name_is_the_same_in_another_process() -> None:
    code = (
        "from gpucost_tui.environment.host import *;"
        "from gpucost_tui.environment.devices import NoDriver;"
        "print(host_id(host_record(driver=NoDriver('none'))))"
    )
    environ = {**os.environ, "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=True
    )
    record = host_record(driver=NoDriver("none"))
    assert done.stdout.strip() == host_id(record)
    assert record["missing"]["gpus"] == "none"


def test_reading_the_host_loads_no_heavy_library() -> None:
    code = (
        "import sys; from gpucost_tui.environment.host import host_record; host_record();"
        "import gpucost_tui.models.source;"
        "print([m for m in ('torch','transformers','polars','pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_framework_that_was_not_asked_says_so() -> None:
    told = host_record(driver=NoDriver("x"), environ={})["framework"]
    assert told["cudnn"] is None and told["missing"]["cudnn"] == "not asked: torch not loaded"
    failed = host_record(
        driver=NoDriver("x"), environ={}, framework={"missing": {"torch": "torch did not answer"}}
    )["framework"]
    assert failed["missing"]["cuda"] == failed["missing"]["devices"] == "torch did not answer"


def test_torch_tells_the_same_as_its_version_file() -> None:
    told = framework.ask()
    assert told["cuda"] == framework.build()["cuda"]
    assert told["hip"] == framework.build()["hip"]
    assert isinstance(told["available"], bool)


def test_a_torch_that_cannot_be_loaded_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libfoo.so: /home/bob/x missing')\n")
    (tmp_path / "version.py").write_text("cuda: str = '12.6'\nhip = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    reason = framework.ask()["missing"]["torch"]
    assert "can't be loaded" in reason and "bob" not in reason
    spec = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    assert framework.build() == {"cuda": "12.6", "hip": None}
    (tmp_path / "version.py").write_text("cuda = = 1")
    assert framework.build() == {"cuda": None, "hip": None}


@pytest.mark.parametrize(
    ("built", "driver", "verdict"),
    [
        ("12.8", "570.124.06", "new enough"),
        ("12.8", "550.54.14", "minor version compatibility"),
        ("12.8", "470.82.01", "too old"),
        ("13.0", "575.57.08", "too old"),
        ("13.2", "580.65.06", "minor version compatibility"),
        ("13.2", "595.45.04", "new enough"),
        ("13.9", "600.1", "new enough"),
        ("14.0", "600.1", None),
        ("12.8", None, None),
        (None, "570.1", None),
    ],
)
def test_driver_against_cuda(built: str | None, driver: str | None, verdict: str | None) -> None:
    answer = cuda.compare(built, driver)
    assert answer["verdict"] == verdict
    if verdict == "too old":
        assert str(driver) in answer["sentence"]
        assert answer["required_driver"] in answer["sentence"]
        assert answer["source"] and answer["table_date"]


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, "listed", "ROCm 6.3.3 with Ubuntu 24.04.2, gfx942, PyTorch 2.4"),
        ({"gpu_targets": ["gfx942:sramecc+:xnack-"]}, "listed", "gfx942"),
        ({"gpu_targets": ["gfx942", "gfx1201"]}, "not listed", "gfx1201"),
        ({"torch": "2.6.0+rocm6.3"}, "not listed", "PyTorch 2.6"),
        ({"os_release": {**UBUNTU, "VERSION": "24.04 LTS"}}, "not listed", "Ubuntu 24.04"),
        ({"os_release": {**UBUNTU, "VERSION": ""}}, "unknown", "operating system"),
        ({"os_release": {"ID": "sles", "VERSION_ID": "15.6"}}, "listed", "SLES 15 SP6"),
        ({"os_release": {"ID": "rhel", "VERSION_ID": "9.4"}}, "listed", "RHEL 9.4"),
        ({"os_release": {"ID": "ol", "VERSION_ID": "8.10"}}, "listed", "Oracle Linux 8.10"),
        ({"os_release": {"ID": "arch"}}, "unknown", "operating system"),
        ({"rocm": None}, "unknown", "the ROCm release"),
        ({"rocm": "7.0.0"}, "unknown", "ROCm 7.0.0 is not in the matrix"),
        ({"rocm": "6.3"}, "unknown", "the ROCm release"),
        ({"gpu_targets": []}, "unknown", "the GPU target"),
        ({"torch": None}, "unknown", "torch"),
    ],
)
def test_rocm_matrix(changes: dict[str, Any], status: str, words: str) -> None:
    found = {
        "os_release": UBUNTU,
        "gpu_targets": ["gfx942"],
        "rocm": "6.3.3",
        "torch": "2.4.1+rocm6.3",
    }
    answer = rocm.look_up(**{**found, **changes})
    assert (answer.status, answer.snapshot) == (status, "2025-03-21")
    assert words in answer.reason


def test_every_cell_of_the_rocm_matrix_is_understood(tmp_path: Path) -> None:
    rows = rocm.read()
    assert len(rows) == 13
    for row in rows:
        assert all(family and version for family, version in row.systems), row
    centos = {"ID": "centos", "VERSION_ID": "7"}
    answer = rocm.look_up(
        os_release=centos, gpu_targets=["gfx90a"], rocm="6.0.2", torch="2.1.0", rows=rows
    )
    assert answer.status == "unknown"
    bad = tmp_path / "m.csv"
    bad.write_text("rocm,pytorch\n6.3.3,2.4\n")
    with pytest.raises(InputError, match="operating_systems"):
        rocm.read(bad)
    bad.write_text(",".join(rocm._COLUMNS) + "\n6.3.3,Ubuntu 24.04,,2.4,2025-03-21\n")
    with pytest.raises(InputError, match="line 2"):
        rocm.read(bad)


def test_an_amd_machine_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(
        'ID=ubuntu\nVERSION_ID="22.04"\nVERSION="22.04.5 LTS (Jammy)"\n# note\n'
    )
    record = host_record(driver=amd(), environ={}, root=tmp_path)
    assert record["rocm"]["found"]["rocm"] == "6.3.3"
    assert record["rocm"]["status"] == "not listed"  # the torch here is newer than the snapshot
    assert "PyTorch" in record["rocm"]["reason"]
    assert "snapshot 2025-03-21" in " ".join(env_word.table("h", record))


def test_which_of_eight_is_used() -> None:
    devices = eight().devices()
    assert visible.select(devices, {}).used == 0
    assert visible.select(devices, {}, "cuda:7").used == 7
    one = visible.select(devices, {"CUDA_VISIBLE_DEVICES": "3"})
    assert (one.visible, one.used) == ((3,), 3)
    assert visible.select(devices, {"CUDA_VISIBLE_DEVICES": "5,2"}, "cuda:1").used == 2
    assert visible.select(devices, {"CUDA_VISIBLE_DEVICES": str(devices[6].uuid)}).used == 6
    assert visible.select(devices, {"CUDA_VISIBLE_DEVICES": "GPU-4444"}).used == 4
    assert visible.select(devices, {"CUDA_VISIBLE_DEVICES": "1,-1,2"}).visible == (1,)
    assert visible.select(devices, {"CUDA_VISIBLE_DEVICES": "1,1"}).visible == ()
    for value in ("", "-1", "9", "none"):
        nothing = visible.select(devices, {"CUDA_VISIBLE_DEVICES": value})
        assert nothing.visible == () and nothing.used is None and nothing.reason
    assert visible.select(devices, {}, "cpu").used is None
    assert "cuda:9" in str(visible.select(devices, {}, "cuda:9").reason)


def test_different_cards_are_not_guessed() -> None:
    cards = [DeviceInfo(0, "nvidia", "A", uuid="GPU-a"), DeviceInfo(1, "nvidia", "B", uuid="GPU-b")]
    assert visible.select(cards, {}).used is None
    assert visible.select(cards, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).used == 0
    assert visible.select(cards, {"CUDA_VISIBLE_DEVICES": "1"}).used is None
    assert visible.select(cards, {"CUDA_VISIBLE_DEVICES": "GPU-b"}).used == 1
    amds = [DeviceInfo(0, "amd", "A"), DeviceInfo(1, "amd", "B"), DeviceInfo(2, "amd", "C")]
    both = {"ROCR_VISIBLE_DEVICES": "2,1", "HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0"}
    assert visible.select(amds, both).used == 1
    parts = (Partition("MIG-1", "1g", 1), Partition("MIG-2", "1g", 1))
    mig = [DeviceInfo(0, "nvidia", "A", uuid="GPU-a", mig_mode="enabled", partitions=parts)]
    assert visible.select(mig, {"CUDA_VISIBLE_DEVICES": "MIG-2"}).partition == "MIG-2"
    assert visible.select(mig, {}).partition == "MIG-1"


def test_the_table_lists_eight_and_marks_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework, "build", lambda: {"cuda": "12.8", "hip": None})
    record = host_record(driver=eight(), environ={"CUDA_VISIBLE_DEVICES": "3"})
    lines = list(env_word.table(host_id(record), record))
    assert all(len(line) <= 80 for line in lines)
    text = "\n".join(lines)
    assert "8 listed, 1 used" in text
    assert [line for line in lines if line.startswith("  * ")] == [
        line for line in lines if line.startswith("  * 3")
    ]
    assert text.count("not visible") == 7
    hostile = copy.deepcopy(record)
    hostile["gpus"][0]["name"] = "evil\x1b]0;x\x07[/b]"
    assert "\x1b" not in "\n".join(env_word.table("h", hostile))


def test_no_card_is_marked_that_torch_can_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def marked(cuda_build: str | None, told: dict[str, Any] | None) -> str:
        monkeypatch.setattr(framework, "build", lambda: {"cuda": cuda_build, "hip": None})
        record = host_record(driver=eight(), environ={}, framework=told)
        return " ".join(" ".join(env_word.table("h", record)).split())

    assert "8 listed, 1 used" in marked("12.8", {"available": True, "devices": []})
    assert "none marked: the installed torch is built for the CPU alone" in marked(None, None)
    told = {"available": False, "devices": []}
    assert "none marked: torch finds no device" in marked("13.0", told)


def test_the_word_env() -> None:
    runner = CliRunner()
    shown = runner.invoke(env_word.env, ["--no-torch"])
    assert shown.exit_code == 0 and "torch build" in shown.stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())
    told = runner.invoke(env_word.env, ["--no-torch", "--json"])
    document = json.loads(told.stdout)
    assert document["host"] == host_id(document)
    wrong = runner.invoke(env_word.env, ["--device", "tpu\x1b"])
    assert wrong.exit_code == 2 and "\x1b" not in wrong.output


def test_system_files_of_other_machines(tmp_path: Path) -> None:
    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    assert system.os_release(tmp_path) == {}
    assert system.machine_id(tmp_path) is None
    assert system.container(tmp_path, {}) is None
    assert system.cpu_quota(tmp_path) is None and system.memory_limit(tmp_path) is None
    write("sys/fs/cgroup/cgroup.controllers", "cpu memory")
    write("sys/fs/cgroup/cpu.max", "150000 100000\n")
    write("sys/fs/cgroup/memory.max", "max\n")
    assert system.cpu_quota(tmp_path) == 1.5 and system.memory_limit(tmp_path) is None
    write("proc/self/cgroup", "0::/job\n")
    write("sys/fs/cgroup/job/cpu.max", "max 100000\n")
    write("sys/fs/cgroup/job/memory.max", "1073741824\n")
    assert system.cpu_quota(tmp_path) is None and system.memory_limit(tmp_path) == 2**30
    write("proc/1/cgroup", "1:x:/kubepods/besteffort\n")
    assert system.container(tmp_path, {}) == "kubernetes"
    write("run/.containerenv", "")
    assert system.container(tmp_path, {}) == "podman"
    write("proc/cpuinfo", "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n")
    assert system.cpu_model(tmp_path) == "Arm implementer 0x41 part 0xd0c"
    write("etc/machine-id", "not hex\n")
    assert system.machine_id(tmp_path) is None
    write("opt/rocm/.info/version", "6.3.3-74\n")
    assert system.rocm_release(tmp_path, {}) == "6.3.3"
    record = host_record(driver=NoDriver("x"), environ={}, root=tmp_path)
    assert record["missing"]["machine"] and record["missing"]["os.id"]
    assert host_id(record)


def test_hub_state(tmp_path: Path) -> None:
    home = tmp_path / "hf"
    state = hub.describe({"HF_HOME": str(home), "TRANSFORMERS_OFFLINE": "yes"})
    assert state["offline"] and state["cached_models"] == 0 and state["token"] == "not set"
    (home / "hub/models--a--b").mkdir(parents=True)
    (home / "token").write_text("hf_x")
    state = hub.describe({"HF_HOME": str(home), "HF_HUB_OFFLINE": "0"})
    assert not state["offline"] and state["cached_models"] == 1 and state["token"] == "set"
    broken = tmp_path / "file"
    broken.write_text("")
    state = hub.describe({"HF_HUB_CACHE": str(broken)})
    assert state["cached_models"] is None and "can't be read" in state["missing"]["cached_models"]


def test_memory_of_processes(tmp_path: Path) -> None:
    assert process.rss_bytes()[0] == pytest.approx(process.rss_bytes(os.getpid())[0], rel=0.2)
    assert process.rss_bytes(2**22 + 7)[1] == f"process {2**22 + 7} has ended"
    assert process.peak_rss_bytes(2**22 + 7)[1] == f"process {2**22 + 7} has ended"
    peak, reason = process.peak_rss_bytes()
    assert peak is not None and reason is None and peak > 10 << 20
    fake = tmp_path / "self"
    fake.mkdir()
    (fake / "status").write_text("Name: x\n")
    assert process.peak_rss_bytes(proc=tmp_path)[0]  # from getrusage
    assert "keeps no peak" in str(process.reset_peak_rss(proc=tmp_path))
    (fake / "status").write_text("VmHWM:\t  900000 kB\nVmRSS:\t 100000 kB\n")
    assert process.peak_rss_bytes(proc=tmp_path) == (900000 * 1024, None)
    assert process.reset_peak_rss(proc=tmp_path) == "this kernel did not reset the peak"
    (fake / "clear_refs").unlink()
    (fake / "clear_refs").mkdir()
    assert "clear_refs" in str(process.reset_peak_rss(proc=tmp_path))


def test_the_peak_of_a_process_can_start_anew_or_says_why() -> None:
    code = (
        "from gpucost_tui.environment.process import *\n"
        "block = bytearray(200 << 20); block[::4096] = b'x' * len(block[::4096])\n"
        "high = peak_rss_bytes()[0]; del block\n"
        "why = reset_peak_rss(); low = peak_rss_bytes()[0]\n"
        "print(why is not None or high - low > 150 << 20, high > 200 << 20)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True True"


def test_disk(tmp_path: Path) -> None:
    free, reason = disk.free_bytes(tmp_path / "not/yet/made")
    assert free and reason is None
    assert disk.is_writable(tmp_path / "not/yet") == (True, None)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    assert "is a file" in str(disk.is_writable(tmp_path / "file" / "below")[1])
    assert "can't be written" in str(disk.is_writable(Path("/proc"))[1])
