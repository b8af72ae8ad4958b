"""Says what was expected in a protocol, in the words of TOML and not of the library."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, get_args

from pydantic import BaseModel

from gpucost_tui.protocol.base import PROSE, SLUG, WORD
from gpucost_tui.protocol.execution import DEVICE
from gpucost_tui.protocol.model import SHA256, Protocol
from gpucost_tui.text import clean

_TYPES = {
    "string_type": "text in quotes is expected",
    "int_type": "a whole number is expected",
    "float_type": "a number is expected",
    "bool_type": "true or false is expected",
    "dict_type": "a table is expected",
    "model_type": "a table is expected",
    "tuple_type": "a list in [ ] is expected",
    "finite_number": "a finite number is expected",
}
_LIMITS = {
    "greater_than": ("gt", "more than {} is expected"),
    "greater_than_equal": ("ge", "at least {} is expected"),
    "less_than": ("lt", "less than {} is expected"),
    "less_than_equal": ("le", "at most {} is expected"),
    "string_too_long": ("max_length", "at most {} characters are expected"),
}
_PATTERNS = {
    SLUG: "a name of letters, digits, '.', '_' and '-' is expected, a letter or digit first",
    PROSE: "text that is not blank is expected",
    WORD: "text on one line is expected",
    DEVICE: "auto, cpu, cuda or cuda:N is expected",
    SHA256: "64 hexadecimal digits are expected",
}


def expected(error: Mapping[str, Any], path: Sequence[str | int]) -> tuple[str, str]:
    """Return what is wrong and what to do, for one error of pydantic.

    Args:
        error: An entry of ``ValidationError.errors()``.
        path: The keys of the file that it is about.
    """
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"'{clean(path[-1], limit=60)}' is unknown here", _known(path)
    if kind == "missing":
        return f"'{path[-1]}' is missing", "Add it; the templates show its form"
    if kind == "value_error":
        return clean(context.get("error")), "Correct it"
    if kind == "string_too_short":
        return "it is empty", "Fill it in"
    if kind == "too_short":
        return "it is empty, and at least one value is expected", "Fill it in"
    return f"{_form(error)}, found {shown(error['input'])}", "Correct it"


def _form(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _TYPES:
        return _TYPES[kind]
    if kind in _LIMITS:
        key, sentence = _LIMITS[kind]
        return sentence.format(_number(context[key]))
    if kind == "literal_error":
        return f"{context['expected']} is expected"
    if kind == "string_pattern_mismatch" and context["pattern"] in _PATTERNS:
        return _PATTERNS[context["pattern"]]
    message = str(error["msg"])
    return clean(message[:1].lower() + message[1:])


def _number(limit: float) -> str:
    return f"{limit:,}" if isinstance(limit, int) else f"{limit:,g}"


def shown(value: object) -> str:
    """Return a value of a TOML file as a sentence shows it, cleaned and short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{clean(value, limit=60)}'"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and abs(value) >= 10**18:
        return "a number of many digits"  # str() refuses thousands of them
    return clean(value if isinstance(value, int | float | date | datetime | time) else "something")


def real_path(raw: Any, location: Sequence[str | int]) -> list[str | int]:
    """Keep the parts of a pydantic location that are keys of the file (it adds ``[key]``)."""
    path: list[str | int] = []
    node = raw
    for part in location:
        if part == "[key]" and not (isinstance(node, dict) and part in node):
            continue
        path.append(part)
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            break
    return path


def _known(path: Sequence[str | int]) -> str:
    """Return what to do about an unknown key: the nearest known one, or all that there are."""
    *table, key = path
    known = _keys(Protocol, table)
    near = difflib.get_close_matches(str(key), known, n=1)
    if near:
        return f"Did you mean '{near[0]}'? Else remove it"
    return f"Remove it; known here: {', '.join(known)}" if known else "Remove it"


def _keys(model: type[BaseModel], table: Sequence[str | int]) -> list[str]:
    for part in table:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        inner = next(_models(field.annotation), None) if field else None
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
