"""Finds the folders that ship with the program, wherever it is installed."""

from __future__ import annotations

from pathlib import Path

from gpucost_tui.errors import EnvironmentLacks

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Return the folder ``data`` or ``protocols``.

    A wheel carries a copy inside the package (``_data``, ``_protocols``); a checkout or an
    editable install has the originals beside it.

    Raises:
        EnvironmentLacks: Neither is there: the installation is damaged.
    """
    for candidate in (_PACKAGE / f"_{name}", _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise EnvironmentLacks(
        f"the program's own folder '{name}' is missing from this installation",
        where=str(_PACKAGE),
        fix="Install gpucost-tui again",
    )


def file(name: str, *parts: str) -> Path:
    """Return the path of a shipped file, such as ``file("data", "pack-prices.csv")``."""
    return folder(name).joinpath(*parts)
