"""Where a pass is measured: in a child process (lines over pipes), or in a thread of the runner.

Both answer the same way, so that the runner and its tests know no difference (design: *One way to
run*). A child that dies, hangs or is killed is an outcome like any other: ``failed``, ``killed``.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Literal, Protocol

from gpucost_tui.campaign.logs import BoundedLog
from gpucost_tui.campaign.oom import oom_kills
from gpucost_tui.engine.child import DEFAULT_ENGINE, builder
from gpucost_tui.engine.contract import FailureKind, Job, Outcome
from gpucost_tui.engine.failures import failed_batch
from gpucost_tui.engine.mark import Left, Mark, page
from gpucost_tui.engine.rows import requested_note
from gpucost_tui.engine.worker import Worker
from gpucost_tui.errors import EnvironmentLacks

#: What the runner may ask while a pass runs: leave after the batch; give up at once.
Directive = Literal["batch", "now"] | None
Tick = Callable[[dict[str, Any] | None], Directive]

#: Without any sign of life for so long, a child is taken for hung. Importing torch from a slow disk
#: holds the interpreter for seconds at a time, so the bound is generous.
SILENCE_S = 120.0
_POLL_S = 0.1
_STARTS = 3  # tries to start a child that dies before it is ready
_STARVED = "the kernel's out-of-memory killer ended it"


def engine_name() -> str:
    """Return which engine measures: the real one, unless a test names another."""
    return os.environ.get("GPUCOST_ENGINE", DEFAULT_ENGINE)


class Measurer(Protocol):
    """Something that runs one job after the other."""

    lost_in_a_row: int  # how often its process was lost since an attempt last gave an outcome

    def start(self, tick: Tick) -> dict[str, Any] | None:
        """Make ready (again); return what the engine says of versions and devices.

        None when ``tick`` asks to stop before it is ready: no attempt has begun then.

        Raises:
            EnvironmentLacks: It can't start; with its own words.
        """

    def run(self, job: Job, tick: Tick) -> Outcome:
        """Run one pass; ``tick`` is called with every message and at least ten times a second."""

    def close(self) -> None:
        """Give back process, model and memory."""


class _Broken(str):
    """Why an engine can't be built, in its own words; the child itself was well."""


