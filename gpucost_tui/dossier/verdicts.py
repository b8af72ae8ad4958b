"""Judges every attempt again from its prediction file, and compares (R3, R13, R27)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.fold import Attempt, State
from gpucost_tui.campaign.folder import FAILURE, Campaign, Manifest
from gpucost_tui.campaign.journal import Event
from gpucost_tui.campaign.judge import Judge, Subject, Verdict
from gpucost_tui.dossier.findings import Findings
from gpucost_tui.dossier.inputs import read_json
from gpucost_tui.errors import GpucostError
from gpucost_tui.files import sha256_file
from gpucost_tui.text import clean

#: Details that every version's verdicts have, where they apply.
_ALWAYS = frozenset({"identifiers", "format", "quality", "subgroups", "reasons"})
_UNREADABLE = (
    GpucostError,
    OSError,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    KeyError,
    ValueError,
)


def check_verdicts(
    campaign: Campaign,
    manifest: Manifest,
    events: list[Event],
    state: State,
    at_hand: frozenset[str],
    findings: Findings,
) -> None:
    """Recompute every verdict in the order in which they were given.

    Args:
        campaign: The campaign.
        manifest: What was sealed.
        events: Of the journal, in order.
        state: Their fold.
        at_hand: Deliverables whose corpus is here.
        findings: Where differences go.
    """
    judge = Judge(campaign, manifest)
    judged = {
        event.data["attempt"]: event.data
        for event in events
        if event.event == "attempt_judged" and isinstance(event.data.get("attempt"), int)
    }
    for attempt in state.attempts.values():
        if not attempt.finished:
            continue
        sound = _file(campaign, attempt, findings)
        _traceback(campaign, attempt, findings)
        if attempt.number not in judged:
            findings.note(f"attempt {attempt.number} is not judged yet: the next run does it")
        elif attempt.row["deliverable"] in at_hand:
            _verdict(campaign, manifest, judge, attempt, judged[attempt.number], findings)
        if sound:
            _take_reference(campaign, judge, attempt)


def _file(campaign: Campaign, attempt: Attempt, findings: Findings) -> bool:
    """Hold a prediction file against its recorded hash."""
    name, expected = attempt.row["predictions_path"], attempt.row["predictions_sha256"]
    if name is None:
        return False
    path = _inside(campaign, name)
    if path is None:
        findings.differs(
            f"journal.jsonl, attempt {attempt.number}, predictions_path", "a file of it", name
        )
        return False
    findings.checked["prediction_files"] += 1
    return _as_recorded(path, name, expected, findings)


def _traceback(campaign: Campaign, attempt: Attempt, findings: Findings) -> None:
    """Hold ``failure.txt`` against its recorded hash; earlier versions recorded none."""
    name = f"{attempt.folder}/{FAILURE}"
    path = _inside(campaign, name)
    if attempt.failure_sha256 is not None and path is not None:
        _as_recorded(path, name, attempt.failure_sha256, findings)
    elif path is not None and path.exists():
        findings.note(
            f"{name} is a traceback for people: the journal has the error in a line, and no "
            "fingerprint of the file"
        )


def _as_recorded(path: Path, name: str, expected: Any, findings: Findings) -> bool:
    try:
        found = sha256_file(path)
    except OSError as error:
        findings.differs(name, f"SHA-256 {expected}", clean(error.strerror))
        return False
    if found != expected:
        findings.differs(name, f"SHA-256 {expected}", found)
    return bool(found == expected)


def _inside(campaign: Campaign, name: str) -> Path | None:
    path = Path(name)
    outside = path.is_absolute() or ".." in path.parts
    return None if outside else campaign.folder / path


def _verdict(
    campaign: Campaign,
    manifest: Manifest,
    judge: Judge,
    attempt: Attempt,
    recorded: dict[str, Any],
    findings: Findings,
) -> None:
    where = f"{attempt.folder}/verdict.json"
    told = read_json(campaign.folder / where, where, "the verdict of the journal", findings)
    kept = {key: recorded.get(key) for key in ("reasons", "row", "missing", "notes")}
    if isinstance(told, dict):
        findings.compare(where, kept, {key: told.get(key) for key in kept})
    elif told is not None:
        findings.differs(where, "a verdict", "something else")
    try:
        verdict = _again(campaign, manifest, judge, attempt, kept)
    except _UNREADABLE as error:
        reason = clean(next(iter(str(error).splitlines()), type(error).__name__), limit=160)
        findings.differs(
            attempt.row["predictions_path"] or where, "predictions that can be judged", reason
        )
        return
    findings.checked["verdicts"] += 1
    again = _plain(verdict)
    place = f"journal.jsonl, verdict of attempt {attempt.number}"
    findings.compare(place, _substance(again), _substance(kept))
    if "interval" in recorded:  # journals of earlier versions have none
        wanted = again["details"].get("interval")
        findings.compare(f"{place}, interval", wanted, recorded["interval"])
    if isinstance(told, dict):
        for key in ("accepted", "attempt"):
            findings.compare(f"{where}, {key}", again[key], told.get(key))
        findings.compare(f"{where}, details", *_alike(_figures(again), _figures(told)))


def _again(
    campaign: Campaign,
    manifest: Manifest,
    judge: Judge,
    attempt: Attempt,
    kept: dict[str, Any],
) -> Verdict:
    """Judge an attempt; a file that was exchanged is judged as it lies there, so that ids and
    quality are named too, unless the record itself says that it was exchanged."""
    name, sha256 = attempt.row["predictions_path"], attempt.row["predictions_sha256"]
    path = _inside(campaign, name) if name else None

    def judged(expected: str | None) -> Verdict:
        subject = Subject(
            attempt=attempt.number,
            status=attempt.row["status"],
            deliverable=attempt.row["deliverable"],
            round=attempt.row["round"],
            predictions=path,
            predictions_sha256=expected,
            labels=manifest.json["model"].get("labels"),
            dimension=attempt.dimension,
            variant=attempt.row["variant"],
            seed=attempt.row["seed"],
        )
        return judge.judge(subject)

    verdict = judged(sha256)
    exchanged = path is not None and path.is_file() and sha256_file(path) != sha256
    if exchanged and _plain(verdict)["reasons"] != kept["reasons"]:
        return judged(sha256_file(path))  # type: ignore[arg-type]
    return verdict


def _plain(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as its file has it, without the time that judging took."""
    value: dict[str, Any] = json.loads(json.dumps(verdict.to_json()))
    return _untimed(value)


