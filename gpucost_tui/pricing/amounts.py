"""Numbers as people write them: strict about their spelling, exact in their value."""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

from gpucost_tui.errors import WrongUse
from gpucost_tui.text import clean

_WHOLE = re.compile(r"[0-9]{1,20}")
_PLAIN = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,20})?")
_CENTS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,2})?")

#: What the sentences call a decimal that :func:`plain` accepts.
PLAIN_FORM = "digits with at most one point, below 1,000,000,000, such as 110.00"


@contextmanager
def exact() -> Iterator[None]:
    """Compute with enough digits that no product of prices, lots and hours is rounded."""
    with decimal.localcontext() as context:
        context.prec = 90
        yield


def whole(value: int | str, name: str, low: int, high: int, option: str | None = None) -> int:
    """Return a whole number given by hand, ASCII digits only.

    Args:
        value: As given. ``1e3``, ``NaN``, ``+5``, `` 5``, digits of other scripts are refused.
        name: What it counts, for the sentence.
        low: Smallest value.
        high: Greatest value.
        option: The option it came with, to locate it.

    Raises:
        WrongUse: It is no such number.
    """
    written = str(value)
    if not isinstance(value, bool) and _WHOLE.fullmatch(written) and low <= int(written) <= high:
        return int(written)
    where = f"{option or name} '{clean(written, limit=40)}'"
    raise WrongUse(f"{name} is a whole number from {low:,} to {high:,}", where=where)


def plain(text: str) -> Decimal | None:
    """Return a decimal that is not negative and plainly written, or None where it is neither."""
    return Decimal(text) if _PLAIN.fullmatch(text) else None


def usd(value: int | str, option: str | None = None) -> Decimal:
    """Return an amount of US dollars given by hand: at most two decimals, not negative.

    Raises:
        WrongUse: It is no such amount.
    """
    written = str(value)
    if not isinstance(value, bool) and _CENTS.fullmatch(written):
        return Decimal(written)
    raise WrongUse(
        "an amount of US dollars is expected, not negative, with at most two decimals",
        where=f"{option or 'usd'} '{clean(written, limit=40)}'",
        fix="Write it like 12.50",
    )
