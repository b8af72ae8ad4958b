"""Prices that a commitment was made at, kept in the campaign whatever the catalogue says later.

One file a price, ``prices/<sha256 of its bytes>.json``: canonical JSON with the rows as the list
had them, the list's name and checksum. The name is the checksum, so an altered file is noticed.

Format history:

* 1 (2026-11-30): first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from gpucost_tui.errors import Differs, EnvironmentLacks, WrongUse
from gpucost_tui.files import canonical_json, sha256_bytes, write_atomic
from gpucost_tui.pricing.catalogue import Catalogue, PackPrice
from gpucost_tui.text import clean

FORMAT = 1


class FrozenPrices(NamedTuple):
    """Rows of one price list as they were: ``sha256`` is the file's, and its name."""

    sha256: str
    catalogue: str
    catalogue_sha256: str
    rows: tuple[PackPrice, ...]


def freeze(folder: Path, catalogue: Catalogue, rows: Sequence[PackPrice]) -> FrozenPrices:
    """Store the rows that a commitment uses, all of one list, and return them with the checksum.

    Args:
        folder: The campaign's ``prices`` folder; made where it is missing. The same rows of the
            same list give the same file.
        catalogue: The lists the rows come from.
        rows: At least one row.

    Raises:
        WrongUse: No row, or rows of several lists.
        EnvironmentLacks: The folder can't be written.
    """
    lists = {catalogue.file_of(row).sha256: catalogue.file_of(row) for row in rows}
    if len(lists) != 1:
        raise WrongUse("rows of exactly one price list are frozen together")
    source = next(iter(lists.values()))
    data = canonical_json(
        {
            "format": FORMAT,
            "catalogue": source.name,
            "catalogue_sha256": source.sha256,
            "rows": [_to_json(row) for row in rows],
        }
    )
    digest = sha256_bytes(data)
    path = folder / f"{digest}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_atomic(path, data)
    except OSError as error:
        raise EnvironmentLacks(
            f"the price can't be stored: {clean(error.strerror)}", where=clean(folder)
        ) from None
    return read_frozen(folder, digest)


def read_frozen(folder: Path, sha256: str) -> FrozenPrices:
    """Read frozen prices back, and check that they are what they were.

    Raises:
        Differs: The file is missing, altered, or of no known format.
    """
    path = folder / f"{sha256}.json"
    where = clean(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Differs(
            f"frozen prices can't be read: {clean(error.strerror)}", where=where
        ) from None
    if sha256_bytes(data) != sha256:
        raise Differs("frozen prices are no longer what was stored", where=where)
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise Differs(f"format {content['format']} of frozen prices is unknown", where=where)
        rows = tuple(_from_json(row, content["catalogue"]) for row in content["rows"])
        return FrozenPrices(sha256, content["catalogue"], content["catalogue_sha256"], rows)
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise Differs(
            f"frozen prices of an unknown form: {clean(error, limit=80)}", where=where
        ) from None


def all_frozen(folder: Path) -> list[FrozenPrices]:
    """Read everything in a ``prices`` folder, by name; no folder: nothing.

    Raises:
        Differs: A file was altered.
    """
    return [read_frozen(folder, path.stem) for path in sorted(folder.glob("*.json"))]


def _to_json(row: PackPrice) -> dict[str, Any]:
    return {
        "provider": row.provider,
        "gpu": row.gpu,
        "gpus_per_lot": row.gpus_per_lot,
        "days": row.days,
        "usd_per_lot": None if row.usd_per_lot is None else f"{row.usd_per_lot:f}",
        "catalogue_date": row.catalogue_date.isoformat(),
        "missing_reason": row.missing_reason,
        "line": row.line,
    }


def _from_json(row: dict[str, Any], catalogue: str) -> PackPrice:
    amount = row["usd_per_lot"]
    return PackPrice(
        provider=row["provider"],
        gpu=row["gpu"],
        gpus_per_lot=row["gpus_per_lot"],
        days=row["days"],
        usd_per_lot=None if amount is None else Decimal(amount),
        catalogue_date=date.fromisoformat(row["catalogue_date"]),
        missing_reason=row["missing_reason"],
        catalogue=catalogue,
        line=row["line"],
    )
