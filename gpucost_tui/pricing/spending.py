"""Other real spending: apart, with its reason, for every configuration or for none (R37)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from gpucost_tui.errors import InputError, Refused, WrongUse
from gpucost_tui.pricing.amounts import exact, usd
from gpucost_tui.text import clean, listed, money

_FORM = 'Write it as [[spending]] with configuration = "...", usd = "12.50", reason = "..."'


class Spending(NamedTuple):
    """One expense beside the packs: never part of the committed amount, never divided."""

    configuration: str
    usd: Decimal
    reason: str


def spending(configuration: str, amount: int | str, reason: str) -> Spending:
    """Return an expense given by hand.

    Raises:
        WrongUse: No configuration, no reason, or no amount with at most two decimals.
    """
    if not configuration.strip():
        raise WrongUse("a configuration is named", where="--configuration")
    if not reason.strip():
        raise WrongUse("an expense has its reason", where="--reason", fix="Say what was paid for")
    return Spending(configuration, usd(amount, "--usd"), reason)


def spending_from_tables(tables: Any, where: str) -> list[Spending]:
    """Return the expenses of a plan file's ``[[spending]]`` tables.

    Args:
        tables: What TOML gave for the key ``spending``.
        where: The file, for sentences.

    Raises:
        InputError: A table has an unknown, missing or impossible value.
    """
    if not isinstance(tables, list):
        raise InputError("spending is no list of tables", where=where, fix=_FORM)
    rows = []
    for number, table in enumerate(tables, 1):
        at = f"{where}, spending {number}"
        if not isinstance(table, dict) or set(table) != {"configuration", "usd", "reason"}:
            raise InputError("configuration, usd and reason are expected", where=at, fix=_FORM)
        values = (table["configuration"], table["reason"])
        if not all(isinstance(value, str) for value in values) or isinstance(table["usd"], float):
            raise InputError("a value has the wrong type", where=at, fix=_FORM)
        try:
            rows.append(spending(table["configuration"], table["usd"], table["reason"]))
        except WrongUse as error:
            raise InputError(error.what, where=at, fix=_FORM) from None
    return rows


def lacking(configurations: Sequence[str], rows: Iterable[Spending]) -> tuple[str, ...]:
    """Return the configurations without an expense, where others have one; else nothing."""
    named = {row.configuration for row in rows}
    without = tuple(name for name in configurations if name not in named)
    return without if len(without) < len(configurations) else ()


def require_all_or_none(configurations: Sequence[str], rows: Sequence[Spending]) -> None:
    """Refuse a mixture: other spending is listed for every configuration or for none (R37).

    Raises:
        Refused: Some configurations have none, while others have; the sentence names them.
        WrongUse: An expense names no configuration of the comparison.
    """
    strange = sorted({row.configuration for row in rows} - set(configurations))
    if strange:
        raise WrongUse(
            f"spending is stated for what is no configuration here: {listed(strange)}",
            fix=f"Configurations: {listed(list(configurations), limit=10)}",
        )
    without = lacking(configurations, rows)
    if without:
        raise Refused(
            "other spending is stated for some configurations and not for: "
            f"{listed(list(without), limit=10)} (R37)",
            fix="State it for every configuration (0.00 with a reason is a statement), or for none",
        )


def spending_json(configuration: str, rows: Iterable[Spending]) -> dict[str, object] | None:
    """Return a configuration's expenses, apart from the commitment; None where there is none."""
    own = [row for row in rows if row.configuration == configuration]
    if not own:
        return None
    with exact():
        total = sum((row.usd for row in own), Decimal(0))
    return {
        "total_usd": money(total),
        "rows": [{"usd": money(row.usd), "reason": row.reason} for row in own],
    }


def spending_line(row: Spending) -> str:
    """Return an expense as one line for people."""
    return f"{clean(row.configuration)}: {money(row.usd)} USD, {clean(row.reason)}"
