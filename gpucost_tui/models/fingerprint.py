"""Fingerprints of a model's files, and the check that they are still what was sealed (R8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpucost_tui.errors import Differs, InputError
from gpucost_tui.files import canonical_json, sha256_bytes, sha256_file
from gpucost_tui.models import layout
from gpucost_tui.watch import NOBODY, Watch

#: path -> (size in bytes, modification time in nanoseconds) of files that were found unchanged
Seen = dict[str, tuple[int, int]]

_READING = "Reading the model's files"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that matters; ``path`` is relative to the model's folder, with ``/``."""

    path: str
    bytes: int
    sha256: str


def fingerprint(files: Iterable[ModelFile]) -> str:
    """Return a SHA-256 over the sorted (path, sha256) pairs: the same files, the same value."""
    pairs = sorted([file.path, file.sha256] for file in files)
    return sha256_bytes(canonical_json(pairs))


def hash_files(folder: Path, paths: Iterable[str], watch: Watch = NOBODY) -> tuple[ModelFile, ...]:
    """Hash files of a folder.

    Raises:
        InputError: One can't be read.
    """
    paths = sorted(paths)
    watch.stage(_READING, _size(folder, paths), "bytes")
    return tuple(_hash(folder, path, watch) for path in paths)


def _size(folder: Path, paths: Iterable[str]) -> int | None:
    try:
        return sum((folder / path).stat().st_size for path in paths)
    except OSError:
        return None  # hashing that file says it


def _hash(folder: Path, path: str, watch: Watch) -> ModelFile:
    try:
        size = (folder / path).stat().st_size
        return ModelFile(path, size, sha256_file(folder / path, watch.add))
    except OSError as error:
        place = str(folder / path)
        raise InputError(f"can't be read ({error.strerror})", where=place) from error


def verify_unchanged(
    folder: Path,
    files: Iterable[ModelFile],
    seen: Mapping[str, tuple[int, int]] | None = None,
    watch: Watch = NOBODY,
) -> Seen:
    """Check that a model still is what was sealed.

    Args:
        folder: The model's folder.
        files: The sealed files.
        seen: What an earlier call returned: files with the same size and modification time are
            not hashed again.
        watch: Is told of the bytes read.

    Returns:
        Size and modification time of every file, for the next call.

    Raises:
        Differs: A file was edited, removed or added; the sentence names it.
    """
    files = tuple(files)
    now: Seen = {}
    watch.stage(_READING, sum(file.bytes for file in files), "bytes")
    for file in files:
        path = folder / file.path
        try:
            state = path.stat()
        except FileNotFoundError:
            raise _differs(path, "is gone, though the campaign was sealed with it") from None
        except OSError as error:
            raise InputError(f"can't be read ({error.strerror})", where=str(path)) from error
        now[file.path] = (state.st_size, state.st_mtime_ns)
        if seen is not None and seen.get(file.path) == now[file.path]:
            watch.add(file.bytes)
            continue
        if state.st_size != file.bytes or _hash(folder, file.path, watch).sha256 != file.sha256:
            raise _differs(path, "is no longer the file that was sealed")
    _refuse_additions(folder, {file.path for file in files})
    return now


def _refuse_additions(folder: Path, sealed: set[str]) -> None:
    present = layout.names(folder)
    code = any(path.endswith(".py") for path in sealed)
    for name in layout.relevant(present, pickle=layout.uses_pickle(present), code=code):
        if name not in sealed:
            raise _differs(folder / name, "was added after the seal")


def _differs(path: Path, what: str) -> Differs:
    fix = "Put the sealed file back, or make a new campaign with 'gpucost new --from'"
    return Differs(f"the model's file {what}", where=str(path), fix=fix)
