"""When a difference in duration is settled, and when that is not known (R26).

Two rules, fixed by the seal; both ask for at least the originally planned number of durations of
both variants. Excluded, failed, stopped and interrupted attempts give no duration.

``range`` (default up to nine rounds): the two sets of durations do not overlap, and the gap
between the medians is at least ``factor`` (default 1.5) times the larger of the two ranges. It is
judged on the decimals as written, so 3.0 is not less than 1.5 × 2.0 by a rounding of binary
floats. :func:`least_passes` says from how many durations on a range means something.

``interval`` (from ten rounds on, since ranges only grow): the 99 % Hodges-Lehmann interval of the
difference leaves out zero after Holm's correction over all pairs of the series, and the gap
between the medians exceeds the larger interquartile range (linear interpolation between order
statistics). The interval is the exact one of :mod:`gpucost_tui.analysis.ranksum`. Sealed by name,
it settles nothing before the tenth round: looking at five rounds and again at ten would settle
1.3 % of equal pairs wrongly.

``auto``: ``range`` up to nine rounds, ``interval`` from ten, extensions included.

Source: design.md, "When a difference is settled"; calibration in
:mod:`gpucost_tui.analysis.calibration`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any, Literal

import numpy as np

from gpucost_tui.analysis.ranksum import holm_levels, p_value, shift_interval
from gpucost_tui.text import clean

Rule = Literal["auto", "range", "interval"]
#: An interval that is wrong in one series of a hundred.
ALPHA = 0.01
DEFAULT_FACTOR = 1.5
#: The first number of rounds at which ``auto`` reads intervals instead of ranges.
INTERVAL_FROM = 10


@dataclass(frozen=True, slots=True)
class Settlement:
    """What two sets of durations say about their difference. Durations in seconds.

    ``gap_s`` is the distance between the medians, ``larger_range_s`` the larger of the two ranges,
    both ``None`` without durations on a side. ``faster`` is ``"a"``, ``"b"`` or ``None`` where
    nothing is settled. ``interval_s`` is the interval of b - a at ``confidence``, by the
    interval rule only. ``why`` is one or more sentences.
    """

    rule: Literal["range", "interval"]
    gap_s: float | None
    larger_range_s: float | None
    settled: bool
    faster: Literal["a", "b"] | None
    why: str
    larger_iqr_s: float | None = None
    interval_s: tuple[float, float] | None = None
    confidence: float | None = None
    planned: int = 0
    pairs: int = 1

    def to_json(self, a: str, b: str) -> dict[str, Any]:
        """Return the keys of ``compare``; ``faster`` is given by the variant's name."""
        return {
            "gap_s": self.gap_s,
            "larger_range_s": self.larger_range_s,
            "settled": self.settled,
            "faster": {"a": a, "b": b, None: None}[self.faster],
            "why": self.why,
            "rule": self.rule,
            "larger_iqr_s": self.larger_iqr_s,
            "interval_s": list(self.interval_s) if self.interval_s else None,
            "confidence": self.confidence,
            "planned": self.planned,
        }


def least_passes(pairs: int) -> int:
    """Return the least number of durations with which the range rule may settle anything.

    Two or three values have too small a range too often: without any difference the rule would
    settle 12 % of single pairs at two passes and 1.5 % at three, 2 % of series of six variants at
    four (normal noise). From four passes for up to three pairs, and from five for more, it stays
    below 1 % per series (tests/test_analysis_calibration.py).
    """
    return 4 if pairs <= 3 else 5


def chosen_rule(rule: Rule, rounds: int) -> Literal["range", "interval"]:
    """Return the rule that ``auto`` means at this number of rounds, extensions included."""
    if rule != "auto":
        return rule
    return "range" if rounds < INTERVAL_FROM else "interval"


def settle_pair(
    a: Sequence[float],
    b: Sequence[float],
    *,
    planned: int | None = None,
    rounds: int | None = None,
    rule: Rule = "auto",
    factor: float = DEFAULT_FACTOR,
) -> Settlement:
    """Judge one pair that is a series of its own; see :func:`settle_series`."""
    series = {"a": a, "b": b}
    return settle_series(series, planned=planned, rounds=rounds, rule=rule, factor=factor)["a", "b"]


