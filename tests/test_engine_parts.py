"""Parts of the engine by themselves: failures, devices, memory, warm-up rule, encoder, reading."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.engine.batching import Batching
from gpucost_tui.engine.contract import DeviceMemory, PassFailed
from gpucost_tui.engine.devices import Cpu, Cuda, resolve
from gpucost_tui.engine.failures import kind_of, message_of, trace_of
from gpucost_tui.engine.memory import DeviceMeter
from gpucost_tui.engine.reading import forget_cached, opened, selected
from gpucost_tui.engine.rows import memory_columns
from gpucost_tui.engine.settings import thread_count, usable_cores
from gpucost_tui.engine.warmup import SPREAD_SHAPES, plan, traversal
from gpucost_tui.environment.devices import DeviceInfo, DeviceSample, NoDriver, Partition
from gpucost_tui.environment.recorded import RecordedDriver
from gpucost_tui.errors import EnvironmentLacks, InputError, WrongUse
from gpucost_tui.tasks.encoding import Encoder, Tokens


class OutOfMemoryError(RuntimeError):
    """Named as torch's own is."""


class AcceleratorError(RuntimeError):
    """Named as torch's own is."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), "out-of-memory"),
        (RuntimeError("HIP out of memory. Tried to allocate 2.00 GiB"), "out-of-memory"),
        (RuntimeError("CUDA error: out of memory"), "out-of-memory"),
        (AcceleratorError("CUDA error: out of memory"), "out-of-memory"),
        (RuntimeError("HIP error: out of memory"), "out-of-memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"), "out-of-memory"),
        (MemoryError(), "out-of-memory"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate "
                      "memory: you tried to allocate 4000000000 bytes."), "out-of-memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out-of-memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "error"),
        (RuntimeError("CUDA error: device-side assert triggered"), "device-error"),
        (AcceleratorError("CUDA error: an illegal memory access was encountered"), "device-error"),
        (RuntimeError("CUDA error: uncorrectable ECC error encountered"), "device-error"),
        (RuntimeError("HIP error: unspecified launch failure"), "device-error"),
        (RuntimeError("expected scalar type Float but found Half"), "error"),
        (IndexError("index out of range in self"), "error"),
        (EnvironmentLacks("device 'cuda:1' is not here: hipErrorNoDevice"), "error"),
        (PassFailed("fallback", "eager took effect"), "fallback"),
    ],
)  # fmt: skip
def test_failures_are_typed(error: Exception, kind: str) -> None:
    assert kind_of(error) == kind
    assert message_of(error)


def test_a_trace_is_text_and_lets_go_of_what_its_frames_held() -> None:
    import weakref

    held: list[Any] = []

    class Activation:
        pass

    def inner() -> None:
        tensor = Activation()
        held.append(weakref.ref(tensor))
        raise RuntimeError("CUDA out of memory")

    try:
        try:
            inner()
        except RuntimeError as error:
            raise ValueError("outer") from error
    except ValueError as error:
        text = trace_of(error)
        assert "inner" in text and "CUDA out of memory" in text
        assert held[0]() is None


# -- devices ---------------------------------------------------------------------------------


class FakeEvent:
    clock = 0.0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.at = 0.0

    def record(self) -> None:
        FakeEvent.clock += 1.5
        self.at = FakeEvent.clock

    def elapsed_time(self, other: FakeEvent) -> float:
        return other.at - self.at


def fake_torch(count: int = 2, *, hip: str | None = None, cuda: str | None = "12.8") -> Any:
    calls: list[Any] = []

    def properties(index: int) -> Any:
        return SimpleNamespace(name=f"Card {index}", total_memory=80 << 30, uuid=f"aaaa-{index}")

    device = SimpleNamespace(
        is_available=lambda: count > 0,
        device_count=lambda: count,
        get_device_name=lambda index: f"Card {index}",
        get_device_properties=properties,
        set_device=lambda index: calls.append(("set", index)),
        synchronize=lambda index: calls.append(("synchronize", index)),
        Event=FakeEvent,
        reset_peak_memory_stats=lambda index: calls.append(("reset", index)),
        memory_stats=lambda index: {
            "allocated_bytes.all.peak": 10 + index,
            "reserved_bytes.all.peak": 20 + index,
            "allocated_bytes.all.current": 1 + index,
            "reserved_bytes.all.current": 2 + index,
        },
        empty_cache=lambda: calls.append("empty"),
    )
    return SimpleNamespace(
        cuda=device, version=SimpleNamespace(cuda=None if hip else cuda, hip=hip), calls=calls
    )


def test_devices_are_resolved() -> None:
    assert isinstance(resolve("auto", fake_torch(0)), Cpu)
    assert isinstance(resolve("cpu", fake_torch(2)), Cpu)
    assert resolve("auto", fake_torch(2)).device == "cuda:0"
    assert resolve("cuda", fake_torch(2)).device == "cuda:0"
    torch = fake_torch(2)
    assert resolve("cuda:1", torch).device == "cuda:1"
    assert ("set", 1) in torch.calls
    assert resolve("cuda", fake_torch(1, hip="6.4")).framework == "rocm"
    assert resolve("cuda", fake_torch(1)).framework == "cuda"


@pytest.mark.parametrize(
    ("requested", "torch", "said"),
    [
        ("cuda", fake_torch(0), "is the CPU alone: torch (CUDA 12.8) finds no usable NVIDIA"),
        ("cuda", fake_torch(0, hip="6.4"), "torch (ROCm 6.4) finds no usable AMD device"),
        ("cuda:0", fake_torch(0, cuda=None), "built without CUDA and ROCm"),
        ("cuda:2", fake_torch(2), "there are cpu, cuda:0 (Card 0), cuda:1 (Card 1)"),
    ],
)
def test_a_device_that_is_not_here(requested: str, torch: Any, said: str) -> None:
    with pytest.raises(EnvironmentLacks) as caught:
        resolve(requested, torch)
    assert said in str(caught.value)


@pytest.mark.parametrize("requested", ["", "gpu", "cuda:", "cuda:-1", "CPU", "cuda:12345"])
def test_no_device_at_all(requested: str) -> None:
    with pytest.raises(WrongUse, match="is no device"):
        resolve(requested, fake_torch(2))


def test_events_measure_a_range_and_memory_is_of_the_device() -> None:
    torch = fake_torch(2)
    device = Cuda(torch, 1)
    span = device.range()
    span.start()
    span.stop()
    assert span.elapsed_ns() == 1_500_000
    device.synchronize()
    device.reset_peaks()
    device.empty_cache()
    assert torch.calls == [("set", 1), ("synchronize", 1), ("reset", 1), "empty"]
    ((now, peak),) = device.memory()
    assert (peak.allocated_bytes, peak.reserved_bytes) == (11, 21)
    assert (peak.name, peak.uuid, peak.capacity_bytes) == ("Card 1", "aaaa-1", 80 << 30)
    assert (now.allocated_bytes, now.reserved_bytes) == (2, 3)


class ScriptedDriver(NoDriver):
    """Two devices in the other order than torch has them."""

    def __init__(self, used: list[int | None]) -> None:
        super().__init__("")
        self.used = used
        self.asked: list[int] = []

    def devices(self) -> list[DeviceInfo]:
        return [DeviceInfo(i, "nvidia", f"Card {i}", uuid=f"GPU-aaaa-{1 - i}") for i in range(2)]

    def sample(self, index: int, partition: str | None = None) -> DeviceSample:
        self.asked.append(index)
        value = self.used.pop(0)
        missing = {} if value is not None else {"used_bytes": "not permitted"}
        return DeviceSample(index, used_bytes=value, missing=missing)


def test_sampled_peaks_are_matched_by_uuid_and_reset() -> None:
    driver = ScriptedDriver([5, 9, 7, 7, 7, None, None, None])
    meter = DeviceMeter(lambda: driver)
    device = Cuda(fake_torch(2), 1)
    for _ in range(3):
        meter.sample(device)
    assert driver.asked == [0, 0, 0]
    peak = meter.peaks(device)[0]
    assert peak.used_bytes == 9
    assert peak.own_bytes is None
    assert peak.missing["own_bytes"] == "the driver lists no processes"
    meter.reset("load")
    meter.sample(device)
    peak = meter.peaks(device)[0]
    assert peak.used_bytes is None
    assert peak.missing["used_bytes"] == "not permitted"


class DividedDriver(NoDriver):
    """A card in MIG mode with two instances."""

    def __init__(self) -> None:
        super().__init__("")
        self.asked: list[str | None] = []

    def devices(self) -> list[DeviceInfo]:
        parts = tuple(Partition(f"MIG-000{i}-part", "1g.10gb", 10 << 30) for i in range(2))
        whole = DeviceInfo(0, "nvidia", "A", "GPU-aaaa-0", mig_mode="enabled", partitions=parts)
        return [whole]

    def sample(self, index: int, partition: str | None = None) -> DeviceSample:
        self.asked.append(partition)
        return DeviceSample(index, used_bytes=7)


@pytest.mark.parametrize(
    ("visible", "uuid", "sampled"),
    [
        (None, "aaaa-0", "MIG-0000-part"),  # CUDA takes the first one
        ("MIG-0001-part", "aaaa-0", "MIG-0001-part"),
        ("MIG-0001-part", "0001-part", "MIG-0001-part"),  # a torch that states the instance's own
    ],
)
def test_the_instance_of_a_divided_card_is_sampled(
    visible: str | None, uuid: str, sampled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    driver, torch = DividedDriver(), fake_torch(1)
    torch.cuda.get_device_properties = lambda index: SimpleNamespace(
        name="A", total_memory=10 << 30, uuid=uuid
    )
    (peak,) = DeviceMeter(lambda: driver).peaks(Cuda(torch, 0))
    assert set(driver.asked) == {sampled}
    assert peak.used_bytes == 7


def test_counters_that_torch_does_not_keep_are_no_zero() -> None:
    torch = fake_torch(1)
    torch.cuda.memory_stats = lambda index: {}
    (peak,) = DeviceMeter(lambda: NoDriver("none")).peaks(Cuda(torch, 0))
    row, missing = memory_columns([peak])
    assert row["peak_allocated_bytes"] is None
    assert "counts nothing" in missing["peak_allocated_bytes"]


def test_each_peak_has_its_phase_and_second() -> None:
    """Counters of torch rise and fall by script; the driver's are those of the samples."""
    now = 100.0
    counters = {"allocated_bytes.all.peak": 0, "reserved_bytes.all.peak": 0}
    torch = fake_torch(1)
    torch.cuda.memory_stats = lambda index: dict(counters)
    driver = RecordedDriver(
        {
            "devices": [{"index": 0, "vendor": "nvidia", "name": "A", "uuid": "GPU-aaaa-0"}],
            "samples": {"0": [{"used_bytes": used, "processes": [[os.getpid(), own]]}
                              for used, own in ((10, 4), (30, 6), (20, 9), (25, 8))]},
        }
    )  # fmt: skip
    meter = DeviceMeter(lambda: driver, clock=lambda: now)
    device = Cuda(torch, 0)
    meter.reset("load")
    now, counters["allocated_bytes.all.peak"] = 102.0, 5
    meter.enter(device, "warm-up")  # what rose until here belongs to the load
    now, counters["reserved_bytes.all.peak"] = 103.5, 8
    meter.sample(device)
    now = 104.0
    meter.enter(device, "pass")
    now, counters["allocated_bytes.all.peak"] = 110.25, 7
    (peak,) = meter.peaks(device)
    assert (peak.allocated_bytes, peak.reserved_bytes) == (7, 8)
    assert (peak.used_bytes, peak.own_bytes) == (30, 9)
    assert peak.fell == {
        "allocated_bytes": ("pass", 10.25),
        "reserved_bytes": ("warm-up", 3.5),
        "used_bytes": ("warm-up", 3.5),
        "own_bytes": ("warm-up", 4.0),
    }
    meter.reset("load")
    assert meter.peaks(device)[0].fell["used_bytes"] == ("load", 0.0)


