"""What a runner does first: it records what an earlier one could not, and adds what is asked."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

from gpucost_tui.campaign.fold import State
from gpucost_tui.campaign.lock import started
from gpucost_tui.campaign.progress import read_progress
from gpucost_tui.campaign.record import Record
from gpucost_tui.engine.contract import Outcome
from gpucost_tui.errors import Refused, WrongUse

_SCRATCH = re.compile(r"\..+\.(\d+)\.part")
_LOST = "the runner was lost"


def recover(record: Record, say: Callable[[str], None]) -> None:
    """Record unfinished attempts as interrupted, judge what is unjudged, write the tables again."""
    sweep(record.campaign.folder)
    state = record.state()
    lost = state.unfinished()
    for attempt in lost:
        say(
            f"Attempt {attempt.number} was cut off when an earlier runner was lost: recorded as "
            "interrupted, its slot is open."
        )
    interrupt(record, _LOST, ended_unseen=True)
    if state.set_aside:
        say("A journal line that was cut off was set aside, and kept.")
    for attempt in record.state().attempts.values():
        if attempt.judged:
            record.take_reference(attempt)
    for attempt in record.state().unjudged():
        record.judged(attempt)
        record.take_reference(record.state().attempts[attempt.number])
    record.tables()


def interrupt(record: Record, why: str, *, ended_unseen: bool = False) -> None:
    """Record every unfinished attempt as interrupted: its slot stays open.

    ``finished_entries`` is the last progress count, a lower bound (design: *kill -9*).
    """
    progress = read_progress(record.campaign.progress_file) or {}
    for attempt in record.state().unfinished():
        known = progress.get("attempt") == attempt.number
        finished = progress.get("finished_entries") if known else None
        bound = "the last progress count" if known else "no progress was recorded: 0"
        missing = {"*": why, "finished_entries": f"{bound}, a lower bound"}
        if ended_unseen:
            missing["ended_at"] = f"{why}, found at the next start"
        outcome = Outcome(
            attempt=attempt.number,
            status="interrupted",
            failure=None,
            finished_entries=finished if isinstance(finished, int) else 0,
            row={},
            device_memory=[],
            missing=missing,
            notes=[f"interrupted: {why}"],
        )
        record.finish(outcome, attempt.folder)


def sweep(folder: Path) -> None:
    """Remove files that a process left half-written when it was killed."""
    for place in (folder, *(folder / "attempts").glob("*")):
        with contextlib.suppress(OSError):
            for file in place.iterdir():
                found = _SCRATCH.fullmatch(file.name)
                if found and started(int(found.group(1))) is None:
                    file.unlink(missing_ok=True)


def extend(
    record: Record, more_rounds: int, repeat: int | None, say: Callable[[str], None]
) -> None:
    """Add whole rounds, or a slot that repeats a failed attempt; both are checked before either.

    Raises:
        Refused: More rounds than sealed; an attempt that did not fail.
        WrongUse: No such attempt.
    """
    state = record.state()
    if more_rounds:
        _check_rounds(record, state, more_rounds)
    if repeat is not None:
        _check_repeat(state, repeat)
    if more_rounds:
        record.append("rounds_added", {"rounds": more_rounds})
    if repeat is None:
        return
    if any(slot.repeats == repeat for slot in state.open_slots(record.protocol)):
        say(f"The slot that repeats attempt {repeat} is open already.")
        return
    slot = state.attempts[repeat].slot
    record.append("slot_added", {"repeats": repeat, "of_slot": slot})


def _check_rounds(record: Record, state: State, more_rounds: int) -> None:
    planned = state.rounds(record.protocol)
    most = record.protocol.measurement.max_rounds
    if planned + more_rounds > most:
        left = most - planned
        raise Refused(
            f"{planned + more_rounds} rounds are more than the sealed maximum of {most} (R26)",
            fix=f"At most {left} can be added" if left > 0 else "None can be added",
        )


def _check_repeat(state: State, number: int) -> None:
    repeated = state.attempts.get(number)
    if repeated is None:
        raise WrongUse(f"there is no attempt {number}", fix="`gpucost attempts` lists them")
    if repeated.row["status"] != "failed":
        raise Refused(
            f"attempt {number} is {repeated.row['status']}: only a failed attempt is repeated (a "
            "completed one stands, and any other leaves its slot open)",
            fix="`gpucost run` fills open slots; --more-rounds adds whole rounds",
        )