def settle_series(
    durations: Mapping[str, Sequence[float]],
    *,
    planned: int | None = None,
    rounds: int | None = None,
    rule: Rule = "auto",
    factor: float = DEFAULT_FACTOR,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> dict[tuple[str, str], Settlement]:
    """Judge every pair of a series measured under one protocol (R26).

    Args:
        durations: Variant -> its durations in seconds (one deliverable, seed and host), in the
            order of the series. A variant without any stays in the count of pairs.
        planned: The number of durations planned at first; default: the greatest number found.
        rounds: Rounds so far, extensions included; default: ``planned`` or the greatest number.
        rule: The sealed rule.
        factor: The sealed ``settled_factor`` of the range rule.
        pairs: The pairs of the series; default: every two of ``durations``.

    Returns:
        (a, b) -> settlement, a before b in the given order.

    Raises:
        ValueError: ``factor`` is no positive number (a sealed protocol can't hold one).
    """
    if not factor > 0:
        raise ValueError("the settled factor is a positive number")
    most = max((len(values) for values in durations.values()), default=0)
    wanted = most if planned is None else planned
    rounds = max(most, wanted) if rounds is None else rounds
    kind = chosen_rule(rule, rounds)
    names = list(itertools.combinations(durations, 2)) if pairs is None else list(pairs)
    if kind == "range":
        return {(a, b): _by_range(a, b, durations, wanted, factor, len(names)) for a, b in names}
    complete = {name: len(values) >= max(wanted, 1) for name, values in durations.items()}
    p_values = [
        p_value(durations[a], durations[b]) if complete[a] and complete[b] else 1.0
        for a, b in names
    ]
    levels = holm_levels(p_values, ALPHA)
    return {
        (a, b): _by_interval(a, b, durations, wanted, rounds, level, len(names))
        for (a, b), level in zip(names, levels, strict=True)
    }


def exact(values: Sequence[float]) -> list[Fraction]:
    """Return the decimals that the floats were written as, exactly."""
    return [Fraction(repr(float(value))) for value in values]


def _by_range(
    a: str,
    b: str,
    durations: Mapping[str, Sequence[float]],
    planned: int,
    factor: float,
    pairs: int,
) -> Settlement:
    one, other = exact(durations[a]), exact(durations[b])
    incomplete = _lacking(a, b, durations, planned)
    least = least_passes(pairs)
    if not one or not other:
        return Settlement(
            "range", None, None, False, None, incomplete, planned=planned, pairs=pairs
        )
    gap = abs(median(one) - median(other))
    larger = max(max(one) - min(one), max(other) - min(other))
    needed = Fraction(repr(float(factor))) * larger
    apart = max(one) < min(other) or max(other) < min(one)
    figures = f"the gap between the medians is {_s(gap)}, the larger range {_s(larger)}"
    settled = False
    if incomplete:
        why = incomplete
    elif min(len(one), len(other)) < least:
        why = (
            f"Too few durations for the range rule: {figures}, but the range of fewer than "
            f"{least} durations says too little about the spread."
        )
    elif not apart:
        why = f"The two sets of durations overlap: {figures}."
    elif gap < needed:
        why = (
            f"The two sets are apart, but the gap is comparable with the spread: {figures}; "
            f"{factor:g} times the range would be {_s(needed)}."
        )
    else:
        settled = True
        why = f"The two sets are apart and {figures}: at least {factor:g} times the range."
    return Settlement(
        "range",
        float(gap),
        float(larger),
        settled,
        _faster(one, other) if settled else None,
        why,
        planned=planned,
        pairs=pairs,
    )


def _by_interval(
    a: str,
    b: str,
    durations: Mapping[str, Sequence[float]],
    planned: int,
    rounds: int,
    alpha: float,
    pairs: int,
) -> Settlement:
    one, other = exact(durations[a]), exact(durations[b])
    incomplete = _lacking(a, b, durations, planned)
    if not incomplete and rounds < INTERVAL_FROM:
        incomplete = f"The interval rule reads from {INTERVAL_FROM} rounds on; there are {rounds}."
    if not one or not other:
        return _nothing("interval", incomplete, planned, pairs)
    gap = abs(median(one) - median(other))
    larger = max(max(one) - min(one), max(other) - min(other))
    iqr = max(_iqr(durations[a]), _iqr(durations[b]))
    interval = shift_interval(durations[a], durations[b], alpha)
    sign = 1 if median(other) > median(one) else -1
    zero_out = interval is not None and sign * interval[0] > 0 and sign * interval[1] > 0
    settled = not incomplete and zero_out and float(gap) > iqr
    return Settlement(
        "interval",
        float(gap),
        float(larger),
        settled,
        _faster(one, other) if settled else None,
        incomplete or _interval_reason(gap, iqr, interval, zero_out, alpha, pairs),
        larger_iqr_s=iqr,
        interval_s=interval,
        confidence=1 - alpha,
        planned=planned,
        pairs=pairs,
    )


def _interval_reason(
    gap: Fraction,
    iqr: float,
    interval: tuple[float, float] | None,
    zero_out: bool,
    alpha: float,
    pairs: int,
) -> str:
    level = f"{100 * (1 - alpha):.5g} %"
    over = f" (99 % after Holm's correction over {pairs} pairs)" if pairs > 1 else ""
    if interval is None:
        return f"So few durations allow no {level} interval of the difference{over}."
    found = f"the {level} interval of the difference{over} is {_span(interval)}"
    if not zero_out:
        return f"Not told from zero: {found}."
    if float(gap) <= iqr:
        return (
            f"{found[0].upper()}{found[1:]} and leaves out zero, but the gap between the medians, "
            f"{_s(gap)}, does not exceed the larger interquartile range, {_s(iqr)}."
        )
    return (
        f"{found[0].upper()}{found[1:]} and leaves out zero, and the gap between the medians, "
        f"{_s(gap)}, exceeds the larger interquartile range, {_s(iqr)}."
    )


def _nothing(rule: Literal["range", "interval"], why: str, planned: int, pairs: int) -> Settlement:
    return Settlement(rule, None, None, False, None, why, planned=planned, pairs=pairs)


def _lacking(a: str, b: str, durations: Mapping[str, Sequence[float]], planned: int) -> str:
    """Return a sentence where planned durations are missing, else an empty text."""
    wanted = max(planned, 1)
    short = [name for name in (a, b) if len(durations[name]) < wanted]
    if not short:
        return ""
    parts = [f"{clean(name, limit=60)} has {len(durations[name])} of {wanted}" for name in short]
    return f"Planned durations are missing: {', '.join(parts)}."


def _faster(one: Sequence[Fraction], other: Sequence[Fraction]) -> Literal["a", "b"]:
    return "a" if median(one) < median(other) else "b"


def _iqr(values: Sequence[float]) -> float:
    quarter, three_quarters = np.percentile(np.asarray(values, float), [25, 75])
    return float(three_quarters - quarter)


def _s(value: Fraction | float) -> str:
    return f"{float(value):.6g} s"


def _span(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.6g} to {interval[1]:.6g} s"
