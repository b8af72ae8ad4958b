"""A recorded campaign for screens, pictures and benchmarks: the same to the letter everywhere.

    python tests/tui_recorded.py

records ``recorded/tickets`` again (after a change of the campaign's files): 60 entries of the
demonstration's corpus, three variants, five rounds, run by the scripted engine and cut in the
middle of attempt 11. What a machine or a moment would change (times, durations, host record) is
then set to fixed, made-up values, and the journal is chained again over them.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from attempts_support import GPU, run

from gpucost_tui.campaign import lock, status
from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.history import History
from gpucost_tui.campaign.journal import GENESIS
from gpucost_tui.campaign.lock import Holder, machine
from gpucost_tui.campaign.seal import seal
from gpucost_tui.demo import CATEGORIES, MODEL_FOLDER
from gpucost_tui.demo.generate import Entry, corpus, write_jsonl
from gpucost_tui.environment.host import host_id
from gpucost_tui.files import canonical_json, sha256_bytes
from gpucost_tui.tui import run_view

TICKETS = Path(__file__).parent / "recorded" / "tickets"
GIB = 1 << 30
CAPACITY = 24 * GIB
BEGAN = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
RUNNER = Holder(4242, "recorded", machine(), "2026-09-28T09:00:00.000000Z", detached=True)
_MIX = {"short": 36, "medium": 18, "long": 6}
_PASS_S = {"batch-1": 11.9, "batch-4": 5.21, "batch-8": 3.46}
_WENT_WRONG: dict[str, Any] = {
    "3": {"fail": {"kind": "out-of-memory", "after": 40}},
    "7": {"accuracy": 0.7},
}
_RUNNING = 11
_EVALUATE_S = 0.021


def inputs(source: Path) -> Inputs:
    """Return the inputs of the recorded campaign; writes its corpus beside ``source``."""
    picked: list[Entry] = []
    for stratum, wanted in _MIX.items():
        picked += islice((e for e in corpus() if e.stratum == stratum), wanted)
    write_jsonl(source, sorted(picked, key=lambda entry: entry.id))
    return Inputs(
        protocol="classification-batch",
        corpus=[str(source)],
        model="demo",
        settings=[
            ("name", "tickets"),
            ("corpus.right_of_use", "Synthetic tickets, made by this program."),
            ("corpus.synthetic", True),
            ("corpus.source_distribution", dict.fromkeys(CATEGORIES, 0.1667)),
            ("corpus.max_class_deviation", 0.2),
            *((f"corpus.strata.{n}.entries", count) for n, count in enumerate(_MIX.values())),
            ("decision.budget_usd", "500.00"),
            ("quality.threshold", 0.8),
            ("quality.subgroups", []),
            ("deliverables.0.name", "tickets"),
            ("model.name", "ticket-classifier"),
            ("window.tasks.2.hours", 70),
            ("window.tasks.3.hours", 2),
        ],
    )


# -- reading it ----------------------------------------------------------------------------------


def draft(folder: Path) -> Campaign:
    """Return the campaign before its seal."""
    shutil.copytree(TICKETS, folder)
    for name in ("manifest.json", "journal.jsonl", "journal.head"):
        (folder / name).unlink()
    for name in ("attempts", "hosts"):
        shutil.rmtree(folder / name)
    protocol = folder / "protocol.toml"
    text = protocol.read_text("utf-8").replace('name = "tickets"', 'name = "tickets-next"', 1)
    protocol.write_text(text, "utf-8")
    return _with_model(folder)


def running(folder: Path) -> Campaign:
    """Return the campaign in the middle of attempt 11, with a progress file; see `at_work`."""
    shutil.copytree(TICKETS, folder)
    (folder / "progress.json").write_text(json.dumps(progress()))
    return _with_model(folder)


def _with_model(folder: Path) -> Campaign:
    sources = {"model": {"folder": str(MODEL_FOLDER), "download_s": None}}
    (folder / "sources.json").write_text(json.dumps(sources))
    return Campaign(folder)


def at_work(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let this folder's runner seem to be at work, and its clock to stand still."""

    def holder(asked: Path) -> Holder | None:
        return RUNNER if asked.resolve() == folder.resolve() else None

    patch.setattr(lock, "holder", holder)
    patch.setattr(status, "holder", holder)
    patch.setattr(run_view, "silence", lambda *_: None)


def progress() -> dict[str, Any]:
    """Return a progress file in the middle of the pass of attempt 11."""
    history = History()
    for n in range(120):
        rss = round((1.1 + 0.02 * math.sin(n / 9)) * GIB)
        history.add([{"index": 0, **_memory(n)}], rss, float(n))
    failures = [{"attempt": 3, "variant": "batch-8", "kind": "out-of-memory", "why": "-"}]
    device = {"index": 0, "name": GPU, "uuid": "GPU-0", "missing": {}, **_memory(119)}
    device |= {"utilization_percent": 96.0, "power_w": 318.4, "temperature_c": 64.0}
    return {
        "runner": RUNNER.pid, "started": RUNNER.started, "ready": True, "state": "running",
        "asked": None, "attempt": _RUNNING, "slot": _RUNNING, "variant": "batch-4", "round": 4,
        "deliverable": "tickets", "seed": 0, "phase": "pass", "finished_entries": 32,
        "expected_ids": 60, "elapsed_s": 3.6, "phase_s": 2.8, "done": 10, "open": 5,
        "failures": failures, "devices": [device], "devices_error": None,
        "rss_bytes": round(1.1 * GIB), "history": history.to_json(),
        "updated": "2026-09-28T09:03:00Z",
    }  # fmt: skip