def test_without_a_driver_the_reason_is_kept() -> None:
    meter = DeviceMeter(lambda: NoDriver("the NVIDIA library is not installed"))
    (peak,) = meter.peaks(Cuda(fake_torch(1), 0))
    row, missing = memory_columns([peak])
    assert row == {
        "peak_allocated_bytes": 10,
        "peak_reserved_bytes": 20,
        "peak_device_used_bytes": None,
    }
    assert missing["peak_device_used_bytes"] == "the NVIDIA library is not installed"


def test_peaks_are_maxima_over_devices_and_never_added() -> None:
    row, missing = memory_columns(
        [DeviceMemory(0, "a", allocated_bytes=5), DeviceMemory(1, "b", allocated_bytes=7)]
    )
    assert row["peak_allocated_bytes"] == 7
    assert row["peak_reserved_bytes"] is None
    assert missing["peak_reserved_bytes"] == "not measured"
    assert memory_columns([])[1]["peak_allocated_bytes"] == "no GPU"


# -- warm-up ---------------------------------------------------------------------------------

_LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=120)


def shape(lengths: np.ndarray, batch: np.ndarray, fixed: int | None) -> tuple[int, int, bool]:
    inside = lengths[batch]
    width = fixed or int(inside.max())
    return width, len(batch), bool(inside.min() < width)


