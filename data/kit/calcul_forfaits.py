#!/usr/bin/env python3
"""Prices flat GPU packs, and the cost per accepted corpus. Standard library only, Python >= 3.10.

    python calcul_forfaits.py --gpu rtx-4090 --days 7 --lots 2
    python calcul_forfaits.py --gpu rtx-4090 --days 7 --lots 2 --accepted-results 4

Prices come from tarifs-forfaits.csv in the same folder: one row per provider, GPU, lot size and
pack; an empty price has its reason. A pack is paid whole: price of one lot x number of lots. The
GPUs of a lot are in its price and are never multiplied by again. The number of accepted corpora
is what you state; this program reads neither predictions nor metrics.

Exit status: 0 done, 1 the price list has no price for it, 2 wrong use.
"""

from __future__ import annotations

import argparse
import csv
import decimal
import difflib
import io
import os
import re
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import NoReturn

PRICES = Path(__file__).resolve().with_name("tarifs-forfaits.csv")
COLUMNS = (
    "provider",
    "gpu",
    "gpus_per_lot",
    "days",
    "usd_per_lot",
    "catalogue_date",
    "missing_reason",
)


class Stop(Exception):
    """A sentence for the person at the keyboard, and the exit status."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Parser(argparse.ArgumentParser):
    """Argument errors in one sentence, without the usage block."""

    def error(self, message: str) -> NoReturn:
        raise Stop(2, f"{message}. See --help.")


def shown(text: str) -> str:
    """Return text that can't steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:60])


def whole(text: str, name: str, low: int, high: int) -> int:
    """Read a whole number written with ASCII digits only."""
    if re.fullmatch(r"[0-9]{1,20}", text) and low <= int(text) <= high:
        return int(text)
    raise Stop(2, f"'{shown(text)}': {name} is a whole number from {low:,} to {high:,}.")


