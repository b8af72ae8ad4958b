"""What each place looks like, against stored screens of the recorded campaign.

`python tests/make_pictures.py --snapshots` stores them again after a wanted change; the difference
belongs into the same commit, read line by line.
"""

from __future__ import annotations

import asyncio
import difflib
import re
import time
from pathlib import Path

import make_pictures
import pytest
import tui_scenes
from make_pictures import PICTURES, SHOWN, SNAPSHOTS, as_stored, slim, stored
from rich.color import ColorTriplet
from rich.style import Style
from tui_support import assert_harmless, screen_text

from gpucost_tui.tui.app import GpucostApp
from gpucost_tui.tui.themes import DARK, LIGHT


async def at_rest(app: GpucostApp, wanted: str, *, seconds: float = 5.0) -> str:
    """Return the screen as soon as it is as stored, or what it is after a while.

    Sizes and scrollbars follow a change some refreshes later; how many depends on the machine.
    """
    end = time.monotonic() + seconds
    while (now := as_stored(screen_text(app))) != wanted and time.monotonic() < end:
        await asyncio.sleep(0.05)
    return now


@pytest.mark.parametrize("size", tui_scenes.WINDOWS, ids="{0[0]}x{0[1]}".format)
async def test_screens_are_as_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    app = tui_scenes.prepared(monkeypatch, tmp_path)
    differences, seen = [], set()
    async for name in tui_scenes.walk(app, size):
        assert_harmless(app)
        file = stored(name, size)
        seen.add(file.name)
        was = file.read_text("utf-8") if file.exists() else ""
        now = await at_rest(app, was)
        assert str(tmp_path) not in now
        differences += difflib.unified_diff(
            was.splitlines(), now.splitlines(), file.name, "now", n=1, lineterm=""
        )
    assert not differences, "\n".join(differences)
    kept = {path.name for path in SNAPSHOTS.glob(f"*-{size[0]}x{size[1]}.txt")}
    assert kept == seen, "a stored screen that no scene shows"


async def test_no_word_depends_on_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State is told by glyph and word: in light and without colours every screen says the same."""
    tui_scenes.prepared(monkeypatch, tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    app = GpucostApp(here=Path())
    app.theme = LIGHT.name
    assert app.no_color and not app.current_theme.dark
    size = tui_scenes.WINDOWS[0]
    async for name in tui_scenes.walk(app, size):
        was = stored(name, size).read_text("utf-8")
        assert await at_rest(app, was) == was, name


@pytest.mark.parametrize("theme", [DARK, LIGHT.name])
async def test_every_word_stands_out_from_its_ground(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    app = tui_scenes.prepared(monkeypatch, tmp_path)
    app.theme = theme
    faint: set[tuple[str, str, float]] = set()
    async for name in tui_scenes.walk(app, tui_scenes.WINDOWS[0]):
        await at_rest(app, stored(name, tui_scenes.WINDOWS[0]).read_text("utf-8"))
        segments = [s for strip in app.screen._compositor.render_strips() for s in strip]
        for segment in segments if len(app.screen_stack) == 1 else ():  # behind a dialog all is dim
            text, contrast = segment.text.strip(), contrast_of(segment.style)
            if any(map(str.isalnum, text)) and contrast < 3.5 and text != "verdicts":  # a hint
                faint.add((name, text, contrast))
    assert not faint


def contrast_of(style: Style | None) -> float:
    """Return the contrast ratio of WCAG 2: 1 for none, 21 for black on white."""
    if style is None or style.color is None or style.bgcolor is None:
        return 21.0
    darker, lighter = sorted(luminance(c.get_truecolor()) for c in (style.color, style.bgcolor))
    return round((lighter + 0.05) / (darker + 0.05), 1)


def luminance(colour: ColorTriplet) -> float:
    parts = (part / 255 for part in colour)
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_pictures_are_there_and_small() -> None:
    for name in SHOWN:
        picture = (PICTURES / f"{name}.svg").read_text("utf-8")
        assert len(picture) < 40_000
        assert not re.search(r"url\((?!#)|@font-face|<script|<image", picture)
    readme = (make_pictures.HERE.parent / "README.md").read_text("utf-8")
    assert all(f"tests/pictures/{name}.svg" in readme for name in SHOWN)
    assert "python tests/make_pictures.py" in readme


def test_a_slim_picture_keeps_every_text() -> None:
    at = 'x="0" y="20" textLength="73.2" clip-path="url(#terminal-1-line-0)"'
    text = f'<text class="terminal-1-r1" {at}>&#160;&#160;ab&#160;&#160;</text>'
    svg = f'<svg viewBox="0 0 1 1">\n{text}\n</svg>'
    assert 'x="24.4" y="20" textLength="24.4">ab</text>' in slim(svg)