@settings(max_examples=60, deadline=None)
@given(
    _LENGTHS,
    st.integers(1, 9),
    st.sampled_from(["none", "length"]),
    st.sampled_from([None, 60]),
    st.sampled_from(["every-shape", "spread", "longest", "first-batch"]),
)
def test_warm_up_covers_what_the_rule_says(
    sizes: list[int], batch_size: int, grouping: str, fixed: int | None, inputs: str
) -> None:
    lengths = np.asarray(sizes, np.int32)
    batching = Batching(batch_size, 60, fixed_width=fixed)
    chosen = plan(lengths, batching=batching, grouping=grouping, inputs=inputs)
    order = traversal(lengths, grouping)
    batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    real = {tuple(batch.tolist()) for batch in batches}
    shapes = {shape(lengths, batch, fixed) for batch in batches}
    covered = {shape(lengths, batch, fixed) for batch in chosen.batches}
    assert {tuple(batch.tolist()) for batch in chosen.batches} <= real
    assert chosen.shapes == len(shapes)
    if len(batches[-1]) < batch_size:
        assert shape(lengths, batches[-1], fixed) in covered
    if inputs == "every-shape":
        assert covered == shapes
    elif inputs == "spread":
        assert max(shapes)[0] in {width for width, _, _ in covered}
        assert len(chosen.batches) <= SPREAD_SHAPES + 1
        assert len(shapes) > SPREAD_SHAPES or covered == shapes
    elif inputs == "longest":
        assert max(shapes)[0] in {width for width, _, _ in covered}
    else:
        assert tuple(batches[0].tolist()) in {tuple(b.tolist()) for b in chosen.batches}


