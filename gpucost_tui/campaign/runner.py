"""The runner: fills open slots with attempts, one after the other, and records what happens.

It imports no torch (except under the policy ``thread``). Lines that change truth are on the disk
before it acts on them: an attempt is in the journal before it begins, its end before it is judged.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpucost_tui.campaign.attempt import complete, job_of, static_row
from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.fold import Attempt, State, fold
from gpucost_tui.campaign.hosts import record_host
from gpucost_tui.campaign.journal import Journal, trusted
from gpucost_tui.campaign.judge import Judge, Subject
from gpucost_tui.campaign.lock import RunnerLock
from gpucost_tui.campaign.measurer import ChildMeasurer, Directive, Measurer, ThreadMeasurer
from gpucost_tui.campaign.progress import Control, ProgressFile
from gpucost_tui.campaign.seal import ensure_unchanged, model_folder
from gpucost_tui.campaign.slots import Slot
from gpucost_tui.campaign.table import write_tables
from gpucost_tui.engine.contract import Outcome
from gpucost_tui.errors import AnswerIsNo, EnvironmentLacks, GpucostError, Refused, WrongUse
from gpucost_tui.files import sync_path, write_atomic
from gpucost_tui.text import count

#: Deaths of the measuring process in a row after which the run ends.
DEATHS = 3


@dataclass
class Wishes:
    """What signals ask of the run; set by handlers, read between messages."""

    stop: Directive = None
    signalled: bool = False  # by SIGINT
    interrupted: bool = False  # SIGTERM, SIGHUP: end at once, record as interrupted

    def interrupt_once_more(self) -> None:
        """SIGINT: once stops after the batch, twice at once."""
        self.stop = "now" if self.stop else "batch"
        self.signalled = True

    def terminate(self) -> None:
        self.stop, self.interrupted = "now", True


@dataclass(frozen=True)
class Options:
    more_rounds: int = 0
    repeat: int | None = None
    detached: bool = False
    take_over: bool = False
    limit: int | None = None  # attempts at most, for those who want a look first


@dataclass
class Listener:
    """Told of what happens, for a screen or a terminal; never needed for the truth."""

    message: Callable[[ProgressFile], None] = field(default=lambda progress: None)
    attempt: Callable[[Attempt, State], None] = field(default=lambda attempt, state: None)
    say: Callable[[str], None] = field(default=lambda sentence: None)


@dataclass(frozen=True)
class RunEnd:
    """How a run ended: in words, and whether open slots are left."""

    why: str
    state: State
    open_slots: int


class Runner:
    """One run over one campaign. Use :func:`run`."""

    def __init__(
        self, campaign: Campaign, wishes: Wishes, listener: Listener, options: Options
    ) -> None:
        self.campaign = campaign
        self.manifest: Manifest = campaign.manifest
        self.protocol = self.manifest.protocol
        self.wishes = wishes
        self.listener = listener
        self.options = options
        self.journal = Journal(campaign.folder)
        self.progress = ProgressFile(campaign.progress_file)
        self.control = Control(campaign.control_file)
        self.judge = Judge(campaign, self.manifest)
        self.measurer = self._measurer()
        self.pause = False
        self.deaths = 0
        self.host: str | None = None
        self._framework: dict[str, Any] | None = None

    def _measurer(self) -> Measurer:
        if self.protocol.measurement.process == "thread":
            return ThreadMeasurer()
        return ChildMeasurer(self.campaign.logs / "child.log")

    # -- the run -----------------------------------------------------------------------------

    def run(self) -> RunEnd:
        state = self._recover()
        self._extend(state)
        self.journal.append("run_started", {"detached": self.options.detached}, host=self.host)
        try:
            why = self._fill()
        except BaseException as error:
            self.measurer.close()
            # The journal may be what failed; then the next run records the end, from what is there.
            with contextlib.suppress(GpucostError, OSError):
                self._end(str(error) if isinstance(error, GpucostError) else repr(error))
            raise
        self.measurer.close()
        state = self._end(why)
        return RunEnd(why, state, len(state.open_slots(self.protocol)))

    def _end(self, why: str) -> State:
        self.journal.append("run_ended", {"why": why}, host=self.host)
        state = self._state()
        write_tables(self.campaign.folder, state, final=True)
        self.progress.now.state = "ended"
        self.progress.write(force=True)
        return state

    def _state(self) -> State:
        return fold(trusted(self.campaign.folder).events)

    def _recover(self) -> State:
        """Record what an earlier runner could not: its unfinished and its unjudged attempts."""
        state = self._state()
        for lost in state.unfinished():
            finished = self._last_count(lost.number)
            self._finish(_interrupted(lost.number, finished, "the runner was lost"))
            self.listener.say(
                f"Attempt {lost.number} was cut off when an earlier runner was lost: recorded as "
                "interrupted, its slot is open."
            )
        if state.set_aside:
            self.listener.say("A journal line that was cut off was set aside, and kept.")
        for done in self._state().unjudged():
            self._judge(done)
        state = self._state()
        for attempt in state.attempts.values():
            self._take_reference(attempt)
        write_tables(self.campaign.folder, state)
        return state

    def _last_count(self, attempt: int) -> int | None:
        try:
            last = json.loads(self.campaign.progress_file.read_bytes())
            return int(last["finished_entries"]) if last["attempt"] == attempt else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _extend(self, state: State) -> None:
        """Add whole rounds, or a slot that repeats an attempt."""
        if self.options.more_rounds:
            planned = state.rounds(self.protocol) + self.options.more_rounds
            most = self.protocol.measurement.max_rounds
            if planned > most:
                raise Refused(
                    f"{planned} rounds are more than the sealed maximum of {most} (R26)",
                    fix=f"At most {most - state.rounds(self.protocol)} more can be added",
                )
            self.journal.append("rounds_added", {"rounds": self.options.more_rounds})
        if self.options.repeat is not None:
            repeated = state.attempts.get(self.options.repeat)
            if repeated is None:
                raise WrongUse(
                    f"there is no attempt {self.options.repeat}",
                    fix="`gpucost attempts` lists them",
                )
            if repeated.row["status"] != "failed":
                raise Refused(
                    f"attempt {repeated.number} is {repeated.row['status']}: only a failed attempt "
                    "is repeated (a completed one stands, and any other leaves its slot open)",
                    fix="`gpucost run` fills open slots; --more-rounds adds whole rounds",
                )
            self.journal.append(
                "slot_added", {"repeats": repeated.number, "of_slot": repeated.slot}
            )

    def _fill(self) -> str:
        attempts = 0
        while True:
            self._controls()
            state = self._state()
            open_slots = state.open_slots(self.protocol)
            self.progress.now.done = len(state.slots(self.protocol)) - len(open_slots)
            self.progress.now.open = len(open_slots)
            if not open_slots:
                return "every slot is done"
            if self.options.limit is not None and attempts >= self.options.limit:
                return f"the limit of {count(attempts, 'attempt')} is reached"
            if self.pause:
                self._paused()
            if self.wishes.stop:
                return self._stop_words()
            self._attempt(open_slots[0], state)
            attempts += 1

    def _stop_words(self) -> str:
        return "interrupted by a signal" if self.wishes.interrupted else "stopped on request"

    def _paused(self) -> None:
        """Wait; the measuring process is given back, so the device is free meanwhile."""
        self.measurer.close()
        self.progress.now.state = "paused"
        self.progress.phase(None)
        self.listener.say("Paused. `gpucost run` in another terminal goes on, `gpucost stop` ends.")
        while self.pause and not self.wishes.stop:
            time.sleep(0.1)
            self._controls()
        self.progress.now.state = "running"

    def _controls(self) -> None:
        wish = self.control.look()
        if wish == "pause":
            self.pause = True
        elif wish == "resume":
            self.pause = False
        elif wish == "stop":
            self.wishes.stop = self.wishes.stop or "batch"

    # -- one attempt -------------------------------------------------------------------------

    def _attempt(self, slot: Slot, state: State) -> None:
        number = max(state.attempts, default=0) + 1
        expected = self.manifest.corpus(slot.deliverable)["entries"]
        self.progress.begin(
            attempt=number,
            slot=slot.slot,
            variant=slot.variant,
            round=slot.round,
            deliverable=slot.deliverable,
            seed=slot.seed,
            expected_ids=expected,
        )
        framework = self.measurer.start(self._tick)
        if framework != self._framework:
            self.host = record_host(self.campaign, self.journal, framework, state)
            self._framework = framework
        folder = self.campaign.attempt_folder(number, slot.variant, slot.round)
        folder.mkdir(parents=True, exist_ok=True)
        sync_path(folder.parent)
        assert self.host is not None  # noqa: S101 - set when the measuring process answered
        data = {
            "attempt": number,
            "slot": slot.slot,
            "folder": str(folder.relative_to(self.campaign.folder)),
            "row": static_row(self.manifest, slot, self.host),
        }
        self.journal.append("attempt_started", data, host=self.host)
        model = model_folder(self.campaign)
        job = job_of(self.campaign, self.manifest, slot, number, folder, model)
        outcome = self.measurer.run(job, self._tick)
        if self.wishes.interrupted and outcome.status == "stopped":
            outcome.status = "interrupted"
        complete(self.campaign, slot, number, framework, outcome)
        self._finish(outcome, folder_name=str(folder.relative_to(self.campaign.folder)))
        if self.protocol.measurement.process == "child-per-attempt":
            self.measurer.close()
        attempt = self._state().attempts[number]
        self.progress.phase("evaluate")
        self._judge(attempt)
        self._after(number, slot)

    def _after(self, number: int, slot: Slot) -> None:
        state = self._state()
        attempt = state.attempts[number]
        write_tables(self.campaign.folder, state)
        if attempt.row["status"] == "failed":
            failure = {
                "attempt": number,
                "variant": slot.variant,
                "kind": attempt.row["failure"],
                "why": attempt.error,
            }
            self.progress.now.failures.append(failure)
        self.listener.attempt(attempt, state)
        self.deaths = self.deaths + 1 if attempt.row["failure"] == "killed" else 0
        if self.deaths >= DEATHS:
            raise EnvironmentLacks(
                f"the measuring process was lost {DEATHS} times in a row; the last time: "
                f"{attempt.error}",
                where=f"attempt {number}",
                fix="See logs/child.log; `gpucost run` continues with the next open slot",
            )
        if slot.round == 0 and attempt.uses_slot and not self._take_reference(attempt):
            raise AnswerIsNo(
                f"the reference pass of '{slot.variant}' did not give a usable reference "
                f"({', '.join(attempt.reasons) or attempt.row['status']}): nothing can be judged",
                where=f"attempt {number}",
                fix=f"See its failure; if it failed, `gpucost run --repeat {number}` tries again",
            )

    def _tick(self, message: dict[str, Any] | None) -> Directive:
        """Take a message of the measuring process; answer with what is asked of it."""
        if message is not None:
            self._heard(message)
        self.progress.write()
        self.listener.message(self.progress)
        self._controls()
        return self.wishes.stop

    def _heard(self, message: dict[str, Any]) -> None:
        if message["event"] == "phase":
            self.progress.phase(message["phase"])
        elif message["event"] == "progress":
            self.progress.now.finished_entries = message["finished"]
        elif message["event"] == "memory":
            self.progress.memory(message["devices"], message["rss_bytes"])

    # -- the record --------------------------------------------------------------------------

    def _finish(self, outcome: Outcome, folder_name: str | None = None) -> None:
        if outcome.trace and folder_name:
            path = self.campaign.folder / folder_name / "failure.txt"
            write_atomic(path, outcome.trace.encode("utf-8", "replace"))
        data = outcome.to_json()
        del data["trace"], data["poisoned"]
        if (path := data["row"].get("predictions_path")) and folder_name:
            data["row"]["predictions_path"] = f"{folder_name}/{path}"
        self.journal.append("attempt_finished", data, host=self.host)

    def _judge(self, attempt: Attempt) -> None:
        path = attempt.row["predictions_path"]
        verdict = self.judge.judge(
            Subject(
                attempt=attempt.number,
                status=attempt.row["status"],
                deliverable=attempt.row["deliverable"],
                round=attempt.row["round"],
                predictions=self.campaign.folder / path if path else None,
                predictions_sha256=attempt.row["predictions_sha256"],
                labels=self.manifest.json["model"].get("labels"),
            )
        )
        folder = self.campaign.folder / attempt.folder
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(verdict.to_json(), indent=1, ensure_ascii=False, sort_keys=True)
        write_atomic(folder / "verdict.json", text.encode() + b"\n")
        data = {
            "attempt": attempt.number,
            "reasons": verdict.reasons,
            "row": verdict.row,
            "missing": verdict.missing,
            "notes": verdict.notes,
        }
        self.journal.append("attempt_judged", data, host=self.host)

    def _take_reference(self, attempt: Attempt) -> bool:
        """Use an attempt as the reference of its deliverable if it is a sound round-0 pass."""
        row = attempt.row
        sound = row["round"] == 0 and row["status"] == "completed" and row["ids_match"]
        if not (sound and row["format_ok"] and row["predictions_path"]):
            return False
        path = self.campaign.folder / row["predictions_path"]
        if not path.is_file():
            return False
        self.judge.reference_pass(row["deliverable"], path)
        return True


def run(
    campaign: Campaign, *, wishes: Wishes, listener: Listener, options: Options = Options()
) -> RunEnd:
    """Run the open slots of a sealed campaign.

    Raises:
        Refused: Not sealed; another runner is at work; more rounds than sealed.
        Differs: Protocol, corpus, reference or model are not what was sealed.
        EnvironmentLacks: The model, the disk or the device is not there.
    """
    with RunnerLock(campaign.folder, detached=options.detached, take_over=options.take_over):
        ensure_unchanged(campaign)
        return Runner(campaign, wishes, listener, options).run()


def _interrupted(number: int, finished: int | None, why: str) -> Outcome:
    """Return the outcome of an attempt whose runner is gone: its slot stays open."""
    missing = {"*": why}
    if finished is not None:
        missing["finished_entries"] = "the last progress count, a lower bound"
    else:
        missing["finished_entries"] = "no progress was recorded: 0 is a lower bound"
    return Outcome(
        attempt=number,
        status="interrupted",
        failure=None,
        finished_entries=finished or 0,
        row={},
        device_memory=[],
        missing=missing,
        notes=[f"interrupted: {why}"],
    )
