"""Reads the instance price lists that SkyPilot publishes into hourly offers.

Such a row prices a whole instance (``Price``, ``SpotPrice``) that holds ``AcceleratorCount`` GPUs,
perhaps 0.5 of one; what it gives here is the price of one GPU. Rows that say less than that are
left out and counted with their reason:

* no accelerator (a machine without GPU);
* an accelerator without an instance (the machine around it is priced in another row);
* no price, 0 or a stand-in such as 99999999;
* an accelerator that is no GPU.

SkyPilot's names become ids by their spelling alone. ``A100`` says neither memory nor form, so it
becomes ``a100``, a GPU of its own beside ``a100-sxm-80gb``; the caller shows every name and id.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from gpucost_tui.errors import InputError
from gpucost_tui.pricing.amounts import exact
from gpucost_tui.pricing.gpus import is_id, spelled_otherwise
from gpucost_tui.pricing.price_list import HOURLY_COLUMNS, HourlyOffer
from gpucost_tui.pricing.sheets import Problem, Row, read_sheet, refuse
from gpucost_tui.text import clean

NEEDED = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")
#: Above it a price is a stand-in for "not sold so".
_ABSURD_USD_HOUR = 100_000
_LEAST_SHARE = Decimal("0.001")
_DECIMALS = Decimal("0.0000000001")
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{0,17})?(?:[eE][+-]?[0-9]{1,2})?")
_NO_GPU = ("tpu", "trainium", "inferentia", "gaudi", "habana", "fpga", "virtex", "alveo", "u30")
#: The same GPU, its words in another order or shortened: nothing is added to what the name says.
_SAME = {
    "A100-80GB-SXM": "a100-sxm-80gb",
    "A100-80GB-PCIe": "a100-pcie-80gb",
    "A6000": "rtx-a6000",
}


class Imported(NamedTuple):
    """Offers per GPU and hour, SkyPilot's names with their ids, and how many rows gave none."""

    offers: tuple[HourlyOffer, ...]
    names: dict[str, str]
    left_out: dict[str, int]


def gpu_id(name: str, known: Iterable[str] = ()) -> str:
    """Return the id that a SkyPilot name becomes: ``RTX4090`` → ``rtx-4090``; never another GPU.

    Args:
        name: As the file has it.
        known: Ids whose spelling is taken where only the spelling differs.
    """
    if name in _SAME:
        return _SAME[name]
    spaced = re.sub(r"^([GR]TX)(PRO)?(?=[A-Z]?[0-9])", r"\1-\2-", name).replace("--", "-")
    spaced = re.sub(r"(?<=[0-9])Ada$", "-Ada", spaced)
    gpu = re.sub(r"[\s_]+", "-", spaced).lower()
    return spelled_otherwise(gpu, known) or gpu


def read_skypilot(
    data: bytes,
    *,
    name: str,
    provider: str,
    observed_on: date,
    source: str,
    known: Collection[str] = (),
) -> Imported:
    """Read a SkyPilot ``vms.csv``.

    Args:
        data: The file's bytes.
        name: How the file is called in sentences.
        provider: Who sells; the file doesn't say.
        observed_on: When the prices were observed; the file doesn't say.
        source: Where the file is from.
        known: Ids of GPUs as other lists spell them.

    Raises:
        InputError: It is no such file, a row is malformed, or no row gives an offer.
    """
    sheet = read_sheet(data)
    problems = list(sheet.problems)
    if sheet.columns:
        missing = [column for column in NEEDED if column not in sheet.columns]
        fix = f"SkyPilot's form has {', '.join(NEEDED)}"
        problems += [Problem(1, f"column '{column}' is missing", fix) for column in missing]
    refuse(name, problems)
    reader = _Reader(provider, observed_on, source, name, known)
    for row in sheet.rows:
        reader.read(row)
    refuse(name, reader.problems)
    if not reader.offers:
        told = "; ".join(f"{count:,} {reason}" for reason, count in reader.left_out.items())
        raise InputError(
            f"no row gives an hourly offer ({told or 'there is none'})",
            where=f"{clean(name)}, line 1",
            fix="Rows need an instance, an accelerator, its count and a price",
        )
    return Imported(tuple(reader.offers.values()), dict(reader.names), dict(reader.left_out))


