"""Room on a disk, and whether a folder can be written."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path


def free_bytes(folder: Path) -> tuple[int | None, str | None]:
    """Return the bytes that this user may still write where ``folder`` is or would be made.

    Returns:
        ``(bytes, None)``, or ``(None, reason)``.
    """
    place = _nearest(folder)
    try:
        return shutil.disk_usage(place).free, None
    except OSError as error:
        return None, f"the free space of '{place}' can't be read ({error.strerror})"


def is_writable(folder: Path) -> tuple[bool, str | None]:
    """Try to write where ``folder`` is or would be made: rights alone don't tell.

    Returns:
        ``(True, None)``, or ``(False, reason)``: no rights, a read-only disk, a full one, a quota.
    """
    place = _nearest(folder)
    if not place.is_dir():
        return False, f"'{place}' is a file, not a folder"
    try:
        with tempfile.TemporaryFile(dir=place) as scratch:
            scratch.write(b"0")
            scratch.flush()
    except OSError as error:
        return False, f"'{place}' can't be written ({error.strerror})"
    return True, None


def _nearest(folder: Path) -> Path:
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return place
