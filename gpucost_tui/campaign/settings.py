"""Changes of a protocol's text by a program: ``--set quality.threshold=0.8``, comments kept."""

from __future__ import annotations

import tomllib
from copy import deepcopy
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gpucost_tui.errors import InputError, WrongUse
from gpucost_tui.protocol.lines import split_key
from gpucost_tui.protocol.load import Source
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
        return key.strip(), tomllib.loads(f"value = {raw.strip()}").popitem()[1]
    except (ValueError, RecursionError):
        return key.strip(), raw.strip()


class Document:
    """A protocol's text that can be changed.

    The change is made twice: in the text as it is written, and in its plain values. Where the text
    would not say the same (a new table amid dotted keys takes what follows into itself), the values
    are written instead, without the comments.

    Raises:
        InputError: The text can't be changed.
    """

    def __init__(self, source: Source) -> None:
        self.values: dict[str, Any] = tomllib.loads(source.text)
        try:
            self._written = tomlkit.parse(source.text)
        except TOMLKitError as error:  # stricter than tomllib in places
            raise InputError(
                f"this is not TOML: {clean(error, limit=200)}", where=source.name, fix="Correct it"
            ) from None

    def put(self, dotted: str, value: Any) -> None:
        """Set a key (``quality.threshold``, ``deliverables.0.name``).

        Tables that are missing are made; whether the protocol knows them is found when it is read.

        Raises:
            WrongUse: There is no such place.
        """
        try:
            *path, key = split_key(dotted)
            for document in (self.values, self._written):
                node = _inner(document, path)
                node[_index(node, key) if isinstance(node, list) else key] = deepcopy(value)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError, TOMLKitError):
            raise WrongUse(
                f"'{clean(dotted, limit=100)}' is no place in the protocol", fix=_FORM
            ) from None

    def drop(self, table: str, key: str) -> None:
        """Take a key out of a table, if it is there."""
        for document in (self.values, self._written):
            if key in document[table]:
                del document[table][key]

    def text(self) -> str:
        """Return the text as it now is."""
        text = tomlkit.dumps(self._written)
        try:
            same = tomllib.loads(text) == self.values
        except tomllib.TOMLDecodeError:
            same = False
        return text if same else tomlkit.dumps(self.values)


def _inner(node: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(node, list):
            node = node[_index(node, part)]
            continue
        if not isinstance(node, dict):
            raise TypeError(part)
        if part not in node:
            node[part] = {}
        node = node[part]
    return node


def _index(node: list[Any], part: str) -> int:
    if not part.isdecimal() or int(part) >= len(node):
        raise IndexError(part)
    return int(part)
