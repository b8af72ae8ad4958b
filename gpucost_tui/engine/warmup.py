"""Which batches warm a pass up: one rule for every variant (R15).

The rule works on the batches that the pass will really have, so it knows their shapes: number of
entries, padded length, and whether anything is padded at all (with and without a mask, attention
takes different kernels). Their texts are the corpus's own; what they predict is thrown away.

* ``every-shape``: every distinct shape. A corpus has at most about as many as ``max_length``, so
  this costs little beside a large pass, and up to a pass where the corpus is small.
* ``spread``: :data:`SPREAD_SHAPES` of them, taken evenly by length, both ends included. Eager
  kernels are chosen by ranges of sizes and recompile nothing, so for them the ends and what lies
  between warm libraries, kernels and allocator.
* ``longest``: the longest shape.
* ``first-batch``: the first batch.

The last batch is always in, where it is smaller than the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpucost_tui.engine.batching import Batching

#: Shapes that the rule ``spread`` warms at most.
SPREAD_SHAPES = 16


@dataclass(frozen=True, slots=True)
class Plan:
    """Batches as positions of entries (0-based), and how many shapes the pass has."""

    batches: tuple[np.ndarray, ...]
    shapes: int
    covered: int

    def describe(self, inputs: str, passes: int) -> str:
        """Return what was warmed, for the row's notes."""
        times = "once" if passes == 1 else f"{passes} times"
        return f"warm-up ({inputs}): {self.covered} of {self.shapes} shapes, {times}"


def traversal(lengths: np.ndarray, grouping: str) -> np.ndarray:
    """Return positions of entries in the order of the pass.

    ``length`` puts the longest first: what doesn't fit in memory shows at once, and the allocator
    grows once. Entries of one length keep their order.
    """
    if grouping == "length":
        return np.argsort(-lengths.astype(np.int64), kind="stable")
    return np.arange(len(lengths))


def plan(lengths: np.ndarray, *, batching: Batching, grouping: str, inputs: str) -> Plan:
    """Choose the warm-up batches.

    Args:
        lengths: Tokens of each entry after truncation, in the corpus's order.
        batching: Where a batch ends, and how wide it is.
        grouping: ``none`` or ``length``.
        inputs: The protocol's ``warmup.inputs``.
    """
    if not len(lengths):
        return Plan((), 0, 0)
    order = traversal(lengths, grouping)
    inside = lengths[order]
    starts = batching.starts(inside.tolist())
    longest = np.maximum.reduceat(inside, starts)
    widths = np.array([batching.width(int(one)) for one in longest])
    padded = np.minimum.reduceat(inside, starts) < widths
    ends = np.append(starts[1:], len(order))
    sizes = ends - starts
    # np.unique sorts the shapes by their first column, the padded length.
    _, firsts, kinds = np.unique(
        np.stack([widths, sizes, padded], axis=1), axis=0, return_index=True, return_inverse=True
    )
    chosen = _chosen(firsts, inputs)
    if sizes[-1] < sizes.max() and inputs != "every-shape":
        chosen.add(len(starts) - 1)
    numbers = sorted(chosen)
    batches = tuple(order[starts[n] : ends[n]] for n in numbers)
    return Plan(batches, len(firsts), len(np.unique(kinds.reshape(-1)[numbers])))


def _chosen(firsts: np.ndarray, inputs: str) -> set[int]:
    """Choose batch numbers; ``firsts`` has the first batch of each shape, shortest shape first."""
    if inputs == "first-batch":
        return {0}
    if inputs == "longest":
        return {int(firsts[-1])}
    if inputs == "every-shape":
        return {int(number) for number in firsts}
    ranks = np.linspace(0, len(firsts) - 1, min(SPREAD_SHAPES, len(firsts))).round().astype(int)
    return {int(number) for number in firsts[ranks]}
