"""Campaigns that were run by the fake engine, for the tests of attempts and prices in the app."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from tui_support import HOSTILE, WIDE, draft_campaign, scratch

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.seal import seal
from gpucost_tui.demo import CATEGORIES

GPU = "NVIDIA GeForce RTX 4090"
_DEVICES = [{"name": GPU, "capacity_bytes": 25 << 30}]
#: Attempt 2 runs out of memory, 3 leaves an id out, 4 has scores that are no numbers.
MIXED: dict[str, Any] = {
    "devices": _DEVICES,
    "attempts": {
        "2": {"fail": {"kind": "out-of-memory", "after": 10}},
        "3": {"ids": "missing"},
        "4": {"scores": "nan"},
    },
}
SOUND: dict[str, Any] = {"devices": _DEVICES}
#: Text that a corpus can hold: no half of a surrogate pair, no NUL.
TEXT = HOSTILE.replace("\ud83d", "").replace("\x00", "")


def run(folder: Path, script: dict[str, Any]) -> None:
    """Run a campaign's open slots to the end, with the scripted engine."""
    environment = {
        **os.environ,
        "GPUCOST_ENGINE": "fake_engine:FakeEngine",
        "GPUCOST_FAKE": json.dumps(script),
        "PYTHONPATH": str(Path(__file__).parent),
    }
    done = subprocess.run(
        [sys.executable, "-m", "gpucost_tui", "run", str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def finished(folder: Path, script: dict[str, Any] | None = None) -> Campaign:
    """Return a finished campaign of six attempts: three variants, two rounds, 30 entries."""
    shutil.copytree(_finished_once(json.dumps(script or MIXED)), folder)
    return Campaign(folder)


@cache
def _finished_once(script: str) -> Path:
    campaign = draft_campaign(scratch("attempts") / "ran")
    seal(campaign)
    run(campaign.folder, json.loads(script))
    return campaign.folder


def hostile(folder: Path) -> Campaign:
    """Return a finished campaign whose ids, texts and errors steer terminals; one id has 1 MB."""
    shutil.copytree(_hostile_once(), folder)
    return Campaign(folder)


@cache
def _hostile_once() -> Path:
    base = scratch("hostile")
    ids = [TEXT, WIDE, "x" * 1_000_000, *(f"t{n}" for n in range(9))]
    rows = [
        {"id": one, "text": f"{TEXT} {WIDE} {n}", "label": CATEGORIES[n % len(CATEGORIES)]}
        for n, one in enumerate(ids)
    ]
    corpus = base / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    settings = [
        ("name", f"{WIDE} [/INST] \u202e[b]evil"),
        ("corpus.right_of_use", "Made up for a test."),
        ("quality.threshold", 0.0),
        ("quality.subgroups", []),
        ("measurement.rounds", 1),
    ]
    made = create(
        base / "hostile",
        Inputs(
            protocol="classification-batch", corpus=[str(corpus)], model="demo", settings=settings
        ),
    )
    seal(made)
    failure = {"kind": "raise", "after": 1, "text": HOSTILE.replace("\ud83d", "")}
    run(made.folder, {"default": {"accuracy": 0.0}, "attempts": {"2": {"fail": failure}}})
    return made.folder


def exclude_attempt(campaign: Campaign, number: int) -> None:
    """Exclude an attempt for the cause that the template declares."""
    from gpucost_tui.campaign.excluding import exclude

    now = datetime.now(UTC)
    exclude(campaign, [number], "other-process", now - timedelta(days=1), now + timedelta(days=1))
