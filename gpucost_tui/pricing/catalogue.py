"""The price lists in force: flat packs by lot, and hourly offers as dated facts (R35, R42).

A price list is a CSV file of one of two forms, told by its header (``PACK_COLUMNS`` and
``HOURLY_COLUMNS`` of :mod:`gpucost_tui.pricing.price_list`). Three places are read, nearest
first: files named with ``--catalogue`` (then only those, for their form), the files kept by
``gpucost catalogue add``, and the two that ship with the program. Where several lists have the
same cell (provider, GPU, lot, days), the nearest speaks for it, even where it says that there is
no price; every price that is shown names its list and date.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gpucost_tui import resources
from gpucost_tui.errors import InputError, WrongUse
from gpucost_tui.pricing import kept
from gpucost_tui.pricing.gpus import known_gpu
from gpucost_tui.pricing.price_list import PACK_DAYS, CatalogueFile, HourlyOffer, PackPrice, parse
from gpucost_tui.pricing.sheets import read_bytes, refuse
from gpucost_tui.text import clean, listed

__all__ = [
    "PACK_DAYS",
    "Catalogue",
    "CatalogueFile",
    "HourlyOffer",
    "PackPrice",
    "assembled",
    "built_in",
    "checked",
    "kept_catalogues",
    "load",
    "read_catalogue",
    "vocabulary",
]

#: The shipped files: their GPU ids are the vocabulary that other lists are held to.
BUILT_IN = ("pack-prices.csv", "hourly-offers.csv")


class Catalogue(NamedTuple):
    """The price lists in force, nearest first, and for every cell the row that speaks for it."""

    files: tuple[CatalogueFile, ...]
    packs: tuple[PackPrice, ...]
    offers: tuple[HourlyOffer, ...]

    @property
    def rows(self) -> tuple[PackPrice | HourlyOffer, ...]:
        """All prices that speak."""
        return (*self.packs, *self.offers)

    def gpus(self) -> tuple[str, ...]:
        """Return the ids of all GPUs named, with a price or without."""
        return tuple(sorted({row.gpu for row in self.rows}))

    def providers(self) -> tuple[str, ...]:
        """Return the names of all providers."""
        return tuple(sorted({row.provider for row in self.rows}))

    def known_gpu(self, name: str) -> str:
        """Return the id; see :func:`gpucost_tui.pricing.gpus.known_gpu` for what it raises."""
        return known_gpu(name, self.gpus())

    def known_provider(self, name: str) -> str:
        """Return the name.

        Raises:
            WrongUse: No list names such a provider.
        """
        if name not in self.providers():
            raise WrongUse(
                f"the catalogue knows no provider '{clean(name, limit=60)}'",
                where="--provider",
                fix=f"Providers: {listed(self.providers(), limit=12)}",
            )
        return name

    def file_of(self, row: PackPrice | HourlyOffer) -> CatalogueFile:
        """Return the list that a row stands in."""
        return next(f for f in self.files if row in f.rows)


def load(paths: Sequence[Path] = ()) -> Catalogue:
    """Read the price lists in force.

    Args:
        paths: Files named by the user: those of a form replace all other lists of that form.

    Raises:
        InputError: A list has a mistake; it is named with its line.
    """
    named = [read_catalogue(path) for path in paths]
    replaced = {file.form for file in named}
    others = [] if replaced == {"packs", "hourly"} else [*kept_catalogues(), *built_in()]
    return assembled([*named, *(file for file in others if file.form not in replaced)])


def assembled(files: Sequence[CatalogueFile]) -> Catalogue:
    """Lay lists over each other, nearest first: a cell is taken from the first that has it."""
    packs: dict[tuple[object, ...], PackPrice] = {}
    offers: dict[tuple[object, ...], HourlyOffer] = {}
    for file in files:
        for pack in file.packs:
            packs.setdefault(pack.cell, pack)
        for offer in file.offers:
            offers.setdefault(offer.cell, offer)
    return Catalogue(tuple(files), tuple(packs.values()), tuple(offers.values()))


def built_in() -> list[CatalogueFile]:
    """Read the two lists that ship with the program."""
    files = [parse(read_bytes(resources.file("data", name)), name) for name in BUILT_IN]
    for file in files:
        refuse(file.name, file.problems)
    return files


def kept_catalogues() -> list[CatalogueFile]:
    """Read the user's kept lists, the one with the latest date first.

    Raises:
        InputError: One was damaged after it was added.
    """
    files = [_kept(path) for path in kept.kept_files()]
    return sorted(files, key=lambda file: (-file.dates[-1].toordinal(), file.name))


def _kept(path: Path) -> CatalogueFile:
    try:
        return read_catalogue(path, read_bytes(path, regular=True))
    except InputError as error:
        remove = f"or forget it: 'gpucost catalogue remove {clean(path.name)}'"
        raise InputError(error.what, where=error.where, fix=f"{error.fix}, {remove}") from None


def read_catalogue(path: Path, data: bytes | None = None) -> CatalogueFile:
    """Read a user's price list.

    Args:
        path: The file.
        data: Its bytes, where they were read already.

    Raises:
        InputError: With the first mistake and its line, and the number of others.
    """
    file = checked(path, data)
    refuse(str(path), file.problems)
    return file


def checked(path: Path, data: bytes | None = None) -> CatalogueFile:
    """Read a user's price list with all its problems.

    Raises:
        InputError: The file can't be read at all.
    """
    return parse(read_bytes(path) if data is None else data, path.name, vocabulary())


def vocabulary() -> frozenset[str]:
    """Return the ids of GPUs as the shipped lists spell them."""
    return frozenset(row.gpu for file in built_in() for row in file.rows)
