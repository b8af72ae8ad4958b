"""Finds the line of a TOML file on which a key stands; tomllib itself tells only syntax errors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence

_HEADER = re.compile(r"^\s*(\[\[?)(.+?)(\]\]?)\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=""")
_FENCES = ('"""', "'''")

Location = tuple[str | int, ...]


def line_index(text: str) -> dict[Location, int]:
    """Return the line (from 1) of every table header and key, by its path.

    Array-of-tables items carry their number: ``("series", 0, "factor")``. Keys inside inline
    tables and arrays are found by their nearest enclosing key.
    """
    found: dict[Location, int] = {}
    arrays: dict[Location, int] = {}
    table: Location = ()
    fence: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if fence is not None:
            fence = None if fence in line else fence
            continue
        if header := _HEADER.match(line):
            table = _resolve(_split(header[2]), arrays, header[1] == "[[")
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault((*table, *_split(key[1])), number)
            fence = next((f for f in _FENCES if line.count(f) == 1), None)
    return found


def line_of(index: dict[Location, int], path: Sequence[str | int]) -> int | None:
    """Return the line of a path, or of the nearest table around it."""
    for length in range(len(path), 0, -1):
        if (line := index.get(tuple(path[:length]))) is not None:
            return line
    return None


def _split(dotted: str) -> list[str]:
    """Split ``variants."batch 1"`` as TOML does: let the parser itself do it."""
    try:
        value = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return [dotted.strip()]
    parts: list[str] = []
    node: object = value
    while isinstance(node, dict):
        name, node = next(iter(node.items()))
        parts.append(name)
    return parts


def _resolve(parts: list[str], arrays: dict[Location, int], is_array: bool) -> Location:
    path: Location = ()
    for depth, part in enumerate(parts):
        path = (*path, part)
        if depth == len(parts) - 1 and is_array:
            arrays[path] = arrays.get(path, -1) + 1
        if path in arrays:
            path = (*path, arrays[path])
    return path
