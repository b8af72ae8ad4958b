"""How often the settled rules are wrong, and how often they stay silent, where the truth is known.

``python -m gpucost_tui.analysis.calibration`` prints the README's table (``… range interval`` that
of rules sealed by name). Truth and noise are in :mod:`gpucost_tui.analysis.simulation`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpucost_tui.analysis.settled import Rule
from gpucost_tui.analysis.simulation import BOUNDED, DIFFERENCES, host_bias, simulate

RULES: tuple[Rule, ...] = ("auto", "range", "interval")
PASSES = (5, 10, 20)
SERIES = (2, 3, 6)
#: The most series that may be settled wrongly where there is no difference.
MOST_WRONG = 0.01


@dataclass(frozen=True, slots=True)
class Line:
    """One cell of the calibration: shares of simulated series, 0 to 1.

    ``wrong`` is for no difference, ``wrong_beside`` the larger of the shares beside a small and
    beside a large one; ``silent_small`` and ``silent_large`` go with those two.
    """

    rule: Rule
    noise: str
    passes: int
    extended: bool
    variants: int
    wrong: float
    wrong_beside: float
    silent_small: float
    silent_large: float


def calibrate(
    rules: Sequence[Rule] = ("auto",),
    noises: Iterable[str] = (*BOUNDED, "host bias"),
    *,
    passes: Sequence[int] = PASSES,
    series: Sequence[int] = SERIES,
    campaigns: int = 2000,
    seed: int = 0,
) -> list[Line]:
    """Simulate every combination, each with and without one extension by as many rounds again.

    Args:
        rules: Sealed rules.
        noises: Names out of :data:`~gpucost_tui.analysis.simulation.BOUNDED`, or ``host bias``.
        passes: Planned rounds.
        series: Numbers of variants.
        campaigns: Simulated series for each combination and truth.
        seed: Of the random numbers; the same seed gives the same table.
    """
    return [
        _line(rule, noise, number, extend, variants, campaigns, seed)
        for rule in rules
        for noise in noises
        for number in passes
        for extend in (False, True)
        for variants in series
    ]


def _line(
    rule: Rule, noise: str, passes: int, extend: bool, variants: int, campaigns: int, seed: int
) -> Line:
    made = {**BOUNDED, "host bias": host_bias}[noise]
    none, small, large = (
        simulate(
            made,
            difference,
            variants,
            passes,
            rule=rule,
            extend=extend,
            campaigns=campaigns,
            seed=seed,
        )
        for difference in DIFFERENCES.values()
    )
    return Line(
        rule=rule,
        noise=noise,
        passes=passes,
        extended=extend,
        variants=variants,
        wrong=none.wrong,
        wrong_beside=max(small.wrong, large.wrong),
        silent_small=small.silent,
        silent_large=large.silent,
    )


def markdown(lines: Sequence[Line]) -> str:
    """Return the table for the README: a row for each rule, noise and number of passes.

    A cell holds, in per cent of the series: settled wrongly without a difference; silent about a
    small difference; silent about a large one.
    """
    sizes = list(dict.fromkeys(line.variants for line in lines))
    heads = ["one pair" if size == 2 else f"{size} variants" for size in sizes]
    told = [
        f"| rule | noise | passes | {' | '.join(heads)} |",
        "| --- | --- | --- |" + " ---: |" * len(sizes),
    ]
    rows: dict[tuple[str, str, str], dict[int, str]] = {}
    for line in lines:
        passes = f"{line.passes}, then {2 * line.passes}" if line.extended else str(line.passes)
        cell = f"{_pc(line.wrong)} / {_pc(line.silent_small)} / {_pc(line.silent_large)}"
        rows.setdefault((line.rule, line.noise, passes), {})[line.variants] = cell
    for head, cells in rows.items():
        told.append(f"| {' | '.join(head)} | {' | '.join(cells[size] for size in sizes)} |")
    return "\n".join(told) + "\n"


def _pc(share: float) -> str:
    """Return per cent: two digits where rare, whole numbers where not."""
    per_cent = 100 * share
    return f"{per_cent:.2g}" if 0 < per_cent < 1 else f"{per_cent:.0f}"


if __name__ == "__main__":
    named = [rule for rule in RULES if rule in sys.argv[1:]]
    sys.stdout.write(markdown(calibrate(named or RULES[:1], campaigns=10_000)))
