"""Was it conducted as it was sealed? Order, plan, hosts, and what lies beside (R18, R19)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpucost_tui.campaign.attempt import static_row
from gpucost_tui.campaign.fold import KINDS, State, advance
from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.journal import Event
from gpucost_tui.dossier.agreed import gpu_names
from gpucost_tui.dossier.findings import Findings
from gpucost_tui.dossier.inputs import read_json
from gpucost_tui.environment.host import host_id
from gpucost_tui.errors import Differs
from gpucost_tui.files import canonical_json, sha256_bytes
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.text import listed


def check_order(events: list[Event], manifest: Manifest, findings: Findings) -> None:
    """Replay the journal: sealed first and once, slots filled as planned, ends after beginnings."""
    state, protocol = State(), manifest.protocol
    for event in events:
        where = f"journal.jsonl, line {event.seq} ({event.event})"
        try:
            _before(event, state, protocol, findings, where)
            advance(state, [event])
        except (Differs, KeyError, TypeError, ValueError, AttributeError, StopIteration):
            continue  # named by fold_all


def _before(event: Event, state: State, protocol: Protocol, findings: Findings, where: str) -> None:
    """Check an event against the state that it found."""
    if event.event == "sealed":
        if state.manifest is not None or state.attempts:
            findings.differs(where, "one seal, before everything else", "a second one, or late")
        findings.compare(f"{where}, campaign", protocol.name, event.data.get("campaign"))
    elif state.manifest is None and event.event != "torn_line_set_aside":
        findings.differs(where, "the seal before it", "none")
    if event.event == "attempt_started":
        _started(event, state, protocol, findings, where)
    elif event.event in ("attempt_finished", "attempt_judged"):
        attempt = state.attempts.get(event.data["attempt"])
        done = attempt is not None and (
            attempt.finished if event.event == "attempt_finished" else attempt.judged
        )
        if done:
            findings.differs(where, "one such line for an attempt", "a second one")
        elif event.event == "attempt_judged" and attempt is not None and not attempt.finished:
            findings.differs(where, "the attempt's end before its verdict", "no end")
    elif event.event == "rounds_added":
        planned = state.rounds(protocol) + int(event.data["rounds"])
        if event.data["rounds"] < 1 or planned > protocol.measurement.max_rounds:
            most = protocol.measurement.max_rounds
            findings.differs(where, f"at most {most} rounds, as sealed (R26)", f"{planned}")
    elif event.event == "slot_added":
        repeated = state.attempts.get(event.data["repeats"])
        status = repeated.row["status"] if repeated else "absent"
        if status != "failed":
            findings.differs(where, "a failed attempt to repeat", f"one that is {status}")


def _started(
    event: Event, state: State, protocol: Protocol, findings: Findings, where: str
) -> None:
    number, slot = event.data["attempt"], event.data["slot"]
    expected = max(state.attempts, default=0) + 1
    if number != expected:
        findings.differs(where, f"attempt {expected}", f"attempt {number}")
    open_slots = state.open_slots(protocol)
    if not open_slots or open_slots[0].slot != slot:
        first = f"slot {open_slots[0].slot}, the first open one" if open_slots else "no open slot"
        findings.differs(where, f"{first} (R18)", f"slot {slot}")
    if event.data["row"].get("host") not in state.hosts:
        findings.differs(where, "a host seen before", event.data["row"].get("host"))


def note_unknown(events: list[Event], findings: Findings) -> None:
    """Name kinds of events that this version does not know: what they change can't be checked."""
    unknown = sorted({event.event for event in events} - KINDS)
    if unknown:
        findings.cannot(f"journal.jsonl: lines of kinds unknown to this version: {listed(unknown)}")