def test_a_spread_warm_up_at_batch_1_is_far_from_a_whole_pass() -> None:
    lengths = np.random.default_rng(0).integers(4, 512, 1000).astype(np.int32)
    chosen = plan(lengths, batching=Batching(1, 512), grouping="none", inputs="spread")
    assert len(chosen.batches) == SPREAD_SHAPES
    assert "16 of" in chosen.describe("spread", 1)


def test_grouping_is_stable_and_longest_first() -> None:
    lengths = np.asarray([3, 9, 3, 9, 1], np.int32)
    assert traversal(lengths, "length").tolist() == [1, 3, 0, 2, 4]
    assert traversal(lengths, "none").tolist() == [0, 1, 2, 3, 4]


# -- encoder ---------------------------------------------------------------------------------


class WordTokenizer:
    """A slow tokenizer of the least kind: one token a letter, 1 before and 2 after."""

    is_fast = False
    pad_token_id = 9
    pad_token_type_id = 0
    model_input_names = ("input_ids", "attention_mask", "token_type_ids")

    def num_special_tokens_to_add(self) -> int:
        return 2

    def __call__(self, texts: Any, *, truncation: bool, **how: Any) -> dict[str, Any]:
        if isinstance(texts, str):
            return {k: v[0] for k, v in self([texts], truncation=truncation, **how).items()}
        ids = []
        for text in texts:
            letters = [ord(c) for c in text]
            if truncation:
                letters = letters[: how["max_length"] - 2]
            ids.append([1, *letters, 2])
        return {"input_ids": ids, "token_type_ids": [[0] * len(row) for row in ids]}


