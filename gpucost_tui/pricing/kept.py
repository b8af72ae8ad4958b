"""The user's own price lists, kept in the user's data folder between runs."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from gpucost_tui.errors import EnvironmentLacks, WrongUse
from gpucost_tui.text import clean, listed

_NAME = "gpucost-tui"


class Kept(NamedTuple):
    """Where a list was put, and whether one of that name was there before."""

    path: Path
    replaced: bool


def data_folder() -> Path:
    """Return the user's data folder: ``GPUCOST_DATA_HOME``, else where the system keeps such."""
    named = os.environ.get("GPUCOST_DATA_HOME")
    if named:
        return Path(named)
    system = sys.platform
    if system == "linux":
        # What platformdirs answers here, without the 10 ms that its import costs every price.
        base = os.environ.get("XDG_DATA_HOME", "")
        return (Path(base) if base.strip() else Path("~/.local/share").expanduser()) / _NAME
    import platformdirs

    return platformdirs.user_data_path(_NAME, appauthor=False)


def kept_files() -> list[Path]:
    """Return the kept price lists, by name. No folder: none."""
    folder = data_folder() / "catalogues"
    try:
        return sorted(path for path in folder.glob("*.csv") if not path.name.startswith("."))
    except OSError as error:
        raise _lacking(folder, error) from None


def keep(data: bytes, name: str) -> Kept:
    """Put a checked price list into the data folder, in one step, under its own name.

    Raises:
        EnvironmentLacks: The folder can't be made or written.
    """
    from gpucost_tui.files import write_atomic

    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).stem).strip(".-")[:80] or "catalogue"
    path = data_folder() / "catalogues" / f"{stem}.csv"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replaced = path.exists()
        write_atomic(path, data)
    except OSError as error:
        raise _lacking(path, error) from None
    return Kept(path, replaced)


def forget(name: str) -> Path:
    """Remove a kept price list, named as ``catalogue list`` shows it.

    Raises:
        WrongUse: There is none of that name.
    """
    by_name = {path.name: path for path in kept_files()}
    path = by_name.get(name)
    if path is None:
        there = listed(list(by_name)) if by_name else "none"
        raise WrongUse(f"no catalogue '{clean(name, limit=60)}' is kept", fix=f"Kept: {there}")
    try:
        path.unlink()
    except OSError as error:
        raise _lacking(path, error) from None
    return path


def _lacking(path: Path, error: OSError) -> EnvironmentLacks:
    return EnvironmentLacks(
        f"the folder for your catalogues can't be used: {clean(error.strerror)}",
        where=clean(path),
        fix="Name another folder in GPUCOST_DATA_HOME",
    )
