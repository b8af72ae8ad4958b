"""Real terminals for the tests of the app: a pseudo-terminal of its own, and tmux."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

GPUCOST = str(Path(sys.executable).with_name("gpucost"))
#: What the empty Home says once it has looked at its folder.
PAINTED = b"No campaign here yet"
WAIT_S = 90.0


class Terminal:
    """``gpucost`` on a pseudo-terminal of its own, read all the time so that it never waits.

    Args:
        folder: Where it is started.
        words: After ``gpucost``.
        environment: Beside this process's; a value of None takes a name away.
        size: Columns and rows.
        deaf: Start it with SIGHUP ignored, as ``nohup`` does.
        command: Something else than ``gpucost``.
    """

    def __init__(
        self,
        folder: Path,
        words: Sequence[str] = (),
        *,
        environment: dict[str, str | None] | None = None,
        size: tuple[int, int] = (80, 24),
        deaf: bool = False,
        command: Sequence[str] = (GPUCOST,),
    ) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.before: list[Any] = termios.tcgetattr(slave)
        self.seen = bytearray()
        self.reads = 0
        self._closed = threading.Event()

        def own_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if deaf:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        wanted = {**os.environ, "TERM": "xterm-256color", **(environment or {})}
        self.process = subprocess.Popen(
            [*command, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={name: value for name, value in wanted.items() if value is not None},
            preexec_fn=own_terminal,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._closed.is_set():
            if not select.select([self.master], [], [], 0.02)[0]:
                continue
            try:
                self.seen += os.read(self.master, 65536)
                self.reads += 1
            except OSError:
                return

    def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait until a condition holds; fail with what was seen last."""
        end = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < end, f"never came true: {what} {bytes(self.seen[-3000:])!r}"
            time.sleep(0.02)

    def shows(self, words: bytes) -> None:
        self.until(lambda: words in self.seen, repr(words))

    def keys(self, typed: bytes) -> None:
        os.write(self.master, typed)

    def mode(self) -> list[Any]:
        """Return the terminal's flags as they are now: input, output, control, local."""
        return termios.tcgetattr(self.master)[:4]

    def hang_up(self) -> None:
        """Close the other end, as a connection that drops does."""
        self._closed.set()
        self._reader.join()
        os.close(self.master)

    def ended(self) -> int:
        """Wait for the end, and return the status."""
        return self.process.wait(WAIT_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if not self._closed.is_set():
            with contextlib.suppress(OSError):
                self.hang_up()


@contextlib.contextmanager
def terminal(folder: Path, *words: str, **options: Any) -> Iterator[Terminal]:
    """Run ``gpucost`` on a terminal of its own; whatever happens, it ends with the block."""
    opened = Terminal(folder, words, **options)
    try:
        yield opened
    finally:
        opened.close()


def end_runner(folder: Path) -> None:
    """End the runner of a campaign, if there is one that is not this process, and wait for it."""
    from gpucost_tui.campaign.lock import holder

    runner = holder(folder) if folder.is_dir() else None
    if runner is None or runner.pid == os.getpid():
        return
    os.kill(runner.pid, signal.SIGTERM)
    end = time.monotonic() + WAIT_S
    while holder(folder) is not None and time.monotonic() < end:
        time.sleep(0.05)
    assert holder(folder) is None, "the runner did not end"


class Tmux:
    """A shell in a tmux server of its own, driven by keys and read as it shows itself."""

    def __init__(self, folder: Path, size: tuple[int, int] = (80, 24)) -> None:
        self._socket = folder / f"tmux-{uuid.uuid4().hex[:8]}"
        path = f"PATH={Path(GPUCOST).parent}{os.pathsep}{os.environ['PATH']}"
        self._call(
            *("-f", os.devnull, "new-session", "-d", "-x", str(size[0]), "-y", str(size[1])),
            *("-c", str(folder), "env", "PS1=ready> ", path, "sh"),
        )
        self.shows("ready>")

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *words], capture_output=True, text=True, check=True
        )
        return done.stdout

    def screen(self) -> str:
        return self._call("capture-pane", "-p")

    def keys(self, *names: str) -> None:
        self._call("send-keys", *names)

    def types(self, line: str) -> None:
        """Type a line into the shell."""
        self._call("send-keys", "-l", line)
        self.keys("Enter")

    def resize(self, columns: int, rows: int) -> None:
        self._call("resize-window", "-x", str(columns), "-y", str(rows))

    def shows(self, *words: str, seconds: float = WAIT_S) -> str:
        """Wait until the screen has all the words; return it."""
        end = time.monotonic() + seconds
        while not all(word in (shown := self.screen()) for word in words):
            assert time.monotonic() < end, f"never showed {words}:\n{shown}"
            time.sleep(0.1)
        return shown

    def close(self) -> None:
        subprocess.run(
            ["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, check=False
        )


@contextlib.contextmanager
def tmux(folder: Path, size: tuple[int, int] = (80, 24)) -> Iterator[Tmux]:
    """Open a shell in tmux; its server ends with the block."""
    opened = Tmux(folder, size)
    try:
        yield opened
    finally:
        opened.close()


HAS_TMUX = shutil.which("tmux") is not None
