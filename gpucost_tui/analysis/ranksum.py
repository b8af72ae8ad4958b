"""The exact distribution behind the Hodges-Lehmann interval, and Holm's correction.

Sources: E. L. Lehmann, *Nonparametrics: Statistical Methods Based on Ranks* (1975), chapters 1
and 2 (distribution of the Mann-Whitney count U, interval from ordered differences);
S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
Statistics 6 (1979).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Above this product of the two numbers of durations the normal approximation with continuity
#: correction stands in for the exact distribution; its error there is far below the 1 % used.
EXACT_PRODUCT = 3600


@functools.lru_cache(maxsize=256)
def lower_tail(n: int, m: int) -> NDArray[np.float64]:
    """Return P(U <= u) for u = 0 … n·m when both samples come from one distribution, exactly.

    U counts the pairs (x, y) with y below x, out of n values x and m values y. By the recurrence
    over the sample that the greatest value belongs to; it only adds, so no digits cancel.

    Raises:
        ValueError: A sample is empty.
    """
    if n < 1 or m < 1:
        raise ValueError("each sample needs at least one value")
    # shares[j] is the distribution for i values x and j values y.
    shares = [np.ones(1) for _ in range(m + 1)]
    for i in range(1, n + 1):
        shares[0] = np.ones(1)
        for j in range(1, m + 1):
            found = np.zeros(i * j + 1)
            found[j:] += shares[j] * (i / (i + j))
            found[: i * (j - 1) + 1] += shares[j - 1] * (j / (i + j))
            shares[j] = found
    tail: NDArray[np.float64] = np.minimum(np.cumsum(shares[m]), 1.0)
    return tail


def tail_at(n: int, m: int, u: int) -> float:
    """Return P(U <= u), beyond :data:`EXACT_PRODUCT` by the normal approximation."""
    if n * m <= EXACT_PRODUCT:
        return float(lower_tail(n, m)[u])
    from scipy.special import ndtr

    return float(ndtr((u + 0.5 - n * m / 2) / _spread(n, m)))


def _rank(n: int, m: int, alpha: float) -> int:
    """Return the greatest k with 2·P(U <= k - 1) <= alpha; 0 where there is none."""
    if n * m <= EXACT_PRODUCT:
        return int((2 * lower_tail(n, m) <= alpha).sum())
    from scipy.special import ndtri

    return max(0, math.floor(n * m / 2 - 0.5 + float(ndtri(alpha / 2)) * _spread(n, m)) + 1)


def _spread(n: int, m: int) -> float:
    return math.sqrt(n * m * (n + m + 1) / 12)


def p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the smallest alpha whose two-sided Hodges-Lehmann interval leaves out zero.

    Equal values count against a difference on either side, so ties make it larger, never smaller.
    """
    differences = np.subtract.outer(np.asarray(b, float), np.asarray(a, float))
    u = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * tail_at(len(a), len(b), u))


def shift_interval(
    a: Sequence[float], b: Sequence[float], alpha: float
) -> tuple[float, float] | None:
    """Return the Hodges-Lehmann interval of the difference b - a at confidence 1 - alpha.

    It reaches from the k-th smallest to the k-th greatest of all differences b_j - a_i, k being
    the greatest with 2·P(U <= k - 1) <= alpha. ``None``: so few durations allow none.
    """
    differences = np.sort(np.subtract.outer(np.asarray(b, float), np.asarray(a, float)).ravel())
    k = _rank(len(a), len(b), alpha)
    # In the upper half of the distribution every order statistic would cross its partner.
    if k < 1 or 2 * k > len(differences):
        return None
    return float(differences[k - 1]), float(differences[-k])


def holm_levels(p_values: Sequence[float], alpha: float) -> list[float]:
    """Return for each p-value the level at which Holm's procedure judges it.

    Sorted upwards, the i-th (from 0) of m is held against alpha / (m - i); from the first that
    fails, all later ones are judged at that failing level, so that none of them passes.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    levels = [alpha] * len(p_values)
    failed_at: float | None = None
    for step, index in enumerate(order):
        level = failed_at if failed_at is not None else alpha / (len(order) - step)
        levels[index] = level
        if failed_at is None and p_values[index] > level:
            failed_at = level
    return levels
