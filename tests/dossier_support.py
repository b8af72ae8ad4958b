"""Campaigns for the tests of verify, export and report: made over the fake engine, then forged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import GENESIS
from gpucost_tui.campaign.runner import Listener, Options, Wishes, run
from gpucost_tui.campaign.seal import seal
from gpucost_tui.campaign.table import write_tables
from gpucost_tui.demo import CATEGORIES
from gpucost_tui.files import canonical_json, sha256_bytes

#: A pass of batch-4 fails; the sixth attempt ran beside another process.
SCRIPT: dict[str, Any] = {
    "devices": [{"name": "NVIDIA GeForce RTX 4090", "capacity_bytes": 24 << 30}],
    "default": {"accuracy": 0.95},
    "attempts": {"2": {"fail": {"kind": "out-of-memory", "after": 8}}},
}
VARIANTS = ("batch-1", "batch-4", "batch-8")
WINDOW = [
    {"name": "install", "hours": 0.5},
    {"name": "passes", "after": ["install"], "measured": ["load", "warm-up", "pass", "evaluate"]},
    {"name": "export", "after": ["passes"], "measured": ["export"]},
]


@contextmanager
def fake_engine(script: dict[str, Any]) -> Iterator[None]:
    """Let runners of this process measure with the scripted engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUCOST_ENGINE", "fake_engine:FakeEngine")
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        patch.setenv("GPUCOST_FAKE", json.dumps(script))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


def draft(
    folder: Path, entries: int = 24, inputs: dict[str, Any] | None = None, **settings: Any
) -> Campaign:
    """Make a small campaign that nothing blocks; ``settings``: dotted keys with ``__``."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    corpus = folder.parent / f"{folder.name}-corpus.jsonl"
    corpus.write_text(corpus_text(entries), encoding="utf-8")
    tuning = folder.parent / f"{folder.name}-tuning.jsonl"
    tuning.write_text('{"id": "u1", "text": "Where is my parcel?"}\n', encoding="utf-8")
    values = {
        "name": folder.name,
        "corpus.right_of_use": "Made up for a test.",
        "corpus.synthetic": True,
        "quality.threshold": 0.5,
        "quality.subgroups": [],
        "measurement.rounds": 2,
        "measurement.max_rounds": 4,
        "decision.budget_usd": "500.00",
        "window.tasks": WINDOW,
        **{key.replace("__", "."): value for key, value in settings.items()},
    }
    given: dict[str, Any] = {
        "protocol": "classification-batch",
        "corpus": [str(corpus)],
        "model": "demo",
        "tuning": [str(tuning)],
        "settings": list(values.items()),
        **(inputs or {}),
    }
    return create(folder, Inputs(**given))


def corpus_text(entries: int, ids: Callable[[int], str] = "t{:03d}".format) -> str:
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
    return "\n".join(lines) + "\n"


def filled(campaign: Campaign, script: dict[str, Any] | None = None, **options: Any) -> Campaign:
    """Run the open slots of a sealed campaign."""
    with fake_engine(SCRIPT if script is None else script):
        run(campaign, wishes=Wishes(), listener=Listener(), options=Options(**options))
    return Campaign(campaign.folder)


def finished(folder: Path, script: dict[str, Any] | None = None, **settings: Any) -> Campaign:
    """Return a finished campaign: three variants, two rounds, six attempts, one of them failed."""
    campaign = draft(folder, **settings)
    seal(campaign)
    return filled(campaign, script)


# -- forging -----------------------------------------------------------------------------------


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines()]


def write_lines(folder: Path, records: list[dict[str, Any]]) -> None:
    """Write a journal as it is given, its head left as it is."""
    (folder / "journal.jsonl").write_bytes(b"".join(canonical_json(r) + b"\n" for r in records))


def rewrite(folder: Path, records: list[dict[str, Any]], *, tables: bool = True) -> None:
    """Rewrite a whole journal consistently: numbers, chain, head, and the tables from it."""
    previous, data = GENESIS, []
    for number, record in enumerate(records, 1):
        line = canonical_json({**record, "seq": number, "prev": previous})
        previous = sha256_bytes(line)
        data.append(line + b"\n")
    (folder / "journal.jsonl").write_bytes(b"".join(data))
    head = canonical_json({"seq": len(records), "hash": previous})
    (folder / "journal.head").write_bytes(head)
    if tables:
        write_tables(folder, fold(Campaign(folder).events()), final=True)


def event(records: list[dict[str, Any]], name: str, attempt: int | None = None) -> dict[str, Any]:
    """Return the first record of an event (of an attempt)."""
    return next(
        r
        for r in records
        if r["event"] == name and (attempt is None or r["data"].get("attempt") == attempt)
    )


def replace(path: Path, old: str, new: str) -> None:
    """Replace text in a file; the text must be there."""
    content = path.read_text("utf-8")
    assert old in content, f"{old!r} is not in {path.name}"
    path.write_text(content.replace(old, new), encoding="utf-8")


def environment() -> dict[str, str]:
    """Return an environment for a `gpucost` of its own."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
