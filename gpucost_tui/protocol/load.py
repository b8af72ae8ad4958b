"""Reads a protocol from TOML; every mistake is located (file, line, table, key)."""

from __future__ import annotations

import re
import tomllib
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from gpucost_tui import resources
from gpucost_tui.errors import InputError
from gpucost_tui.protocol.lines import Lines
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.protocol.problem import Problem, ProtocolError
from gpucost_tui.protocol.words import expected, real_path
from gpucost_tui.text import clean

_LARGEST = 1_000_000  # bytes; a protocol is some hundred lines of text
_AT_END = " (at end of document)"
_MANY_DIGITS = re.compile(r"[0-9_]{4000,}")  # int() refuses them without telling where
_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")


class Source:
    """A protocol's text with the lines of its keys, to locate problems found later too.

    Args:
        text: TOML, without a byte order mark and with ``\\n`` alone at the ends of lines.
        name: How the text is called in sentences, such as ``protocol.toml``.
        lines: False where a person has no file with these lines.
    """

    def __init__(self, text: str, name: str, *, lines: bool = True) -> None:
        self.text = text
        self.name = name
        self._numbered = lines

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.text)

    def where(self, *path: str | int) -> str:
        """Return ``protocol.toml, line 12, [series.1] factor`` for a path of keys."""
        line = self._lines.line_of(path) if self._numbered else None
        place = f"{self.name}, line {line}" if line else self.name
        return f"{place}, {self._spelled(path)}" if path else place

    def _spelled(self, path: tuple[str | int, ...]) -> str:
        if self._lines.is_table(path):
            return clean(f"[{'.'.join(map(str, path))}]", limit=200)
        keys = [index for index, part in enumerate(path) if isinstance(part, str)]
        last = keys[-1] if keys else 0
        table = ".".join(map(str, path[:last]))
        key = ".".join(map(str, path[last:]))
        return clean(f"[{table}] {key}" if table else key, limit=200)


def template_names() -> list[str]:
    """Return the names of the templates that ship with the program."""
    return sorted(path.stem for path in resources.folder("protocols").glob("*.toml"))


def find(name_or_path: str) -> Path:
    """Return the file of a template's name or of a path.

    Raises:
        InputError: It is neither.
    """
    names = template_names()
    try:
        if Path(name_or_path).is_file():
            return Path(name_or_path)
    except OSError as error:  # a name too long, a folder that may not be entered
        raise _unreadable(name_or_path, error) from None
    if name_or_path in names:
        return resources.file("protocols", f"{name_or_path}.toml")
    raise InputError(
        f"'{clean(name_or_path, limit=100)}' is neither a template nor a file",
        fix=f"Name a TOML file or one of the templates: {', '.join(names)}",
    )


def read_source(path: Path) -> Source:
    """Read a protocol's text.

    Raises:
        InputError: It can't be read, is no UTF-8, or far too large for a protocol.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise InputError(
                "larger than 1 MB: this is no protocol", where=path.name, fix="Name a TOML file"
            )
        return Source(data.decode("utf-8-sig").replace("\r\n", "\n"), path.name)
    except OSError as error:
        raise _unreadable(path.name, error) from None
    except UnicodeDecodeError as error:
        # The byte order mark, where there is one, is no part of what is counted here.
        line = bytes(error.object[: error.start]).count(b"\n") + 1
        raise InputError(
            f"byte 0x{error.object[error.start]:02x} is not UTF-8",
            where=f"{path.name}, line {line}",
            fix="Save the file as UTF-8",
        ) from None


def _unreadable(name: str, error: OSError) -> InputError:
    return InputError(
        f"the protocol can't be read ({error.strerror})",
        where=clean(name, limit=200),
        fix="Check its name and permissions",
    )


def parse(source: Source) -> Protocol:
    """Turn text into a protocol.

    Raises:
        ProtocolError: With every located problem.
    """
    try:
        raw = tomllib.loads(source.text)
    except RecursionError:
        deep = Problem(source.name, "its values are nested too deeply", "Flatten them")
        raise ProtocolError([deep]) from None
    except ValueError as error:  # TOMLDecodeError, and int() of thousands of digits
        raise ProtocolError([_syntax(source, str(error))]) from None
    try:
        return Protocol.model_validate(raw)
    except ValidationError as error:
        # Not include_context=False: the contexts hold the limits that a sentence names.
        found = [_problem(source, raw, e) for e in error.errors(include_url=False)]
        raise ProtocolError(found) from None


def load(path: Path) -> Protocol:
    """Read a protocol from a file.

    Raises:
        InputError: The file can't be read.
        ProtocolError: It is no protocol.
    """
    return parse(read_source(path))


def _syntax(source: Source, message: str) -> Problem:
    where, fix = source.name, "Correct that line"
    if place := _PLACE.search(message):
        where = f"{source.name}, line {place[1]}, column {place[2]}"
    elif message.endswith(_AT_END):
        where = f"{source.name}, line {source.text.rstrip().count(chr(10)) + 1}"
    elif digits := _MANY_DIGITS.search(source.text):
        line = source.text.count("\n", 0, digits.start()) + 1
        return Problem(f"{source.name}, line {line}", "a number has too many digits", fix)
    what = clean(_PLACE.sub("", message).removesuffix(_AT_END), limit=200)
    return Problem(where, f"this is not TOML: {what}", fix)


def _problem(source: Source, raw: dict[str, object], error: object) -> Problem:
    """Say a pydantic error in the program's words."""
    assert isinstance(error, dict)  # noqa: S101 - pydantic's ErrorDetails
    path = real_path(raw, error["loc"])
    what, fix = expected(error, path)
    # What is missing has no line: its table has one.
    return Problem(source.where(*(path[:-1] if error["type"] == "missing" else path)), what, fix)
