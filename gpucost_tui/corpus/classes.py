"""Distribution of classes in the corpus and its strata, beside the declared source (R12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import polars as pl

from gpucost_tui.corpus.sources import columns_of
from gpucost_tui.errors import InputError
from gpucost_tui.text import clean, listed


@dataclass(frozen=True, slots=True)
class Distribution:
    """Entries of each class: of the whole corpus, and of each stratum by name."""

    overall: dict[str, int]
    strata: dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Deviation:
    """A class whose share deviates from the source's.

    ``stratum`` is None for the whole corpus. ``reason``: ``share`` (beyond the limit), ``absent``
    (the source declares it, the corpus lacks it) or ``undeclared`` (the other way round).
    """

    stratum: str | None
    label: str
    entries: int
    share: float
    source_share: float
    reason: Literal["share", "absent", "undeclared"]

    def __str__(self) -> str:
        where = "the corpus" if self.stratum is None else f"stratum '{clean(self.stratum)}'"
        label = clean(self.label, limit=80)
        if self.reason == "undeclared":
            return f"class '{label}' is in {where} ({self.share:.1%}) and not in the source"
        if self.reason == "absent":
            return f"class '{label}' is in the source ({self.source_share:.1%}) and not in {where}"
        return (
            f"class '{label}' is {self.share:.1%} of {where}, {self.source_share:.1%} of the source"
        )


def class_distribution(
    frame: pl.DataFrame, label_column: str, *, stratum_column: str = "stratum"
) -> Distribution:
    """Count the classes of a corpus.

    Args:
        frame: A row per entry; has the label column, and the stratum column where there are strata.
            An ``id`` column serves to name entries without a label.
        label_column: The class; values that are no text are counted by their spelling.

    Raises:
        InputError: The column is missing, or entries have no label; the first five are named.
    """
    if label_column not in frame.columns:
        raise InputError(
            f"the corpus has no label column '{clean(label_column)}' ({columns_of(frame.columns)})",
            fix="Name the column with the class in the protocol's [corpus] table, label_column",
        )
    labels = frame[label_column].cast(pl.String)
    unlabelled = labels.is_null() | (labels == "")
    if unlabelled.any():
        names = frame["id"].filter(unlabelled).to_list() if "id" in frame.columns else []
        raise InputError(
            f"{int(unlabelled.sum()):,} entries have no class in column '{clean(label_column)}'"
            + (f" (ids {listed(names)})" if names else ""),
            fix="Give every entry a class",
        )
    strata: dict[str, dict[str, int]] = {}
    if stratum_column in frame.columns:
        of = frame[stratum_column].cast(pl.String)
        for name in of.drop_nulls().unique(maintain_order=True):
            strata[name] = _counts(labels.filter(of == name))
    return Distribution(_counts(labels), strata)


def deviations(
    distribution: Distribution, source_distribution: Mapping[str, float], limit: float
) -> list[Deviation]:
    """Return every class that deviates by more than ``limit`` (a share), the whole corpus first.

    In the whole corpus a class that only one side has is always named, however small its share:
    it may be a typing mistake. Nothing deviates from a source that declares nothing. Shares are
    compared exactly, as the decimals in the protocol say.
    """
    if not source_distribution:
        return []
    found = _deviating(None, distribution.overall, source_distribution, limit)
    for name, counts in distribution.strata.items():
        found += _deviating(name, counts, source_distribution, limit)
    return found


def _deviating(
    stratum: str | None, counts: Mapping[str, int], source: Mapping[str, float], limit: float
) -> list[Deviation]:
    total = sum(counts.values())
    found = []
    for label in sorted({*counts, *source}):
        entries, declared = counts.get(label, 0), _exact(source.get(label, 0))
        share = Fraction(entries, total)
        beyond = abs(share - declared) > _exact(limit)
        reason: Literal["share", "absent", "undeclared"] = "share"
        if not entries and declared:
            reason = "absent"
        elif label not in source:
            reason = "undeclared"
        if beyond or (reason != "share" and stratum is None):
            found.append(Deviation(stratum, label, entries, float(share), float(declared), reason))
    return found


def _exact(share: float) -> Fraction:
    return Fraction(repr(share))


def _counts(labels: pl.Series) -> dict[str, int]:
    counts = labels.value_counts(name="entries").sort(labels.name)
    return dict(zip(counts[labels.name].to_list(), counts["entries"].to_list(), strict=True))
