"""Frozen prices, and other spending (R35, R37)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pricing_support import packs, shipped

from gpucost_tui.errors import Differs, EnvironmentLacks, InputError, Refused, WrongUse
from gpucost_tui.pricing.calculator import NoPrice, cells_for, quote
from gpucost_tui.pricing.catalogue import assembled
from gpucost_tui.pricing.frozen import all_frozen, freeze, read_frozen
from gpucost_tui.pricing.spending import (
    require_all_or_none,
    spending,
    spending_from_tables,
    spending_json,
)


def test_frozen_prices_outlive_the_catalogue(tmp_path: Path) -> None:
    folder = tmp_path / "campaign" / "prices"
    old = packs("mine,b200,2,7,2071.005,2026-09-24,", "mine,b200,2,3,,2026-09-24,not stated")
    kept = freeze(folder, old, old.packs)
    assert freeze(folder, old, old.packs) == kept
    new = packs("mine,b200,2,7,9999.00,2026-11-30,")
    again = freeze(folder, new, new.packs)
    assert len(list(folder.iterdir())) == 2
    assert read_frozen(folder, kept.sha256) == kept
    assert kept.rows == old.packs
    assert kept.catalogue_sha256 == old.files[0].sha256 != again.catalogue_sha256
    assert quote(kept.rows[0], 2).committed_usd == Decimal("4142.01")
    assert kept.rows[0].catalogue_date.isoformat() == "2026-09-24"
    with pytest.raises(NoPrice, match="not stated"):
        quote(kept.rows[1], 1)
    assert {f.sha256 for f in all_frozen(folder)} == {kept.sha256, again.sha256}
    assert all_frozen(tmp_path / "none") == []


def test_an_altered_price_is_noticed(tmp_path: Path) -> None:
    catalogue = shipped()
    kept = freeze(tmp_path, catalogue, cells_for(catalogue, "rtx-4090", 7))
    path = tmp_path / f"{kept.sha256}.json"
    path.write_bytes(path.read_bytes().replace(b"110.00", b"100.00"))
    with pytest.raises(Differs, match="no longer what was stored"):
        read_frozen(tmp_path, kept.sha256)
    with pytest.raises(Differs):
        all_frozen(tmp_path)
    path.unlink()
    with pytest.raises(Differs, match="can't be read"):
        read_frozen(tmp_path, kept.sha256)


@pytest.mark.parametrize("content", [b"{}", b"[]", b"null", b"torn", b'{"format":2}', b"\xff"])
def test_files_of_no_known_form_are_refused(content: bytes, tmp_path: Path) -> None:
    from gpucost_tui.files import sha256_bytes

    (tmp_path / f"{sha256_bytes(content)}.json").write_bytes(content)
    with pytest.raises(Differs):
        all_frozen(tmp_path)


def test_what_can_not_be_frozen(tmp_path: Path) -> None:
    one, two = packs("a,b200,1,7,1,2026-10-01,"), packs("b,b200,1,7,2,2026-10-01,")
    both = assembled([*one.files, *two.files])
    with pytest.raises(WrongUse, match="one price list"):
        freeze(tmp_path, both, both.packs)
    with pytest.raises(WrongUse):
        freeze(tmp_path, both, [])
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentLacks):
        freeze(tmp_path / "file", one, one.packs)


def test_a_mixture_of_spending_is_refused_and_named() -> None:
    rows = [spending("batch-8", "12.50", "storage"), spending("batch-8", 3, "egress")]
    require_all_or_none(["batch-8"], rows)
    require_all_or_none(["batch-8", "batch-4"], [])
    with pytest.raises(Refused, match=r"not for: batch-4, batch-1 \(R37\)"):
        require_all_or_none(["batch-8", "batch-4", "batch-1"], rows)
    with pytest.raises(WrongUse, match="no configuration here: batch-8"):
        require_all_or_none(["batch-4"], rows)
    assert spending_json("batch-8", rows) == {
        "total_usd": "15.50",
        "rows": [{"usd": "12.50", "reason": "storage"}, {"usd": "3.00", "reason": "egress"}],
    }
    assert spending_json("batch-4", rows) is None
    require_all_or_none(["batch-8", "x"], [*rows, spending("x", "0.00", "there was none")])


@pytest.mark.parametrize("amount", ["-1", "1e3", "NaN", "1.005", "٧", "+5", " 5", "", "1,50", True])
def test_amounts_by_hand(amount: str) -> None:
    with pytest.raises(WrongUse, match="US dollars"):
        spending("a", amount, "disk")


@pytest.mark.parametrize(
    ("configuration", "reason"), [("", "disk"), (" ", "x"), ("a", ""), ("a", "\n")]
)
def test_an_expense_has_configuration_and_reason(configuration: str, reason: str) -> None:
    with pytest.raises(WrongUse):
        spending(configuration, "1.00", reason)


@pytest.mark.parametrize(
    "tables",
    [
        3,
        ["x"],
        [{}],
        [{"configuration": "a", "usd": "1", "reason": "x", "more": 1}],
        [{"configuration": "a", "usd": 1.5, "reason": "x"}],
        [{"configuration": 1, "usd": "1", "reason": "x"}],
        [{"configuration": "a", "usd": "1.005", "reason": "x"}],
        [{"configuration": "a", "usd": "1", "reason": ""}],
    ],
)
def test_spending_tables_are_located(tables: object) -> None:
    with pytest.raises(InputError, match=r"plan\.toml"):
        spending_from_tables(tables, "plan.toml")
