"""Reads the plan that ``decide TABLE --plan PLAN.toml`` decides by: a table without a campaign.

The form is shown by ``data/decision_plan_template.toml``. Numbers are read as the decimals that
were written: a window of 72.0 hours is 72 hours exactly, and no amount passes through a float.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidationError, field_validator

from gpucost_tui.errors import InputError
from gpucost_tui.pricing.spending import Spending, spending_from_tables
from gpucost_tui.protocol.base import Frozen, Prose, Usd, Word
from gpucost_tui.protocol.load import Source
from gpucost_tui.text import clean

_LARGEST = 1_000_000  # bytes; a plan is some dozen lines of text
_MOST_HOURS = 1_000_000
_FORM = "data/decision_plan_template.toml shows the form"


def _decimal(value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("a number is expected")  # noqa: TRY004 - pydantic asks for it
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("a finite number is expected")
    return Fraction(str(value))


def _hours(value: Any) -> Fraction:
    hours = _decimal(value)
    if not 0 < hours <= _MOST_HOURS:
        raise ValueError("hours above 0, at most 1,000,000, are expected")
    return hours


def _positive(value: Any) -> float:
    number = float(_decimal(value))
    if number <= 0:
        raise ValueError("a number above 0 is expected")
    return number


Hours = Annotated[Fraction, PlainValidator(_hours)]
Decimals = Annotated[float, PlainValidator(lambda value: float(_decimal(value)))]
Positive = Annotated[float, PlainValidator(_positive)]


class Configuration(Frozen):
    """Variant × hardware × pack, as a plan names it.

    Without ``days`` the cheapest priced pack that covers the window is taken. ``window_basis``
    stands for the plan's where one configuration's window is measured and another's is not.
    """

    gpu: Word
    lots: Annotated[int, Field(strict=True, ge=1, le=10_000)]
    days: Literal[3, 7, 30] | None = None
    window_hours: Hours | None = None
    window_basis: Literal["measured", "assumed"] | None = None
    provider: Word | None = None


class Plan(Frozen):
    """What is decided by, fixed before the durations are read (R1, R38)."""

    name: Prose | None = None
    why: Prose | None = None
    question: Prose | None = None
    deliverables: Annotated[tuple[Word, ...], Field(min_length=1)]
    planned_rounds: Annotated[int, Field(strict=True, ge=1, le=1000)] | None = None
    deadline_hours: Hours
    budget_usd: Usd | None = None
    window_basis: Literal["measured", "assumed"] = "assumed"
    quality_threshold: Decimals | None = None
    settled_rule: Literal["auto", "range", "interval"] = "auto"
    settled_factor: Positive = 1.5
    configurations: Annotated[dict[Word, Configuration], Field(min_length=1)]
    spending: Annotated[tuple[Spending, ...], PlainValidator(tuple)] = ()

    @field_validator("budget_usd", mode="before")
    @classmethod
    def _no_float(cls, value: Any) -> Any:
        if isinstance(value, Decimal) and (not value.is_finite() or value < 0):
            raise ValueError('an amount of US dollars is expected, such as "500.00"')
        if isinstance(value, Decimal) and value != value.quantize(Decimal("0.01")):
            raise ValueError("an amount has at most two decimals")
        return value

    @field_validator("deliverables")
    @classmethod
    def _distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("a deliverable is named twice: each counts once (R38)")
        return value


def read_plan(path: Path) -> Plan:
    """Read a plan from a TOML file.

    Raises:
        InputError: The file can't be read, or a key, value or table is wrong; it is located.
    """
    return parse_plan(_text(path), path.name)


def parse_plan(text: str, name: str) -> Plan:
    """Turn the text of a plan into a plan; ``name`` is the file's, for sentences.

    Raises:
        InputError: See :func:`read_plan`.
    """
    source = Source(text.replace("\r\n", "\n"), clean(name))
    try:
        raw = tomllib.loads(source.text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {clean(error)}", where=source.name, fix=_FORM) from None
    except (RecursionError, ArithmeticError, ValueError) as error:
        what = f"a value can't be read ({clean(type(error).__name__)})"
        raise InputError(what, where=source.name, fix=_FORM) from None
    return plan_from(raw, source)


def plan_from(raw: Mapping[str, Any], source: Source | None = None) -> Plan:
    """Validate the tables of a plan, from TOML or from anywhere else.

    Raises:
        InputError: With the first mistake, and the number of others.
    """
    where = source or Source("", "plan")
    values = dict(raw)
    if "spending" in values:
        values["spending"] = spending_from_tables(values["spending"], where.name)
    try:
        return Plan.model_validate(values)
    except ValidationError as error:
        first, *rest = error.errors()
        more = f" ({len(rest)} more)" if rest else ""
        raise _located(first, where, more) from None


def _located(error: Any, source: Source, more: str) -> InputError:
    path = [part for part in error["loc"] if part != "[key]"]
    kind = error["type"]
    if kind == "extra_forbidden":
        what = "this key is unknown here"
    elif kind == "missing":
        what = f"'{clean(path[-1])}' is missing"
        path = path[:-1]
    elif kind == "value_error":
        what = str(error["ctx"]["error"])
    elif kind == "literal_error":
        what = f"expected {error['ctx']['expected']}, found {_shown(error)}"
    else:
        message = error["msg"]
        what = f"{message[0].lower()}{message[1:]}, found {_shown(error)}"
    return InputError(clean(what) + more, where=clean(source.where(*path)), fix=_FORM)


def _shown(error: Any) -> str:
    return clean(error["input"], limit=60)


def _text(path: Path) -> str:
    where = clean(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", where=where, fix="Check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        what = f"the plan can't be read: {clean(reason)}"
        raise InputError(what, where=where, fix="Check path and permission") from None
    if len(data) > _LARGEST:
        raise InputError("larger than 1 MB: this is no plan", where=where, fix=_FORM)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"not UTF-8 at byte {error.start}"
        raise InputError(what, where=where, fix="Save it as UTF-8") from None