def check_rows(manifest: Manifest, events: list[Event], state: State, findings: Findings) -> None:
    """Hold what an attempt says of itself, at its beginning and at its end, against the plan."""
    slots = {slot.slot: slot for slot in _slots(state, manifest)}
    begun = {
        event.data["attempt"]: event.data["row"]
        for event in events
        if event.event == "attempt_started" and event.data.get("attempt") in state.attempts
    }
    for attempt in state.attempts.values():
        findings.checked["attempts"] += 1
        where = f"journal.jsonl, attempt {attempt.number}"
        slot = slots.get(attempt.slot)
        if slot is None:
            findings.differs(where, "a slot of the schedule", f"slot {attempt.slot}")
            continue
        folder = f"attempts/{attempt.number:04d}-{slot.variant}-r{slot.round}"
        findings.compare(f"{where}, folder", folder, attempt.folder)
        for row in (begun[attempt.number], attempt.row):
            expected, _ = static_row(manifest, slot, attempt.row["host"], {})
            expected["gpu"] = row.get("gpu")  # held against the host record
            expected["configuration"] = f"{slot.variant} on {row.get('gpu') or 'CPU'}"
            findings.compare(where, expected, {name: row.get(name) for name in expected})


def _slots(state: State, manifest: Manifest) -> list[Any]:
    try:
        return state.slots(manifest.protocol)
    except (KeyError, TypeError, ValueError, StopIteration, RuntimeError):
        return []


def check_hosts(
    campaign: Campaign, events: list[Event], state: State, findings: Findings
) -> dict[str, dict[str, Any]]:
    """Hold every host record against the hash that the journal recorded; return the records."""
    recorded = {
        event.data.get("host"): event.data.get("record_sha256")
        for event in events
        if event.event == "host_seen"
    }
    records: dict[str, dict[str, Any]] = {}
    for name, expected in recorded.items():
        where = f"hosts/{name}.json"
        if not isinstance(name, str) or "/" in name:
            findings.differs("journal.jsonl", "the name of a host record", name)
            continue
        record = read_json(campaign.host_file(name), where, f"record {expected}", findings)
        if record is None:
            continue
        findings.checked["hosts"] += 1
        found = sha256_bytes(canonical_json(record))
        if found != expected:
            findings.differs(where, expected, found)
        elif (own := host_id(record)) != name:
            findings.differs(where, f"the record of host {name}", f"the record of host {own}")
        if isinstance(record, dict):
            records[name] = record
    for path in sorted((campaign.folder / "hosts").glob("*.json")):
        if path.stem not in recorded:
            _unrecorded(path, findings)
    _gpus(state, records, findings)
    return records


def _unrecorded(path: Path, findings: Findings) -> None:
    """A runner writes a host record before its line: a sound one may stand there alone."""
    where = f"hosts/{path.name}"
    record = read_json(path, where, "a host record", findings)
    if record is None:
        return
    if host_id(record) == path.stem:
        findings.note(f"{where} is not in the journal (yet), and no attempt refers to it.")
    else:
        findings.differs(where, "a host that the journal saw", "another one")


def _gpus(state: State, records: dict[str, dict[str, Any]], findings: Findings) -> None:
    """An attempt's GPU is one that its host record has."""
    for attempt in state.attempts.values():
        gpu, record = attempt.row["gpu"], records.get(attempt.row["host"])
        if gpu is None or record is None:
            continue
        names = gpu_names(record)
        if gpu not in names:
            where = f"journal.jsonl, attempt {attempt.number}, gpu"
            findings.differs(where, f"a GPU of host {attempt.row['host']}: {names}", gpu)


def attempt_folders(campaign: Campaign) -> dict[str, bool]:
    """Return the names in ``attempts``, and whether each is an empty folder.

    Read before the journal: a folder that a live runner makes later is then no stranger.
    """
    root = campaign.folder / "attempts"
    found = sorted(root.iterdir()) if root.is_dir() else []
    return {path.name: path.is_dir() and not any(path.iterdir()) for path in found}


def check_folders(folders: dict[str, bool], state: State, findings: Findings) -> None:
    """Name attempts' folders that the journal does not know."""
    known = {attempt.folder for attempt in state.attempts.values()}
    next_ = f"{max(state.attempts, default=0) + 1:04d}-"
    for name, empty in folders.items():
        # A runner that was killed between making the folder and writing the line leaves this.
        if f"attempts/{name}" in known or (empty and name.startswith(next_)):
            continue
        findings.differs(f"attempts/{name}", "an attempt of the journal", "no such attempt")
