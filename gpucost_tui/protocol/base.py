"""What all tables of a protocol share: frozen, closed, strict about types."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from gpucost_tui.text import money


class Frozen(BaseModel):
    """A table of the protocol: unknown keys are refused, values can't be changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _amount(value: Any) -> Decimal:
    """Money is text or a whole number in the file: a binary float can't hold 0.10."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError('an amount in quotes is expected, such as "500.00"')
    text = str(value)
    if not text.isascii() or any(c not in "0123456789." for c in text):
        raise ValueError('an amount of US dollars is expected, such as "500.00"')
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise ValueError('an amount of US dollars is expected, such as "500.00"') from None
    if amount != amount.quantize(Decimal("0.01")):
        raise ValueError("an amount has at most two decimals")
    return amount


Count = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
#: A name or a short answer on one line.
Word = Annotated[str, Field(strict=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]
#: Prose: may have several lines.
Prose = Annotated[str, Field(strict=True, min_length=1, max_length=20_000)]
#: A name that becomes part of a file name.
Slug = Annotated[
    str, Field(strict=True, min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
]
Usd = Annotated[Decimal, BeforeValidator(_amount), PlainSerializer(money, return_type=str)]
