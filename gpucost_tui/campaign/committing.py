"""Recording what a campaign is rented with, at frozen prices, and other real spending (R35, R37).

One commitment for each GPU of a campaign, shared by all its variants (R36). A second act with the
same pack adds the user's own record of the rental; another pack needs ``correct``, and both acts
stay in the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpucost_tui.campaign.acts import Committed, RealRental
from gpucost_tui.campaign.fold import State, fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.gpu_names import HOST_NAMES, devices_of, is_called
from gpucost_tui.campaign.hosts import read_hosts
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.unchanged import sealed_manifest
from gpucost_tui.errors import Differs, Refused, WrongUse
from gpucost_tui.pricing.calculator import NoPrice, cells_for, pack_days, price, quote, whole_lots
from gpucost_tui.pricing.catalogue import Catalogue, PackPrice
from gpucost_tui.pricing.frozen import freeze, read_frozen
from gpucost_tui.pricing.spending import spending
from gpucost_tui.text import clean, count, listed, money

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Pack:
    """What is asked for: a pack of the catalogue, and what tells two cells apart."""

    gpu: str
    days: int | str
    lots: int | str
    provider: str | None = None
    gpus_per_lot: int | None = None
    host_gpu: str | None = None


def commit(
    campaign: Campaign,
    pack: Pack,
    catalogue: Catalogue,
    rental: RealRental | None = None,
    *,
    correct: bool = False,
) -> Committed:
    """Record a commitment; its price is frozen in the campaign's ``prices``.

    Args:
        campaign: A sealed campaign that has seen its host.
        pack: The pack.
        catalogue: The price lists in force.
        rental: The user's own record of the rental.
        correct: Replace the commitment that is recorded for this GPU.

    Raises:
        WrongUse: An unknown GPU or provider, an impossible number, or several cells fit.
        NoPrice: The catalogue has no price for it.
        Refused: The GPU is not that of a host record; another commitment is recorded.
        Differs: A host record, the manifest or the journal is not what was written.
    """
    sealed_manifest(campaign)
    state = fold(campaign.events())
    gpu = catalogue.known_gpu(pack.gpu)
    host_gpu, hosts = _on_hosts(campaign, gpu, pack.host_gpu)
    before = state.acts.commitments.get(gpu)
    same = before is not None and _asks_for(before, pack)
    if before is not None and not correct and (not same or rental is None):
        raise Refused(
            f"{before.words} is committed already, {money(before.usd)} USD",
            where=campaign.folder.name,
            fix="A commitment stays spent. With the same pack, --rented-from and the others add "
            "the real rental; --correct replaces one that was recorded by mistake",
        )
    prices: str | None
    if before is not None and same and not correct:
        row, prices = priced_row(campaign.folder, before), before.prices
    else:
        row, prices = _cell(catalogue, gpu, pack), None
    priced = quote(row, pack.lots)
    data = {
        "gpu": gpu,
        "host_gpu": host_gpu,
        "hosts": list(hosts),
        "provider": row.provider,
        "days": row.days,
        "lots": priced.lots,
        "gpus": priced.gpus,
        "usd": f"{priced.committed_usd:f}",
        "rental": None if rental is None else _rental_json(rental),
    }
    with _frozen(campaign.folder / "prices", catalogue, row, prices) as name:
        Journal(campaign.folder).append("committed", {**data, "prices": name})
    return fold(campaign.events()).acts.commitments[gpu]


@contextmanager
def _frozen(folder: Path, catalogue: Catalogue, row: PackPrice, known: str | None) -> Iterator[str]:
    """Freeze a price and give its name; where the act fails, no new price stays behind."""
    if known is not None:
        yield known
        return
    before = set(folder.glob("*.json"))
    name = freeze(folder, catalogue, [row]).sha256
    try:
        yield name
    except BaseException:
        for path in set(folder.glob(f"{name}.json")) - before:
            path.unlink(missing_ok=True)
        raise


def priced_row(folder: Path, commitment: Committed) -> PackPrice:
    """Return the frozen cell that a commitment was priced by.

    Raises:
        Differs: It is gone, altered, or not the cell that the commitment names.
    """
    frozen = read_frozen(folder / "prices", commitment.prices)
    for row in frozen.rows:
        named = (row.gpu, row.provider, row.days, row.gpus_per_lot * commitment.lots)
        if named == (commitment.gpu, commitment.provider, commitment.days, commitment.gpus):
            return row
    raise Differs(
        f"the frozen prices hold no {commitment.words}", where=f"prices/{commitment.prices}.json"
    )


def spend(
    campaign: Campaign, configuration: str, usd: str, reason: str, known: Sequence[str]
) -> None:
    """Record another real expense of a configuration (R37).

    Args:
        campaign: A sealed campaign.
        configuration: Its name, as `decide` shows it.
        usd: An amount with at most two decimals.
        reason: What was paid for.
        known: The configurations there are.

    Raises:
        WrongUse: No such configuration, no amount, no reason.
    """
    sealed_manifest(campaign)
    one = spending(configuration, usd, reason)
    if configuration not in known:
        raise WrongUse(
            f"'{clean(configuration, limit=80)}' is no configuration here",
            where="--configuration",
            fix=f"Configurations: {listed(list(known), limit=12) or 'none yet'}",
        )
    if len(reason) > 20 * _LONGEST:
        raise WrongUse("the reason is too long", where="--reason", fix="Say it in a sentence")
    data = {"configuration": configuration, "usd": f"{one.usd:f}", "reason": reason}
    Journal(campaign.folder).append("spent", data)


def take_back(campaign: Campaign, configuration: str, usd: str, reason: str) -> None:
    """Take an expense back that was recorded by mistake; both acts stay in the journal.

    Raises:
        Refused: No such expense is recorded.
    """
    sealed_manifest(campaign)
    one = spending(configuration, usd, reason)
    rows = fold(campaign.events()).acts.spending.values()
    for row in rows:
        if (row.configuration, row.usd, row.reason) == (configuration, one.usd, reason):
            Journal(campaign.folder).append("spending_withdrawn", {"of": row.seq})
            return
    raise Refused(
        "no such expense is recorded",
        where=campaign.folder.name,
        fix="Repeat its configuration, amount and reason as they were given",
    )


def real_rental(
    since: datetime | None, until: datetime | None, paid: Decimal | None, reference: str | None
) -> RealRental | None:
    """Return the user's record of a rental, or None where nothing of it is given.

    Raises:
        WrongUse: Only one end is given, the end is not after the start, or the reference is none.
    """
    if (since is None) != (until is None):
        raise WrongUse("--rented-from and --rented-to go together", fix="Give both")
    if since is not None and until is not None and until <= since:
        raise WrongUse("--rented-to is not after --rented-from", fix="Give the real times")
    if reference is not None and not (reference.strip() and len(reference) <= _LONGEST):
        raise WrongUse(
            f"a reference has 1 to {_LONGEST} characters", where="--reference", fix="Shorten it"
        )
    if (since, paid, reference) == (None, None, None):
        return None
    return RealRental(since, until, paid, reference)


def devices_used(state: State, commitment: Committed) -> int:
    """Return the most rented devices that one pass used; 0 where none used any."""
    used = 0
    for attempt in state.attempts.values():
        row = attempt.row
        if is_called(commitment.gpu, commitment.host_gpu, row["gpu"]):
            used = max(used, len((row["devices"] or row["device"] or "").split(" | ")))
    return used


def used_sentence(state: State, commitment: Committed) -> str | None:
    """Say how many of the rented GPUs the passes used, where that is known."""
    if not state.attempts:
        return None
    used = devices_used(state, commitment)
    rented = count(commitment.gpus, "GPU is", "GPUs are")
    verb = "is" if used == 1 else "are"
    if used == commitment.gpus:
        return f"{rented} rented, and {used} {verb} used."
    return (
        f"{rented} rented, {used} {verb} used: the whole lot is paid, and nothing here says what "
        "the others would do."
    )


def _asks_for(before: Committed, pack: Pack) -> bool:
    same_provider = pack.provider in (None, before.provider)
    same_lot = pack.gpus_per_lot is None or pack.gpus_per_lot * before.lots == before.gpus
    asked = (pack_days(pack.days), whole_lots(pack.lots))
    return asked == (before.days, before.lots) and same_provider and same_lot


def _on_hosts(campaign: Campaign, gpu: str, named: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the device's name on the hosts, and the hosts that have it.

    Raises:
        Refused: No host record is here, or none has such a device.
    """
    records = {name: record for name, record in read_hosts(campaign).items() if record is not None}
    if not records:
        raise Refused(
            f"there is no host record here: nothing shows a {gpu}",
            where=campaign.folder.name,
            fix="`gpucost run` records the host that it runs on; commit on that copy",
        )
    found = {name: _devices(name, record) for name, record in records.items()}
    if gpu in HOST_NAMES and named is not None and named not in HOST_NAMES[gpu]:
        raise Refused(
            f"'{clean(named, limit=80)}' is no {gpu}",
            where="--host-gpu",
            fix=f"A {gpu} is called: {listed(HOST_NAMES[gpu])}",
        )
    names = (named,) if named is not None else HOST_NAMES.get(gpu, ())
    for name in names:
        hosts = tuple(host for host, devices in found.items() if name in devices)
        if hosts:
            return name, hosts
    there = sorted({name for devices in found.values() for name in devices})
    seen = f"the host records have {listed(there)}" if there else "the host records have no GPU"
    fix = (
        f"A {gpu} is called {listed(names)}; commit the GPU that is there"
        if names
        else f"How a host calls a {gpu} is not known here: name the device with --host-gpu"
    )
    raise Refused(f"the GPU is not that of a host record: {gpu} is asked for, {seen}", fix=fix)


