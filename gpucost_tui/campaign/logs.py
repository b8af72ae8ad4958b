"""Logs that can't fill a disk and give nothing away."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

_LIMIT = 2_000_000  # bytes of one file; the file before it is kept too
_LINE = 65_536  # a longer line is written in pieces


class BoundedLog:
    """Takes a process's output; keeps at least the last 2 MB and at most twice that.

    Args:
        path: The file; the one before it ends in ``.1``.
        hide: Applied to every line before it is written.
        limit: Bytes of one file.
    """

    def __init__(
        self, path: Path, hide: Callable[[str], str] = lambda text: text, limit: int = _LIMIT
    ) -> None:
        self.path = path
        self._hide = hide
        self._limit = limit
        self._older = path.with_name(path.name + ".1")

    def drain(self, stream: IO[bytes]) -> None:
        """Read a stream to its end. A log that can't be written must not stop the reading."""
        rest = b""
        while chunk := _read_some(stream):
            # Whole lines, so that what is to be hidden is not cut in two.
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            if len(rest) > _LINE:
                whole, newline, rest = whole + newline + rest, b"", b""
            self._take(whole + newline)
        self._take(rest)

    def _take(self, data: bytes) -> None:
        text = self._hide(data.decode("utf-8", "replace"))
        with contextlib.suppress(OSError):
            self._write(text.encode("utf-8", "replace"))

    def _write(self, data: bytes) -> None:
        if not data:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size + len(data) > self._limit:
            self.path.replace(self._older)
        with self.path.open("ab") as log:
            log.write(data[-self._limit :])

    def tail(self, size: int = 2000) -> str:
        """Return the last bytes as text, for a failure's note."""
        try:
            return self.path.read_bytes()[-size:].decode("utf-8", "replace")
        except OSError:
            return ""


def _read_some(stream: IO[bytes]) -> bytes:
    try:
        return stream.read1(65536)  # type: ignore[attr-defined,no-any-return]
    except (OSError, ValueError):
        return b""
