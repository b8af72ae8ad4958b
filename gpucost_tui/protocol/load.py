"""Reads a protocol from TOML; every mistake is located (file, line, table, key)."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gpucost_tui import resources
from gpucost_tui.errors import InputError
from gpucost_tui.protocol.lines import line_index, line_of
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.protocol.problem import Problem, ProtocolError
from gpucost_tui.text import clean

_LARGEST = 1_000_000  # bytes; a protocol is some hundred lines of text


class Source:
    """A protocol's text with the lines of its keys, to locate problems found later too."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self._index = line_index(text)

    def where(self, *path: str | int) -> str:
        """Return ``protocol.toml, line 12, [series.1] factor`` for a path of keys."""
        line = line_of(self._index, path)
        place = f"{self.name}, line {line}" if line else self.name
        return f"{place}, {_spelled(path)}" if path else place


def template_names() -> list[str]:
    """Return the names of the templates that ship with the program."""
    return sorted(path.stem for path in resources.folder("protocols").glob("*.toml"))


def find(name_or_path: str) -> Path:
    """Return the file of a template's name or of a path.

    Raises:
        InputError: It is neither.
    """
    path = Path(name_or_path)
    if path.is_file():
        return path
    template = resources.folder("protocols") / f"{name_or_path}.toml"
    if "/" not in name_or_path and template.is_file():
        return template
    raise InputError(
        f"'{clean(name_or_path, limit=100)}' is neither a template nor a file",
        fix=f"Name a TOML file or one of the templates: {', '.join(template_names())}",
    )


def read_source(path: Path) -> Source:
    """Read a protocol's text.

    Raises:
        InputError: It can't be read, is no UTF-8, or far too large for a protocol.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(
                "larger than 1 MB: this is no protocol", where=path.name, fix="Name a TOML file"
            )
        data = path.read_bytes()
        return Source(data.decode("utf-8-sig").replace("\r\n", "\n"), path.name)
    except OSError as error:
        raise InputError(
            f"the protocol can't be read ({error.strerror})",
            where=path.name,
            fix="Check its name and permissions",
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 at byte {error.start}", where=path.name, fix="Save it as UTF-8"
        ) from None


def parse(source: Source) -> Protocol:
    """Turn text into a protocol.

    Raises:
        ProtocolError: With every located problem.
    """
    try:
        raw = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise ProtocolError([_syntax(source, str(error))]) from None
    except RecursionError:
        raise ProtocolError(
            [Problem(source.name, "nested too deeply", "Flatten its tables")]
        ) from None
    try:
        return Protocol.model_validate(raw)
    except ValidationError as error:
        raise ProtocolError([_problem(source, raw, e) for e in error.errors()]) from None


def load(path: Path) -> Protocol:
    """Read a protocol from a file.

    Raises:
        InputError: The file can't be read.
        ProtocolError: It is no protocol.
    """
    return parse(read_source(path))


def _syntax(source: Source, message: str) -> Problem:
    return Problem(source.name, f"not TOML: {clean(message)}", "Correct that line")


def _problem(source: Source, raw: dict[str, Any], error: Any) -> Problem:
    """Say a pydantic error in the program's words."""
    path = _real_path(raw, error["loc"])
    where = source.where(*path)
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return Problem(where, "this key is unknown here", "Correct its name or remove it")
    if kind == "missing":
        what = f"'{path[-1]}' is missing"
        return Problem(source.where(*path[:-1]), what, "Add it; the templates show its form")
    if kind == "value_error":
        return Problem(where, clean(str(context.get("error"))), "Correct it")
    if kind == "literal_error":
        return Problem(where, f"expected {context['expected']}, found {_shown(error)}", "Correct it")
    message = error["msg"][0].lower() + error["msg"][1:]
    return Problem(where, f"{message}, found {_shown(error)}", "Correct it")


def _shown(error: Any) -> str:
    return clean(repr(error["input"]), limit=60)


def _real_path(raw: Any, loc: Sequence[str | int]) -> list[str | int]:
    """Keep the parts of a pydantic location that are keys of the file (it adds '[key]' and types)."""
    path: list[str | int] = []
    node = raw
    for part in loc:
        if isinstance(part, str) and part == "[key]":
            continue
        path.append(part)
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            break
    return path


def _spelled(path: Sequence[str | int]) -> str:
    *table, key = path
    if not table:
        return f"[{key}]"
    return f"[{'.'.join(str(part) for part in table)}] {key}"
