"""Durations as a dot plot: inline SVG without scripts, the same bytes for the same durations."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence

from gpucost_tui.report.blocks import Dot, Plot
from gpucost_tui.text import clean

_WIDTH = 860
_LEFT = 210
_RIGHT = 24
_RADIUS = 5
_ROW = 40
_STEP = 2 * _RADIUS + 1
_AXIS = 34
_NAME = 28  # characters of a variant's name


def svg(plot: Plot) -> str:
    """Return a plot as an ``<svg>`` element with a title, and a tip on every dot."""
    values = [dot.value_s for _, _, dots in plot.rows for dot in dots]
    low, high = _bounds(values)
    body: list[str] = []
    top = 8.0
    for name, median, dots in plot.rows:
        placed = list(_placed(dots, low, high))
        height = max(_ROW, 20 + _STEP * (max((level for *_, level in placed), default=0) + 1))
        body += _row(name, median, placed, low, high, top + height - 14)
        top += height
    whole = top + _AXIS
    title = html.escape(clean(plot.title), quote=True)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {whole:.0f}" role="img" aria-label="{title}">'
        f"{''.join(_ticks(low, high, top))}{''.join(body)}</svg>"
    )


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis: the values with a little room; never of length zero."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low) * 0.06 or abs(high) * 0.05 or 0.5
    return max(low - room, 0.0), high + room


def _x(value: float, low: float, high: float) -> float:
    return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)


def _placed(dots: Sequence[Dot], low: float, high: float) -> Iterator[tuple[Dot, float, int]]:
    """Yield dots with their place and the level on which they don't cover another."""
    ends: list[float] = []  # of each level, the last dot's place
    for dot in sorted(dots, key=lambda one: one.value_s):
        x = _x(dot.value_s, low, high)
        level = next((at for at, end in enumerate(ends) if x - end >= _STEP), len(ends))
        ends[level : level + 1] = [x]
        yield dot, x, level


def _row(
    name: str,
    median: float | None,
    placed: Sequence[tuple[Dot, float, int]],
    low: float,
    high: float,
    base: float,
) -> Iterator[str]:
    shown = html.escape(clean(name, limit=_NAME), quote=True)
    full = html.escape(clean(name), quote=True)
    yield f'<text x="{_LEFT - 14}" y="{base + 4:.1f}" text-anchor="end">{shown}'
    yield f"<title>{full}</title></text>"
    end = _WIDTH - _RIGHT
    yield f'<line class="grid" x1="{_LEFT}" x2="{end}" y1="{base:.1f}" y2="{base:.1f}"/>'
    if median is not None:
        x = _x(median, low, high)
        yield f'<line class="median" x1="{x:.1f}" x2="{x:.1f}" y1="{base - 9:.1f}" '
        yield f'y2="{base + 9:.1f}"><title>median</title></line>'
    for dot, x, level in placed:
        kind = "dot" if dot.counted else "out"
        tip = html.escape(clean(dot.label), quote=True)
        y = base - level * _STEP
        yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}">'
        yield f"<title>{tip}</title></circle>"
    if not placed:
        yield f'<text class="soft" x="{_LEFT + 6}" y="{base - 6:.1f}">no duration</text>'


def _ticks(low: float, high: float, bottom: float) -> Iterator[str]:
    for value in ticks(low, high):
        x = _x(value, low, high)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{bottom:.1f}"/>'
        yield f'<text class="soft" x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">'
        yield f"{value:.10g} s</text>"


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between two ends, at most ``most`` of them, in steps of 1, 2 or 5."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if power * factor >= rough)
    first = math.ceil(low / step)
    digits = max(0, -math.floor(math.log10(step)))
    found = [round(number * step, digits) for number in range(first, math.floor(high / step) + 1)]
    return found[: most + 1]
