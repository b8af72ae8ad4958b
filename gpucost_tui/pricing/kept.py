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
_LONGEST = 160  # bytes of a name; file systems end at 255, and a scratch file needs some of them


class Kept(NamedTuple):
    """Where a list was put, and whether one of that name was there before."""

    path: Path
    replaced: bool


def data_folder() -> Path:
    """Return the user's data folder: ``GPUCOST_DATA_HOME``, else where the system keeps such.

    Raises:
        EnvironmentLacks: Neither is known: no ``HOME``, and no account with one.
    """
    named = os.environ.get("GPUCOST_DATA_HOME")
    if named:
        return Path(named)
    system = sys.platform
    if system == "linux":
        # What platformdirs answers here, without the 10 ms that its import costs every price.
        base = os.environ.get("XDG_DATA_HOME", "")
        if base.strip():
            return Path(base) / _NAME
        try:
            return Path("~/.local/share").expanduser() / _NAME
        except RuntimeError:
            raise EnvironmentLacks(
                "there is no home folder to keep catalogues in",
                fix="Name a folder in GPUCOST_DATA_HOME",
            ) from None
    import platformdirs

    return platformdirs.user_data_path(_NAME, appauthor=False)


def kept_files() -> list[Path]:
    """Return the kept price lists, by name. No home or no folder: none.

    Raises:
        EnvironmentLacks: There is a folder, and it can't be read: its prices would be left out.
    """
    try:
        folder = data_folder() / "catalogues"
    except EnvironmentLacks:
        return []
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise _lacking(folder, error) from None
    return [path for path in paths if path.name.endswith(".csv") and path.name[0] != "."]


def keep(data: bytes, name: str) -> Kept:
    """Put a checked price list into the data folder, in one step, under its own name.

    Raises:
        EnvironmentLacks: The folder can't be made or written.
    """
    from gpucost_tui.files import write_atomic

    path = data_folder() / "catalogues" / f"{_stem(name)}.csv"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replaced = path.exists()
        write_atomic(path, data)
    except (OSError, ValueError) as error:
        raise _lacking(path, error) from None
    return Kept(path, replaced)


def _stem(name: str) -> str:
    """Letters of every script stay, so that two names in one of them don't become the same."""
    safe = re.sub(r"[^\w.-]+", "-", os.path.splitext(name)[0]).strip(".-")  # noqa: PTH122
    return safe.encode()[:_LONGEST].decode(errors="ignore").rstrip(".-") or "catalogue"


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


def _lacking(path: Path, error: OSError | ValueError) -> EnvironmentLacks:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return EnvironmentLacks(
        f"the folder for your catalogues can't be used: {clean(reason)}",
        where=clean(path),
        fix="Name another folder in GPUCOST_DATA_HOME",
    )
