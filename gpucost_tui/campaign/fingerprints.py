"""Fingerprints of what a campaign keeps beside its corpora's texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.corpus.fingerprint import Fingerprint
from gpucost_tui.corpus.read import read_tuning
from gpucost_tui.corpus.store import spelled
from gpucost_tui.text import clean
from gpucost_tui.watch import NOBODY, Watch


def columns_sha256(frame: pl.DataFrame, names: list[str], watch: Watch = NOBODY) -> dict[str, str]:
    """Return the fingerprint over (id, value) of each column; null counts as empty text.

    Args:
        frame: Has ``id`` and the columns, as :func:`gpucost_tui.corpus.store.sealed_frame` gives.
        names: Columns other than ``id``.
        watch: Is told of each column and its values.
    """
    prints = {}
    for name in names:
        print_ = Fingerprint()
        watch.stage(f"Reading column '{clean(name, limit=60)}'", frame.height)
        for key, value in watch.each(frame.select("id", name).iter_rows()):
            print_.update(key, spelled(value) or "")
        prints[name] = print_.hexdigest()
    return prints


def strata_sha256(strata: pl.DataFrame, watch: Watch = NOBODY) -> str:
    """Return the fingerprint of (id, tokens and stratum): it defines the planned subgroups."""
    print_ = Fingerprint()
    rows = strata.select("id", "tokens", "stratum").iter_rows()
    for key, tokens, stratum in watch.each(rows):
        print_.update(key, f"{tokens} {stratum or ''}")
    return print_.hexdigest()


def tuning_facts(path: Path, watch: Watch = NOBODY) -> dict[str, Any]:
    """Return ``rows`` and ``sha256`` of tuning data.

    Raises:
        InputError: With file and line.
    """
    print_, rows = Fingerprint(), 0
    watch.stage("Reading the tuning data")
    for row in watch.each(read_tuning([path])):
        print_.update(row.id or "", row.text)
        rows += 1
    return {"rows": rows, "sha256": print_.hexdigest()}