def _memory(moment: int) -> dict[str, int]:
    swing = 0.5 + 0.35 * math.sin(moment / 7) + 0.1 * math.sin(moment / 2)
    reserved = 11.25 if moment > 45 else 5.5
    return {
        "allocated_bytes": round((2.2 + 7.4 * swing) * GIB) if moment > 45 else round(3.9 * GIB),
        "reserved_bytes": round(reserved * GIB),
        "used_bytes": round((reserved + 0.9) * GIB),
        "capacity_bytes": CAPACITY,
    }


# -- recording it --------------------------------------------------------------------------------


def record() -> None:
    """Run the campaign by the scripted engine, and put it down without time and place."""
    with tempfile.TemporaryDirectory() as scratch:
        campaign = create(Path(scratch) / "tickets", inputs(Path(scratch) / "corpus.jsonl"))
        seal(campaign)
        script = {
            "devices": [{"name": GPU, "capacity_bytes": CAPACITY}],
            "attempts": _WENT_WRONG,
        }
        run(campaign.folder, script)
        folder = campaign.folder
        _keep_what_is_fixed(folder)
        _put_down(folder, *_host_record(folder))
        shutil.rmtree(TICKETS, ignore_errors=True)
        shutil.copytree(folder, TICKETS)


def _keep_what_is_fixed(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name in ("sources.json", "progress.json", "control.json", "runner.lock", "logs"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif path.name.startswith(("raw_results", "device_memory")):
            path.unlink()
    for attempt in (folder / "attempts").iterdir():
        if int(attempt.name[:4]) >= _RUNNING:
            shutil.rmtree(attempt)
            continue
        verdict = json.loads((attempt / "verdict.json").read_bytes())
        verdict["row"]["evaluate_s"] = _EVALUATE_S
        (attempt / "verdict.json").write_bytes(canonical_json(verdict))


def _host_record(folder: Path) -> tuple[str, str]:
    """Write a made-up host record in the place of this machine's; return its name and checksum."""
    (found,) = (folder / "hosts").iterdir()
    record = json.loads(found.read_text())
    found.unlink()
    record["machine"] = "0" * 32
    record["cpu"] |= {"model": "A made-up CPU", "logical_cores": 16, "usable_cores": 16}
    record["memory"] |= {"total_bytes": 64 * GIB}
    record["os"] |= {"kernel": "6.1.0"}
    record["program"] |= {"commit": None, "source_sha256": "0" * 64, "modified": False}
    # What a driver would say of the scripted card.
    record["gpus"] = [{
        "index": 0, "vendor": "nvidia", "name": GPU, "uuid": "GPU-0", "capacity_bytes": CAPACITY,
        "ecc": None, "mig_mode": None, "compute_partition": None, "partitions": [],
        "power_limit_w": 450.0, "missing": {},
    }]  # fmt: skip
    record["driver"] = {"vendor": "nvidia", "driver": "580.82.07", "cuda": "13.0"}
    record["missing"].pop("gpus", None)
    written = canonical_json(record)
    name = host_id(record)
    (folder / "hosts" / f"{name}.json").write_bytes(written)
    return name, sha256_bytes(written)


def _put_down(folder: Path, host: str, host_sha256: str) -> None:
    now, before, lines = BEGAN, GENESIS, []
    for line in (folder / "journal.jsonl").read_bytes().splitlines():
        event = json.loads(line)
        data = event["data"]
        if data.get("attempt", 0) >= _RUNNING and event["event"] != "attempt_started":
            break
        now += timedelta(seconds=_fixed(event["event"], data))
        if event["host"]:
            event["host"] = host
        if event["event"] == "host_seen":
            data |= {"host": host, "record_sha256": host_sha256}
        if "host" in data.get("row", {}):
            data["row"]["host"] = host
        if event["event"] == "run_started":
            data["detached"] = True
        event |= {"time": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "prev": before}
        written = canonical_json(event)
        before = sha256_bytes(written)
        lines.append(written)
        if data.get("attempt") == _RUNNING:
            break
    (folder / "journal.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    head = canonical_json({"seq": len(lines), "hash": before})
    (folder / "journal.head").write_bytes(head)


def _fixed(event: str, data: dict[str, Any]) -> float:
    """Set what was measured to fixed values; return how long it took, in seconds."""
    row = data.get("row", {})
    if event == "attempt_judged":
        row["evaluate_s"] = _EVALUATE_S
        return 0.03
    if event != "attempt_finished":
        return 0.2
    share = data["finished_entries"] / 60
    name = {1: "batch-1", 4: "batch-4", 8: "batch-8"}[row["batch_size"]]
    took = _PASS_S[name] * (1 + 0.012 * math.sin(2.4 * data["attempt"]))
    if row["pass_s"] is not None:
        row["pass_s"] = round(took, 6)
        for part, of in (("read", 0.02), ("tokenize", 0.09), ("transfer", 0.02), ("forward", 0.84),
                         ("materialize", 0.03)):  # fmt: skip
            row[f"{part}_s"] = round(took * of, 6)
    if row["load_s"] is not None:
        row["load_s"] = 1.84
    row |= {"warmup_s": 0.63, "write_s": 0.034, "peak_rss_bytes": round(1.1 * GIB)}
    peak = {"batch-1": 3.9, "batch-4": 9.6, "batch-8": 16.8}[name]
    counted = {
        "allocated_bytes": round(peak * GIB),
        "reserved_bytes": round((peak + 0.7) * GIB),
        "used_bytes": round((peak + 1.3) * GIB),
    }
    for device in data["device_memory"]:
        device |= counted
    for key, value in counted.items():
        kind = "device_used" if key == "used_bytes" else key.removesuffix("_bytes")
        row[f"peak_{kind}_bytes"] = value
    return (row["load_s"] or 0) + 0.63 + took * share + 0.034


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    record()
