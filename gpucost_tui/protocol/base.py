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
        raise ValueError(  # noqa: TRY004 - pydantic locates ValueErrors alone
            'an amount in quotes is expected, such as "500.00"'
        )
    if isinstance(value, int) and not 0 <= value < 10**18:
        raise ValueError("an amount of US dollars from 0 up is expected")
    text = str(value)
    if not text.isascii() or any(c not in "0123456789." for c in text):
        raise ValueError('an amount of US dollars is expected, such as "500.00"')
    try:
        amount = Decimal(text)
        rounded = amount.quantize(Decimal("0.01"))
    except InvalidOperation:  # "1.2.3", or more digits than decimals carry
        raise ValueError('an amount of US dollars is expected, such as "500.00"') from None
    if amount != rounded:
        raise ValueError("an amount has at most two decimals")
    return rounded


#: Patterns of names, which :mod:`gpucost_tui.protocol.words` puts into words.
SLUG = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
WORD = r"^[^\x00-\x1f]+$"
PROSE = r"\S"

Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
#: A name or a short answer on one line.
Word = Annotated[str, Field(strict=True, min_length=1, max_length=200, pattern=WORD)]
#: Prose: may have several lines.
Prose = Annotated[str, Field(strict=True, min_length=1, max_length=20_000, pattern=PROSE)]
#: A name that becomes part of a file name.
Slug = Annotated[str, Field(strict=True, min_length=1, max_length=64, pattern=SLUG)]
Usd = Annotated[Decimal, BeforeValidator(_amount), PlainSerializer(money, return_type=str)]
