"""What the tests of the app share: campaigns made quickly, hostile text, sizes, waiting."""

from __future__ import annotations

import asyncio
import atexit
import json
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from textual import _wait
from textual.app import App
from textual.pilot import Pilot

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.seal import seal
from gpucost_tui.demo import CATEGORIES
from gpucost_tui.tui.app import GpucostApp

# A pilot looks 50 times a second whether an app has come to rest, three times a key; most of the
# tests' time went there.
_wait.SLEEP_GRANULARITY, _wait.SLEEP_IDLE = 1 / 250, 1 / 1000

#: Windows: tmux as it opens, a large one, and one that was shrunk.
SIZES = [(80, 24), (120, 40), (40, 12)]

#: Text that steers terminals, ends apps, or breaks layouts. The id of 1 MB is made where needed.
HOSTILE = (
    "[/INST] [b]list[int] [@click=app.bell]x[/] \x1b[31mred \x1b]0;title\x07 "
    "\x1b]52;c;Y2xpcA==\x07 \x9b31m \u202eevil\u202c \u2066x\u2069 \x00nul \ud83d"
)
WIDE = "한국어 텍스트 żółć العربية 🚀👩‍💻 ｆｕｌｌ"

#: What must never reach a terminal from outside.
_STEERING = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u202e", "\u2066"} - {
    "\n",
    "\t",
}


def corpus_file(
    path: Path, entries: int = 30, *, ids: Callable[[int], str] = "t{:03d}".format
) -> Path:
    """Write a labelled corpus in the demonstration's classes."""
    lines = [
        json.dumps(
            {
                "id": ids(n),
                "text": f"My order {n} has not arrived yet, please help. " * (1 + 3 * (n % 3)),
                "label": CATEGORIES[n % len(CATEGORIES)],
            }
        )
        for n in range(entries)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
    return path


def draft_campaign(folder: Path, entries: int = 30, **settings: Any) -> Campaign:
    """Make a small campaign that nothing blocks, not sealed; ``settings``: dotted keys, ``__``."""
    corpus = corpus_file(folder.parent / f"{folder.name}-corpus.jsonl", entries)
    return create(
        folder,
        Inputs(
            protocol="classification-batch",
            corpus=[str(corpus)],
            model="demo",
            settings=[
                ("name", folder.name),
                ("corpus.right_of_use", "Made up for a test."),
                ("quality.threshold", 0.0),
                ("quality.subgroups", []),
                ("measurement.rounds", 2),
                *((key.replace("__", "."), value) for key, value in settings.items()),
            ],
        ),
    )


def scratch(name: str) -> Path:
    """Return an empty folder that lasts as long as this process, for what its tests share."""
    folder = Path(mkdtemp(prefix=f"gpucost-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _sealed_once() -> Path:
    campaign = draft_campaign(scratch("tui") / "sealed")
    seal(campaign)
    return campaign.folder


def sealed_campaign(folder: Path) -> Campaign:
    """Return a sealed campaign of 30 entries, three variants and two rounds: six open slots."""
    shutil.copytree(_sealed_once(), folder)
    return Campaign(folder)


@pytest.fixture
def fake_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Let runners measure with the scripted engine; call it with the script's keys."""
    monkeypatch.setenv("GPUCOST_ENGINE", "fake_engine:FakeEngine")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))

    def script(**keys: Any) -> None:
        monkeypatch.setenv("GPUCOST_FAKE", json.dumps(keys))

    script()
    yield script


def app_on(folder: Path | None = None, *, here: Path | None = None) -> GpucostApp:
    """Return an app over a folder; run it with ``run_test``."""
    return GpucostApp(folder, here=here)


async def until(
    pilot: Pilot[Any], condition: Callable[[], object], *, seconds: float = 60.0
) -> None:
    """Wait until a condition holds; what never holds fails the test."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"never came true: {screen_text(pilot.app)}"
        await pilot.pause(0.02)
    await pilot.pause()


async def at_rest(pilot: Pilot[Any]) -> str:
    """Return the screen once it has stayed the same for a while, without notices."""
    seen, same = "", 0
    while same < 10:  # the test's own limit ends what never rests
        pilot.app.clear_notifications()
        await pilot.pause(0.02)
        now = screen_text(pilot.app)
        same = same + 1 if now == seen else 0
        seen = now
    return seen


async def pressed(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys, one after the other, each handled."""
    for key in keys:
        await pilot.press(key)
        await handled(pilot)


async def handled(pilot: Pilot[Any], *, seconds: float = 30.0) -> None:
    """Wait until all that is on the screen is mounted and has no message left.

    A pilot asks how much the processor works, and takes an app that gets none of it for idle.
    """
    end, calm = time.monotonic() + seconds, 0
    while calm < 3 and time.monotonic() < end:
        await asyncio.sleep(0.001)
        calm = calm + 1 if _is_calm(pilot.app) else 0
    await pilot.pause()


def _is_calm(app: App[Any]) -> bool:
    shown = list(app.screen.walk_children(with_self=True)) if app.screen_stack else []
    return all(widget._mounted_event.is_set() for widget in shown) and not any(
        pump.message_queue_size or pump._next_callbacks for pump in (app, *shown)
    )


def screen_text(app: Any) -> str:
    """Return what stands on the screen, line by line."""
    height = app.size.height
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in lines[:height])


def assert_harmless(app: Any) -> None:
    """Nothing on the screen steers a terminal."""
    found = _STEERING & set(screen_text(app))
    assert not found, f"steering characters on the screen: {found!r}"


Step = Callable[[Pilot[Any]], Awaitable[None]]
