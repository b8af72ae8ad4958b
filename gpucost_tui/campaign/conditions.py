"""The conditions of exclusion causes: a small closed language over raw-table columns (R24).

``peak_device_used_bytes - peak_reserved_bytes > 1e9``, ``'throttled' in notes and round > 1``,
``load_s is None``. Written with Python's words; parsed with :mod:`ast`, never evaluated by Python:
comparisons, ``and``, ``or``, ``not``, ``+ - *``, ``/`` by a number, numbers, text, and the columns
of :data:`COLUMNS`.

A cause is external: what a pass achieved (its duration, its phases, its outcome, its verdict) and
which variant it is of can't be a cause, or the best passes could be kept under its name (R23, R26).
A comparison with an empty cell holds for nothing.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from gpucost_tui.campaign.schema import SCHEMA
from gpucost_tui.protocol.load import Source
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.protocol.problem import Problem
from gpucost_tui.text import clean, listed

#: Columns that a condition may name: circumstances of a pass, not what it achieved.
COLUMNS = (
    "host", "gpu", "device", "devices", "threads", "round", "position",
    "install_s", "download_s", "load_s", "compile_s", "warmup_s", "evaluate_s", "write_s",
    "peak_allocated_bytes", "peak_reserved_bytes", "peak_device_used_bytes", "peak_rss_bytes",
    "missing", "notes",
)  # fmt: skip

Kind = Literal["number", "text", "flag"]
Term = tuple[pl.Expr, Kind]

_ORDER: dict[type[ast.cmpop], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_EQUAL: dict[type[ast.cmpop], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_SUMS: dict[type[ast.operator], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


@dataclass(frozen=True)
class Condition:
    """A condition ready to be applied."""

    text: str
    columns: tuple[str, ...]
    expression: pl.Expr

    def met(self, table: pl.DataFrame) -> list[int]:
        """Return the numbers of the attempts whose rows meet it."""
        return table.filter(self.expression.fill_null(value=False))["attempt"].to_list()


def parse(text: str) -> Condition:
    """Read a condition.

    Raises:
        ValueError: In a sentence without its final stop: what is not understood.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in text: Python's, not ours
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("this is no condition") from None
    expression, kind = _term(tree.body)
    if kind != "flag":
        raise ValueError("this is a value and no condition: compare it with something")
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if not names:
        raise ValueError("a condition names at least one column")
    return Condition(text, tuple(dict.fromkeys(names)), expression)


def check_causes(protocol: Protocol, source: Source) -> Iterator[Problem]:
    """Yield what is wrong with the conditions of a protocol's exclusion causes."""
    for number, cause in enumerate(protocol.exclusion_causes):
        try:
            if cause.condition is not None:
                parse(cause.condition)
        except ValueError as error:
            yield Problem(
                source.where("exclusion_causes", number, "condition"),
                str(error),
                "Write it like peak_rss_bytes > 1e9, or leave it out: the cause then takes an "
                f"interval of time. Columns: {', '.join(COLUMNS)}",
            )


def _term(node: ast.expr) -> Term:
    if isinstance(node, ast.BoolOp):
        join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
        return functools.reduce(join, [_flag(value) for value in node.values]), "flag"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ~_flag(node.operand), "flag"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand), "number"
    if isinstance(node, ast.BinOp):
        return _computed(node), "number"
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        parts = [
            _compared(left, op, right)
            for left, op, right in zip(sides[:-1], node.ops, sides[1:], strict=True)
        ]
        return functools.reduce(operator.and_, parts), "flag"
    if isinstance(node, ast.Name):
        return _column(node.id)
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    raise ValueError(f"{_shown(node)} is not understood here")


def _column(name: str) -> Term:
    if name in COLUMNS:
        column = pl.col(name)
        return (
            (column, "text") if SCHEMA[name] == pl.String else (column.cast(pl.Float64), "number")
        )
    shown = clean(name, limit=60)
    if name in SCHEMA:
        raise ValueError(
            f"'{shown}' can't be an external cause: it is what a pass achieved, or which pass it is"
        )
    raise ValueError(f"there is no column '{shown}' for a condition")


def _constant(value: object) -> Term:
    if isinstance(value, str):
        return pl.lit(value), "text"
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return pl.lit(number), "number"
    raise ValueError(f"{clean(repr(value), limit=60)} is no number and no text")


def _computed(node: ast.BinOp) -> pl.Expr:
    if type(node.op) in _SUMS:
        return _SUMS[type(node.op)](_number(node.left), _number(node.right))
    if isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant) and node.right.value:
        return _number(node.left) / _number(node.right)
    raise ValueError(f"{_shown(node)} is not understood: + - *, and / by a number, are")


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> pl.Expr:
    if isinstance(op, ast.Is | ast.IsNot):
        if not (isinstance(right, ast.Constant) and right.value is None):
            raise ValueError("'is' goes with None: load_s is None")
        term = _term(left)[0]
        return term.is_null() if isinstance(op, ast.Is) else term.is_not_null()
    if isinstance(op, ast.In | ast.NotIn):
        found = _contained(left, right)
        return found if isinstance(op, ast.In) else ~found
    (one, kind), (other, other_kind) = _term(left), _term(right)
    if kind != other_kind or kind == "flag":
        raise ValueError(f"{_shown(left)} and {_shown(right)} can't be compared")
    compare = {**_EQUAL, **(_ORDER if kind == "number" else {})}.get(type(op))
    if compare is None:
        raise ValueError("text is compared with ==, != or in")
    return compare(one, other)


def _contained(left: ast.expr, right: ast.expr) -> pl.Expr:
    """``'throttled' in notes``, or ``host in ('pod-1', 'pod-2')``."""
    one, kind = _term(left)
    if isinstance(right, ast.Tuple | ast.List) and right.elts:
        terms = [_term(element) for element in right.elts]
        if all(other_kind == kind for _, other_kind in terms) and kind != "flag":
            return functools.reduce(operator.or_, [one == other for other, _ in terms])
    elif isinstance(left, ast.Constant) and isinstance(left.value, str) and left.value:
        other, other_kind = _term(right)
        if other_kind == "text" and isinstance(right, ast.Name):
            return other.str.contains(left.value, literal=True)
    raise ValueError("'in' looks for a text in a column, or for a column in a list of values")


def _flag(node: ast.expr) -> pl.Expr:
    expression, kind = _term(node)
    if kind != "flag":
        raise ValueError(f"{_shown(node)} is no condition by itself: compare it with something")
    return expression


def _number(node: ast.expr) -> pl.Expr:
    expression, kind = _term(node)
    if kind != "number":
        raise ValueError(f"{_shown(node)} is no number")
    return expression


def _shown(node: ast.expr) -> str:
    return listed([f"'{ast.unparse(node)}'"])
