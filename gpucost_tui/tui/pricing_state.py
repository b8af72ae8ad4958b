"""What is asked of the price lists, and the rows that answer it. Light: no polars, no pydantic."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gpucost_tui.text import count, money
from gpucost_tui.tui.table_view import Column

if TYPE_CHECKING:
    from gpucost_tui.pricing.catalogue import Catalogue, HourlyOffer, PackPrice

VIEWS = ("packs", "hourly", "window")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: filters (None: any), lots of each pack, packs in sequence."""

    view: str = "packs"
    gpu: str | None = None
    days: int | None = None
    provider: str | None = None
    lots: int = 1
    periods: int = 1

    @property
    def filtered(self) -> bool:
        return (self.gpu, self.days, self.provider) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: a pack or an offer, and its cells in the order of the view's columns."""

    price: PackPrice | HourlyOffer
    cells: tuple[Any, ...]


def rounded_hours(seconds: Fraction) -> str:
    """Return seconds as hours with two decimals; what is less than an hour keeps six."""
    from gpucost_tui.pricing.window import hours_text

    return hours_text(seconds if seconds < 3600 else round(seconds / 36) * Fraction(36))


@dataclass(frozen=True, slots=True)
class Fit:
    """How a pack stands to a window. ``spare`` is negative where it does not cover it."""

    spare: Fraction  # seconds

    @property
    def covers(self) -> bool:
        return self.spare >= 0

    @property
    def words(self) -> str:
        hours = rounded_hours(abs(self.spare))
        return f"✓ {hours} h to spare" if self.covers else f"✗ {hours} h short"


def fit_of(row: PackPrice, seconds: Fraction, periods: int) -> Fit:
    """Return by how many seconds a pack (or several in sequence) covers a window, exactly."""
    return Fit(row.days * periods * 86_400 - seconds)


def committed_usd(row: PackPrice, asked: Asked) -> Decimal | None:
    """Return the whole amount, exact: price of a lot × lots × packs in sequence (R35)."""
    from gpucost_tui.pricing.amounts import exact

    if row.usd_per_lot is None:
        return None
    with exact():
        return row.usd_per_lot * asked.lots * asked.periods


def _usd(value: Any) -> str:
    return "-" if value is None else str(value)


def _fit_tone(value: str) -> str:
    return "bad" if value.startswith("✗") else "good" if value.startswith("✓") else ""


_PACKS = (
    Column("gpu", "GPU", widest=16),
    Column("days", "days", right=True),
    Column("lot", "GPUs", right=True),
    Column("usd", "USD a lot", right=True, show=_usd),
    Column("committed", "committed", right=True, show=_usd),
    Column("fit", "window", widest=24, tone=_fit_tone),
    Column("provider", "provider", widest=16),
    Column("why", "no price, because", widest=40),
    Column("date", "catalogue"),
)
_OFFERS = (
    Column("gpu", "GPU", widest=16),
    Column("usd", "USD/GPU/h", right=True, show=_usd),
    Column("gpus", "GPUs", right=True),
    Column("provisioning", "kind", widest=10),
    Column("estimate", "estimate", right=True, show=_usd),
    Column("provider", "provider", widest=16),
    Column("product", "product", widest=32),
    Column("date", "observed"),
    Column("source", "source", widest=40),
)


def columns(view: str) -> tuple[Column, ...]:
    """Return the columns of a view, in the order of its entries' cells."""
    return _OFFERS if view == "hourly" else _PACKS


def shown_columns(view: str, *, window: bool) -> tuple[Column, ...]:
    """Return the columns to show; those that need a window only where there is one."""
    return tuple(c for c in columns(view) if window or c.name not in ("fit", "estimate"))


def as_pack(price: PackPrice | HourlyOffer) -> PackPrice | None:
    """Return the price if it is a pack's."""
    from gpucost_tui.pricing.price_list import PackPrice

    return price if isinstance(price, PackPrice) else None


