"""What a runner writes down: attempts and verdicts into the journal, and the tables from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpucost_tui.campaign.attempt import static_row
from gpucost_tui.campaign.fold import Attempt, State, advance
from gpucost_tui.campaign.folder import FAILURE, Campaign, Manifest
from gpucost_tui.campaign.journal import Journal, Tail
from gpucost_tui.campaign.judge import Judge, Subject
from gpucost_tui.campaign.private import Private
from gpucost_tui.campaign.slots import Slot
from gpucost_tui.campaign.table import write_tables
from gpucost_tui.engine.contract import Outcome
from gpucost_tui.errors import EnvironmentLacks
from gpucost_tui.files import sha256_bytes, sha256_file, sync_path, write_atomic

_LONGEST = 2000  # characters of an error or a note in the journal; failure.txt has it whole
_NO_ROOM = re.compile(
    r"\[Errno (?:27|28|30|122)\]|os error (?:27|28|30|122)\b|No space left|Disk quota exceeded"
)


class Record:
    """The record of one sealed campaign, for the one runner that holds its lock."""

    def __init__(self, campaign: Campaign, private: Private) -> None:
        self.campaign = campaign
        self.manifest: Manifest = campaign.manifest
        self.protocol = self.manifest.protocol
        self.journal = Journal(campaign.folder)
        self.judge = Judge(campaign, self.manifest)
        self.hide = private.hide
        self.host: str | None = None
        self._tail = Tail(campaign.folder)
        self._state = State()

    def state(self) -> State:
        """Return what the journal says by now; only what is new in it is read.

        Raises:
            Differs: The journal is damaged.
        """
        return advance(self._state, self._tail.new())

    def append(self, event: str, data: dict[str, Any]) -> None:
        self.journal.append(event, data, host=self.host)

    def begin(
        self, slot: Slot, number: int, framework: dict[str, Any], device: str | None = None
    ) -> Path:
        """Record that an attempt begins; return its folder."""
        folder = self.campaign.attempt_folder(number, slot.variant, slot.round)
        with on_disk(f"attempts/{folder.name}"):
            folder.mkdir(parents=True, exist_ok=True)
            sync_path(folder.parent)
        assert self.host is not None  # noqa: S101 - set when the measuring process answered
        row, missing = static_row(self.manifest, slot, self.host, framework, device)
        data = {
            "attempt": number,
            "slot": slot.slot,
            "folder": str(folder.relative_to(self.campaign.folder)),
            "row": row,
            "missing": missing,
        }
        self.append("attempt_started", data)
        return folder

    def finish(self, outcome: Outcome, folder: str) -> None:
        """Record how an attempt ended; its full traceback goes to ``failure.txt``, whose hash the
        journal keeps."""
        data = outcome.to_json()
        trace = data.pop("trace")
        del data["poisoned"]
        data["error"] = self._told(data["error"]) if data["error"] else None
        data["notes"] = [self._told(note) for note in data["notes"]]
        data["missing"] = {name: self._told(why) for name, why in data["missing"].items()}
        if trace:
            text = self.hide(trace).encode("utf-8", "replace")
            if unwritten := self._failure(self.campaign.folder / folder, text):
                data["notes"].append(unwritten)
            else:
                data["failure_sha256"] = sha256_bytes(text)
        if path := data["row"].get("predictions_path"):
            data["row"]["predictions_path"] = f"{folder}/{path}"
        self.append("attempt_finished", data)

    def _told(self, text: str) -> str:
        """Return text from outside as it may be stored: nothing private, valid UTF-8, bounded."""
        text = self.hide(text).encode("utf-8", "replace").decode()
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

    def _failure(self, folder: Path, text: bytes) -> str | None:
        """Write the traceback. A disk that refuses it must not keep the attempt's end from the
        journal: it is told in a note."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / FAILURE, text)
        except OSError as error:
            return f"{FAILURE} could not be written ({error.strerror})"
        return None

    def judged(self, attempt: Attempt) -> None:
        """Verify a finished attempt and record the verdict."""
        subject = self._subject(attempt)
        with on_disk(attempt.folder):
            verdict = self.judge.judge(subject)
            folder = self.campaign.folder / attempt.folder
            folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(verdict.to_json(), indent=1, ensure_ascii=False, sort_keys=True)
            write_atomic(folder / "verdict.json", text.encode("utf-8", "replace") + b"\n")
        data = {
            "attempt": attempt.number,
            "reasons": verdict.reasons,
            "row": verdict.row,
            "missing": verdict.missing,
            "notes": verdict.notes,
            "interval": verdict.details.get("interval"),
        }
        self.append("attempt_judged", data)

    def _subject(self, attempt: Attempt) -> Subject:
        path = attempt.row["predictions_path"]
        return Subject(
            attempt=attempt.number,
            status=attempt.row["status"],
            deliverable=attempt.row["deliverable"],
            round=attempt.row["round"],
            predictions=self.campaign.folder / path if path else None,
            predictions_sha256=attempt.row["predictions_sha256"],
            labels=self.manifest.json["model"].get("labels"),
            dimension=attempt.dimension,
            variant=attempt.row["variant"],
            seed=attempt.row["seed"],
        )

    def take_reference(self, attempt: Attempt) -> None:
        """Use a sound attempt as the first of its kind, and as its deliverable's reference, if it
        is a pass of round 0."""
        row = attempt.row
        sound = row["status"] == "completed" and row["ids_match"] and row["format_ok"]
        if not (sound and row["predictions_path"]):
            return
        self.judge.take_first(self._subject(attempt))
        if row["round"] != 0:
            return
        path = self.campaign.folder / row["predictions_path"]
        with on_disk(row["predictions_path"]):
            if path.is_file() and sha256_file(path) == row["predictions_sha256"]:
                self.judge.reference_pass(row["deliverable"], path)

    def tables(self, *, final: bool = False) -> None:
        """Write the tables that are folded from the journal."""
        with on_disk("raw_results.csv"):
            write_tables(self.campaign.folder, self.state(), final=final)


@contextmanager
def on_disk(where: str) -> Iterator[None]:
    """Turn what the disk refuses into a sentence.

    Raises:
        EnvironmentLacks: No space, no permission, or something else stands in the file's place.
    """
    try:
        yield
    except OSError as error:
        raise EnvironmentLacks(
            f"it can't be read or written ({error.strerror or error})",
            where=where,
            fix="Make space or correct what stands there; what was recorded is intact, and "
            "`gpucost run` goes on",
        ) from None


def no_room(error: str | None) -> bool:
    """Tell whether an attempt's error says that the disk is full, read-only or over its quota."""
    return error is not None and _NO_ROOM.search(error) is not None
