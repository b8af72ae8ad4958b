"""A terminal that goes away, and signals: the app leaves, restores the terminal, never spins.

Textual handles neither SIGHUP nor SIGTERM, and its input thread spins when the terminal is gone.
An orderly exit can hang there, so a watchdog ends the process two seconds later in any case.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable
from typing import Any

WATCHDOG_S = 2.0
#: Leave the alternate screen, show the cursor, stop mouse, paste and focus reports, plain keys.
_RESTORE = (
    b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?1004l"
    b"\x1b[<u\x1b[0m\r\n"
)


class Leaving:
    """Installed once the app runs on a real terminal."""

    def __init__(self, leave: Callable[[int], None]) -> None:
        self._leave = leave
        self._status: int | None = None
        self._terminal = _attributes()
        # Textual talks over standard error's terminal when it can; either end shows a hang-up.
        self._poll = select.poll()
        self._poll.register(sys.__stdin__.fileno() if sys.__stdin__ else 0, 0)

    def install(self) -> None:
        loop = asyncio.get_running_loop()
        for number, status in ((signal.SIGHUP, 143), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
            loop.add_signal_handler(number, self.begin, status)

    def begin(self, status: int) -> None:
        """Leave with a status; the watchdog makes sure of it."""
        if self._status is not None:
            return
        self._status = status
        watchdog = threading.Timer(WATCHDOG_S, self._end)
        watchdog.daemon = True
        watchdog.start()
        self._leave(status)

    def look(self) -> None:
        """Leave when the terminal has hung up without a signal (SIGHUP can be lost or ignored)."""
        if any(event & (select.POLLHUP | select.POLLERR) for _, event in self._poll.poll(0)):
            self.begin(143)

    def _end(self) -> None:
        restoring = threading.Thread(target=self._restore, daemon=True)
        restoring.start()
        restoring.join(0.5)  # writing to a stopped terminal blocks
        os._exit(self._status or 143)

    def _restore(self) -> None:
        if self._terminal is None:
            return
        descriptor, attributes = self._terminal
        with contextlib.suppress(OSError, termios.error):  # it is gone: nothing to restore
            termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
            os.write(descriptor, _RESTORE)


def _attributes() -> tuple[int, list[Any]] | None:
    stream = sys.__stdin__
    if stream is None:
        return None
    try:
        return stream.fileno(), termios.tcgetattr(stream.fileno())
    except (OSError, ValueError, termios.error):
        return None
