"""The journal: the append-only record of all that happened, and the only source of truth (R41).

UTF-8 JSON lines. Each carries the SHA-256 of the previous line's bytes (``prev``), so a line can't
be changed, removed or moved unnoticed; ``journal.head`` names the last one, so a cut tail is
noticed too. A line is flushed and fsynced before the program acts on it.

Format history:

* 1 (2026-11-30): seq, time, event, host, data, prev.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpucost_tui.errors import Differs, EnvironmentLacks
from gpucost_tui.files import canonical_json, sha256_bytes, write_atomic

GENESIS = "0" * 64
_KEYS: dict[str, Any] = {
    "seq": int,
    "time": str,
    "event": str,
    "host": str | None,
    "data": dict,
    "prev": str,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One line. ``time`` is UTC with microseconds; ``hash`` is the SHA-256 of the line's bytes."""

    seq: int
    time: str
    event: str
    host: str | None
    data: dict[str, Any]
    prev: str
    hash: str


@dataclass(slots=True)
class Reading:
    """What a journal holds: its valid events, and what is wrong with the rest.

    ``torn`` are the bytes of a last line whose writing was cut off: without its newline, or (after
    a power cut) with zeros in it, and in both cases beyond the head. ``damage`` says why the record
    can't be trusted as it stands; such a journal is never repaired. ``size`` are the bytes of the
    valid lines that were read.
    """

    events: list[Event] = field(default_factory=list)
    torn: bytes = b""
    damage: str | None = None
    size: int = 0

    @property
    def head(self) -> str:
        """Hash of the last line, or zeros."""
        return self.events[-1].hash if self.events else GENESIS


def read(folder: Path) -> Reading:
    """Read a campaign's journal from its first line, without changing anything."""
    return _read_on(folder, 0, None)


def trusted(folder: Path) -> Reading:
    """Read a journal that must be whole.

    Raises:
        Differs: A line was changed, removed or reordered, or the tail is cut.
    """
    return _whole(read(folder))


class Tail:
    """Reads a journal once, and from then on only what was added to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offset = 0  # just after the last whole line
        self.last: Event | None = None
        self.torn = b""

    def new(self) -> list[Event]:
        """Return the events that were added since the last call.

        Raises:
            Differs: As :func:`trusted`.
        """
        reading = _whole(_read_on(self._folder, self._offset, self.last))
        self._offset += reading.size
        self.torn = reading.torn
        if reading.events:
            self.last = reading.events[-1]
        return reading.events


class Journal:
    """Appends events. Several processes may; each append takes a file lock and catches up first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "journal.jsonl"
        self._tail = Tail(folder)

    def append(self, event: str, data: dict[str, Any], *, host: str | None = None) -> Event:
        """Write one event; when this returns, it is on the disk.

        Raises:
            Differs: The journal is damaged; nothing was written.
            EnvironmentLacks: No space, or no permission. The journal is valid all the same; only
                where its head could not follow, the line is there.
        """
        try:
            if not self._path.exists():
                self._tail.new()  # a lost journal is not begun again
            with self._locked() as handle:
                last = self._last(handle, host)
                return self._write(handle, _make(event, data, host, last))
        except OSError as error:
            raise EnvironmentLacks(
                f"the journal can't be written ({error.strerror})",
                where="journal.jsonl",
                fix="Make space or correct the folder's permissions; what was written is intact",
            ) from None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)

    def _last(self, handle: int, host: str | None) -> Event | None:
        self._tail.new()
        if not self._tail.torn:
            return self._tail.last
        torn = self._tail.torn
        self._set_aside(handle, torn)
        note = {"bytes": len(torn), "kept": _torn_name(torn)}
        return self._write(handle, _make("torn_line_set_aside", note, host, self._tail.last))

    def _write(self, handle: int, made: tuple[bytes, Event]) -> Event:
        line, event = made
        before = os.fstat(handle).st_size
        try:
            view = memoryview(line + b"\n")
            while view:
                view = view[os.write(handle, view) :]
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, before)
            raise
        head = canonical_json({"seq": event.seq, "hash": event.hash})
        write_atomic(self._folder / "journal.head", head)
        return event

    def _set_aside(self, handle: int, torn: bytes) -> None:
        """Keep the bytes of a line that was cut off, then take them from the journal."""
        write_atomic(self._folder / _torn_name(torn), torn)
        os.ftruncate(handle, os.fstat(handle).st_size - len(torn))
        os.fsync(handle)


def _torn_name(torn: bytes) -> str:
    return f"journal.torn-{sha256_bytes(torn)[:12]}"


