"""The calculator: what packs commit, and what an accepted corpus costs (R35, R36, R43)."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from gpucost_tui.errors import AnswerIsNo, WrongUse
from gpucost_tui.pricing.amounts import exact, whole
from gpucost_tui.pricing.catalogue import PACK_DAYS, Catalogue, PackPrice
from gpucost_tui.text import clean, listed, money

MAX_LOTS = 10_000
MAX_ACCEPTED = 1_000_000
NOT_INVENTED = "no cost per result is invented"
UNDEFINED = "undefined: no corpus accepted; the amount stays committed"
AS_STATED = "as stated by you"


class Quote(NamedTuple):
    """The price of a number of lots of one pack; amounts are exact, rounded only when shown.

    ``gpus`` is for information: the price of a lot is for all its GPUs (R35).
    """

    row: PackPrice
    lots: int
    gpus: int
    usd_per_lot: Decimal
    committed_usd: Decimal
    accepted_results: int | None
    cost_per_accepted_usd: Decimal | None
    note: str


class NoPrice(AnswerIsNo):
    """The catalogue has no price for what was asked."""


def whole_lots(value: int | str) -> int:
    """Return a number of lots, from 1 to 10,000."""
    return whole(value, "lots", 1, MAX_LOTS, "--lots")


def whole_accepted(value: int | str) -> int:
    """Return a number of accepted results given by hand, from 0 to 1,000,000."""
    return whole(value, "accepted results", 0, MAX_ACCEPTED, "--accepted-results")


def pack_days(value: int | str) -> int:
    """Return the days of a pack (R34)."""
    written = str(value)
    if isinstance(value, bool) or written not in {str(days) for days in PACK_DAYS}:
        raise WrongUse("packs last 3, 7 or 30 days", where=f"--days '{clean(written, limit=40)}'")
    return int(written)


def quote(row: PackPrice, lots: int | str, accepted_results: int | str | None = None) -> Quote:
    """Price a number of lots of one cell, and the accepted corpora where their count is given.

    Args:
        row: The cell, of a catalogue or of a campaign's frozen prices.
        lots: Whole number from 1 to 10,000.
        accepted_results: Distinct accepted corpora, from 0 to 1,000,000; None where none is given.

    Raises:
        NoPrice: The cell is empty; the sentence tells which, of which date, and why.
        WrongUse: An impossible number.
    """
    number = whole_lots(lots)
    accepted = None if accepted_results is None else whole_accepted(accepted_results)
    if row.usd_per_lot is None:
        raise _no_price([row])
    with exact():
        committed = row.usd_per_lot * number
        cost = committed / accepted if accepted else None
    note = NOT_INVENTED if accepted is None else "" if accepted else UNDEFINED
    gpus = row.gpus_per_lot * number
    return Quote(row, number, gpus, row.usd_per_lot, committed, accepted, cost, note)


def price(
    catalogue: Catalogue,
    gpu: str,
    days: int | str,
    lots: int | str,
    accepted_results: int | str | None = None,
    provider: str | None = None,
) -> tuple[Quote, tuple[Quote, ...]]:
    """Price a pack of a GPU from the catalogue.

    Returns:
        The cheapest, and the other priced cells for the same GPU and days (other providers or
        lot sizes), cheapest first.

    Raises:
        NoPrice: The catalogue has no price for it.
        WrongUse: An unknown GPU or provider, or an impossible number.
    """
    length, number = pack_days(days), whole_lots(lots)
    accepted = None if accepted_results is None else whole_accepted(accepted_results)
    cells = cells_for(catalogue, gpu, length, provider)
    quotes = [quote(row, number, accepted) for row in cells if row.usd_per_lot is not None]
    if not quotes:
        raise _no_price(cells) if cells else _no_pack(catalogue, gpu, length, provider)
    quotes.sort(key=lambda q: (q.committed_usd, q.gpus, q.row.provider))
    return quotes[0], tuple(quotes[1:])


def cells_for(
    catalogue: Catalogue, gpu: str, days: int, provider: str | None = None
) -> list[PackPrice]:
    """Return the cells for a GPU and a pack's days, priced or empty.

    Raises:
        WrongUse: An unknown GPU or provider.
    """
    known = catalogue.known_gpu(gpu)
    if provider is not None:
        catalogue.known_provider(provider)
    return [
        row
        for row in catalogue.packs
        if row.gpu == known and row.days == days and provider in (None, row.provider)
    ]


def empty_cell(row: PackPrice) -> str:
    """Say which cell is empty, in which list of which date, and why."""
    return (
        f"{clean(row.provider)}, {row.gpu}, lot of {row.gpus_per_lot}, {row.days} days: "
        f"usd_per_lot is empty in {clean(row.catalogue)}, line {row.line} "
        f"(catalogue of {row.catalogue_date}): {clean(row.missing_reason)}"
    )


def _no_price(cells: Iterable[PackPrice]) -> NoPrice:
    told = "; ".join(empty_cell(row) for row in cells)
    return NoPrice(f"the catalogue has no price for it. {told}", fix=_ADD)


def _no_pack(catalogue: Catalogue, gpu: str, days: int, provider: str | None) -> NoPrice:
    by = f" by {clean(provider)}" if provider else ""
    lists = listed([file.name for file in catalogue.files if file.packs]) or "no price list"
    hourly = any(offer.gpu == gpu for offer in catalogue.offers)
    more = f" (there are hourly offers: 'gpucost catalogue list --gpu {gpu}')" if hourly else ""
    what = f"the catalogue has no price for it: {lists} has no {days}-day pack of {gpu}{by}{more}"
    return NoPrice(what, fix=_ADD)


_ADD = "'gpucost catalogue add FILE' or '--catalogue FILE' brings a price list of your own"


def quote_json(result: Quote) -> dict[str, object]:
    """Return the keys of ``gpucost price --json``."""
    cost = result.cost_per_accepted_usd
    return {
        "gpu": result.row.gpu,
        "days": result.row.days,
        "lots": result.lots,
        "gpus": result.gpus,
        "committed_usd": money(result.committed_usd),
        "accepted_results": result.accepted_results,
        "accepted_results_basis": None if result.accepted_results is None else AS_STATED,
        "cost_per_accepted_usd": None if cost is None else money(cost),
        "catalogue_date": result.row.catalogue_date.isoformat(),
        "note": result.note,
        "provider": result.row.provider,
        "gpus_per_lot": result.row.gpus_per_lot,
        "usd_per_lot": money(result.usd_per_lot),
        "catalogue": result.row.catalogue,
    }
