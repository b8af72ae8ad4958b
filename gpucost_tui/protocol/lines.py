"""Finds the line of a TOML file on which a key stands; tomllib itself tells only syntax errors.

The text has been read by tomllib before, so this scanner checks nothing: it follows keys, tables
and brackets, and knows enough of strings and comments not to be misled by what is inside them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<gap>[ \t\r]+|\#[^\n]*)
  | (?P<end>\n)
  | (?P<text>\"{3}(?:\\.|[^\\])*?\"{3}\"{0,2} | '{3}.*?'{3}'{0,2}
           | "(?:\\.|[^"\\\n])*" | '[^'\n]*')
  | (?P<mark>[\[\]{}=,.])
  | (?P<bare>[^\s\[\]{}=,.\#"']+)
    """,
    re.VERBOSE | re.DOTALL,
)

Location = tuple[str | int, ...]


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


class _LostError(Exception):
    """The text is not what tomllib accepts."""


class Lines:
    """The lines (from 1) of a TOML text's tables, keys and array items, by their path.

    Items carry their number, from 0: ``("series", 0, "factor")``.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[Location, int] = {}
        self._tables: set[Location] = set()
        self._arrays: dict[Location, int] = {}
        self._tokens = _tokens(text)
        self._next = 0
        try:
            self._document()
        except (_LostError, IndexError, RecursionError):
            return  # what was found until here still locates

    def line_of(self, path: Sequence[str | int]) -> int | None:
        """Return the line of a path, or of the nearest table around it."""
        for length in range(len(path), 0, -1):
            if (line := self._lines.get(tuple(path[:length]))) is not None:
                return line
        return None

    def is_table(self, path: Sequence[str | int]) -> bool:
        """Tell whether a path has a ``[header]`` of its own."""
        return tuple(path) in self._tables

    def _document(self) -> None:
        table: Location = ()
        while (token := self._tokens[self._next]).kind != "stop":
            if token.kind == "end":
                self._next += 1
            elif token.text == "[":
                table = self._header(token.line)
            else:
                self._pair(table)

    def _header(self, line: int) -> Location:
        """Read ``[a.b]`` or ``[[a.b]]`` and return the path of what it opens."""
        self._take("[")
        is_array = self._tokens[self._next].text == "["
        if is_array:
            self._take("[")
        path: Location = ()
        parts = self._key()
        for depth, part in enumerate(parts, 1):
            path = (*path, part)
            self._note(path, line)
            self._tables.add(path)
            if depth == len(parts) and is_array:
                self._arrays[path] = self._arrays.get(path, -1) + 1
            if path in self._arrays:
                path = (*path, self._arrays[path])
        self._note(path, line)
        self._tables.add(path)
        for _ in range(2 if is_array else 1):
            self._take("]")
        return path

    def _pair(self, table: Location) -> None:
        line = self._tokens[self._next].line
        path = table
        for part in self._key():
            path = (*path, part)
            self._note(path, line)
        self._take("=")
        self._value(path)

    def _value(self, path: Location) -> None:
        token = self._tokens[self._next]
        if token.text == "[":
            self._items(path)
        elif token.text == "{":
            self._inline(path)
        else:
            while (token := self._tokens[self._next]).kind not in ("end", "stop"):
                if token.kind == "mark" and token.text in ",]}":
                    break
                self._next += 1

    def _items(self, path: Location) -> None:
        self._take("[")
        number = 0
        while (token := self._inside()).text != "]":
            self._note((*path, number), token.line)
            self._value((*path, number))
            number += 1
            if self._inside().text != "]":
                self._take(",")  # anything else is no array, and would not move on
        self._take("]")

    def _inline(self, path: Location) -> None:
        self._take("{")
        while self._inside().text != "}":
            self._pair(path)
            if self._inside().text == ",":
                self._take(",")
        self._take("}")

    def _inside(self) -> _Token:
        """Return the next token inside brackets, where line ends mean nothing."""
        while self._tokens[self._next].kind == "end":
            self._next += 1
        if self._tokens[self._next].kind == "stop":
            raise _LostError
        return self._tokens[self._next]

    def _key(self) -> list[str]:
        parts = [self._part()]
        while self._tokens[self._next].text == ".":
            self._take(".")
            parts.append(self._part())
        return parts

    def _part(self) -> str:
        token = self._tokens[self._next]
        if token.kind not in ("bare", "text"):
            raise _LostError
        self._next += 1
        if token.kind == "bare":
            return token.text
        try:
            return str(tomllib.loads(f"key = {token.text}")["key"])
        except tomllib.TOMLDecodeError:
            raise _LostError from None

    def _take(self, mark: str) -> None:
        if self._tokens[self._next].text != mark:
            raise _LostError
        self._next += 1

    def _note(self, path: Location, line: int) -> None:
        self._lines.setdefault(path, line)


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    line, position = 1, 0
    while match := _TOKEN.match(text, position):
        if match.lastgroup != "gap":
            found.append(_Token(str(match.lastgroup), match.group(), line))
        line += match.group().count("\n")
        position = match.end()
    found.append(_Token("stop", "", line))
    return found


def split_key(dotted: str) -> list[str]:
    """Split ``variants."batch 1".batch_size`` into its parts, as TOML does.

    Raises:
        ValueError: It is no key of TOML.
    """
    if "\n" in dotted or "=" in dotted:
        raise ValueError(dotted)
    node: object = tomllib.loads(f"{dotted} = 0")
    parts: list[str] = []
    while isinstance(node, dict):
        if len(node) != 1:
            raise ValueError(dotted)
        name, node = next(iter(node.items()))
        parts.append(name)
    return parts
