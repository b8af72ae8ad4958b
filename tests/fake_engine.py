"""An engine without a model, for tests of runner and screens: what happens is scripted.

The script is JSON in the environment variable ``GPUCOST_FAKE`` (or the dict :data:`SCRIPT`, in the
same process)::

    {"labels": ["bug", "billing"], "devices": [{"name": "H200", "capacity_bytes": 150754820096}],
     "default": {"batch_s": 0.01},
     "attempts": {"3": {"fail": {"kind": "out-of-memory", "after": 40}}}}

Settings of an attempt (``default`` for those not named):

* ``load_s``, ``warmup_s``, ``batch_s``: seconds slept; ``pass_s``: duration reported as measured.
* ``hold``: ``after`` N entries the pass waits until the file ``until`` is there, or for a stop.
* ``fail``: ``kind`` out-of-memory, memory-error, device-error, fallback, raise, exit, kill,
  segfault or hang (holds the interpreter lock: no heartbeat); ``after`` N entries; ``in`` load,
  warm-up or pass.
* ``scores``: "nan" or "inf"; ``ids``: missing, duplicate, extra or wrong.
* ``accuracy``: share of entries whose label is the corpus's (column ``label``, or ``answer``).

A row made by it has 'fake engine' in its notes.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from gpucost_tui.engine.contract import (
    DeviceMemory,
    Job,
    Loaded,
    Measured,
    PassFailed,
    Reporter,
    Warmed,
)
from gpucost_tui.protocol.execution import Execution

SCRIPT: dict[str, Any] = {}
LABELS = ["billing", "bug", "question"]
DIMENSION = 8
NOTE = "fake engine"


def script() -> dict[str, Any]:
    return SCRIPT or json.loads(os.environ.get("GPUCOST_FAKE") or "{}")


class FakeEngine:
    """Implements ``gpucost_tui.engine.contract.Engine`` by script."""

    def __init__(self) -> None:
        plan = script()
        if plan.get("broken"):
            raise ImportError(plan["broken"])
        time.sleep(plan.get("import_s", 0))
        if plan.get("prints"):
            # What libraries do: neither may reach the runner's pipe.
            print("noise on standard output", flush=True)
            os.write(1, b'{"event": "outcome"}\n')
        self._kept: tuple[Any, ...] | None = None
        self._used = 1 << 30

    def describe(self) -> dict[str, Any]:
        return {"versions": {"torch": "fake"}, "devices": script().get("devices", [])}

    def load(self, job: Job, report: Reporter) -> Loaded:
        self._plan = _plan_of(job)
        settings = Execution.model_validate(job.execution)
        devices = script().get("devices", [])
        key = (job.model_sha256, settings.dtype, settings.attention, settings.device)
        fresh = key != self._kept
        self._kept = None
        _maybe_fail(self._plan, "load", 0)
        begun = time.perf_counter()
        if fresh:
            time.sleep(self._plan.get("load_s", 0))
        self._kept = key
        device = "cuda:0" if devices and settings.device != "cpu" else "cpu"
        classifies = job.task["name"] == "text-classification"
        return Loaded(
            load_s=time.perf_counter() - begun if fresh else None,
            dtype_effective=settings.dtype,
            attention_effective=settings.attention,
            device=device,
            devices=[device],
            threads=settings.threads or 1,
            labels=labels_of(job) if classifies else None,
            dimension=None if classifies else DIMENSION,
            missing={} if fresh else {"load_s": "already loaded"},
            notes=[NOTE],
        )

    def warm_up(self, job: Job, report: Reporter, stop: threading.Event) -> Warmed:
        _maybe_fail(self._plan, "warm-up", 0)
        seconds = self._plan.get("warmup_s", 0.0)
        stop.wait(seconds)
        return Warmed(warmup_s=seconds, missing={"compile_s": "not compiled"})

    def measure(self, job: Job, report: Reporter, stop: threading.Event) -> Measured:
        plan, settings = self._plan, Execution.model_validate(job.execution)
        entries = [json.loads(line) for line in Path(job.corpus).read_bytes().splitlines()]
        begun, done = time.perf_counter(), 0
        failure: PassFailed | None = None
        while done < len(entries) and not stop.is_set():
            end = min(done + settings.batch_size, len(entries))
            report.batch(end - done, 16)
            try:
                _maybe_fail(plan, "pass", end)
            except PassFailed as failed:
                failure = failed
                break
            except Exception as error:
                from gpucost_tui.engine.failures import kind_of

                failure = PassFailed(kind_of(error), f"{type(error).__name__}: {error}")
                break
            time.sleep(plan.get("batch_s", 0))
            done = end
            report.progress(done)
            _hold(plan.get("hold"), done, stop)
        elapsed = plan.get("pass_s", time.perf_counter() - begun)
        whole = done == len(entries)
        measured = _measured(job, plan, entries[:done], elapsed, whole)
        if failure is not None:
            failure.partial = measured
            raise failure
        return measured

    def peaks(self) -> list[DeviceMemory]:
        return [
            DeviceMemory(
                index=index,
                name=device.get("name", "Fake"),
                uuid=device.get("uuid"),
                capacity_bytes=device.get("capacity_bytes"),
                allocated_bytes=2 << 30 if not index else None,
                reserved_bytes=3 << 30 if not index else None,
                used_bytes=device.get("used_bytes", 4 << 30),
                missing={} if not index else {"allocated_bytes": "not used by this pass"},
            )
            for index, device in enumerate(script().get("devices", []))
        ]

    def sample(self) -> list[DeviceMemory]:
        return self.peaks()

    def release(self) -> None:
        self._kept = None


def labels_of(job: Job) -> list[str]:
    """Return the script's labels, else those of the model folder, else :data:`LABELS`."""
    config = Path(job.model) / "config.json"
    if "labels" in script():
        return list(script()["labels"])
    named = json.loads(config.read_text()).get("id2label") if config.is_file() else None
    return [named[key] for key in sorted(named, key=int)] if named else LABELS


