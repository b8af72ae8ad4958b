"""Makes the pictures of the README, or the stored screens that the snapshot tests compare with.

    python tests/make_pictures.py               pictures/*.svg, of each place
    python tests/make_pictures.py --snapshots   snapshots/*.txt; read their changes before a commit

Both show the recorded campaign (see tui_recorded.py), whose figures are made up.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tui_scenes import WINDOWS, prepared, walk
from tui_support import screen_text

HERE = Path(__file__).parent
SNAPSHOTS, PICTURES = HERE / "snapshots", HERE / "pictures"
#: Scene -> the picture's title, in the order of the README.
SHOWN = {
    "home": "Home",
    "review-corpus": "Manifest review",
    "schedule": "Variants and schedule",
    "run": "Run",
    "attempts": "Attempts",
    "pricing-window": "Pricing",
}
SIZE = (100, 30)


def stored(name: str, size: tuple[int, int]) -> Path:
    """Return the file of a stored screen."""
    return SNAPSHOTS / f"{name}-{size[0]}x{size[1]}.txt"


def as_stored(text: str) -> str:
    """Return a screen's text without the blanks at its right."""
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def slim(svg: str) -> str:
    """Return a picture a third as large, without fonts of another host and random numbers.

    Blanks at the ends of a text are left out, so that viewers that fold them place it right.
    """
    svg = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r'<clipPath id="terminal-\d+-line-\d+">.*?</clipPath>\s*', "", svg, flags=re.DOTALL
    )
    svg = re.sub(r' clip-path="url\(#terminal-\d+-line-\d+\)"', "", svg)
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    svg = svg.replace("<svg ", '<svg xml:space="preserve" ', 1)
    svg = _TEXT.sub(_without_blanks, svg)
    svg = _RECTS.sub(_joined, svg)
    lines = (line.strip(" ") for line in svg.replace("&#160;", " ").splitlines())
    return "\n".join(line for line in lines if line) + "\n"


_CELL = 12.2  # width of a character in Textual's pictures
_TEXT = re.compile(
    r'<text class="(terminal-r\d+)" x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)">(.*?)</text>'
)
_RECT = (
    r'<rect fill="([^"]+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"'
    r' shape-rendering="crispEdges"/>'
)
_RECTS = re.compile(rf"(?:{_RECT})+")


def _without_blanks(match: re.Match[str]) -> str:
    style, x, y, length, text = match.groups()
    bare = re.sub(r"^(&#160;)+", "", text)
    before = (len(text) - len(bare)) // 6
    kept = re.sub(r"(&#160;)+$", "", bare)
    cells = round(float(length) / _CELL) - before - (len(bare) - len(kept)) // 6
    if not kept:
        return ""
    at = f"{float(x) + before * _CELL:g}"
    return f'<text class="{style}" x="{at}" y="{y}" textLength="{cells * _CELL:g}">{kept}</text>\n'


def _joined(match: re.Match[str]) -> str:
    """Join backgrounds of one colour that touch."""
    found: list[list[Any]] = []
    for fill, *figures in re.findall(_RECT, match.group()):
        x, y, width, height = map(float, figures)
        last = found[-1] if found else None
        if last and last[0] == fill and last[2] == y and abs(last[1] + last[3] - x) < 0.5:
            last[3] = x + width - last[1]
        else:
            found.append([fill, x, y, width, height])
    return "".join(
        f'<rect fill="{fill}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
        'shape-rendering="crispEdges"/>\n'
        for fill, x, y, width, height in found
    )


async def _screens(folder: Path, size: tuple[int, int]) -> dict[str, tuple[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        app = prepared(patch, folder)
        return {
            name: (as_stored(screen_text(app)), app.export_screenshot(title=SHOWN.get(name, "")))
            async for name in walk(app, size)
        }


def screens(size: tuple[int, int]) -> dict[str, tuple[str, str]]:
    """Walk through the places; return each scene's text and picture."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_screens(Path(folder), size))


def main(arguments: list[str]) -> None:
    if "--snapshots" in arguments:
        SNAPSHOTS.mkdir(exist_ok=True)
        for size in WINDOWS:
            for name, (text, _) in screens(size).items():
                stored(name, size).write_text(text, "utf-8")
        return
    PICTURES.mkdir(exist_ok=True)
    made = screens(SIZE)
    for name in SHOWN:
        (PICTURES / f"{name}.svg").write_text(slim(made[name][1]), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
