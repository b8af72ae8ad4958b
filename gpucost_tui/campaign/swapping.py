"""Replaces a file that somebody else may be saving at the same moment: what they save is not lost.

Between a look at a file and the replacing of it, another program's save would vanish. So the two
files change places in one step of the kernel, and what came out is looked at: where it is not what
was read, it goes back. Where a file system can't do that, the look is as late as it can be.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import signal
import time
from pathlib import Path

from gpucost_tui.files import sha256_bytes, sha256_file, sync_path

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # renameat2(2)
_F_SETSIG = 10  # fcntl(2)
#: What a kernel or a file system answers that knows no exchange.
_UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)
_PATIENCE_S, _LOOK_S = 1.0, 0.002


def replaced(path: Path, data: bytes, sha256: str) -> bool:
    """Put a new content in the place of the one that was read; its mode stays.

    Args:
        path: The file, no link.
        data: The whole new content.
        sha256: Of the content that was read.

    Returns:
        False where the file has another content by now: that one is left.

    Raises:
        OSError: It can't be read or written.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        scratch.write_bytes(data)
        shutil.copymode(path, scratch)
        sync_path(scratch)
        if sha256_file(path) != sha256:
            return False
        if not exchange(scratch, path):
            scratch.replace(path)
        else:
            _let_go(scratch)
            if sha256_file(scratch) != sha256:
                _put_back(scratch, path, sha256_bytes(data))
                return False
        sync_path(path.parent)
        return True
    finally:
        scratch.unlink(missing_ok=True)


def exchange(one: Path, other: Path) -> bool:
    """Let two files change places in one step; False where that is not known here."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    paths = os.fsencode(one), os.fsencode(other)
    if rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNKNOWN:
        return False
    raise OSError(number, os.strerror(number))


def _let_go(path: Path) -> None:
    """Wait until nobody else has a file open: whoever opened it in its old place may write it."""
    end = time.monotonic() + _PATIENCE_S
    with path.open("rb") as stream:
        while time.monotonic() < end:
            try:
                # Told of by a signal that does nothing; the usual one ends a process.
                fcntl.fcntl(stream, _F_SETSIG, signal.SIGURG)
                fcntl.fcntl(stream, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            except BlockingIOError:
                time.sleep(_LOOK_S)
                continue
            except (OSError, AttributeError):
                return  # no leases here, or the file is somebody else's
            with contextlib.suppress(OSError):
                fcntl.fcntl(stream, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            return


def _put_back(scratch: Path, path: Path, ours: str) -> None:
    """Put what somebody saved back, unless they have saved once more: the latest stays."""
    there = ours
    while True:
        held = sha256_file(scratch)
        exchange(scratch, path)
        if sha256_file(scratch) == there:
            return
        there = held
