"""Reads a journal line by line and names every line that is not the one that was written.

:mod:`gpucost_tui.campaign.journal` stops at the first damage, as a program that acts on a journal
must. Whoever verifies wants all of it: each line is held against the hash that its successor
carries, the last against ``journal.head``, and what can be read is handed on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpucost_tui.campaign.fold import State, advance
from gpucost_tui.campaign.journal import GENESIS, Event
from gpucost_tui.dossier.findings import Findings
from gpucost_tui.errors import Differs
from gpucost_tui.files import sha256_bytes
from gpucost_tui.text import clean, count

_KEYS: dict[str, type | tuple[type, ...]] = {
    "seq": int,
    "time": str,
    "event": str,
    "host": (str, type(None)),
    "data": dict,
    "prev": str,
}
_FILE = "journal.jsonl"


@dataclass(slots=True)
class Chain:
    """What a journal holds. ``head`` is the hash of its last line; ``torn`` what was cut off."""

    events: list[Event] = field(default_factory=list)
    torn: bytes = b""
    exists: bool = False

    @property
    def head(self) -> str | None:
        return self.events[-1].hash if self.events else None

    def upto(self, hash_: str) -> list[Event] | None:
        """Return the events up to the line with this hash, or None where there is none."""
        for number, event in enumerate(self.events):
            if event.hash == hash_:
                return self.events[: number + 1]
        return None


def read_chain(folder: Path, findings: Findings, *, live: bool = False) -> Chain:
    """Read ``journal.jsonl`` and ``journal.head``, recording every difference.

    Args:
        folder: The campaign's folder.
        findings: Where differences go.
        live: A runner is at work: lines may be added while this reads.
    """
    head = _read_head(folder)  # first: a journal that grows meanwhile is never shorter than it
    try:
        data = (folder / _FILE).read_bytes()
    except OSError as error:
        if head is not None or not isinstance(error, FileNotFoundError):
            found = clean(error.strerror or error)
            findings.differs(_FILE, "the journal that journal.head names", found)
        return Chain(exists=head is not None)
    *lines, torn = data.split(b"\n")
    if lines and not torn and b"\0" in lines[-1] and len(lines) > (head or (0, ""))[0]:
        torn = lines.pop() + b"\n"  # a page of it never reached the disk
    chain = Chain(torn=torn, exists=True)
    for number, line in enumerate(lines, 1):
        event = _event(line, number, findings)
        if event is not None:
            chain.events.append(event)
    findings.checked["journal_lines"] += len(lines)
    _order(chain.events, findings)
    _against_head(chain.events, head, findings, live)
    return chain


def _event(line: bytes, number: int, findings: Findings) -> Event | None:
    where = f"{_FILE}, line {number}"
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        findings.differs(where, "one JSON object", "no JSON")
        return None
    fits = isinstance(record, dict) and set(record) == set(_KEYS)
    if not fits or any(
        not isinstance(record[name], kind) or isinstance(record[name], bool)
        for name, kind in _KEYS.items()
    ):
        findings.differs(where, f"an event ({', '.join(_KEYS)})", "something else")
        return None
    return Event(**record, hash=sha256_bytes(line))


def _order(events: list[Event], findings: Findings) -> None:
    if events and events[0].seq != 1:
        findings.differs(f"{_FILE}, line 1", "number 1", f"number {events[0].seq}")
    if events and events[0].seq == 1 and events[0].prev != GENESIS:
        findings.differs(f"{_FILE}, line 1 (prev)", GENESIS, events[0].prev)
    for before, event in pairwise(events):
        where = f"{_FILE}, after line {before.seq}"
        if event.seq != before.seq + 1:
            findings.differs(where, f"line {before.seq + 1}", f"line {event.seq} ({event.event})")
        elif event.prev != before.hash:
            # The successor carries the hash of the line that was written.
            findings.differs(
                f"{_FILE}, line {before.seq} ({_named(before)})", event.prev, before.hash
            )
        if _time(event) < _time(before) and "clock" not in event.data:
            findings.differs(
                f"{_FILE}, line {event.seq} (time)", f"{before.time} or later", event.time
            )


def _time(event: Event) -> datetime:
    try:
        return datetime.fromisoformat(event.time)
    except ValueError:
        return datetime.fromisoformat("9999-12-31T00:00:00Z")


def _named(event: Event) -> str:
    attempt = event.data.get("attempt")
    return event.event + (f" of attempt {attempt}" if isinstance(attempt, int) else "")


def _read_head(folder: Path) -> tuple[int, str] | None:
    """Return number and hash; number 0 where the file can't be understood."""
    try:
        head: Any = json.loads((folder / "journal.head").read_bytes())
        seq, hash_ = head["seq"], head["hash"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0, "unreadable"
    return (seq, hash_) if type(seq) is int and isinstance(hash_, str) else (0, "unreadable")


def _against_head(
    events: list[Event], head: tuple[int, str] | None, findings: Findings, live: bool
) -> None:
    last = events[-1].seq if events else 0
    where = "journal.head"
    if head is None:
        # A power cut between the first line and the first head is the one honest way here.
        if last > 1:
            findings.differs(where, f"line {last} and its hash", "the file is missing")
        return
    seq, expected = head
    if seq < 1:
        findings.differs(where, "the number and hash of the last line", "unreadable")
        return
    if seq > last:
        findings.differs(
            _FILE,
            f"line {seq} with hash {expected} (journal.head)",
            f"the tail is cut: it ends with line {last}",
        )
        return
    named = next((event for event in events if event.seq == seq), None)
    if named is not None and named.hash != expected:
        findings.differs(f"{_FILE}, line {seq} ({_named(named)})", expected, named.hash)
    elif last > seq + 1 and not live:
        # Each line is followed by its head; a power cut loses one head, never two.
        found = f"line {seq}: later lines were added by hand, or the copy was taken during a run"
        findings.differs(where, f"line {last}", found)


def fold_all(events: list[Event], findings: Findings) -> State:
    """Fold events, naming and leaving out those that don't fit the ones before them."""
    state = State()
    for event in events:
        try:
            advance(state, [event])
        except Differs:
            findings.differs(
                f"{_FILE}, line {event.seq} ({_named(event)})",
                "an event that fits the lines before it",
                "one that does not",
            )
    return state


def note_torn(folder: Path, chain: Chain, state: State, findings: Findings) -> None:
    """Say what was cut off, and hold the pieces that were set aside against the journal."""
    if chain.torn:
        findings.note(
            f"{_FILE}: the writing of a last line was cut off ({count(len(chain.torn), 'byte')}); "
            "the next run sets it aside."
        )
    for piece in state.set_aside:
        name = str(piece.get("kept", ""))
        path = folder / name
        if not name.startswith("journal.torn-") or "/" in name:
            findings.differs(_FILE, "the name of a piece that was set aside", clean(name, limit=80))
            continue
        try:
            found = f"journal.torn-{sha256_bytes(path.read_bytes())[:12]}"
        except OSError as error:
            found = clean(error.strerror)
        if found != name:
            findings.differs(name, "the piece that was set aside", found)
