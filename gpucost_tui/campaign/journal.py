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
_KEYS = {"seq", "time", "event", "host", "data", "prev"}


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


@dataclass(frozen=True, slots=True)
class Reading:
    """What a journal holds: its valid events, and what is wrong with the rest.

    ``torn`` are bytes after the last newline: a line whose writing was cut off. ``damage`` says why
    the record can't be trusted as it stands; such a journal is never repaired.
    """

    events: list[Event] = field(default_factory=list)
    torn: bytes = b""
    damage: str | None = None

    @property
    def head(self) -> str:
        """Hash of the last line, or zeros."""
        return self.events[-1].hash if self.events else GENESIS


def read(folder: Path) -> Reading:
    """Read a campaign's journal without changing anything."""
    try:
        # The head first: a journal that grows meanwhile is never shorter than it.
        head = _read_head(folder)
        data = (folder / "journal.jsonl").read_bytes()
    except FileNotFoundError:
        return Reading(damage="journal.jsonl is missing" if head is not None else None)
    except OSError as error:
        raise EnvironmentLacks(
            f"the journal can't be read ({error.strerror})",
            where="journal.jsonl",
            fix="Check the folder's permissions and what stands in its place",
        ) from None
    *lines, torn = data.split(b"\n")
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        event, damage = _parse(line, number, events[-1].hash if events else GENESIS)
        if event is None:
            return Reading(events, torn, damage)
        events.append(event)
    return Reading(events, torn, _held_against_head(events, head))


def trusted(folder: Path) -> Reading:
    """Read a journal that must be whole.

    Raises:
        Differs: A line was changed, removed or reordered, or the tail is cut.
    """
    reading = read(folder)
    if reading.damage:
        raise Differs(
            f"the journal is not the one that was written: {reading.damage}",
            where="journal.jsonl",
            fix="Nothing was changed; restore the file from a copy, `gpucost verify` shows more",
        )
    return reading


class Journal:
    """Appends events. Several processes may; each append takes a file lock and catches up first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "journal.jsonl"
        self._seen: tuple[int, Event] | None = None  # size after our last line, and that line

    def append(self, event: str, data: dict[str, Any], *, host: str | None = None) -> Event:
        """Write one event; when this returns, it is on the disk.

        Raises:
            Differs: The journal is damaged; nothing was written.
            EnvironmentLacks: No space, or no permission; the journal is as it was before.
        """
        try:
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
        """Return the last event; nothing is read again while nobody else has written."""
        if self._seen is not None and os.fstat(handle).st_size == self._seen[0]:
            return self._seen[1]
        reading = trusted(self._folder)
        last = reading.events[-1] if reading.events else None
        if reading.torn:
            self._set_aside(handle, reading.torn)
            note = {"bytes": len(reading.torn), "kept": self._torn_name(reading.torn)}
            last = self._write(handle, _make("torn_line_set_aside", note, host, last))
        return last

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
        self._seen = (before + len(line) + 1, event)
        return event

    def _set_aside(self, handle: int, torn: bytes) -> None:
        """Keep the bytes of a line that was cut off, then take them from the journal."""
        write_atomic(self._folder / self._torn_name(torn), torn)
        os.ftruncate(handle, os.fstat(handle).st_size - len(torn))
        os.fsync(handle)

    @staticmethod
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


def _parse(line: bytes, number: int, previous: str) -> tuple[Event | None, str | None]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None, f"line {number} is no JSON"
    if not isinstance(record, dict) or set(record) != _KEYS or not isinstance(record["data"], dict):
        return None, f"line {number} is no event"
    if record["prev"] != previous:
        return None, f"line {number} does not follow the line before it"
    if record["seq"] != number:
        return None, f"line {number} carries the number {record['seq']}"
    return Event(**record, hash=sha256_bytes(line)), None


def _read_head(folder: Path) -> dict[str, Any] | None:
    try:
        head = json.loads((folder / "journal.head").read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return {"seq": 0, "hash": "unreadable"}
    return head if isinstance(head, dict) else {"seq": 0, "hash": "unreadable"}


def _held_against_head(events: list[Event], head: dict[str, Any] | None) -> str | None:
    if head is None:
        # A power cut between the first line and the first head is the one honest way here.
        return "journal.head is missing" if len(events) > 1 else None
    seq, expected = head.get("seq"), head.get("hash")
    if not isinstance(seq, int) or seq < 1:
        return "journal.head is unreadable"
    if seq > len(events):
        return f"it ends with line {len(events)}, its head names line {seq}: the tail is cut"
    if events[seq - 1].hash != expected:
        return f"line {seq} is not the one that journal.head names"
    return None
