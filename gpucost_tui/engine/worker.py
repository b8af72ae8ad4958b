"""Runs jobs one after another in a background thread, and answers each with an outcome.

The same worker serves the measuring child and the runner's own thread (policy ``thread``). The
owner's thread calls :meth:`Worker.tick` about ten times a second: it samples memory and sends
what is for people (progress, memory, heartbeat), so that the pass does not.
"""

from __future__ import annotations

import dataclasses
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from gpucost_tui.engine.attempt import Attempting
from gpucost_tui.engine.contract import DeviceMemory, Emit, Engine, Job, Outcome
from gpucost_tui.engine.failures import message_of, trace_of
from gpucost_tui.engine.mark import Mark
from gpucost_tui.text import count

#: Seconds between two events of a kind, at least.
PROGRESS_S, MEMORY_S, HEARTBEAT_S = 0.2, 0.5, 0.5
#: Seconds between two ticks: 10 Hz is the rate at which device memory is sampled.
TICK_S = 0.1


@dataclass(slots=True)
class SamplingCost:
    """What sampling took from the processor while a pass ran: the owner's thread alone."""

    samples: int = 0
    spent_ns: int = 0

    def add(self, spent_ns: int) -> None:
        self.samples += 1
        self.spent_ns += spent_ns

    def note(self, pass_s: float | None) -> list[str]:
        """Return the sentence for the row; none where the pass was shorter than a sample."""
        if not self.samples:
            return []
        spent_s = self.spent_ns / 1e9
        share = f", {100 * spent_s / pass_s:.2f} % of the pass" if pass_s else ""
        times = count(self.samples, "time", "times")
        return [
            f"memory was sampled {times} in the pass, for {1000 * spent_s:.1f} ms of one "
            f"processor's time{share}"
        ]


class Worker:
    """An engine in a thread of its own.

    Args:
        build: Builds the engine; called inside the worker thread (it imports torch).
        emit: Takes events, as plain data, from both threads: ``ready``, ``broken`` (the engine
            can't be built), ``phase``, ``progress``, ``memory``, ``heartbeat``, ``outcome``.
        mark: Where the runner reads how far a process came that was killed.
    """

    def __init__(self, build: Callable[[], Engine], emit: Emit, mark: Mark | None = None) -> None:
        self._build = build
        self._emit = emit
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._engine: Engine | None = None
        self._phase: str | None = None
        self._finished = 0
        self._pass_began = 0.0
        self._shown = -1
        self._next = {"progress": 0.0, "memory": 0.0, "heartbeat": 0.0}
        self._process = psutil.Process()
        self._cost = SamplingCost()
        self._mark = mark or Mark.private()
        self.quitting = False
        self.thread = threading.Thread(target=self._serve, name="measuring", daemon=True)

    # -- called by the owner -----------------------------------------------------------------

    def start(self) -> None:
        self.thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job; a stop asked for earlier does not reach it."""
        self._stop.clear()
        self._jobs.put(job)

    def stop(self) -> None:
        """End the running attempt after its current batch."""
        self._stop.set()

    def quit(self) -> None:
        """Stop after the current batch, free the engine and end the thread."""
        self.quitting = True
        self._stop.set()
        self._jobs.put(None)

    def tick(self) -> None:
        """Send what is due; sample device memory while an attempt runs. Cheap, raises nothing."""
        now = time.monotonic()
        if self._due("heartbeat", now, HEARTBEAT_S):
            self._emit({"event": "heartbeat"})
        passing = self._phase == "pass"
        if passing and self._finished != self._shown and self._due("progress", now, PROGRESS_S):
            self._send_progress()
        if self._phase is not None:
            begun = time.thread_time_ns()
            self._sample(self._due("memory", now, MEMORY_S))
            if passing:
                self._cost.add(time.thread_time_ns() - begun)

    def _sample(self, show: bool) -> None:
        """Sample memory; the engine keeps the devices' peaks, every fifth sample is shown."""
        engine, said = self._engine, {}
        devices: list[DeviceMemory] = []
        try:
            if engine is not None:
                devices = engine.sample()
        except Exception as error:  # a lost device answers nothing: the pass will say so itself
            said = {"error": message_of(error)}
        rss = self._process.memory_info().rss
        self._mark.rss(rss)
        if show:
            shown = [dataclasses.asdict(device) for device in devices]
            self._emit({"event": "memory", "devices": shown, "rss_bytes": rss, **said})

    def _due(self, event: str, now: float, every: float) -> bool:
        if now < self._next[event]:
            return False
        self._next[event] = now + every
        return True

    def _send_progress(self) -> None:
        self._shown = finished = self._finished
        elapsed = time.monotonic() - self._pass_began
        self._emit({"event": "progress", "finished": finished, "elapsed_s": elapsed})

    # -- called by the engine: Reporter ------------------------------------------------------

    def phase(self, name: str) -> None:
        if name == "pass":
            self._finished, self._shown = 0, -1
            self._pass_began = time.monotonic()
            self._cost = SamplingCost()
        self._phase = name
        self._emit({"event": "phase", "phase": name})

    def batch(self, entries: int, width: int) -> None:
        self._mark.batch(entries, width)

    def progress(self, finished: int) -> None:
        self._finished = finished
        self._mark.done(finished)

    # -- the thread --------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            engine = self._build()
            framework = engine.describe()
        except BaseException as error:
            message = message_of(error)
            self._emit({"event": "broken", "error": message, "trace": trace_of(error)})
            return
        self._engine = engine
        self._emit({"event": "ready", "pid": os.getpid(), "framework": framework})
        while (job := self._jobs.get()) is not None:
            self._mark.begin()
            outcome = Attempting(engine, job, self, self._stop).run()
            if self._phase is not None and self._finished != self._shown:
                self._send_progress()
            self._phase = None
            self._finished, self._shown = 0, -1
            if outcome.device_memory:
                outcome.notes += self._cost.note(outcome.row.get("pass_s"))
            self._answer(outcome)
        engine.release()

    def _answer(self, outcome: Outcome) -> None:
        self._emit({"event": "outcome", **outcome.to_json()})