NAMES = ("input_ids", "attention_mask", "token_type_ids")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("abc", max_size=12), min_size=1, max_size=6),
    st.sampled_from(["right", "left"]),
    st.booleans(),
)
def test_batches_are_padded_on_the_side_asked_for(texts: list[str], side: str, fixed: bool) -> None:
    encoder = Encoder(
        WordTokenizer(), max_length=8, pad_to_max=fixed, padding_side=side, inputs=NAMES
    )
    tokens = encoder.tokens(texts)
    assert [entry.truncated for entry in tokens] == [len(text) > 6 for text in texts]
    batch = encoder.collate(tokens)
    width = 8 if fixed else max(len(entry.ids) for entry in tokens)
    assert set(batch.arrays) == set(NAMES)
    assert all(array.shape == (len(texts), width) for array in batch.arrays.values())
    assert batch.computed_tokens == len(texts) * width
    assert batch.real_tokens == int(batch.arrays["attention_mask"].sum())
    for entry, ids, mask in zip(
        tokens, batch.arrays["input_ids"], batch.arrays["attention_mask"], strict=True
    ):
        assert ids[mask == 1].tolist() == list(entry.ids)
        assert (ids[mask == 0] == 9).all()
        outer = mask[-1] if side == "left" else mask[0]
        assert outer == 1


def test_an_entry_without_any_token_still_makes_a_batch() -> None:
    batch = Encoder(WordTokenizer(), max_length=8).collate([Tokens([], None, False)])
    assert batch.arrays["input_ids"].tolist() == [[9]]
    assert batch.arrays["attention_mask"].tolist() == [[0]]


def test_no_room_beside_the_special_tokens() -> None:
    with pytest.raises(InputError, match="leaves no room"):
        Encoder(WordTokenizer(), max_length=2)


# -- reading ---------------------------------------------------------------------------------


def test_reading_in_batches(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    rows = [{"id": f"0{i}", "text": "a\u2028b ü"} for i in range(5)]
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
    with opened(str(path)) as reader:
        taken = [reader.take(2)[0] for _ in range(4)]
    assert taken == [["00", "01"], ["02", "03"], ["04"], []]
    assert selected(str(path), [4, 1]) == {1: "a\u2028b ü", 4: "a\u2028b ü"}
    forget_cached(str(path))


@pytest.mark.parametrize("line", ["{", "[]", '{"id": "a"}', "", '"text"', "\udcff"])
def test_a_line_that_is_no_entry_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "c.jsonl"
    good = json.dumps({"id": "a", "text": "b"})
    path.write_bytes(f"{good}\n{good}\n{line}\n".encode("utf-8", "surrogateescape"))
    with opened(str(path)) as reader:
        reader.take(1)
        with pytest.raises(InputError, match="line 3"):
            reader.take(5)


def test_threads_leave_a_core_to_the_screen() -> None:
    assert thread_count(3) == 3
    assert thread_count(0) == max(1, usable_cores() - 1)
