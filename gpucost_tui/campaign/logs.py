"""Logs that can't fill a disk."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import IO

_LIMIT = 2_000_000  # bytes of one file; the file before it is kept too


class BoundedLog:
    """Takes a process's output; keeps at least the last 2 MB and at most twice that."""

    def __init__(self, path: Path, limit: int = _LIMIT) -> None:
        self.path = path
        self._limit = limit
        self._older = path.with_name(path.name + ".1")

    def drain(self, stream: IO[bytes]) -> None:
        """Read a stream to its end. A log that can't be written must not stop the reading."""
        while chunk := _read_some(stream):
            with contextlib.suppress(OSError):
                self._write(chunk)

    def _write(self, chunk: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size + len(chunk) > self._limit:
            self.path.replace(self._older)
        with self.path.open("ab") as log:
            log.write(chunk[-self._limit :])

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