def entries(catalogue: Catalogue, asked: Asked, seconds: Fraction | None) -> list[Entry]:
    """Return the rows of a view: in ``window`` what covers it comes first, cheapest first."""
    from gpucost_tui.pricing.listing import chosen

    offers = asked.view == "hourly"
    days = None if offers else asked.days
    found = chosen(catalogue, gpu=asked.gpu, provider=asked.provider, days=days)
    if offers:
        return _offers(catalogue, found.offers, asked, seconds)
    packs: Sequence[PackPrice] = found.packs
    if asked.view == "window" and seconds is not None:
        packs = sorted(packs, key=lambda row: _by_fit(row, seconds, asked))
    return [Entry(row, _pack_cells(row, asked, seconds)) for row in packs]


def _by_fit(row: PackPrice, seconds: Fraction, asked: Asked) -> tuple[Any, ...]:
    fit = fit_of(row, seconds, asked.periods)
    if not fit.covers:
        return (2, -fit.spare, row.gpu, row.provider)
    if row.usd_per_lot is None:
        return (1, row.days, row.gpu, row.provider)
    return (0, row.usd_per_lot, row.days, row.provider, row.gpu, row.gpus_per_lot)


def _pack_cells(row: PackPrice, asked: Asked, seconds: Fraction | None) -> tuple[Any, ...]:
    committed = committed_usd(row, asked)
    fit = "-" if seconds is None else fit_of(row, seconds, asked.periods).words
    return (
        row.gpu,
        row.days,
        row.gpus_per_lot,
        None if row.usd_per_lot is None else money(row.usd_per_lot),
        None if committed is None else money(committed),
        fit,
        row.provider,
        row.missing_reason if committed is None else "",
        row.catalogue_date.isoformat(),
    )


def _offers(
    catalogue: Catalogue, offers: Sequence[HourlyOffer], asked: Asked, seconds: Fraction | None
) -> list[Entry]:
    from gpucost_tui.pricing.candidates import hourly_estimates

    estimates = {}
    if seconds is not None:
        for gpu in dict.fromkeys(offer.gpu for offer in offers):
            for item in hourly_estimates(catalogue, seconds, lots=asked.lots, gpu=gpu):
                estimates[item.offer] = f"~{money(item.estimate_usd)}"
    return [
        Entry(
            offer,
            (
                offer.gpu,
                f"{offer.usd_per_gpu_hour:f}",
                f"{offer.gpus:f}",
                offer.provisioning,
                estimates.get(offer),
                offer.provider,
                offer.product,
                offer.observed_on.isoformat(),
                offer.source,
            ),
        )
        for offer in offers
    ]


def counted(rows: Sequence[Entry], asked: Asked, seconds: Fraction | None) -> str:
    """Say what a view has: how many, and of a window's packs how many cover it."""
    if asked.view == "hourly":
        return f"{count(len(rows), 'hourly offer')} (pay-as-you-go, no commitment)"
    packs = packs_of(rows)
    gaps = sum(pack.usd_per_lot is None for pack in packs)
    said = count(len(packs), "pack") + (f", {gaps} without a price" if gaps else "")
    if asked.view == "window" and seconds is not None:
        covering = sum(fit_of(pack, seconds, asked.periods).covers for pack in packs)
        said += f", {covering} cover the window"
    return said


def first_row(rows: Sequence[Entry], gpus: Collection[str]) -> int:
    """Return the row to begin at: the first with a price of one of these GPUs, else of any."""
    priced = [n for n, row in enumerate(rows) if not _is_gap(row)]
    return next(iter([*(n for n in priced if rows[n].price.gpu in gpus), *priced]), 0)


def _is_gap(row: Entry) -> bool:
    pack = as_pack(row.price)
    return pack is not None and pack.usd_per_lot is None


def packs_of(rows: Sequence[Entry]) -> list[PackPrice]:
    """Return the packs among rows."""
    return [pack for row in rows if (pack := as_pack(row.price)) is not None]
