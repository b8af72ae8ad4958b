"""A new folder that appears complete, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpucost_tui.errors import WrongUse
from gpucost_tui.text import clean


@contextmanager
def new_folder(folder: Path, last: str) -> Iterator[Path]:
    """Give a scratch folder whose content becomes ``folder`` when the block ends without error.

    A folder that exists and is empty is filled, not replaced: it may be where a shell stands, or
    where a volume is mounted. After an error nothing is left, folders made on the way included.

    Args:
        folder: New, or empty.
        last: The file that makes the content whole; moved after all others.

    Raises:
        WrongUse: The folder is in use.
        OSError: The disk refuses.
    """
    target = Path(os.path.abspath(folder))  # noqa: PTH100 - not resolved: the name as given
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        raise WrongUse(
            f"'{clean(folder, limit=200)}' exists and is not empty", fix="Choose another name"
        )
    filled = target.is_dir()
    made = [] if filled else _missing(target.parent)
    scratch = (target if filled else target.parent) / f".gpucost-new-{os.getpid()}"
    moved: list[Path] = []
    try:
        for parent in reversed(made):
            parent.mkdir(exist_ok=True)
        _remove(scratch)  # left by a process that was killed and had our number
        scratch.mkdir()
        yield scratch
        if filled:
            for item in sorted(scratch.iterdir(), key=lambda path: path.name == last):
                moved.append(target / item.name)
                item.rename(target / item.name)
            scratch.rmdir()
        else:
            scratch.rename(target)
    except BaseException:
        for path in (scratch, *moved):
            _remove(path)
        for parent in made:
            with suppress(OSError):  # somebody else has put something into it
                parent.rmdir()
        raise


def _missing(folder: Path) -> list[Path]:
    """Return the folders that are not there, the innermost first."""
    return [path for path in (folder, *folder.parents) if not os.path.lexists(path)]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
