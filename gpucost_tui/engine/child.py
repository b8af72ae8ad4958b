"""The measuring child: ``python -m gpucost_tui.engine.child [--engine module:attribute]``.

``--mark N`` is the descriptor of the page in which it leaves how far it came. One JSON object a
line. In: ``{"do": "attempt", "job": {…}}``, ``{"do": "stop", "how": "batch"}``,
``{"do": "quit"}``. Out: the events of :class:`gpucost_tui.engine.worker.Worker`. The pipes are
taken away from descriptors 0 and 1 first, so nothing a library prints can come between; it goes
to standard error, the runner's log. When the runner is gone (end of input) the child ends at once;
a child whose interpreter is held by native code is ended by the kernel.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import select
import signal
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from gpucost_tui.engine.contract import Engine, Job
from gpucost_tui.engine.mark import Mark
from gpucost_tui.engine.worker import TICK_S, Worker

_PR_SET_PDEATHSIG = 1  # prctl(2)
DEFAULT_ENGINE = "gpucost_tui.engine.torch_engine:TorchEngine"


class Pipe:
    """Writes events as lines, from any thread, whole or not at all."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._lock = threading.Lock()

    def send(self, event: dict[str, Any]) -> None:
        line = json.dumps(event, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"
        with self._lock:
            try:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._handle, view) :]
            except OSError:
                os._exit(0)  # the runner is gone: nobody is left to measure for


class Lines:
    """Splits what arrives on a descriptor into lines."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._rest = b""

    def read(self, timeout_s: float) -> list[bytes] | None:
        """Wait for input; return whole lines, none after the timeout, None at the end of input."""
        if not select.select([self._handle], [], [], timeout_s)[0]:
            return []
        data = os.read(self._handle, 1 << 16)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line for line in lines if line.strip()]


def take_pipes() -> tuple[int, int]:
    """Return private copies of standard input and output, and put others in their place."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def builder(name: str) -> Callable[[], Engine]:
    """Return a function that imports and builds an engine by ``module:attribute``."""

    def build() -> Engine:
        module, _, attribute = name.partition(":")
        engine: Engine = getattr(importlib.import_module(module), attribute)()
        return engine

    return build


def serve(source: int, pipe: Pipe, engine: str, mark: Mark | None) -> NoReturn:
    """Answer messages until told to quit, or until the runner is gone."""
    worker = Worker(builder(engine), pipe.send, mark)
    worker.start()
    lines = Lines(source)
    while worker.thread.is_alive():
        messages = lines.read(TICK_S)
        if messages is None:
            os._exit(0)
        for message in messages:
            _obey(worker, pipe, message)
        worker.tick()
    os._exit(0 if worker.quitting else 1)  # torch's own threads would take their time


def _obey(worker: Worker, pipe: Pipe, message: bytes) -> None:
    try:
        order = json.loads(message)
        what = order["do"]
        if what == "attempt":
            worker.submit(Job.from_json(order["job"]))
        elif what == "stop":
            worker.stop()
        elif what == "quit":
            worker.quit()
        else:
            raise ValueError(f"unknown order '{what}'")
    except (ValueError, KeyError, TypeError) as error:
        pipe.send({"event": "refused", "error": f"{type(error).__name__}: {error}"})


def end_with_parent() -> None:
    """Ask the kernel to end this process when the runner's main thread does (Linux).

    The end of input says the same, but only where the interpreter is free to read it: a child that
    hangs in native code would keep the device's memory.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _opened(handle: int | None) -> Mark | None:
    if handle is None:
        return None
    mark = Mark(handle)
    os.close(handle)  # what this process starts must not inherit it
    return mark


def main() -> NoReturn:
    parser = argparse.ArgumentParser(prog="gpucost_tui.engine.child")
    parser.add_argument("--engine", default=DEFAULT_ENGINE, metavar="MODULE:ATTRIBUTE")
    parser.add_argument("--mark", type=int, metavar="N")
    options = parser.parse_args()
    end_with_parent()
    source, sink = take_pipes()
    faulthandler.enable()  # a crash in native code leaves its place in the log
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner decides when to end
    serve(source, Pipe(sink), options.engine, _opened(options.mark))


if __name__ == "__main__":
    main()
