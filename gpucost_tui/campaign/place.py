"""A new folder that appears complete, or not at all."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpucost_tui.campaign.lock import machine, started
from gpucost_tui.errors import WrongUse
from gpucost_tui.files import sync_path
from gpucost_tui.text import clean

_SCRATCH = re.compile(r"\.gpucost-new-([0-9a-f]{12})-(\d+)-([0-9a-f]{8})-\d+")
_numbers = itertools.count(1)  # an app may make several at once


@contextmanager
def new_folder(folder: Path, last: str) -> Iterator[Path]:
    """Give a scratch folder whose content becomes ``folder`` when the block ends without error.

    A folder that exists and is empty is filled, not replaced: it may be where a shell stands, or
    where a volume is mounted. After an error nothing is left, folders made on the way included.
    What a process left here that was killed is removed first.

    Args:
        folder: New, or empty.
        last: The file that makes the content whole; moved after all others.

    Raises:
        WrongUse: The folder is in use.
        OSError: The disk refuses.
    """
    target = Path(os.path.abspath(folder))  # noqa: PTH100 - not resolved: the name as given
    cut_off = sweep(target)
    if _taken(target):
        raise _in_use(folder, ": an earlier `gpucost new` was cut off in it" if cut_off else "")
    sweep(target.parent)
    filled = target.is_dir()
    made = [] if filled else _missing(target.parent)
    scratch = (target if filled else target.parent) / _scratch_name()
    moved: list[Path] = []
    try:
        for parent in reversed(made):
            parent.mkdir(exist_ok=True)
        scratch.mkdir()
        if filled and any(path != scratch for path in target.iterdir()):
            raise _in_use(folder)  # somebody else began at the same moment
        yield scratch
        _on_disk(scratch)
        if filled:
            for item in sorted(scratch.iterdir(), key=lambda path: path.name == last):
                if os.path.lexists(target / item.name):
                    raise _in_use(folder)
                moved.append(target / item.name)
                item.rename(target / item.name)
            scratch.rmdir()
        else:
            try:
                scratch.rename(target)
            except OSError:
                if _taken(target):  # somebody else was quicker
                    raise _in_use(folder) from None
                raise
        sync_path(target.parent)
    except BaseException:
        for path in (scratch, *moved):
            _remove(path)
        for parent in made:
            with suppress(OSError):  # somebody else has put something into it
                parent.rmdir()
        raise


def _on_disk(folder: Path) -> None:
    """Wait until all of it is on the disk: a seal that survives a power cut rests on it."""
    for path in (*folder.rglob("*"), folder):
        if not path.is_symlink():
            sync_path(path)


def _taken(target: Path) -> bool:
    return os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir()))


def _in_use(folder: Path, why: str = "") -> WrongUse:
    return WrongUse(
        f"'{clean(folder, limit=200)}' exists and is not empty{why}", fix="Choose another name"
    )


def sweep(folder: Path) -> bool:
    """Remove the scratch folders of processes of this machine that are gone; tell whether there
    were any. What another machine makes in a shared folder is not ours to judge."""
    found = False
    with suppress(OSError):
        for path in list(folder.iterdir()):
            named = _SCRATCH.fullmatch(path.name)
            if named and named[1] == machine() and _start_of(int(named[2])) != named[3]:
                _remove(path)
                found = True
    return found


def _scratch_name() -> str:
    me = os.getpid()
    return f".gpucost-new-{machine()}-{me}-{_start_of(me)}-{next(_numbers)}"


def _start_of(pid: int) -> str | None:
    """Return a short name of a live process's start: a number that is used again has another."""
    start = started(pid)
    return None if start is None else hashlib.sha256(start.encode()).hexdigest()[:8]


def _missing(folder: Path) -> list[Path]:
    """Return the folders that are not there, the innermost first."""
    return [path for path in (folder, *folder.parents) if not os.path.lexists(path)]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
