"""What a configuration is rented with: pack, committed amount, window (R32 to R36)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from gpucost_tui.analysis.plan_file import Configuration
from gpucost_tui.errors import InputError, WrongUse
from gpucost_tui.pricing.amounts import exact
from gpucost_tui.pricing.calculator import cells_for, empty_cell, quote
from gpucost_tui.pricing.catalogue import PACK_DAYS, Catalogue, PackPrice
from gpucost_tui.pricing.window import covering_days, hours_of
from gpucost_tui.text import clean, money

Basis = Literal["measured", "assumed"]
#: A reason of the closed list that stands in a rental's way, with its sentence.
Problem = tuple[Literal["missing", "price", "window"], str]


@dataclass(frozen=True, slots=True)
class Commitment:
    """One rental: ``lots`` lots of a GPU for one pack.

    Equal GPU, lots, days, provider and price are one rental, unless the user's own records of it
    (``reference``) say that there are several.
    """

    gpu: str
    lots: int
    days: int
    usd: Decimal
    pack: dict[str, Any]
    reference: str | None = None

    @property
    def key(self) -> tuple[str, int, int, str, Decimal]:
        return self.gpu, self.lots, self.days, self.pack["provider"], self.usd


@dataclass(frozen=True, slots=True)
class Rental:
    """How a configuration is rented, and what stands in its way.

    ``commitments`` holds its own rental, empty where there is no price; ``inherited`` those that it
    takes over (a parent campaign's, R21). ``window_s`` is the exact window in seconds, ``None``
    where it is not known. ``problems`` maps reasons to sentences.
    """

    commitments: tuple[Commitment, ...]
    window_s: Fraction | None
    window_basis: Basis
    problems: tuple[Problem, ...] = ()
    inherited: tuple[Commitment, ...] = ()

    @property
    def committed_usd(self) -> Decimal | None:
        """Return the whole committed amount, each rental once; ``None`` without a price."""
        return total((*self.commitments, *self.inherited)) if self.commitments else None

    @property
    def window_hours(self) -> float | None:
        return None if self.window_s is None else hours_of(self.window_s)


def total(commitments: Sequence[Commitment]) -> Decimal:
    """Return the sum over distinct rentals: see :class:`Commitment` (R36)."""
    references: dict[tuple[str, int, int, str, Decimal], set[str]] = {}
    for one in commitments:
        known = references.setdefault(one.key, set())
        if one.reference is not None:
            known.add(one.reference)
    with exact():
        return sum((key[-1] * max(len(named), 1) for key, named in references.items()), Decimal(0))


def commitment(row: PackPrice, lots: int) -> Commitment:
    """Price a number of lots of one priced cell.

    Raises:
        NoPrice: The cell is empty.
    """
    priced = quote(row, lots)
    pack = {
        "provider": row.provider,
        "gpu": row.gpu,
        "days": row.days,
        "lots": lots,
        "gpus": priced.gpus,
        "usd_per_lot": money(row.usd_per_lot or Decimal(0)),
        "catalogue": row.catalogue,
        "catalogue_date": row.catalogue_date.isoformat(),
    }
    return Commitment(row.gpu, lots, row.days, priced.committed_usd, pack)


def rent(name: str, wanted: Configuration, basis: Basis, catalogue: Catalogue) -> Rental:
    """Find the pack that a configuration of a plan is rented with.

    With ``days`` it is that pack (the cheapest of its cells); without, the cheapest priced pack
    that covers the window. Nothing is invented: what is missing is a problem of the rental.

    Args:
        name: The configuration's name, for sentences.
        wanted: What the plan says of it.
        basis: The plan's window basis, where the configuration has none of its own.
        catalogue: The price lists in force.

    Raises:
        InputError: The catalogue knows no such GPU or provider.
    """
    seconds = None if wanted.window_hours is None else wanted.window_hours * 3600
    basis = wanted.window_basis or basis
    problems: list[Problem] = []
    if seconds is None:
        problems.append(("window", "the window is not known"))
    elif basis == "assumed":
        problems.append(("window", "the window is only assumed: it plans, it does not decide"))
    covering = () if seconds is None else covering_days(seconds)
    days: Sequence[int] = covering if wanted.days is None else (wanted.days,)
    if seconds is not None:
        problems += cover_problem(seconds, wanted.days, covering)
    found = _cheapest(name, wanted, days, catalogue)
    if found is None and days:
        problems.append(("price", _no_price(name, wanted, days, catalogue)))
    own = () if found is None else (found,)
    return Rental(own, seconds, basis, tuple(problems))


def cover_problem(seconds: Fraction, days: int | None, covering: Sequence[int]) -> list[Problem]:
    """Say where a pack (or every pack) is shorter than the window."""
    hours = f"{hours_of(seconds):g}"
    if days is not None and days not in covering:
        over = f"{hours_of(seconds - days * 86_400):g}"
        return [("window", f"a {days}-day pack does not cover {hours} h: {over} h are over")]
    if not covering:
        return [("window", f"no pack covers {hours} h: the longest lasts {PACK_DAYS[-1]} days")]
    return []


def _cells(name: str, wanted: Configuration, days: int, catalogue: Catalogue) -> list[PackPrice]:
    try:
        return cells_for(catalogue, wanted.gpu, days, wanted.provider)
    except WrongUse as error:
        where = f"configuration '{clean(name, limit=80)}'"
        raise InputError(error.what, where=where, fix=error.fix) from None


def _cheapest(
    name: str, wanted: Configuration, days: Sequence[int], catalogue: Catalogue
) -> Commitment | None:
    # An unknown GPU is told even where no pack is looked for.
    cells = [c for d in (days or PACK_DAYS[:1]) for c in _cells(name, wanted, d, catalogue)]
    offers = [
        commitment(cell, wanted.lots) for cell in cells if days and cell.usd_per_lot is not None
    ]
    return min(offers, key=lambda c: (c.usd, c.days, c.pack["provider"]), default=None)


def _no_price(name: str, wanted: Configuration, days: Sequence[int], catalogue: Catalogue) -> str:
    told = []
    for length in days:
        cells = _cells(name, wanted, length, catalogue)
        if cells:
            told += [empty_cell(cell) for cell in cells]
        else:
            told.append(f"no {length}-day pack of {clean(wanted.gpu)} in the catalogue")
    return f"the catalogue has no price for it ({'; '.join(told)})"
