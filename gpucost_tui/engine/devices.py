"""One narrow interface to what computes: the CPU, and CUDA devices of NVIDIA or (as HIP) of AMD.

torch is passed in and never imported here, so that a test can stand in for it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, Protocol

from gpucost_tui.engine.contract import DeviceMemory
from gpucost_tui.errors import EnvironmentLacks, WrongUse
from gpucost_tui.text import clean, listed


class Range(Protocol):
    """Measures one range of work at a time. Adds no synchronization of its own."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def elapsed_ns(self) -> int:
        """Return the last range; its work has been waited for by then."""


class Sent(Protocol):
    """A batch's tensors on their way to the device."""

    def arrived(self) -> dict[str, Any]:
        """Return them, ordered before what computes next; the host does not wait."""


class Uploader(Protocol):
    """Sends batches from a thread that prepares them beside the forward passes."""

    def enter(self) -> None:
        """Called first in that thread."""

    def send(self, tensors: dict[str, Any]) -> Sent: ...


class Accelerator(Protocol):
    """Where a pass computes."""

    device: str  # "cpu", "cuda:0"
    framework: str  # "cpu", "cuda", "rocm"

    def synchronize(self) -> None:
        """Wait until all work of this device is done (R17)."""

    def range(self) -> Range: ...

    def send(self, tensors: dict[str, Any]) -> Sent:
        """Send a batch from the thread that computes."""

    def uploader(self) -> Uploader:
        """Return the same one every time: warmed up, it is warm in the pass."""

    def reset_peaks(self) -> None: ...

    def memory(self) -> list[tuple[DeviceMemory, DeviceMemory]]:
        """Return torch's counters per device: now, and their peaks since the last reset."""

    def empty_cache(self) -> None: ...


class There:
    """Tensors that are where they are needed."""

    __slots__ = ("_tensors",)

    def __init__(self, tensors: dict[str, Any]) -> None:
        self._tensors = tensors

    def arrived(self) -> dict[str, Any]:
        return self._tensors


class HostRange:
    """A range by the host's monotonic clock: on a CPU the call returns when the work is done."""

    def __init__(self) -> None:
        self._from = self._to = 0

    def start(self) -> None:
        self._from = time.perf_counter_ns()

    def stop(self) -> None:
        self._to = time.perf_counter_ns()

    def elapsed_ns(self) -> int:
        return self._to - self._from


class Cpu:
    """The host's processor: nothing to wait for, no memory of its own."""

    device = "cpu"
    framework = "cpu"

    def synchronize(self) -> None:
        """Every call has already returned with its result."""

    def range(self) -> Range:
        return HostRange()

    def send(self, tensors: dict[str, Any]) -> Sent:
        return There(tensors)

    def uploader(self) -> Uploader:
        return self

    def enter(self) -> None:
        """A processor has no context that belongs to a thread."""

    def reset_peaks(self) -> None:
        """The process's own peak is reset by the worker."""

    def memory(self) -> list[tuple[DeviceMemory, DeviceMemory]]:
        return []

    def empty_cache(self) -> None:
        """The host's allocator keeps no cache that could be emptied."""


class EventRange:
    """A range on the device by two events, reused for every batch (R17)."""

    def __init__(self, cuda: Any) -> None:
        self._first = cuda.Event(enable_timing=True)
        self._last = cuda.Event(enable_timing=True)

    def start(self) -> None:
        self._first.record()

    def stop(self) -> None:
        self._last.record()

    def elapsed_ns(self) -> int:
        milliseconds: float = self._first.elapsed_time(self._last)
        return round(milliseconds * 1e6)


class _Copied:
    """Tensors of a copy on a stream of its own, with the event that ends it."""

    def __init__(self, cuda: Any, index: int, tensors: dict[str, Any], done: Any) -> None:
        self._cuda = cuda
        self._index = index
        self._tensors = tensors
        self._done = done

    def arrived(self) -> dict[str, Any]:
        computing = self._cuda.current_stream(self._index)
        computing.wait_event(self._done)
        for tensor in self._tensors.values():
            tensor.record_stream(computing)  # else its memory is free for the next copy too soon
        return self._tensors


