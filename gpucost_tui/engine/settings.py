"""Process-wide switches of torch, set the same way before every attempt (R28)."""

from __future__ import annotations

import math
import os
import random
from pathlib import Path
from typing import Any

import numpy as np

from gpucost_tui.protocol.execution import Execution

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


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
    torch.set_float32_matmul_precision("highest")  # no tf32 unless a variant declares it
    torch.backends.cudnn.allow_tf32 = False
    return int(torch.get_num_threads())


def seed(torch: Any, value: int) -> None:
    """Seed every generator a pass could draw from."""
    random.seed(value)
    np.random.seed(value % 2**32)
    torch.manual_seed(value)
