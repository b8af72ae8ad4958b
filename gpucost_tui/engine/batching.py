"""Where a batch ends and how wide it is: one rule for the pass, its warm-up and ``check --try``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpucost_tui.protocol.execution import Execution


@dataclass(frozen=True, slots=True)
class Batching:
    """Entries of a batch and their padded length.

    ``batch_size`` entries, or, with a ``token_budget``, as many as fit that many tokens (padding
    included; one at least). ``fixed_width`` pads every batch to it; else the longest entry counts,
    rounded up to a multiple of ``multiple`` and at most ``max_length``.
    """

    batch_size: int
    max_length: int
    token_budget: int = 0
    multiple: int = 1
    fixed_width: int | None = None

    @classmethod
    def of(cls, execution: Execution) -> Batching:
        fixed = execution.max_length if execution.padding == "max_length" else None
        return cls(
            execution.batch_size,
            execution.max_length,
            execution.token_budget,
            execution.pad_multiple,
            fixed,
        )

    def width(self, longest: int) -> int:
        """Return the padded length of a batch whose longest entry has so many tokens."""
        if self.fixed_width is not None:
            return self.fixed_width
        rounded = -(-max(1, longest) // self.multiple) * self.multiple
        return max(longest, min(rounded, self.max_length))

    def cutter(self) -> Cutter:
        return Cutter(self)

    def starts(self, lengths: Iterable[int]) -> np.ndarray:
        """Return the index of each batch's first entry, for lengths in the order of the pass."""
        cutter = self.cutter()
        found = [k for k, length in enumerate(lengths) if cutter.begins(int(length))]
        return np.asarray(found, dtype=np.int64)

    @property
    def pads(self) -> bool:
        """Whether a batch may need a pad token."""
        several = self.batch_size > 1 or self.token_budget > 0
        return several or self.multiple > 1 or self.fixed_width is not None


class Cutter:
    """Takes lengths one after another and tells which entry begins a batch."""

    def __init__(self, rule: Batching) -> None:
        self._rule = rule
        self._entries = 0
        self._longest = 0

    def begins(self, length: int) -> bool:
        """Take the next entry; return whether it is the first of a batch."""
        longest = max(self._longest, length)
        if self._entries and self._fits(longest):
            self._entries += 1
            self._longest = longest
            return False
        self._entries, self._longest = 1, length
        return True

    def _fits(self, longest: int) -> bool:
        rule = self._rule
        if rule.token_budget:
            return (self._entries + 1) * rule.width(longest) <= rule.token_budget
        return self._entries < rule.batch_size
