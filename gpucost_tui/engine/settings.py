"""Process-wide switches of torch, set the same way before every attempt (R28)."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import random
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from gpucost_tui.engine import attention
from gpucost_tui.engine.contract import PassFailed
from gpucost_tui.protocol.execution import Execution
from gpucost_tui.text import listed

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
#: Switches of the libraries that round float32 whatever torch is told (cuBLAS, oneDNN).
_ROUNDING = ("NVIDIA_TF32_OVERRIDE", "ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")


def usable_cores() -> int:
    """Return the cores this process may use: its affinity, and a container's quota of time."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = _QUOTA.read_text().split()
        return min(cores, max(1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or "max": no quota
        return cores


def thread_count(requested: int) -> int:
    """Return the compute threads for a request; 0 leaves one core to screen and system."""
    return requested or max(1, usable_cores() - 1)


def prepare_environment() -> None:
    """Set what is read once, before torch is imported.

    The cuBLAS workspace is what deterministic algorithms ask for. It is set for every variant, so
    that a series over ``deterministic`` changes nothing else (R10).
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("RAYON_NUM_THREADS", str(max(1, usable_cores() - 1)))
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


def keep_freed_memory() -> bool:
    """Tell glibc to keep what is freed and use it again; return whether it does.

    Activations of some MiB are otherwise given back to the kernel after every layer and faulted in
    again, or not, as fragments happen to lie: 7 to 13 % of a pass of a small model at batch 8 and
    32, and different from attempt to attempt. Any C library without ``mallopt`` stays as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    trimmed = mallopt(_M_TRIM_THRESHOLD, 1 << 30)
    mapped = mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the greatest value that glibc takes
    return bool(trimmed and mapped)


def return_freed_memory() -> None:
    """Give what the allocator kept back to the kernel: an attempt's peak begins without it."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def apply(torch: Any, execution: Execution) -> int:
    """Set threads, determinism and precision of float32 products; return the threads in effect.

    Runs in the thread of the pass: the number of OpenMP threads belongs to the thread that sets
    it.
    """
    threads = thread_count(execution.threads)
    torch.set_num_threads(threads)
    # The tokenizer's own threads count as compute threads; read by tokenizers on every call.
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    torch.use_deterministic_algorithms(execution.deterministic)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = execution.deterministic
    torch.set_float32_matmul_precision("high" if execution.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = execution.tf32
    attention.allow(torch, execution.attention)
    return int(torch.get_num_threads())


def check_products(torch: Any, execution: Execution, device: str) -> None:
    """Make sure that float32 is multiplied as asked for: in tf32, or in full.

    The switch alone proves nothing: libraries and drivers have switches of their own in the
    environment. So a product is computed that differs between the two.

    Raises:
        PassFailed: ``fallback``: the other one took effect.
    """
    if execution.dtype != "float32":
        return
    if execution.tf32 and device == "cpu":
        _fell_back("tf32 was requested", "a CPU multiplies float32 in full")
    rounded = _rounds(torch, device)
    if execution.tf32 and not rounded:
        _fell_back("tf32 was requested", _no_tf32(torch, device))
    if rounded and not execution.tf32:
        named = [name for name in _ROUNDING if name in os.environ]
        why = f"the environment sets {listed(named)}" if named else "torch's switch is off"
        _fell_back("exact float32 was requested", f"products are rounded, and {why}")


def _rounds(torch: Any, device: str) -> bool:
    """Tell whether a product of float32 loses what tf32 has no bits for."""
    size = 64 if device == "cpu" else 1024  # a device takes tf32 for whole tiles
    fine = torch.full((size, size), 1 + 2**-12, device=device)
    product = torch.nn.functional.linear(fine, torch.eye(size, device=device))
    return bool((product != fine).any())


def _no_tf32(torch: Any, device: str) -> str:
    if getattr(torch.version, "hip", None):
        return "this ROCm multiplies float32 in full"
    major = torch.cuda.get_device_properties(int(device.partition(":")[2])).major
    if major < 8:
        return f"a device of compute capability {major}.x has no tf32"
    set_to = os.environ.get("NVIDIA_TF32_OVERRIDE")
    off = "" if set_to is None else f", and the environment sets NVIDIA_TF32_OVERRIDE={set_to}"
    return f"the device multiplied float32 in full{off}"


def _fell_back(asked: str, why: str) -> NoReturn:
    raise PassFailed("fallback", f"{asked} and did not take effect: {why}.")


def switches(torch: Any, execution: Execution, seed: int) -> str:
    """Return what decides whether a pass can be repeated exactly, for the row's notes (R28)."""
    mode = "on" if execution.deterministic else "off"
    return (
        f"seed {seed}; deterministic algorithms {mode}, cudnn.benchmark off, float32 products "
        f"'{torch.get_float32_matmul_precision()}', "
        f"cuBLAS workspace {os.environ.get('CUBLAS_WORKSPACE_CONFIG')}"
    )


def seed(torch: Any, value: int) -> None:
    """Seed every generator a pass could draw from."""
    random.seed(value)
    np.random.seed(value % 2**32)
    torch.manual_seed(value)
