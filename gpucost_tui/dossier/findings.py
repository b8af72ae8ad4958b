"""What a verification found: differences, counts of what was checked, what could not be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: Differences of one file that are named one by one; the rest is counted.
NAMED = 20
#: Relative difference below which two recomputed figures are equal: sums of floating-point numbers
#: in another order, on another processor.
CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not what it should be. ``expected`` and ``found`` are words for people."""

    where: str
    expected: str
    found: str

    def to_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(slots=True)
class Findings:
    """Collects while a campaign is verified. ``prefix`` tells several campaigns apart."""

    differences: list[Difference] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    not_checkable: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    prefix: str = ""

    def differs(self, where: str, expected: object, found: object) -> None:
        """Record a difference; each is kept once."""
        one = Difference(f"{self.prefix}{where}", _said(expected), _said(found))
        if one not in self.differences:
            self.differences.append(one)

    def compare(self, where: str, expected: Any, found: Any) -> None:
        """Compare two JSON values leaf by leaf; name at most :data:`NAMED` leaves that differ."""
        leaves = list(leaf_differences(where, expected, found))
        for place, wanted, there in leaves[:NAMED]:
            self.differs(place, wanted, there)
        if len(leaves) > NAMED:
            more = len(leaves) - NAMED
            self.differs(where, "no other difference", f"{more:,} more places differ")

    def cannot(self, sentence: str) -> None:
        """Record what could not be recomputed here, and why."""
        self.not_checkable.append(f"{self.prefix}{sentence}")

    def note(self, sentence: str) -> None:
        """Record what a reader should know and is no difference."""
        self.notes.append(f"{self.prefix}{sentence}")

    def named(self, prefix: str) -> Findings:
        """Return the same with a prefix before every place and sentence."""
        return Findings(
            [Difference(prefix + d.where, d.expected, d.found) for d in self.differences],
            self.checked,
            [prefix + sentence for sentence in self.not_checkable],
            [prefix + sentence for sentence in self.notes],
        )

    def merge(self, other: Findings) -> None:
        """Take over what another collection holds."""
        self.differences += other.differences
        self.checked += other.checked
        self.not_checkable += other.not_checkable
        self.notes += other.notes


def leaf_differences(where: str, expected: Any, found: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (place, expected, found) for every leaf of two JSON values that differs."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in dict.fromkeys([*expected, *found]):
            if key not in found:
                yield f"{where}, {key}", expected[key], "absent"
            elif key not in expected:
                yield f"{where}, {key}", "absent", found[key]
            else:
                yield from leaf_differences(f"{where}, {key}", expected[key], found[key])
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True), 1):
            yield from leaf_differences(f"{where}, item {number}", one, other)
    elif not _equal(expected, found):
        yield where, expected, found


def _equal(expected: Any, found: Any) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, float) and isinstance(found, int | float):
        return math.isclose(expected, found, rel_tol=CLOSE, abs_tol=1e-12)
    return type(expected) is type(found) and bool(expected == found)


def _said(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
