"""The prices in force as a list: by GPU, provider and days."""

from __future__ import annotations

from typing import NamedTuple

from gpucost_tui.pricing.catalogue import Catalogue, CatalogueFile, HourlyOffer, PackPrice
from gpucost_tui.pricing.showing import fitted, padded
from gpucost_tui.text import clean, count, money


class Listing(NamedTuple):
    """The chosen prices, by GPU, days and provider, and the lists they come from."""

    packs: tuple[PackPrice, ...]
    offers: tuple[HourlyOffer, ...]
    files: tuple[CatalogueFile, ...]


def chosen(
    catalogue: Catalogue, *, gpu: str | None, provider: str | None, days: int | None
) -> Listing:
    """Return the prices of a GPU, a provider, a pack's days; with ``days`` there are only packs.

    Raises:
        WrongUse: The catalogue knows no such GPU or provider.
    """
    wanted = None if gpu is None else catalogue.known_gpu(gpu)
    if provider is not None:
        catalogue.known_provider(provider)

    def fits(row: PackPrice | HourlyOffer) -> bool:
        return wanted in (None, row.gpu) and provider in (None, row.provider)

    packs = [row for row in catalogue.packs if fits(row) and days in (None, row.days)]
    offers = [row for row in catalogue.offers if fits(row) and days is None]
    packs.sort(key=lambda row: (row.gpu, row.days, row.provider, row.gpus_per_lot))
    offers.sort(key=lambda row: (row.gpu, row.usd_per_gpu_hour, row.provider, row.product))
    return Listing(tuple(packs), tuple(offers), catalogue.files)


def listing_json(listing: Listing) -> dict[str, object]:
    """Return ``{catalogues, packs, hourly_offers}`` with prices as text, exact."""
    return {
        "catalogues": [
            {"name": file.name, "form": file.form, "sha256": file.sha256, "rows": len(file.rows)}
            for file in listing.files
        ],
        "packs": [
            {
                "provider": row.provider,
                "gpu": row.gpu,
                "gpus_per_lot": row.gpus_per_lot,
                "days": row.days,
                "usd_per_lot": None if row.usd_per_lot is None else f"{row.usd_per_lot:f}",
                "catalogue_date": row.catalogue_date.isoformat(),
                "missing_reason": row.missing_reason or None,
                "catalogue": row.catalogue,
                "line": row.line,
            }
            for row in listing.packs
        ],
        "hourly_offers": [
            {
                "provider": row.provider,
                "gpu": row.gpu,
                "gpus": f"{row.gpus:f}",
                "provisioning": row.provisioning,
                "usd_per_gpu_hour": f"{row.usd_per_gpu_hour:f}",
                "product": row.product,
                "observed_on": row.observed_on.isoformat(),
                "source": row.source,
                "notes": row.notes or None,
                "catalogue": row.catalogue,
                "line": row.line,
            }
            for row in listing.offers
        ],
    }


def listing_lines(listing: Listing) -> list[str]:
    """Return the list for people; an empty price is shown with its reason."""
    lines = ["Flat packs, USD a lot:"] if listing.packs else []
    for row in listing.packs:
        price = "-" if row.usd_per_lot is None else money(row.usd_per_lot)
        why = f": {clean(row.missing_reason)}" if row.usd_per_lot is None else ""
        lines.append(
            f"{price:>12}  {_gpu(row.gpu)} {row.days:>2} days  lot of {row.gpus_per_lot:<3} "
            f"{clean(row.provider, limit=24)}, {row.catalogue_date}{why}"
        )
    if listing.offers:
        lines += ["Hourly offers (pay-as-you-go), USD per GPU and hour:"]
    for offer in listing.offers:
        lines.append(
            f"{offer.usd_per_gpu_hour:>12f}  {_gpu(offer.gpu)} x{offer.gpus:<4f} "
            f"{offer.provisioning:<9}  {clean(offer.provider, limit=24)}, {offer.observed_on}, "
            f"{clean(offer.product, limit=50)}, {clean(offer.source, limit=60)}"
        )
    names = [f"{clean(file.name)} ({count(len(file.rows), 'row')})" for file in listing.files]
    none = [] if lines else ["no price for that choice"]
    return [*lines, *none, f"From: {', '.join(names)}"]


def _gpu(name: str) -> str:
    return padded(fitted(name, 16), 16)