class ChildMeasurer:
    """A child process, kept from attempt to attempt and started again when it is gone."""

    def __init__(self, log: BoundedLog, *, silence_s: float = SILENCE_S) -> None:
        self._log = log
        self._silence_s = silence_s
        self._process: subprocess.Popen[bytes] | None = None
        self._inbox: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._drain: threading.Thread | None = None
        self._framework: dict[str, Any] = {}
        self._mark: Mark | None = None
        self._oom_kills: int | None = None
        self.lost_in_a_row = 0

    def start(self, tick: Tick) -> dict[str, Any] | None:
        if self._process is not None and self._process.poll() is None:
            return self._framework
        answer: dict[str, Any] | str = ""
        for _ in range(_STARTS):
            self.close()
            self._open()
            answer = self._wait("ready", tick, patient=False)
            if not isinstance(answer, str):
                self._framework = answer["framework"]
                return self._framework
            self.close()
            if answer == "now":
                return None
            if isinstance(answer, _Broken):
                break  # it said why: another try would say it again
        raise _not_started(str(answer), f"logs/{self._log.path.name}")

    def _open(self) -> None:
        self._inbox = queue.Queue()
        command = [sys.executable, "-m", "gpucost_tui.engine.child", "--engine", engine_name()]
        try:
            handle = page()
            try:
                self._mark = Mark(handle)
                process = self._process = subprocess.Popen(
                    [*command, "--mark", str(handle)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    # A terminal's ctrl+c and hang-up reach the runner alone, which decides.
                    start_new_session=True,
                    pass_fds=(handle,),
                )
            finally:
                os.close(handle)
        except OSError as error:
            raise _not_started(error.strerror or str(error), None) from None
        reader = threading.Thread(target=_read, args=(process.stdout, self._inbox), daemon=True)
        reader.start()
        self._drain = threading.Thread(target=_drain, args=(self._log, process.stderr), daemon=True)
        self._drain.start()

    def run(self, job: Job, tick: Tick) -> Outcome:
        began = time.monotonic()
        self._oom_kills = oom_kills()
        assert self._mark is not None  # noqa: S101 - made with the process
        self._mark.begin()
        self._send({"do": "attempt", "job": job.to_json()})
        answer = self._wait("outcome", tick, patient=True)
        if not isinstance(answer, str):
            self.lost_in_a_row = 0
            outcome = Outcome.from_json({k: v for k, v in answer.items() if k != "event"})
            if outcome.poisoned:
                self.kill()  # its device's context may not even be released any more
                self.close()
            return outcome
        self.lost_in_a_row += answer != "now"
        self.close()
        starved = answer.startswith(_STARVED)
        tail = "" if answer == "now" else self._log.tail()
        left, after_s = self._mark.read(), time.monotonic() - began
        return lost(job, answer, left, after_s, tail, out_of_memory=starved)

    def _wait(self, event: str, tick: Tick, *, patient: bool) -> dict[str, Any] | str:
        """Return the awaited message, or in words how the child was lost ("now": on request).

        ``patient``: a stop after the batch is passed on; otherwise there is no batch to wait for.
        """
        # Polls are counted, not time: a runner that was itself suspended has heard nothing either.
        silent = 0
        asked = False
        while True:
            message, ended = self._next()
            if ended:
                return self._last_words()
            silent += 1
            if message is not None:
                silent = 0
                if message["event"] == event:
                    return message
                if message["event"] == "broken":
                    return _Broken(message["error"])
            directive = tick(message)
            if directive == "now" or (directive and not patient):
                self.kill()
                return "now"
            if directive == "batch" and not asked:
                asked = True
                self._send({"do": "stop", "how": "batch"})
            if silent * _POLL_S > self._silence_s:
                self.kill()
                return f"no sign of life for {self._silence_s:g} s: taken for hung and killed"

    def _next(self) -> tuple[dict[str, Any] | None, bool]:
        """Return the next message, if any, and whether the child's output has ended."""
        try:
            message = self._inbox.get(timeout=_POLL_S)
        except queue.Empty:
            return None, False
        return message, message is None

    def _last_words(self) -> str:
        assert self._process is not None  # noqa: S101 - called while waiting for it
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.kill()
            return "it closed its pipe and did not end: killed"
        if code >= 0:
            return f"it ended by itself with status {code}"
        if code == -signal.SIGKILL:
            before, now = self._oom_kills, oom_kills()
            if before is not None and now is not None and now > before:
                return _STARVED
            return "it was ended by SIGKILL (somebody's, or the kernel's when memory runs out)"
        try:
            return f"it was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"it was ended by signal {-code}"

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None and self._process.stdin is not None  # noqa: S101
        # A broken pipe says the child is gone: its reader's end-of-file is what reports it.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """End the child at once, and whatever it started."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def close(self) -> None:
        """End the child; a pass that runs is not waited for longer than its batch."""
        if self._process is None:
            return
        process = self._process
        assert process.stdin is not None  # noqa: S101 - opened as a pipe
        with contextlib.suppress(OSError):
            process.stdin.write(b'{"do":"quit"}\n')
        with contextlib.suppress(OSError):
            process.stdin.close()
        if process.poll() is None:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None
        if self._drain is not None:
            self._drain.join(timeout=2)  # its last words are in the log then


class ThreadMeasurer:
    """The worker thread in the runner's own process: no isolation, marked in the row."""

    def __init__(self) -> None:
        self._inbox: queue.Queue[dict[str, Any]] = queue.Queue()
        self._worker: Worker | None = None
        self._framework: dict[str, Any] = {}
        self.lost_in_a_row = 0

    def start(self, tick: Tick) -> dict[str, Any] | None:
        if self._worker is None:
            worker = Worker(builder(engine_name()), self._inbox.put)
            worker.start()
            answer = self._wait(worker, "ready", tick, patient=False)
            if answer == "now":
                worker.quit()
                return None
            if isinstance(answer, str):
                raise _not_started(answer, None)
            self._worker, self._framework = worker, answer["framework"]
        return self._framework

    def run(self, job: Job, tick: Tick) -> Outcome:
        assert self._worker is not None  # noqa: S101 - started before it is used
        began = time.monotonic()
        self._worker.submit(job)
        answer = self._wait(self._worker, "outcome", tick, patient=True)
        if isinstance(answer, str):
            self._worker = None
            self.lost_in_a_row += 1
            return lost(job, answer, None, time.monotonic() - began, "")
        self.lost_in_a_row = 0
        return Outcome.from_json({k: v for k, v in answer.items() if k != "event"})

    def _wait(
        self, worker: Worker, event: str, tick: Tick, *, patient: bool
    ) -> dict[str, Any] | str:
        while True:
            try:
                message: dict[str, Any] | None = self._inbox.get(timeout=_POLL_S)
            except queue.Empty:
                message = None
                if not worker.thread.is_alive() and self._inbox.empty():
                    return "its thread ended"
            if message is not None and message["event"] == event:
                return message
            if message is not None and message["event"] == "broken":
                return str(message["error"])
            worker.tick()
            if tick(message) is not None:
                if not patient:
                    return "now"
                worker.stop()  # a thread can't be killed: both directives leave after the batch

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.quit()
            worker.thread.join(timeout=30)


def _not_started(how: str, log: str | None) -> EnvironmentLacks:
    return EnvironmentLacks(
        f"the measuring process could not start: {how}",
        where=log,
        fix="That log has its last words" if log else "`gpucost env` shows what is installed",
    )


def lost(
    job: Job,
    how: str,
    left: Left | None,
    after_s: float,
    log_tail: str,
    *,
    out_of_memory: bool = False,
) -> Outcome:
    """Return the outcome of an attempt whose measuring process is gone (R21, R22).

    ``left`` is what the process had written of itself, None where it could leave nothing. There
    are no predictions, because they are written after the pass.
    """
    stopped = how == "now"
    words = "ended at once, on request" if stopped else f"the measuring process was lost: {how}"
    reason = "the measuring process was ended" if stopped else "the measuring process was lost"
    kind: FailureKind = "out-of-memory" if out_of_memory else "killed"
    row: dict[str, Any] = {}
    notes = [f"{words}, {after_s:.1f} s after the attempt began", requested_note(job)]
    missing = {"*": reason}
    if left is None:
        missing["finished_entries"] = "unknown: 0 is a lower bound"
    elif left.rss_bytes:
        row["peak_rss_bytes"] = left.rss_bytes
        notes.append("peak_rss_bytes is the highest of samples at 10 Hz, the last before the end")
    if left is not None and left.entries and not stopped:
        notes.append(failed_batch(left.entries, left.width))
    return Outcome(
        attempt=job.attempt,
        status="stopped" if stopped else "failed",
        failure=None if stopped else kind,
        finished_entries=left.finished if left is not None else 0,
        row=row,
        device_memory=[],
        missing=missing,
        notes=notes,
        error=None if stopped else words,
        trace=None if stopped else f"{words}\n\nLast lines of its log:\n{log_tail}\n",
        poisoned=True,
    )


def _drain(log: BoundedLog, stream: Any) -> None:
    with stream:
        log.drain(stream)


def _read(stream: Any, inbox: queue.Queue[dict[str, Any] | None]) -> None:
    """Turn the child's lines into messages; its end into ``None``."""
    with contextlib.suppress(OSError, ValueError), stream:
        for line in stream:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # a line cut off by the child's death; the end of file follows
            if isinstance(message, dict) and "event" in message:
                inbox.put(message)
    inbox.put(None)
