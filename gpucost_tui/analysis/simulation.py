"""Campaigns with a known truth, many at once, and the settled rules applied to all of them.

An array of durations has the shape (campaigns, variants, rounds), in seconds. Slots are rotated as
in a real campaign (R18), so that a drift reaches every variant at every position.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpucost_tui.analysis.ranksum import lower_tail
from gpucost_tui.analysis.settled import (
    ALPHA,
    DEFAULT_FACTOR,
    INTERVAL_FROM,
    Rule,
    chosen_rule,
    least_passes,
)

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int, int], Array]

BASE_S = 100.0
#: Truth: how much slower the last variant is than all others, which are equal.
DIFFERENCES = {"none": 0.0, "small": 0.02, "large": 0.20}


def normal(rng: np.random.Generator, campaigns: int, variants: int, rounds: int) -> Array:
    """Symmetric noise, standard deviation 1 % of the duration."""
    return 0.01 * rng.normal(size=(campaigns, variants, rounds))


def skewed(rng: np.random.Generator, campaigns: int, variants: int, rounds: int) -> Array:
    """A floor and a long upper tail: log-normal, median 0.5 %, one pass in forty above 3.5 %."""
    return 0.005 * rng.lognormal(0.0, 1.0, size=(campaigns, variants, rounds))


def incidents(rng: np.random.Generator, campaigns: int, variants: int, rounds: int) -> Array:
    """Small noise (0.5 %), and in one pass of ten something that costs 15 % more on average."""
    shape = (campaigns, variants, rounds)
    hit = rng.random(shape) < 0.1
    return 0.005 * rng.normal(size=shape) + hit * rng.exponential(0.15, size=shape)


def drift(rng: np.random.Generator, campaigns: int, variants: int, rounds: int) -> Array:
    """Small noise (0.3 %) on a rise of 4 % that levels off, as when a device warms up."""
    turn = np.arange(rounds)[None, :]
    position = (np.arange(variants)[:, None] - turn) % variants
    slot = turn * variants + position
    warm = 0.04 * (1 - np.exp(-slot / (0.3 * variants * rounds)))
    return warm + 0.003 * rng.normal(size=(campaigns, variants, rounds))


def host_bias(rng: np.random.Generator, campaigns: int, variants: int, rounds: int) -> Array:
    """Each variant on a host of its own with a constant bias (2 %), beside noise of 0.5 %."""
    bias = 0.02 * rng.normal(size=(campaigns, variants, 1))
    return bias + 0.005 * rng.normal(size=(campaigns, variants, rounds))


#: Noise whose wrongly settled series are bounded by 1 %.
BOUNDED: dict[str, Noise] = {
    "normal": normal,
    "skewed": skewed,
    "incidents": incidents,
    "drift": drift,
}


@dataclass(frozen=True, slots=True)
class Answers:
    """How often a rule answered how, as shares of all simulated series.

    ``wrong``: at least one pair is settled that has no difference, or is settled the wrong way
    round. ``silent``: at least one pair with a difference is not settled (0 without a difference).
    ``extended``: the extension of rounds was used.
    """

    wrong: float
    silent: float
    extended: float


def simulate(
    noise: Noise,
    difference: float,
    variants: int,
    passes: int,
    *,
    rule: Rule = "auto",
    extend: bool = False,
    campaigns: int = 2000,
    seed: int = 0,
) -> Answers:
    """Simulate series of one truth and count wrong and silent answers.

    Args:
        noise: Relative noise by campaign, variant and round.
        difference: How much slower the last variant is, as a share; all others are equal.
        variants: Variants in the series.
        passes: Rounds planned.
        rule: The sealed rule.
        extend: Where any pair is unsettled, add as many rounds again, once; the answer after
            them is the one that stands.
        campaigns: Simulated series.
        seed: Of the random numbers.
    """
    rng = np.random.default_rng(seed)
    rounds = 2 * passes if extend else passes
    level = np.ones((variants, 1))
    level[-1] += difference
    durations = BASE_S * level * (1 + noise(rng, campaigns, variants, rounds))
    answers = settle_all(durations[:, :, :passes], rule=rule)
    extended = np.zeros(campaigns, dtype=bool)
    if extend:
        extended = (answers == 0).any(axis=1)
        again = settle_all(durations[extended], rule=rule)
        answers[extended] = again
    truth = np.array(
        [-1 if difference > 0 and b == variants - 1 else 0 for _, b in _pairs(variants)]
    )
    wrong = (answers != 0) & (answers != truth)
    silent = (answers == 0) & (truth != 0)
    return Answers(
        wrong=float(wrong.any(axis=1).mean()),
        silent=float(silent.any(axis=1).mean()),
        extended=float(extended.mean()),
    )


def settle_all(
    durations: Array, *, rule: Rule = "auto", factor: float = DEFAULT_FACTOR
) -> NDArray[np.int8]:
    """Apply :func:`gpucost_tui.analysis.settled.settle_series` to many complete series at once.

    Returns:
        Shape (campaigns, pairs), pairs in the order of ``itertools.combinations``: -1 where the
        first is settled as faster, 1 where the second is, 0 where nothing is settled.
    """
    variants, passes = durations.shape[1:]
    pairs = _pairs(variants)
    one = [a for a, _ in pairs]
    other = [b for _, b in pairs]
    medians = np.median(durations, axis=2)
    gap = medians[:, other] - medians[:, one]
    kind = chosen_rule(rule, passes)
    if kind == "range":
        settled = _ranges(durations, one, other, np.abs(gap), factor, len(pairs))
    elif passes < INTERVAL_FROM:
        settled = np.zeros(gap.shape, dtype=bool)
    else:
        settled = _intervals(durations, one, other, gap)
    return np.where(settled, np.where(gap > 0, -1, 1), 0).astype(np.int8)


def _pairs(variants: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(variants), 2))


def _ranges(
    durations: Array, one: list[int], other: list[int], gap: Array, factor: float, pairs: int
) -> NDArray[np.bool_]:
    low, high = durations.min(axis=2), durations.max(axis=2)
    larger = np.maximum((high - low)[:, one], (high - low)[:, other])
    apart = (high[:, one] < low[:, other]) | (high[:, other] < low[:, one])
    enough = durations.shape[2] >= least_passes(pairs)
    settled: NDArray[np.bool_] = apart & (gap >= factor * larger) & enough
    return settled


def _intervals(durations: Array, one: list[int], other: list[int], gap: Array) -> NDArray[np.bool_]:
    passes = durations.shape[2]
    tail = 2 * lower_tail(passes, passes)
    campaigns, pairs = len(durations), len(one)
    p_values = np.empty((campaigns, pairs))
    sign = np.empty((campaigns, pairs))
    for at, (a, b) in enumerate(zip(one, other, strict=True)):
        below = (durations[:, b, :, None] <= durations[:, a, None, :]).sum(axis=(1, 2))
        above = (durations[:, b, :, None] >= durations[:, a, None, :]).sum(axis=(1, 2))
        p_values[:, at] = tail[np.minimum(below, above)]
        sign[:, at] = np.sign(above - below)
    quarters = np.percentile(durations, [25, 75], axis=2)
    iqr = quarters[1] - quarters[0]
    larger = np.maximum(iqr[:, one], iqr[:, other])
    settled: NDArray[np.bool_] = _holm(p_values) & (np.abs(gap) > larger) & (np.sign(gap) == sign)
    return settled


def _holm(p_values: Array) -> NDArray[np.bool_]:
    """Return which pairs pass Holm's procedure, each row a family of its own."""
    order = np.argsort(p_values, axis=1, kind="stable")
    pairs = p_values.shape[1]
    levels = ALPHA / (pairs - np.arange(pairs))
    passed = np.logical_and.accumulate(np.take_along_axis(p_values, order, 1) <= levels, axis=1)
    found = np.zeros(p_values.shape, dtype=bool)
    np.put_along_axis(found, order, passed, axis=1)
    return found