def _substance(value: dict[str, Any]) -> dict[str, Any]:
    """Return what was found, without the words for it: those are a version's own."""
    found = _untimed(value)
    missing = sorted(found.get("missing") or {})
    return {"reasons": found["reasons"], "row": found["row"], "empty": missing}


def _figures(value: dict[str, Any]) -> Any:
    """Return the details behind a verdict, of the format only how many problems there are."""
    details = value.get("details")
    if not isinstance(details, dict):
        return details
    problems = details.get("format")
    counted = len(problems) if isinstance(problems, list) else problems
    groups = details.get("subgroups")
    if isinstance(groups, list):
        groups = [{k: v for k, v in g.items() if k != "note"} for g in groups]
    return {**details, "format": counted, "subgroups": groups}


def _alike(again: Any, told: Any) -> tuple[Any, Any]:
    """Leave out details that only one of the two versions knows."""
    if not isinstance(again, dict) or not isinstance(told, dict):
        return again, told
    both = _ALWAYS | (again.keys() & told.keys())
    return tuple({k: v for k, v in one.items() if k in both} for one in (again, told))  # type: ignore[return-value]


def _untimed(value: dict[str, Any]) -> dict[str, Any]:
    row = {k: v for k, v in (value["row"] or {}).items() if k != "evaluate_s"}
    return {**value, "row": row}


def _take_reference(campaign: Campaign, judge: Judge, attempt: Attempt) -> None:
    """Use a sound pass of round 0 as its deliverable's reference, as the runner did."""
    row = attempt.row
    sound = row["round"] == 0 and row["status"] == "completed" and row["ids_match"]
    if sound and row["format_ok"]:
        judge.reference_pass(row["deliverable"], campaign.folder / row["predictions_path"])
