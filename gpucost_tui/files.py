"""Writing so that nothing is half-written, and hashing what was written."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_CHUNK = 1 << 20


def canonical_json(value: Any) -> bytes:
    """Return the one JSON spelling of a value: sorted keys, UTF-8, no spaces, no NaN.

    The same value gives the same bytes on every machine, so its SHA-256 can be its identity.
    """
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    ).encode("utf-8")


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path, told: Callable[[int], object] | None = None) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal.

    ``told`` gets the length of every piece that was read, a MiB at most.
    """
    found = hashlib.sha256()
    for chunk in read_chunks(path):
        found.update(chunk)
        if told is not None:
            told(len(chunk))
    return found.hexdigest()


def write_atomic(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replace a file's content in one step: a reader sees the old bytes or the new, never half.

    Args:
        path: The file; its folder exists.
        data: The whole new content.
        sync: Wait until the content and the folder's entry are on the disk. Views that are
            rebuilt anyway (progress, tables) go without.
    """
    with replacing(path, sync=sync) as scratch:
        scratch.write_bytes(data)


@contextlib.contextmanager
def replacing(path: Path, *, sync: bool = True):  # type: ignore[no-untyped-def]
    """Give a scratch path beside ``path``; on leaving without error it takes ``path``'s place."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield scratch
        if sync:
            sync_path(scratch)
        scratch.replace(path)
        if sync:
            sync_path(path.parent)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def sync_path(path: Path) -> None:
    """Wait until a file's content or a folder's entries are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_chunks(path: Path) -> Iterable[bytes]:
    """Yield a file's bytes in pieces of one MiB."""
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk
