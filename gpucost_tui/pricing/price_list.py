"""One price list: its two forms, its rows, and every mistake with its line (R35, R42)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from gpucost_tui.pricing.amounts import PLAIN_FORM, plain
from gpucost_tui.pricing.gpus import is_id, spelled_otherwise
from gpucost_tui.pricing.sheets import Problem, Row, Sheet, read_sheet
from gpucost_tui.text import clean

#: The lengths that packs have (R34).
PACK_DAYS = (3, 7, 30)
PACK_COLUMNS = (
    "provider",
    "gpu",
    "gpus_per_lot",
    "days",
    "usd_per_lot",
    "catalogue_date",
    "missing_reason",
)
HOURLY_COLUMNS = (
    "provider",
    "gpu",
    "gpus",
    "provisioning",
    "usd_per_gpu_hour",
    "product",
    "observed_on",
    "source",
    "notes",
)


class PackPrice(NamedTuple):
    """The flat price of one lot for one pack; None with its reason where the source states none."""

    provider: str
    gpu: str
    gpus_per_lot: int
    days: int
    usd_per_lot: Decimal | None
    catalogue_date: date
    missing_reason: str
    catalogue: str  # name of the file it stands in
    line: int

    @property
    def cell(self) -> tuple[object, ...]:
        """What the price is for: at most one row of a list may have it."""
        return (self.provider, self.gpu, self.gpus_per_lot, self.days)


class HourlyOffer(NamedTuple):
    """A pay-as-you-go offer, observed on a day; the price is for one GPU and one hour.

    ``gpus`` is what is rented at once; below 1 it is a share of a GPU.
    """

    provider: str
    gpu: str
    gpus: Decimal
    provisioning: str  # on-demand or spot
    usd_per_gpu_hour: Decimal
    product: str
    observed_on: date
    source: str
    notes: str
    catalogue: str
    line: int

    @property
    def cell(self) -> tuple[object, ...]:
        """What the price is for: at most one row of a list may have it."""
        return (self.provider, self.gpu, self.gpus, self.provisioning, self.product)


class CatalogueFile(NamedTuple):
    """One price list as read: ``form`` is ``packs``, ``hourly`` or, where unreadable, empty."""

    name: str
    data: bytes
    form: str
    packs: tuple[PackPrice, ...]
    offers: tuple[HourlyOffer, ...]
    problems: tuple[Problem, ...]

    @property
    def sha256(self) -> str:
        """The SHA-256 of its bytes."""
        from gpucost_tui.files import sha256_bytes

        return sha256_bytes(self.data)

    @property
    def rows(self) -> tuple[PackPrice | HourlyOffer, ...]:
        """All its prices."""
        return (*self.packs, *self.offers)

    @property
    def dates(self) -> list[date]:
        """The dates in it, each once, oldest first."""
        days = [p.catalogue_date for p in self.packs] + [o.observed_on for o in self.offers]
        return sorted(set(days))


def parse(data: bytes, name: str, known_gpus: Iterable[str] = ()) -> CatalogueFile:
    """Read the bytes of a price list: rows, and every problem with its line.

    Args:
        data: The file's bytes.
        name: How the list is called in sentences.
        known_gpus: Ids that the list must not spell otherwise.
    """
    sheet = read_sheet(data)
    columns = set(sheet.columns)
    form = max(("packs", "hourly"), key=lambda f: len(columns & set(_COLUMNS[f])))
    problems = list(sheet.problems)
    if sheet.columns:
        problems += _column_problems(sheet, form)
    if problems and not _complete(sheet, form):
        return CatalogueFile(name, data, "", (), (), tuple(problems))
    reader = _Reader(name, tuple(known_gpus), problems)
    packs = tuple(filter(None, map(reader.pack, sheet.rows))) if form == "packs" else ()
    offers = tuple(filter(None, map(reader.offer, sheet.rows))) if form == "hourly" else ()
    if not sheet.rows and not problems:
        problems.append(Problem(1, "there is a header and no row", "Add at least one row"))
    problems.sort(key=lambda problem: problem.line)
    return CatalogueFile(name, data, form, packs, offers, tuple(problems))


_COLUMNS = {"packs": PACK_COLUMNS, "hourly": HOURLY_COLUMNS}


def _complete(sheet: Sheet, form: str) -> bool:
    return set(_COLUMNS[form]) <= set(sheet.columns)


def _column_problems(sheet: Sheet, form: str) -> list[Problem]:
    expected = ", ".join(_COLUMNS[form])
    unknown = [name for name in sheet.columns if name not in _COLUMNS[form]]
    if len(unknown) == len(sheet.columns):
        fix = f"Expected: {expected}; or {', '.join(HOURLY_COLUMNS)}"
        return [Problem(1, "the first line names no column of a price list", fix)]
    found = [
        Problem(1, f"unknown column '{clean(name, limit=40)}'", f"Expected: {expected}")
        for name in unknown[:20]
    ]
    lacking = [name for name in _COLUMNS[form] if name not in sheet.columns]
    return found + [
        Problem(1, f"column '{n}' is missing", f"Expected: {expected}") for n in lacking
    ]


class _Reader:
    """Turns the rows of one sheet into prices, and their mistakes into problems."""

    def __init__(self, name: str, known_gpus: tuple[str, ...], problems: list[Problem]) -> None:
        self._name = name
        self._known = known_gpus
        self._problems = problems
        self._seen: dict[tuple[object, ...], int] = {}

    def pack(self, row: Row) -> PackPrice | None:
        before = len(self._problems)
        provider, gpu = self._provider(row), self._gpu(row)
        lot = self._count(row, "gpus_per_lot")
        days = self._days(row)
        price = self._price(row, "usd_per_lot", may_be_empty=True)
        reason = row.cells["missing_reason"]
        if not row.cells["usd_per_lot"] and not reason.strip():
            self._problem(row, "the price is empty and no reason is given", "Fill missing_reason")
        if row.cells["usd_per_lot"] and reason.strip():
            self._problem(row, "a price and a reason why there is none", "Remove one of them")
        day = self._date(row, "catalogue_date")
        if len(self._problems) > before or day is None:
            return None
        made = PackPrice(provider, gpu, lot, days, price, day, reason, self._name, row.line)
        return made if self._first(made.cell, row) else None

    def offer(self, row: Row) -> HourlyOffer | None:
        before = len(self._problems)
        provider, gpu = self._provider(row), self._gpu(row)
        gpus = plain(row.cells["gpus"])
        if not gpus:
            self._problem(row, f"gpus {_shown(row, 'gpus')} is no number above 0", "Write 1 or 8")
        provisioning = row.cells["provisioning"]
        if provisioning not in ("on-demand", "spot"):
            what = f"provisioning {_shown(row, 'provisioning')} is neither on-demand nor spot"
            self._problem(row, what, "Write one of the two")
        price = self._price(row, "usd_per_gpu_hour", may_be_empty=False)
        for column in ("product", "source"):
            if not row.cells[column].strip():
                self._problem(row, f"{column} is empty", "Say what was offered, and where")
        day = self._date(row, "observed_on")
        if len(self._problems) > before or day is None or gpus is None or price is None:
            return None
        texts = (row.cells["source"], row.cells["notes"])
        product = row.cells["product"]
        made = HourlyOffer(
            provider, gpu, gpus, provisioning, price, product, day, *texts, self._name, row.line
        )
        return made if self._first(made.cell, row) else None

    def _problem(self, row: Row, what: str, fix: str) -> None:
        self._problems.append(Problem(row.line, what, fix))

    def _first(self, cell: tuple[object, ...], row: Row) -> bool:
        line = self._seen.setdefault(cell, row.line)
        if line != row.line:
            self._problem(row, f"the row is there already, on line {line}", "Keep one of them")
        return line == row.line

    def _provider(self, row: Row) -> str:
        name = row.cells["provider"]
        if not name.strip() or len(name) > 100:
            self._problem(row, "provider is empty or very long", "Name who sells it")
        return name

    def _gpu(self, row: Row) -> str:
        name = row.cells["gpu"]
        if not is_id(name):
            what = f"gpu {_shown(row, 'gpu')} is no id"
            self._problem(row, what, "Write lower case with hyphens, such as rtx-4090")
        elif name not in self._known:
            other = spelled_otherwise(name, self._known)
            if other:
                self._problem(row, f"gpu '{name}' is called '{other}' here", f"Write {other}")
        return name

    def _count(self, row: Row, column: str) -> int:
        text = row.cells[column]
        if text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= 10_000:
            return int(text)
        what = f"{column} {_shown(row, column)} is no whole number from 1 to 10,000"
        self._problem(row, what, "Write how many GPUs one lot holds")
        return 0

    def _days(self, row: Row) -> int:
        text = row.cells["days"]
        if text in ("3", "7", "30"):
            return int(text)
        what = f"days {_shown(row, 'days')} is no pack"
        self._problem(row, what, "Packs last 3, 7 or 30 days")
        return 0

    def _price(self, row: Row, column: str, *, may_be_empty: bool) -> Decimal | None:
        text = row.cells[column]
        price = plain(text)
        if price is None and (text or not may_be_empty):
            negative = text.startswith("-") and plain(text[1:]) is not None
            what = "is negative" if negative else "is no plain number"
            self._problem(row, f"{column} {_shown(row, column)} {what}", f"Write {PLAIN_FORM}")
        return price

    def _date(self, row: Row, column: str) -> date | None:
        text = row.cells[column]
        if not text:
            self._problem(row, f"{column} is missing", "Prices are dated: write 2026-09-24")
            return None
        day = iso_date(text)
        if day is None:
            what = f"{column} {_shown(row, column)} is no date"
            self._problem(row, what, "Write it like 2026-09-24")
        return day


def iso_date(text: str) -> date | None:
    """Return the date that ``YYYY-MM-DD`` names, or None."""
    if len(text) != 10 or not text.isascii() or text[4] + text[7] != "--":
        return None
    if not (text[:4] + text[5:7] + text[8:]).isdigit():
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _shown(row: Row, column: str) -> str:
    return f"'{clean(row.cells[column], limit=40)}'"
