"""Edits variants in a protocol's text so that nothing else moves: comments, order, spelling.

Whole tables are put in and cut out by lines; tomlkit sets keys and arrays. (Given a whole table,
tomlkit puts it behind the comment of the next one, and takes that comment along when the table
goes.) Every result is read again and compared with what was meant: a text in a form that these
functions do not understand is refused, never spoiled.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import SingleKey

from gpucost_tui.errors import InputError
from gpucost_tui.protocol.lines import Lines

Values = Mapping[str, Any]

_HEADER = re.compile(
    r"""(\s*\[\s*(?:variants|"variants"|'variants')\s*\.\s*)("[^"]*"|'[^']*'|[\w-]+)(\s*\].*)""",
    re.DOTALL,
)


def add(text: str, name: str, changes: Values, series: Collection[str]) -> str:
    """Return the text with one more variant, the last of each of its series."""

    def expected(document: dict[str, Any]) -> None:
        document["variants"][name] = dict(changes)
        _join(document, name, series)

    lines = text.splitlines(keepends=True)
    place = _behind_the_last(text, lines)
    if place is None:  # variants without tables of their own: { … } or a.b = c
        edited = _by_tomlkit(text, lambda d: d["variants"].update({name: _inline(changes)}))
    else:
        block = [f"{key} = {_spelled(value)}\n" for key, value in changes.items()]
        if lines and not lines[place - 1].endswith("\n"):
            lines[place - 1] += "\n"
        lines[place:place] = ["\n", f"[variants.{_key(name)}]\n", *block]
        edited = "".join(lines)
    edited = _by_tomlkit(edited, lambda document: _join(document, name, series))
    return _checked(text, edited, expected)


def change(text: str, name: str, changes: Values) -> str:
    """Return the text with other settings of a variant; keys that stay keep their line."""

    def expected(document: dict[str, Any]) -> None:
        document["variants"][name] = dict(changes)

    def edit(document: Any) -> None:
        table = document["variants"][name]
        for key in [key for key in table if key not in changes]:
            del table[key]
        for key, value in changes.items():
            if key in table and not _same(table[key], value):
                table[key] = value

    edited = _by_tomlkit(text, edit)
    known = tomllib.loads(edited)["variants"].get(name, {})
    fresh = {key: value for key, value in changes.items() if key not in known}
    lines = edited.splitlines(keepends=True)
    span = _span(edited, lines, name)
    if span is None:
        edited = _by_tomlkit(edited, lambda document: document["variants"][name].update(fresh))
    elif fresh:
        if not lines[span[1] - 1].endswith("\n"):
            lines[span[1] - 1] += "\n"
        lines[span[1] : span[1]] = [f"{k} = {_spelled(v)}\n" for k, v in fresh.items()]
        edited = "".join(lines)
    return _checked(text, edited, expected)


def rename(text: str, name: str, new: str) -> str:
    """Return the text with another name for a variant, wherever it is named."""

    def renamed(document: Any) -> None:
        for one in document["series"]:
            for number, variant in enumerate(one["variants"]):
                if variant == name:
                    one["variants"][number] = new
        for table, key in (("reference", "variant"), ("quality", "tolerance_variant")):
            if document.get(table, {}).get(key) == name:
                document[table][key] = new

    def expected(document: dict[str, Any]) -> None:
        variants = document["variants"]
        document["variants"] = {new if key == name else key: variants[key] for key in variants}
        renamed(document)

    lines = text.splitlines(keepends=True)
    span = _span(text, lines, name)
    header = _HEADER.fullmatch(lines[span[0]]) if span else None
    if span is None or header is None:
        raise _unknown_form()
    lines[span[0]] = f"{header[1]}{_key(new)}{header[3]}"
    return _checked(text, _by_tomlkit("".join(lines), renamed), expected)


def remove(text: str, name: str) -> str:
    """Return the text without a variant; a comment before its table stays."""

    def left(document: Any) -> None:
        for one in document["series"]:
            if name in one["variants"]:
                one["variants"].remove(name)

    def expected(document: dict[str, Any]) -> None:
        del document["variants"][name]
        left(document)

    lines = text.splitlines(keepends=True)
    span = _span(text, lines, name)
    if span is None:
        edited = _by_tomlkit(text, lambda document: document["variants"].__delitem__(name))
    else:
        first, end = span
        if end < len(lines) and not lines[end].strip():
            end += 1
        edited = "".join(lines[:first] + lines[end:])
    return _checked(text, _by_tomlkit(edited, left), expected)


def set_series(text: str, name: str, series: Collection[str]) -> str:
    """Return the text with a variant in exactly these series; one that it joins has it last."""

    def joined(document: Any) -> None:
        for one in document["series"]:
            if one["name"] not in series and name in one["variants"]:
                one["variants"].remove(name)
        _join(document, name, series)

    return _checked(text, _by_tomlkit(text, joined), joined)


def _join(document: Any, name: str, series: Collection[str]) -> None:
    for one in document["series"]:
        if one["name"] in series and name not in one["variants"]:
            one["variants"].append(name)


def _checked(before: str, after: str, expected: Callable[[dict[str, Any]], None]) -> str:
    """Return the new text if it means what it should.

    Raises:
        InputError: It does not: the text has a form that is not understood here.
    """
    wanted = tomllib.loads(before)
    expected(wanted)
    try:
        found = tomllib.loads(after)
    except ValueError:
        raise _unknown_form() from None
    if not _same(found, wanted):
        raise _unknown_form()
    return after


def _same(one: Any, other: Any) -> bool:
    """Compare values and their types: 1, 1.0 and true are three things in TOML."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return isinstance(one, float) == isinstance(other, float) and bool(one == other)


def _by_tomlkit(text: str, edit: Callable[[Any], object]) -> str:
    try:
        document = tomlkit.parse(text)
        edit(document)
        return tomlkit.dumps(document)
    except (TOMLKitError, KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise _unknown_form() from None


def _unknown_form() -> InputError:
    return InputError(
        "its variants are written in a form that can't be changed from here",
        where="protocol.toml",
        fix="Edit the file: give each variant a table [variants.NAME], each series [[series]]",
    )


def _span(text: str, lines: list[str], name: str) -> tuple[int, int] | None:
    """Return a variant's own lines (from 0, end excluded), or none without a table of its own.

    A comment after a blank line belongs to what follows the table.
    """
    scanned = Lines(text)
    line = scanned.line_of(("variants", name))
    if line is None or not scanned.is_table(("variants", name)):
        return None
    first = line - 1
    end = first + 1
    for number in range(first + 1, len(lines) + 1):
        if number < len(lines) and not lines[number].lstrip().startswith("["):
            continue
        # A bracket inside an array or a string of several lines: what stands before is unfinished.
        if number == len(lines) or _is_toml("".join(lines[:number])):
            end = number
            break
    own = end
    while own > first + 1 and _is_trivia(lines[own - 1]):
        own -= 1
    while own < end and lines[own].strip():
        own += 1
    return first, own


def _behind_the_last(text: str, lines: list[str]) -> int | None:
    spans = [_span(text, lines, name) for name in tomllib.loads(text)["variants"]]
    return max((span[1] for span in spans if span), default=None)


def _is_trivia(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


def _inline(changes: Values) -> Any:
    table = tomlkit.inline_table()
    table.update(changes)
    return table


def _spelled(value: Any) -> str:
    return str(tomlkit.item(value).as_string())


def _key(name: str) -> str:
    return str(SingleKey(name).as_string())
