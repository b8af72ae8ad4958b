"""Times single operations of a variant with ``torch.utils.benchmark.Timer`` (R17).

``python -m gpucost_tui.engine.operations RESULT`` reads a job as JSON on standard input and writes
its answer to the file RESULT. What it measures is one operation over and over, warm and alone: no
pass, and comparable with none.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpucost_tui.engine.contract import Job
from gpucost_tui.engine.failures import kind_of, message_of

#: Seconds that each operation is repeated for, at least.
LEAST_S = 0.5


class _Quiet:
    def phase(self, name: str) -> None:
        """Nobody watches."""

    def batch(self, entries: int, width: int) -> None:
        """Nobody watches."""

    def progress(self, finished: int) -> None:
        """Nobody watches."""


def time_operations(job: Job, least_s: float = LEAST_S) -> list[dict[str, Any]]:
    """Load a job's variant and time the operations of the one batch that its corpus is.

    Returns:
        One entry an operation: ``operation``, ``median_s``, ``iqr_s``, ``runs`` (single
        executions), ``threads``.
    """
    from gpucost_tui.engine.torch_engine import TorchEngine

    engine = TorchEngine()
    quiet = _Quiet()
    engine.load(job, quiet)
    engine.warm_up(job, quiet, threading.Event())
    found = engine.operations(job)
    result = [_timed(name, run, least_s) for name, run in found.items()]
    engine.release()
    return result


def _timed(name: str, run: Callable[[], Any], least_s: float) -> dict[str, Any]:
    import torch
    from torch.utils.benchmark import Timer

    threads = torch.get_num_threads()
    timer = Timer("run()", globals={"run": run}, num_threads=threads)
    with torch.inference_mode():
        run()
        measured = timer.blocked_autorange(min_run_time=least_s)
    return {
        "operation": name,
        "median_s": measured.median,
        "iqr_s": measured.iqr,
        "runs": measured.number_per_run * len(measured.raw_times),
        "threads": threads,
    }


def main() -> None:
    target = Path(sys.argv[1])
    answer: dict[str, Any]
    try:
        answer = {"operations": time_operations(Job.from_json(json.load(sys.stdin)))}
    except Exception as error:
        answer = {"error": message_of(error), "failure": kind_of(error)}
    target.write_text(json.dumps(answer), "utf-8")


if __name__ == "__main__":
    main()