def _devices(host: str, record: dict[str, Any]) -> dict[str, int]:
    try:
        return devices_of(record)
    except (TypeError, AttributeError, KeyError):
        raise Differs(
            "this is no host record", where=f"hosts/{clean(host)}.json", fix="Restore the file"
        ) from None


def _cell(catalogue: Catalogue, gpu: str, pack: Pack) -> PackPrice:
    """Return the one priced cell that is meant; a rental is a fact, so none is guessed."""
    days, _ = pack_days(pack.days), whole_lots(pack.lots)
    cells = [
        row
        for row in cells_for(catalogue, gpu, days, pack.provider)
        if pack.gpus_per_lot in (None, row.gpus_per_lot)
    ]
    priced = [row for row in cells if row.usd_per_lot is not None]
    if not priced and pack.gpus_per_lot is not None and cells == []:
        raise NoPrice(f"the catalogue has no lot of {pack.gpus_per_lot} of {gpu} for {days} days")
    if not priced:
        price(catalogue, gpu, days, pack.lots, provider=pack.provider)  # says which cell is empty
    if len(priced) != 1:
        told = [
            f"{row.provider}, lot of {row.gpus_per_lot}: {money(row.usd_per_lot or Decimal(0))}"
            for row in priced
        ]
        raise WrongUse(
            f"several packs fit: {listed(told, limit=8)}",
            where="--provider",
            fix="Name the one that is rented: --provider, and --gpus-per-lot where that differs",
        )
    return priced[0]


def _rental_json(rental: RealRental) -> dict[str, Any]:
    document = rental.to_json()
    for key, moment in (("from", rental.since), ("to", rental.until)):
        if moment is not None:
            document[key] = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return document
