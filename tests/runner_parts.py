"""Parts for tests of the runner: small sealed campaigns over the fake engine, and real runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.fold import State, fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Event, trusted
from gpucost_tui.campaign.lock import holder
from gpucost_tui.campaign.runner import Listener, Options, RunEnd, Wishes, run
from gpucost_tui.campaign.seal import seal
from gpucost_tui.demo import CATEGORIES

TESTS = Path(__file__).parent
FAKE = "fake_engine:FakeEngine"
ENTRIES = 24
#: Three variants in one series, and nothing that a small corpus can't fulfil.
SETTINGS: dict[str, Any] = {
    "name": "small",
    "corpus.right_of_use": "made for this test",
    "corpus.strata": [],
    "quality.threshold": 0.5,
    "quality.subgroups": [],
    "measurement.rounds": 2,
    "measurement.max_rounds": 4,
    "reference.label_map": {},
}
_made: dict[str, Path] = {}


def corpus_rows(entries: int = ENTRIES) -> list[dict[str, str]]:
    """Return entries with ids that lose their form wherever they are taken for numbers."""
    odd = ["007", "1.0", "1e5", "[/INST]", "ü", 'a,b"c']
    ids = [*odd, *(f"{i:03d}" for i in range(100, 100 + entries))][:entries]
    return [
        {
            "id": one,
            "text": f"text number {i} " + "word " * (i % 7),
            "label": CATEGORIES[i % 6],
            "team": "ab"[i % 2],
        }
        for i, one in enumerate(ids)
    ]


def write_corpus(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), "utf-8")
    return path


def campaign(folder: Path, **settings: Any) -> Campaign:
    """Return a sealed campaign; dots of a setting's key are written ``__``."""
    key = json.dumps(settings, sort_keys=True)
    if key not in _made:
        _made[key] = _make(folder.with_name(folder.name + ".made"), settings)
    shutil.copytree(_made[key], folder, symlinks=True)
    return Campaign(folder)


def _make(folder: Path, settings: dict[str, Any]) -> Path:
    rows = settings.pop("rows", None) or corpus_rows()
    protocol = settings.pop("protocol", "classification-batch")
    values = dict(SETTINGS)
    if protocol != "classification-batch":
        values = {k: v for k, v in values.items() if not k.startswith(("reference.", "quality."))}
    values |= {key.replace("__", "."): value for key, value in settings.items()}
    corpus = write_corpus(folder.with_name("corpus.jsonl"), rows)
    inputs = Inputs(protocol, [str(corpus)], model="demo", settings=list(values.items()))
    made = create(folder, inputs)
    seal(made)
    return folder


def environment(script: dict[str, Any] | None = None, **more: str) -> dict[str, str]:
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {
        **os.environ,
        "PYTHONPATH": path,
        "GPUCOST_ENGINE": FAKE,
        "GPUCOST_FAKE": json.dumps(script or {}),
        **more,
    }


def gpucost(
    *words: str | Path, script: dict[str, Any] | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "gpucost_tui", *map(str, words)],
        env=environment(script, **more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_here(
    made: Campaign, options: Options | None = None, *, script: dict[str, Any] | None = None
) -> RunEnd:
    """Run a campaign in this process (the measuring child is a process of its own all the same)."""
    before = dict(os.environ)
    os.environ.update(environment(script))
    try:
        return run(made, wishes=Wishes(), listener=Listener(), options=options or Options())
    finally:
        os.environ.clear()
        os.environ.update(before)


def start(
    *words: str | Path, script: dict[str, Any] | None = None, engine: str = FAKE
) -> subprocess.Popen[str]:
    """Start the command; its output can be read when it has ended."""
    return subprocess.Popen(
        [sys.executable, "-m", "gpucost_tui", *map(str, words)],
        env=environment(script, GPUCOST_ENGINE=engine),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def until(what: Callable[[], Any], timeout_s: float = 60, every_s: float = 0.01) -> Any:
    """Wait for something to become true; return it."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(every_s)
    raise TimeoutError(f"not within {timeout_s} s")


def events(made: Campaign) -> list[Event]:
    return trusted(made.folder).events


def state(made: Campaign) -> State:
    return fold(events(made))


def rows(made: Campaign) -> list[dict[str, Any]]:
    return [attempt.row for _, attempt in sorted(state(made).attempts.items())]


def table(made: Campaign) -> pl.DataFrame:
    """Return raw_results.csv with every column as text."""
    return pl.read_csv(made.table_file, infer_schema=False)


def running(made: Campaign, attempt: int = 1) -> bool:
    """Tell whether a pass of an attempt (or a later one) is under way, by the progress file."""
    try:
        now = json.loads(made.progress_file.read_bytes())
    except (OSError, ValueError):
        return False
    return (now["attempt"] or 0) >= attempt and now["phase"] == "pass"


def child_of(pid: int) -> int | None:
    """Return the measuring child of a runner."""
    try:
        names = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(names[0]) if names else None


def alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def nobody_left(made: Campaign) -> bool:
    return holder(made.folder) is None


def sound(made: Campaign, slots: Sequence[int] | None = None) -> None:
    """Assert what holds after any history: chain, table, slots, nothing lost or doubled."""
    from gpucost_tui.campaign.schema import SCHEMA
    from gpucost_tui.campaign.table import raw_table

    now = state(made)
    numbers = list(now.attempts)
    assert numbers == list(range(1, len(numbers) + 1))
    folded = raw_table(now)
    assert folded.schema == SCHEMA
    written = table(made)
    assert written["attempt"].to_list() == [str(n) for n in numbers]
    assert written["status"].to_list() == folded["status"].to_list()
    assert written["missing"].to_list() == folded["missing"].to_list()
    assert written["predictions_sha256"].to_list() == folded["predictions_sha256"].to_list()
    used = [a.slot for a in now.attempts.values() if a.uses_slot]
    assert len(used) == len(set(used)), "a slot was filled twice"
    taken = [a.slot for a in now.attempts.values()]
    assert taken == sorted(taken), "slots were not filled in the planned order"
    if slots is not None:
        assert used == list(slots)
    for attempt in now.attempts.values():
        assert attempt.finished
        assert attempt.judged
        path = attempt.row["predictions_path"]
        if path is not None:
            assert (made.folder / path).is_file()