class _Reader:
    """Collects offers by cell from the rows of one file."""

    def __init__(
        self, provider: str, observed_on: date, source: str, name: str, known: Collection[str]
    ) -> None:
        self._facts = (provider, observed_on, source, name)
        self._known = known
        self._ids: dict[str, str] = {}
        self.offers: dict[tuple[object, ...], HourlyOffer] = {}
        self.names: dict[str, str] = {}
        self.left_out: Counter[str] = Counter()
        self.problems: list[Problem] = []

    def read(self, row: Row) -> None:
        given = row.cells["AcceleratorName"].strip()
        if not given:
            self.left_out["without accelerator"] += 1
            return
        if given.lower().startswith(_NO_GPU):
            self.left_out["with an accelerator that is no GPU"] += 1
            return
        if not row.cells["InstanceType"].strip():
            self.left_out["with the accelerator's price alone, its machine is billed apart"] += 1
            return
        count = self._number(row, "AcceleratorCount")
        gpu = self._id(given)
        if not is_id(gpu):
            self._problem(row, "AcceleratorName", "can't be made an id", "Rename it in the file")
        if count is not None and not _LEAST_SHARE <= count <= 10_000:
            self._problem(row, "AcceleratorCount", "is no count of GPUs", "Correct the count")
        elif count is not None and is_id(gpu):
            self.names[given] = gpu
            self._prices(row, gpu, count)

    def _id(self, given: str) -> str:
        if given not in self._ids:
            self._ids[given] = gpu_id(given, self._known)
        return self._ids[given]

    def _prices(self, row: Row, gpu: str, count: Decimal) -> None:
        priced = False
        for column, provisioning in (("Price", "on-demand"), ("SpotPrice", "spot")):
            price = self._number(row, column) if row.cells.get(column, "") else None
            if price is not None and 0 < price <= _ABSURD_USD_HOUR:
                priced = True
                self._add(self._offer(row, gpu, count, price, provisioning))
        if not priced:
            self.left_out["without price"] += 1

    def _offer(
        self, row: Row, gpu: str, count: Decimal, price: Decimal, provisioning: str
    ) -> HourlyOffer:
        provider, observed_on, source, name = self._facts
        with exact():
            # Cut only where the quotient has no end; the notes keep the instance's own price.
            each = (price / count).quantize(_DECIMALS, rounding=ROUND_HALF_UP)
        places = (row.cells["InstanceType"], row.cells["Region"], _zone(row))
        notes = f"{_text(price)} USD an hour for the whole instance of {_text(count)} GPU"
        if count < 1:
            notes += ", a share of one GPU"
        return HourlyOffer(
            provider=provider,
            gpu=gpu,
            gpus=Decimal(_text(count)),
            provisioning=provisioning,
            usd_per_gpu_hour=Decimal(_text(each)),
            product=", ".join(" ".join(place.split()) for place in places if place.strip()),
            observed_on=observed_on,
            source=source,
            notes=notes,
            catalogue=name,
            line=row.line,
        )

    def _add(self, offer: HourlyOffer) -> None:
        other = self.offers.setdefault(offer.cell, offer)
        if other is offer:
            return
        if other.usd_per_gpu_hour == offer.usd_per_gpu_hour:
            self.left_out["repeated"] += 1
        else:
            # Two prices for one instance and region: the file knows a difference it doesn't name.
            apart = offer._replace(product=f"{offer.product}, line {offer.line}")
            self.offers[apart.cell] = apart

    def _number(self, row: Row, column: str) -> Decimal | None:
        text = row.cells[column].strip()
        if _NUMBER.fullmatch(text):
            return Decimal(text)
        negative = text.startswith("-") and _NUMBER.fullmatch(text[1:])
        what = "is negative" if negative else "is empty" if not text else "is no number"
        self._problem(row, column, what, "Correct the row, or take it out")
        return None

    def _problem(self, row: Row, column: str, what: str, fix: str) -> None:
        shown = clean(row.cells[column], limit=40)
        self.problems.append(Problem(row.line, f"{column} '{shown}' {what}", fix))


def _zone(row: Row) -> str:
    return row.cells.get("AvailabilityZone", "")


def _text(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def offers_csv(offers: Iterable[HourlyOffer]) -> bytes:
    """Return offers as a price list of the hourly form, UTF-8 with commas."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HOURLY_COLUMNS)
    for offer in offers:
        writer.writerow(
            [
                offer.provider,
                offer.gpu,
                _text(offer.gpus),
                offer.provisioning,
                _text(offer.usd_per_gpu_hour),
                offer.product,
                offer.observed_on.isoformat(),
                offer.source,
                offer.notes,
            ]
        )
    return stream.getvalue().encode("utf-8")