def _plan_of(job: Job) -> dict[str, Any]:
    plan = script()
    return {**plan.get("default", {}), **plan.get("attempts", {}).get(str(job.attempt), {})}


def _hold(hold: dict[str, Any] | None, reached: int, stop: threading.Event) -> None:
    if hold and reached >= hold["after"]:
        while not Path(hold["until"]).exists() and not stop.wait(0.02):
            pass


def _maybe_fail(plan: dict[str, Any], phase: str, reached: int) -> None:
    fail = plan.get("fail")
    if not fail or fail.get("in", "pass") != phase:
        return
    if phase == "pass" and reached <= fail.get("after", 0):
        return
    kind = fail["kind"]
    if kind in ("out-of-memory", "device-error", "fallback"):
        raise PassFailed(kind, f"scripted {kind}", trace=f"Traceback: scripted {kind}")
    if kind == "memory-error":
        raise MemoryError
    if kind == "exit":
        os._exit(7)
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "segfault":
        ctypes.string_at(0)
    if kind == "hang":
        ctypes.PyDLL(None).sleep(3600)  # the interpreter lock is kept: no heartbeat either
    raise RuntimeError(fail.get("text", "scripted failure"))


def _measured(
    job: Job, plan: dict[str, Any], entries: list[dict[str, Any]], elapsed: float, whole: bool
) -> Measured:
    ids = [entry["id"] for entry in entries]
    if job.task["name"] == "text-classification":
        columns = _classified(job, plan, entries)
    else:
        columns = {"prediction": _vectors(entries)}
        if plan.get("scores"):
            columns["prediction"][:] = float(plan["scores"])
    ids, columns = _spoiled(plan.get("ids"), ids, columns)
    return Measured(
        ids=ids,
        order=list(range(len(ids))),
        columns=columns,
        pass_s=elapsed,
        read_s=elapsed * 0.1,
        tokenize_s=elapsed * 0.1,
        transfer_s=elapsed * 0.05,
        forward_s=elapsed * 0.7,
        materialize_s=elapsed * 0.05,
        truncated_entries=0,
        padding_ratio=plan.get("padding_ratio", 1.25) if ids else None,
        stopped=not whole,
    )


def _draw(*parts: object) -> float:
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _classified(job: Job, plan: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
    labels = labels_of(job)
    scores = np.full((len(entries), len(labels)), 0.1 / max(len(labels) - 1, 1), np.float32)
    for row, entry in zip(scores, entries, strict=True):
        answer = entry.get("label", entry.get("answer"))
        right = answer in labels and _draw(entry["id"], "right") < plan.get("accuracy", 0.9)
        best = labels.index(answer) if right else int(_draw(entry["id"]) * len(labels))
        if not right and answer in labels and labels[best] == answer:
            best = (best + 1) % len(labels)
        row[best] = 0.9
    chosen = np.array(labels, dtype=object)[scores.argmax(axis=1)] if len(entries) else np.array([])
    if plan.get("scores"):
        scores[:] = float(plan["scores"])
        chosen[:] = None
    top = scores.max(axis=1) if len(entries) else np.zeros(0, np.float32)
    return {"prediction": chosen, "score": top, "scores": scores}


def _vectors(entries: list[dict[str, Any]]) -> np.ndarray:
    rows = [[_draw(entry["id"], k) - 0.5 for k in range(DIMENSION)] for entry in entries]
    vectors = np.array(rows, np.float32).reshape(-1, DIMENSION)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def _spoiled(
    how: str | None, ids: list[str], columns: dict[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    if how is None or not ids:
        return ids, columns
    if how == "missing":
        return ids[:-1], {name: values[:-1] for name, values in columns.items()}
    if how == "duplicate":
        return [*ids[:-1], ids[0]], columns
    if how == "wrong":
        return [f"{one}?" for one in ids], columns
    if how == "extra":
        again = {name: np.concatenate([v, v[:1]]) for name, v in columns.items()}
        return [*ids, "one-too-many"], again
    print(f"fake engine: no such spoiling: {how}", file=sys.stderr)
    raise ValueError(how)
