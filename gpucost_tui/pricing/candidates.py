"""Which packs cover a window, at what committed price; hourly offers beside them (R34, R35).

Packs are commitments and are ranked by their price. Pay-as-you-go offers are estimates of another
billing kind: they stand apart, and are ranked with commitments only where that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from gpucost_tui.pricing.amounts import exact, whole
from gpucost_tui.pricing.calculator import whole_lots
from gpucost_tui.pricing.catalogue import PACK_DAYS, Catalogue, HourlyOffer, PackPrice
from gpucost_tui.pricing.schedule import Schedule
from gpucost_tui.pricing.window import covering_days, hours_text
from gpucost_tui.text import clean, listed, money

MAX_PERIODS = 100
HOURLY_KIND = "pay-as-you-go estimate"


class Candidate(NamedTuple):
    """A pack that covers the window, whole: price of a lot × lots × periods."""

    row: PackPrice
    lots: int
    periods: int
    committed_usd: Decimal

    @property
    def gpus(self) -> int:
        """GPUs rented at once."""
        return self.row.gpus_per_lot * self.lots


class HourlyEstimate(NamedTuple):
    """What an hourly offer would bill for the window; no commitment, and another billing kind."""

    offer: HourlyOffer
    instances: int
    estimate_usd: Decimal

    @property
    def gpus(self) -> Decimal:
        """GPUs rented at once."""
        return self.offer.gpus * self.instances


def whole_periods(value: int | str) -> int:
    """Return a number of packs in sequence, from 1 to 100."""
    return whole(value, "periods", 1, MAX_PERIODS, "--periods")


def candidates(
    catalogue: Catalogue,
    seconds: Fraction,
    *,
    lots: int | str = 1,
    gpu: str | None = None,
    periods: int | str = 1,
) -> tuple[Candidate, ...]:
    """Return the priced packs that cover a duration, cheapest first.

    Args:
        catalogue: The price lists in force.
        seconds: The duration needed, exact.
        lots: Lots of each.
        gpu: Only this GPU.
        periods: Packs of one length in sequence; never more than 1 unless the user asks.

    Raises:
        WrongUse: An unknown GPU or an impossible number.
    """
    number, count = whole_lots(lots), whole_periods(periods)
    wanted = None if gpu is None else catalogue.known_gpu(gpu)
    covering = covering_days(seconds, count)
    found = []
    for row in catalogue.packs:
        if row.usd_per_lot is None or row.days not in covering or wanted not in (None, row.gpu):
            continue
        with exact():
            found.append(Candidate(row, number, count, row.usd_per_lot * number * count))
    return tuple(sorted(found, key=_candidate_order))


def _candidate_order(candidate: Candidate) -> tuple[object, ...]:
    row = candidate.row
    return (candidate.committed_usd, row.days, row.provider, row.gpu, row.gpus_per_lot)


def unpriced(
    catalogue: Catalogue, seconds: Fraction, *, gpu: str | None = None, periods: int = 1
) -> tuple[PackPrice, ...]:
    """Return the packs that would cover a duration and whose price is empty, with its reason."""
    covering = covering_days(seconds, periods)
    rows = (row for row in catalogue.packs if row.usd_per_lot is None and row.days in covering)
    return tuple(row for row in rows if gpu in (None, row.gpu))


def hourly_estimates(
    catalogue: Catalogue, seconds: Fraction, *, lots: int | str = 1, gpu: str | None = None
) -> tuple[HourlyEstimate, ...]:
    """Return what hourly offers would bill for a duration, cheapest first.

    As many instances as reach the GPUs of ``lots`` lots of that GPU (one GPU a lot where no pack
    of it exists). Without ``gpu``: the GPUs that have packs. Shares of a GPU are left out.

    Raises:
        WrongUse: An unknown GPU or an impossible number.
    """
    number = whole_lots(lots)
    lot_sizes: dict[str, int] = {}
    for row in catalogue.packs:
        lot_sizes[row.gpu] = min(row.gpus_per_lot, lot_sizes.get(row.gpu, row.gpus_per_lot))
    wanted = set(lot_sizes) if gpu is None else {catalogue.known_gpu(gpu)}
    found = []
    for offer in catalogue.offers:
        if offer.gpu in wanted and offer.gpus >= 1:
            needed = Fraction(lot_sizes.get(offer.gpu, 1) * number)
            instances = -(-needed // Fraction(offer.gpus))
            found.append(_estimate(offer, int(instances), seconds))
    key = lambda e: (e.estimate_usd, e.offer.provider, e.offer.product, e.offer.line)  # noqa: E731
    return tuple(sorted(found, key=key))


def _estimate(offer: HourlyOffer, instances: int, seconds: Fraction) -> HourlyEstimate:
    with exact():
        per_hour = offer.usd_per_gpu_hour * offer.gpus * instances
        amount = per_hour * seconds.numerator / (seconds.denominator * 3600)
    return HourlyEstimate(offer, instances, amount)


def ranked(
    packs: Sequence[Candidate], hourly: Sequence[HourlyEstimate]
) -> tuple[Candidate | HourlyEstimate, ...]:
    """Rank commitments and estimates by amount, together: only where the user asked for it."""
    both: list[Candidate | HourlyEstimate] = [*packs, *hourly]
    return tuple(sorted(both, key=amount_of))


def amount_of(item: Candidate | HourlyEstimate) -> Decimal:
    """Return what is committed, or estimated."""
    return item.committed_usd if isinstance(item, Candidate) else item.estimate_usd


def ways_to_cover(
    seconds: Fraction, priced_days: Sequence[int], plan: Schedule | None = None
) -> list[str]:
    """Say how a window that no single pack covers can be shortened, or priced in periods (R34).

    Args:
        seconds: The duration needed, longer than the longest pack.
        priced_days: The packs that have a price; where there is none, the longest is named.
        plan: The schedule it comes from: only what stands in its longest chain can shorten it.
    """
    longest = PACK_DAYS[-1]
    over = hours_text(seconds - longest * 86_400)
    said = [f"Shorten the window by {over} h, and a {longest}-day pack covers it."]
    if plan is not None:
        chain = " > ".join(clean(item.task, limit=40) for item in plan.chain)
        said.append(f"Only the longest chain counts: {chain}.")
        waits = [item for item in plan.chain if item.kind == "wait"]
        if waits:
            hours = hours_text(sum((w.end_h - w.start_h for w in waits), Fraction(0)) * 3600)
            names = listed([item.task for item in waits])
            said.append(f"Waits in it hold the rental for {hours} h: {names}.")
    needed = {days: -(-seconds // (days * 86_400)) for days in priced_days or (longest,)}
    ways = [f"--periods {n} for {days} days each" for days, n in needed.items() if n <= MAX_PERIODS]
    when = "" if priced_days else ", once a price list has a price for them"
    said.append(
        f"Or price packs in sequence{when}: {', or '.join(ways)}. Renewal is never assumed."
        if ways
        else f"It is longer than {MAX_PERIODS} packs in sequence."
    )
    return said


def candidate_json(item: Candidate) -> dict[str, object]:
    """Return a candidate as in ``gpucost window --json``."""
    return {
        "provider": item.row.provider,
        "gpu": item.row.gpu,
        "days": item.row.days,
        "lots": item.lots,
        "gpus": item.gpus,
        "committed_usd": money(item.committed_usd),
        "periods": item.periods,
        "catalogue_date": item.row.catalogue_date.isoformat(),
        "catalogue": item.row.catalogue,
    }


def hourly_json(item: HourlyEstimate) -> dict[str, object]:
    """Return an hourly estimate as in ``gpucost window --json``."""
    return {
        "kind": HOURLY_KIND,
        "provider": item.offer.provider,
        "gpu": item.offer.gpu,
        "provisioning": item.offer.provisioning,
        "product": item.offer.product,
        "gpus": float(item.gpus),
        "estimate_usd": money(item.estimate_usd),
        "usd_per_gpu_hour": f"{item.offer.usd_per_gpu_hour:f}",
        "observed_on": item.offer.observed_on.isoformat(),
        "source": item.offer.source,
        "catalogue": item.offer.catalogue,
    }