def utc_now() -> str:
    """Return the wall clock as UTC with microseconds: ``2026-11-30T18:20:18.123456Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _make(
    event: str, data: dict[str, Any], host: str | None, last: Event | None
) -> tuple[bytes, Event]:
    now = utc_now()
    if last is not None and now < last.time:
        # Durations never come from here; whoever reads the times must know all the same.
        data = {**data, "clock": f"the wall clock went backwards: the line before is {last.time}"}
    record = {
        "seq": last.seq + 1 if last else 1,
        "time": now,
        "event": event,
        "host": host,
        "data": data,
        "prev": last.hash if last else GENESIS,
    }
    line = canonical_json(record)
    return line, Event(**record, hash=sha256_bytes(line))  # type: ignore[arg-type]


def _read_on(folder: Path, offset: int, last: Event | None) -> Reading:
    """Read from an offset; ``last`` is the event that ends there."""
    try:
        # The head first: a journal that grows meanwhile is never shorter than it.
        head = _read_head(folder)
        with (folder / "journal.jsonl").open("rb") as stream:
            stream.seek(offset)
            data = stream.read()
            shorter = stream.tell() < offset or os.fstat(stream.fileno()).st_size < offset
    except FileNotFoundError:
        gone = head is not None or last is not None
        return Reading(damage="journal.jsonl is missing" if gone else None)
    except OSError as error:
        raise EnvironmentLacks(
            f"the journal can't be read ({error.strerror})",
            where="journal.jsonl",
            fix="Check the folder's permissions and what stands in its place",
        ) from None
    if shorter:
        return Reading(damage="it is shorter than it was a moment ago")
    if head is None and (folder / "journal.head").exists():
        return _read_on(folder, offset, last)  # the first head was written between the two looks
    return _reading(data, head, last)


def _reading(data: bytes, head: tuple[int, str] | None, last: Event | None) -> Reading:
    *lines, torn = data.split(b"\n")
    found = Reading(torn=torn)
    before = last
    for index, line in enumerate(lines):
        number = last.seq + 1 if last else 1
        event, damage = _parse(line, number, last.hash if last else GENESIS)
        if event is None:
            # The last line may be one that never reached the disk whole: a page of it is zeros.
            final = index == len(lines) - 1 and not torn
            if final and b"\0" in line and number > (head[0] if head else 0):
                found.torn = line + b"\n"
                break
            found.damage = damage
            return found
        found.events.append(event)
        found.size += len(line) + 1
        last = event
    found.damage = _held_against_head(found.events, before, head)
    return found


def _whole(reading: Reading) -> Reading:
    if reading.damage:
        raise Differs(
            f"the journal is not the one that was written: {reading.damage}",
            where="journal.jsonl",
            fix="Nothing was changed. Restore the file from a copy (a folder that was copied while "
            "a run was at work: copy it again); `gpucost verify` shows more",
        )
    return reading


def _parse(line: bytes, number: int, previous: str) -> tuple[Event | None, str | None]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None, f"line {number} is no JSON"
    if not isinstance(record, dict) or set(record) != set(_KEYS):
        return None, f"line {number} is no event"
    if any(not isinstance(record[name], kind) for name, kind in _KEYS.items()):
        return None, f"line {number} is no event"
    if record["prev"] != previous:
        return None, f"line {number} does not follow the line before it"
    if record["seq"] != number:
        return None, f"line {number} carries the number {record['seq']}"
    return Event(**record, hash=sha256_bytes(line)), None


def _read_head(folder: Path) -> tuple[int, str] | None:
    """Return number and hash; none without a head, and number 0 where it can't be understood."""
    try:
        head = json.loads((folder / "journal.head").read_bytes())
        seq, hash_ = head["seq"], head["hash"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0, "unreadable"
    return (seq, hash_) if isinstance(seq, int) and isinstance(hash_, str) else (0, "unreadable")


def _held_against_head(
    events: list[Event], before: Event | None, head: tuple[int, str] | None
) -> str | None:
    """Compare with the head, as far as the line it names is among those at hand."""
    known = [before, *events] if before else events
    last = known[-1].seq if known else 0
    if head is None:
        # A power cut between the first line and the first head is the one honest way here.
        return "journal.head is missing" if last > 1 else None
    seq, expected = head
    if seq < 1:
        return "journal.head is unreadable"
    if seq > last:
        return f"it ends with line {last}, its head names line {seq}: the tail is cut"
    named = next((event for event in known if event.seq == seq), None)
    if named is not None and named.hash != expected:
        return f"line {seq} is not the one that journal.head names"
    return None
