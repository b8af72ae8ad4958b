"""The dot plot: every pass is seen, none covers another, the axis has round numbers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpucost_tui.report.blocks import Dot, Plot
from gpucost_tui.report.svg import svg, ticks

_SECONDS = st.floats(min_value=0, max_value=1e6, allow_nan=False, allow_subnormal=False)


def _plot(*rows: list[float]) -> ET.Element:
    named = [
        (f"v{n}", None, [Dot(value, f"{value} s") for value in row]) for n, row in enumerate(rows)
    ]
    return ET.fromstring(svg(Plot("durations", named)))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(_SECONDS, max_size=8), min_size=1, max_size=4))
@example([[]])
@example([[0.0], [0.0, 0.0, 0.0]])
@example([[1.0] * 20])
@example([[1e-9, 1e6]])
def test_every_dot_is_inside_and_apart(rows: list[list[float]]) -> None:
    root = _plot(*rows)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in root.iter("circle")]
    assert len(dots) == sum(map(len, rows))
    for x, y in dots:
        assert 0 < x < width
        assert 0 < y < height
    for number, (x, y) in enumerate(dots):
        for x2, y2 in dots[number + 1 :]:
            assert (x - x2) ** 2 + (y - y2) ** 2 >= 99  # ten pixels, but for rounding


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_and_between_the_ends(low: float, length: float) -> None:
    found = ticks(low, low + length)
    assert len(found) <= 8
    assert found == sorted(set(found))
    for value in found:
        assert low - length * 0.01 <= value <= low + length * 1.01


def test_an_excluded_pass_is_hollow_and_says_so() -> None:
    dots = [Dot(1.0, "attempt 1"), Dot(2.0, "attempt 2, excluded: noise", counted=False)]
    text = svg(Plot("t", [("v", 1.0, dots)]))
    assert re.search(r'<circle class="out"[^>]*><title>attempt 2, excluded: noise</title>', text)
    assert text.count('class="dot"') == 1
    assert text.count('class="median"') == 1


def test_names_are_cut_and_escaped() -> None:
    name = '<b>"&' + "x" * 100 + "\x1b[31m"
    text = svg(Plot(name, [(name, None, [])]))
    ET.fromstring(text)
    assert "<b>" not in text
    assert "\x1b" not in text
    assert "no duration" in text
