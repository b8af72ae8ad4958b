"""Confidence intervals of quality metrics, shown beside the metric (used only if sealed so).

Wilson's score interval for a share of correct answers; percentile bootstrap for the others, and
the normal interval of a mean over very many entries, where both agree. They describe the draw of
the corpus's entries, and nothing else: neither another corpus nor another run.

Sources: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
Journal of the American Statistical Association 22 (1927); B. Efron and R. J. Tibshirani,
*An Introduction to the Bootstrap* (1993), chapter 13. Quantiles are scipy.special's:
``scipy.stats`` takes as long to load as many a pass, and every run would load it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
#: Resamples of a bootstrap; its ends move by less than a tenth of its width from seed to seed.
DRAWS = 2000
#: From so many entries on, a mean has the normal interval: a bootstrap would take minutes.
MANY = 100_000
_CELLS = 4_000_000  # confusion counts held at a time: 32 MB

#: Confusion counts, shape (…, labels, labels): truth by row, prediction by column.
Confusion = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a metric at a confidence level, with the method that gave them."""

    low: float
    high: float
    level: float
    method: Literal["wilson", "bootstrap", "normal"]


def wilson(correct: int, total: int, level: float = LEVEL) -> Interval | None:
    """Return Wilson's interval for a share of correct answers; ``None`` without entries.

    Raises:
        ValueError: More correct answers than entries, or negative counts.
    """
    if total == 0 and correct == 0:
        return None
    if not 0 <= correct <= total:
        raise ValueError(f"{correct} correct answers among {total} entries")
    square = _quantile(level) ** 2
    middle = correct + square / 2
    half = math.sqrt(square * (correct * (total - correct) / total + square / 4))
    low = 0.0 if correct == 0 else (middle - half) / (total + square)
    high = 1.0 if correct == total else (middle + half) / (total + square)
    return Interval(low, high, level, "wilson")


def bootstrap_mean(
    values: ArrayLike, level: float = LEVEL, *, draws: int = DRAWS, seed: int = 0
) -> Interval | None:
    """Return the bootstrap interval of a mean over entries, such as a cosine or a recall at k.

    Args:
        values: One finite figure for each entry.
        level: Confidence.
        draws: Resamples.
        seed: Of the random numbers, so that ``verify`` finds the same interval.

    Raises:
        ValueError: A value is not finite.
    """
    each = np.asarray(values, dtype=np.float64).ravel()
    if not len(each):
        return None
    if not np.isfinite(each).all():
        raise ValueError("a mean is bootstrapped over finite values")
    if len(each) >= MANY:
        return _normal(each, level)
    rng = np.random.default_rng(seed)
    # One resample at a time: draws × entries would not fit for a million entries.
    means = [float(each[rng.integers(0, len(each), len(each))].mean()) for _ in range(draws)]
    return _percentiles(np.asarray(means), level)


def bootstrap_labels(
    truth: Sequence[str],
    predicted: Sequence[str],
    metric: str,
    level: float = LEVEL,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval | None:
    """Return the bootstrap interval of a classification metric.

    Resampling entries is the same as drawing the confusion counts from their multinomial
    distribution, which costs nothing more for a million entries.

    Args:
        truth: Right answers.
        predicted: Predictions, aligned with ``truth``.
        metric: A name out of :data:`METRICS`.
        level: Confidence.
        draws: Resamples; those in which the metric is undefined are left out.
        seed: Of the random numbers.

    Raises:
        ValueError: The two differ in length, or the metric is unknown.
    """
    if len(truth) != len(predicted):
        raise ValueError("as many predictions as right answers are expected")
    if metric not in METRICS:
        raise ValueError(f"no interval is known for {metric}")
    if not len(truth):
        return None
    labels, codes = np.unique(np.concatenate([truth, predicted]), return_inverse=True)
    size = len(labels)
    cells = codes[: len(truth)] * size + codes[len(truth) :]
    counts = np.bincount(cells, minlength=size * size)
    found = np.concatenate(list(_resampled(counts, size, METRICS[metric], draws, seed)))
    defined = found[np.isfinite(found)]
    return _percentiles(defined, level) if len(defined) else None


def _resampled(
    counts: NDArray[np.int64],
    size: int,
    metric: Callable[[Confusion], NDArray[np.float64]],
    draws: int,
    seed: int,
) -> Iterator[NDArray[np.float64]]:
    """Yield the metric of resamples, a few at a time: a thousand labels have a million cells."""
    rng = np.random.default_rng(seed)
    there = np.flatnonzero(counts)
    shares = counts[there] / counts.sum()
    step = max(1, _CELLS // size**2)
    for start in range(0, draws, step):
        few = min(step, draws - start)
        drawn = np.zeros((few, size * size))
        drawn[:, there] = rng.multinomial(counts.sum(), shares, size=few)
        yield metric(drawn.reshape(few, size, size))


def _quantile(level: float) -> float:
    """Return how many standard deviations around its mean hold ``level`` of a normal variable."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def _normal(each: NDArray[np.float64], level: float) -> Interval:
    middle, error = float(each.mean()), float(each.std(ddof=1)) / len(each) ** 0.5
    half = _quantile(level) * error
    return Interval(middle - half, middle + half, level, "normal")


def _percentiles(found: NDArray[np.float64], level: float) -> Interval:
    tail = 50 * (1 - level)
    low, high = np.percentile(found, [tail, 100 - tail])
    return Interval(float(low), float(high), level, "bootstrap")


def _accuracy(confusion: Confusion) -> NDArray[np.float64]:
    right: NDArray[np.float64] = np.trace(confusion, axis1=-2, axis2=-1)
    share: NDArray[np.float64] = right / confusion.sum(axis=(-2, -1))
    return share


def _macro_f1(confusion: Confusion) -> NDArray[np.float64]:
    """Mean over the labels present in truth or prediction of the resample."""
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    both = confusion.sum(axis=-1) + confusion.sum(axis=-2)
    f1 = np.divide(2 * right, both, out=np.zeros_like(both), where=both > 0)
    mean: NDArray[np.float64] = f1.sum(axis=-1) / (both > 0).sum(axis=-1)
    return mean


def _balanced_accuracy(confusion: Confusion) -> NDArray[np.float64]:
    """Mean recall over the labels present in the truth of the resample."""
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    there = confusion.sum(axis=-1)
    recall = np.divide(right, there, out=np.zeros_like(there), where=there > 0)
    mean: NDArray[np.float64] = recall.sum(axis=-1) / (there > 0).sum(axis=-1)
    return mean


def _mcc(confusion: Confusion) -> NDArray[np.float64]:
    """Matthews correlation coefficient; 0 where a side has one label only, as in scikit-learn."""
    total = confusion.sum(axis=(-2, -1))
    right = np.trace(confusion, axis1=-2, axis2=-1)
    truth, predicted = confusion.sum(axis=-1), confusion.sum(axis=-2)
    covariance = right * total - (truth * predicted).sum(axis=-1)
    spread = (total**2 - (truth**2).sum(axis=-1)) * (total**2 - (predicted**2).sum(axis=-1))
    out: NDArray[np.float64] = np.divide(
        covariance, np.sqrt(spread), out=np.zeros_like(covariance), where=spread > 0
    )
    return out


METRICS: dict[str, Callable[[Confusion], NDArray[np.float64]]] = {
    "accuracy": _accuracy,
    "macro_f1": _macro_f1,
    "balanced_accuracy": _balanced_accuracy,
    "mcc": _mcc,
}
