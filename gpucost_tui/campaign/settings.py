"""Changes of a protocol given on the command line: ``--set quality.threshold=0.8``."""

from __future__ import annotations

from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gpucost_tui.errors import WrongUse
from gpucost_tui.protocol.lines import split_key
from gpucost_tui.text import clean

_FORM = "Write TABLE.KEY=VALUE, such as quality.threshold=0.8 or deliverables.0.name=letters"


def parse_setting(text: str) -> tuple[str, Any]:
    """Turn ``quality.threshold=0.8`` into a dotted key and a TOML value; bare words are text.

    Raises:
        WrongUse: There is no ``=``, or no key before it.
    """
    key, equals, raw = text.partition("=")
    if not equals or not key.strip():
        raise WrongUse(f"--set '{clean(text, limit=100)}' is no setting", fix=_FORM)
    try:
        return key.strip(), tomlkit.value(raw.strip())
    except (TOMLKitError, ValueError):
        return key.strip(), raw.strip()


def put(document: Any, dotted: str, value: Any) -> None:
    """Set a dotted key (``quality.threshold``, ``deliverables.0.name``) in a TOML document.

    Tables that are missing are made; whether the protocol knows them is found when it is read.

    Raises:
        WrongUse: There is no such place.
    """
    try:
        *path, key = split_key(dotted)
        node = document
        for part in path:
            node = _inner(node, part)
        node[_index(node, key) if isinstance(node, list) else key] = value
    except (KeyError, IndexError, ValueError, TypeError, AttributeError, TOMLKitError):
        raise WrongUse(
            f"'{clean(dotted, limit=100)}' is no place in the protocol", fix=_FORM
        ) from None


def _inner(node: Any, part: str) -> Any:
    if isinstance(node, list):
        return node[_index(node, part)]
    if not isinstance(node, dict):
        raise TypeError(part)
    if part not in node:
        node[part] = tomlkit.table()
    return node[part]


def _index(node: list[Any], part: str) -> int:
    if not part.isdecimal() or int(part) >= len(node):
        raise IndexError(part)
    return int(part)