def read_prices(path: Path) -> list[dict[str, str]]:
    """Read the price list; each row gets its line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        rows = [dict(row, line=str(reader.line_num)) for row in reader]
    except OSError as error:
        raise Stop(2, f"{path.name} can't be read: {error.strerror}. Keep it beside me.") from None
    except UnicodeDecodeError:
        raise Stop(2, f"{path.name} is not UTF-8. Save it as CSV in UTF-8.") from None
    except csv.Error as error:
        raise Stop(2, f"{path.name} is no CSV file: {error}. Save it as CSV with commas.") from None
    if not reader.fieldnames or sorted(reader.fieldnames) != sorted(COLUMNS):
        raise Stop(2, f"{path.name}, line 1: the columns are {', '.join(COLUMNS)}, with commas.")
    if not rows:
        raise Stop(2, f"{path.name} has a header and no row.")
    for row in rows:
        check_row(row, path.name)
    return rows


def check_row(row: dict[str, str], name: str) -> None:
    """Refuse a row that can't be priced and doesn't say why."""
    where = f"{name}, line {row['line']}"
    if None in row or None in row.values():
        raise Stop(2, f"{where}: not as many cells as the header has columns.")
    price, lot = row["usd_per_lot"], row["gpus_per_lot"]
    if price and not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,20})?", price):
        raise Stop(2, f"{where}: usd_per_lot '{shown(price)}' is no price such as 110.00.")
    if not price and not row["missing_reason"].strip():
        raise Stop(2, f"{where}: the price is empty and missing_reason does not say why.")
    if not re.fullmatch(r"[0-9]{1,5}", lot) or int(lot) < 1:
        raise Stop(2, f"{where}: gpus_per_lot '{shown(lot)}' is no whole number from 1.")
    if not row["catalogue_date"]:
        raise Stop(2, f"{where}: catalogue_date is missing. Prices are dated.")


def find(rows: list[dict[str, str]], gpu: str, days: int, provider: str | None) -> dict[str, str]:
    """Return the cheapest priced row by lot for a GPU and pack, or stop with the reason."""
    known = sorted({row["gpu"] for row in rows})
    if gpu not in known:
        plain = {re.sub(r"[^a-z0-9]", "", name): name for name in known}
        near = difflib.get_close_matches(re.sub(r"[^a-z0-9]", "", gpu.lower()), plain, n=2)
        hint = " or ".join(plain[key] for key in near)
        fix = f"Did you mean {hint}? It is not taken by itself." if near else ""
        listed = ", ".join(known)
        raise Stop(2, f"unknown GPU '{shown(gpu)}'. {fix or f'There are: {listed}.'}")
    cells = [r for r in rows if r["gpu"] == gpu and r["days"] == str(days)]
    cells = [r for r in cells if provider in (None, r["provider"])]
    priced = [row for row in cells if row["usd_per_lot"]]
    if priced:
        return min(priced, key=lambda row: (Decimal(row["usd_per_lot"]), row["provider"]))
    if not cells:
        raise Stop(1, f"{PRICES.name} has no {days}-day pack of {gpu}.")
    told = "; ".join(
        f"{shown(row['provider'])}, {gpu}, {days} days, line {row['line']} "
        f"(catalogue of {shown(row['catalogue_date'])}): {shown(row['missing_reason'])}"
        for row in cells
    )
    raise Stop(1, f"the price list has no price for it. {told}.")


def money(amount: Decimal) -> str:
    """Round half up to two decimals: only here, where it is shown."""
    return str(amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))


def answer(arguments: argparse.Namespace) -> list[str]:
    """Return the lines to print."""
    lots = whole(arguments.lots, "lots", 1, 10_000)
    accepted = None
    if arguments.accepted_results is not None:
        accepted = whole(arguments.accepted_results, "accepted results", 0, 1_000_000)
    if arguments.days not in ("3", "7", "30"):
        raise Stop(2, f"'{shown(arguments.days)}': packs last 3, 7 or 30 days.")
    row = find(read_prices(PRICES), arguments.gpu, int(arguments.days), arguments.provider)
    gpus = int(row["gpus_per_lot"]) * lots
    committed = Decimal(row["usd_per_lot"]) * lots
    lines = [
        f"flat {money(committed)} USD for {gpus} GPU{'' if gpus == 1 else 's'}",
        f"  {row['gpu']}, {row['days']} days, {lots} lot{'' if lots == 1 else 's'} of "
        f"{row['gpus_per_lot']} GPU{'' if row['gpus_per_lot'] == '1' else 's'}, "
        f"{money(Decimal(row['usd_per_lot']))} USD a lot",
        f"  {shown(row['provider'])}, catalogue of {shown(row['catalogue_date'])}",
    ]
    if accepted is None:
        return [*lines, "no count of accepted results: no cost per result is invented"]
    if accepted == 0:
        said = "undefined: no corpus accepted; the amount stays committed"
    else:
        said = f"{money(committed / accepted)} USD"
    return [
        *lines,
        f"cost per accepted corpus: {said}",
        f"  {accepted} accepted, as stated by you; count and quality are as stated by you:",
        "  neither predictions nor metrics are read here",
    ]


def main() -> int:
    """Run the command; return its exit status."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", required=True, help="id of the GPU, such as rtx-4090")
    parser.add_argument("--days", required=True, help="length of the pack: 3, 7 or 30")
    parser.add_argument("--lots", default="1", help="number of lots (default: 1)")
    parser.add_argument(
        "--accepted-results", help="distinct accepted corpora; leave it out until they exist"
    )
    parser.add_argument("--provider", help="only this provider's packs")
    decimal.getcontext().prec = 90
    # A provider's name may be in letters that the terminal's encoding lacks.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        print("\n".join(answer(parser.parse_args())), flush=True)
    except Stop as stop:
        print(f"calcul_forfaits: {stop}", file=sys.stderr)
        return stop.status
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing is left to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"calcul_forfaits: the answer can't be written: {error.strerror}.", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