class CudaUploader:
    """Copies from pinned memory on a stream of its own, beside the computing one."""

    def __init__(self, cuda: Any, index: int) -> None:
        self._cuda = cuda
        self._index = index
        self._device = f"cuda:{index}"
        self._stream: Any = None

    def enter(self) -> None:
        self._cuda.set_device(self._index)
        if self._stream is None:  # memory is kept by stream: a warm one keeps its own
            self._stream = self._cuda.Stream(device=self._index)

    def send(self, tensors: dict[str, Any]) -> Sent:
        with self._cuda.stream(self._stream):
            moved = {
                name: tensor.pin_memory().to(self._device, non_blocking=True)
                for name, tensor in tensors.items()
            }
            done = self._cuda.Event()
            done.record(self._stream)
        return _Copied(self._cuda, self._index, moved, done)


class Cuda:
    """One device behind ``torch.cuda``, which is also torch's interface to ROCm."""

    def __init__(self, torch: Any, index: int) -> None:
        self._cuda = torch.cuda
        self.index = index
        self.device = f"cuda:{index}"
        self.framework = "rocm" if getattr(torch.version, "hip", None) else "cuda"
        self._uploader = CudaUploader(torch.cuda, index)
        torch.cuda.set_device(index)

    def synchronize(self) -> None:
        self._cuda.synchronize(self.index)

    def range(self) -> Range:
        return EventRange(self._cuda)

    def send(self, tensors: dict[str, Any]) -> Sent:
        return There({name: tensor.to(self.device) for name, tensor in tensors.items()})

    def uploader(self) -> Uploader:
        return self._uploader

    def reset_peaks(self) -> None:
        self._cuda.reset_peak_memory_stats(self.index)

    def memory(self) -> list[tuple[DeviceMemory, DeviceMemory]]:
        # One call: each of torch's own (max_)memory_allocated builds this whole dictionary.
        counters = self._cuda.memory_stats(self.index)
        return [(self._counted(counters, "current"), self._counted(counters, "peak"))]

    def empty_cache(self) -> None:
        self._cuda.empty_cache()

    def _counted(self, counters: Mapping[str, int], which: str) -> DeviceMemory:
        properties = self._cuda.get_device_properties(self.index)
        uuid = getattr(properties, "uuid", None)
        memory = DeviceMemory(
            index=self.index,
            name=str(properties.name),
            uuid=str(uuid) if uuid is not None else None,
            capacity_bytes=int(properties.total_memory),
            allocated_bytes=counters.get(f"allocated_bytes.all.{which}"),
            reserved_bytes=counters.get(f"reserved_bytes.all.{which}"),
        )
        for name in ("allocated_bytes", "reserved_bytes"):
            if getattr(memory, name) is None:  # an allocator of somebody's own: not 0 (R20)
                memory.missing[name] = "torch's allocator counts nothing here"
        return memory


def resolve(requested: str, torch: Any) -> Accelerator:
    """Return the device that an execution asks for.

    Args:
        requested: ``auto`` (the first CUDA or ROCm device, else the CPU), ``cpu``, ``cuda`` (the
            first one), ``cuda:N``.
        torch: The module.

    Raises:
        WrongUse: ``requested`` is no device's name.
        EnvironmentLacks: The device is not there; says which ones are.
    """
    if requested == "cpu":
        return Cpu()
    there = int(torch.cuda.device_count()) if torch.cuda.is_available() else 0
    if requested == "auto":
        return Cuda(torch, 0) if there else Cpu()
    match = re.fullmatch(r"cuda(?::(\d{1,4}))?", requested)
    if match is None:
        raise WrongUse(
            f"'{clean(requested)}' is no device",
            where="execution.device",
            fix="Take auto, cpu, cuda or cuda:N",
        )
    index = int(match.group(1) or 0)
    if index >= there:
        raise EnvironmentLacks(
            f"device '{requested}' is not here; there {_are(torch, there)}",
            where="execution.device",
            fix="Take a device that is here, or 'auto'",
        )
    return Cuda(torch, index)


def _are(torch: Any, there: int) -> str:
    if not there:
        build = "this torch is built without CUDA and ROCm"
        version = torch.version
        if getattr(version, "cuda", None):
            build = f"torch (CUDA {version.cuda}) finds no usable NVIDIA device"
        elif getattr(version, "hip", None):
            build = f"torch (ROCm {version.hip}) finds no usable AMD device"
        return f"is the CPU alone: {build}"
    names = [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(there)]
    return f"are {listed(['cpu', *names], limit=9)}"
