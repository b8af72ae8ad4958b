"""Folds the journal into attempts: the one way from what happened to what is shown.

Any prefix of a journal folds: an attempt without an end is a row without a status. Events of a kind
that this version doesn't know change nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gpucost_tui.campaign import acts
from gpucost_tui.campaign.columns import NAMES
from gpucost_tui.campaign.journal import Event
from gpucost_tui.campaign.slots import Slot, schedule
from gpucost_tui.errors import Differs
from gpucost_tui.protocol.model import Protocol

#: Columns that are empty when there is nothing to tell, which is no missing measurement.
_NOT_MEASURED = frozenset({"failure", "exclusion_cause", "notes", "missing"})
_NO_END = "no end is recorded yet"
_NOT_JUDGED = "not judged yet"


@dataclass(slots=True)
class Attempt:
    """One attempt as the journal tells it. ``row`` has every column of the raw table."""

    number: int
    slot: int
    row: dict[str, Any]
    fixed: dict[str, str] = field(default_factory=dict)  # reasons known from the start
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    device_memory: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    folder: str = ""
    finished: bool = False
    judged: bool = False
    error: str | None = None
    dimension: int | None = None  # length of the model's vectors, for an embedding
    interval: dict[str, Any] | None = None  # of its quality: low, high, level, method
    failure_sha256: str | None = None  # of failure.txt

    @property
    def uses_slot(self) -> bool:
        """Completed and failed attempts use their slot up; any other end leaves it open."""
        return self.row["status"] in ("completed", "failed")


@dataclass(slots=True)
class State:
    """All that the journal says of a campaign."""

    manifest: str | None = None
    attempts: dict[int, Attempt] = field(default_factory=dict)
    additions: list[dict[str, Any]] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    running: bool = False  # a run began and its end is not recorded
    last_end: str | None = None  # in words, why the last run ended
    set_aside: list[dict[str, Any]] = field(default_factory=list)
    clock: list[str] = field(default_factory=list)  # where the journal's times go backwards
    acts: acts.Acts = field(default_factory=acts.Acts)  # exclusions, commitments, spending

    def slots(self, protocol: Protocol) -> list[Slot]:
        return schedule(protocol, self.additions)

    def open_slots(self, protocol: Protocol) -> list[Slot]:
        """Return the slots that no attempt has used up, in the planned order.

        A repeated reference pass comes before all others: they are held against it.
        """
        used = {a.slot for a in self.attempts.values() if a.uses_slot}
        left = [slot for slot in self.slots(protocol) if slot.slot not in used]
        return sorted(left, key=lambda slot: slot.round > 0)

    def rounds(self, protocol: Protocol) -> int:
        """Return how many rounds are planned by now, extensions included."""
        return protocol.measurement.rounds + sum(int(a.get("rounds", 0)) for a in self.additions)

    def unfinished(self) -> list[Attempt]:
        return [a for a in self.attempts.values() if not a.finished]

    def unjudged(self) -> list[Attempt]:
        return [a for a in self.attempts.values() if a.finished and not a.judged]


def fold(events: Iterable[Event]) -> State:
    """Fold events into a state.

    Raises:
        Differs: An event does not fit those before it (its line was made by hand).
    """
    return advance(State(), events)


def advance(state: State, events: Iterable[Event]) -> State:
    """Fold further events into a state; return the same state."""
    for event in events:
        step = _STEPS.get(event.event)
        try:
            if step is not None:
                step(state, event)
            if "clock" in event.data:
                _clock(state, event)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Differs(
                f"line {event.seq} ({event.event}) does not fit the lines before it",
                where="journal.jsonl",
                fix="Restore the file from a copy; `gpucost verify` shows more",
            ) from None
    return state


def _sealed(state: State, event: Event) -> None:
    state.manifest = event.data["manifest"]


def _host_seen(state: State, event: Event) -> None:
    if event.data["host"] not in state.hosts:
        state.hosts.append(event.data["host"])


def _run_started(state: State, event: Event) -> None:
    state.running = True


def _run_ended(state: State, event: Event) -> None:
    state.running = False
    state.last_end = event.data["why"]


def _added(state: State, event: Event) -> None:
    state.additions.append(event.data)


def _started(state: State, event: Event) -> None:
    state.acts.export_s = None  # what was exported before is not the whole campaign
    data = event.data
    fixed = data.get("missing", {})
    row: dict[str, Any] = dict.fromkeys(NAMES)
    row.update(data["row"], attempt=data["attempt"], started_at=event.time, excluded=False)
    state.attempts[data["attempt"]] = Attempt(
        number=data["attempt"],
        slot=data["slot"],
        row=row,
        fixed=fixed,
        missing={**fixed, "*": _NO_END},
        folder=data["folder"],
    )


def _finished(state: State, event: Event) -> None:
    data, attempt = event.data, state.attempts[event.data["attempt"]]
    attempt.row.update(data["row"])
    attempt.row.update(
        # An attempt that a later runner found cut off ended at a time that nobody saw.
        ended_at=None if "ended_at" in data["missing"] else event.time,
        status=data["status"],
        failure=data["failure"],
        finished_entries=data["finished_entries"],
    )
    attempt.missing = {**attempt.fixed, **data["missing"]}
    attempt.notes.extend(data["notes"])
    attempt.device_memory = data["device_memory"]
    attempt.error = data["error"]
    attempt.dimension = data.get("dimension")
    attempt.failure_sha256 = data.get("failure_sha256")
    attempt.finished = True


def _judged(state: State, event: Event) -> None:
    data, attempt = event.data, state.attempts[event.data["attempt"]]
    attempt.row.update(data["row"])
    attempt.missing.update(data["missing"])
    attempt.notes.extend(data["notes"])
    attempt.reasons = data["reasons"]
    attempt.interval = _interval(data.get("interval"))
    attempt.judged = True


def _interval(told: Any) -> dict[str, Any] | None:
    """Return a recorded interval; journals of earlier versions have none."""
    if not isinstance(told, dict) or not isinstance(told.get("method"), str):
        return None
    numbers = all(isinstance(told.get(key), int | float) for key in ("low", "high", "level"))
    return told if numbers else None


def _set_aside(state: State, event: Event) -> None:
    state.set_aside.append(event.data)


def _clock(state: State, event: Event) -> None:
    said = f"line {event.seq}: {event.data['clock']}"
    state.clock.append(said)
    attempt = state.attempts.get(event.data.get("attempt", 0))
    if attempt is not None:
        attempt.notes.append(f"journal {said}")


def missing_text(attempt: Attempt) -> str | None:
    """Return ``column: reason; …`` for every empty measurement of a row (R20)."""
    row, reasons = attempt.row, attempt.missing
    otherwise = reasons.get("*") or (_NOT_JUDGED if attempt.finished else _NO_END)
    parts = []
    for name in NAMES:
        if name in _NOT_MEASURED:
            continue
        if row[name] is None:
            parts.append(f"{name}: {reasons.get(name) or otherwise}")
        elif name in reasons:
            parts.append(f"{name}: {reasons[name]}")  # a value that needs a word, such as a bound
    return joined(parts)


def joined(parts: Iterable[str]) -> str | None:
    """Join reasons or notes into one cell; what separates them stands inside none of them."""
    return "; ".join(" ".join(part.split()).replace("; ", ", ") for part in parts) or None


_STEPS = {
    "sealed": _sealed,
    "host_seen": _host_seen,
    "run_started": _run_started,
    "run_ended": _run_ended,
    "rounds_added": _added,
    "slot_added": _added,
    "attempt_started": _started,
    "attempt_finished": _finished,
    "attempt_judged": _judged,
    "torn_line_set_aside": _set_aside,
    **acts.STEPS,
}

#: Kinds of events that this version knows.
KINDS = frozenset(_STEPS)
