"""The runner: fills open slots with attempts, one after the other, and records what happens.

It imports no torch (except under the policy ``thread``). Lines that change truth are on the disk
before it acts on them: an attempt is in the journal before it begins, its end before it is judged.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpucost_tui.campaign.attempt import check_device, complete, ensure_device, job_of
from gpucost_tui.campaign.fold import Attempt, State
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.hosts import record_host
from gpucost_tui.campaign.lock import RunnerLock, started
from gpucost_tui.campaign.logs import BoundedLog
from gpucost_tui.campaign.measurer import ChildMeasurer, Directive, Measurer, ThreadMeasurer
from gpucost_tui.campaign.private import Private
from gpucost_tui.campaign.progress import Control, ProgressFile
from gpucost_tui.campaign.record import Record, no_room, on_disk
from gpucost_tui.campaign.recover import extend, interrupt, recover
from gpucost_tui.campaign.seal import ensure_unchanged, model_folder
from gpucost_tui.campaign.slots import Slot
from gpucost_tui.errors import AnswerIsNo, EnvironmentLacks, GpucostError
from gpucost_tui.text import count, size

#: Deaths of the measuring process in a row after which the run ends.
DEATHS = 3
#: Bytes of the disk that an attempt needs beside its predictions: journal, verdict, tables.
_RESERVE = 256 << 10


@dataclass
class Wishes:
    """What signals ask of the run; set by handlers, read between messages."""

    stop: Directive = None
    signalled: bool = False  # by SIGINT
    interrupted: bool = False  # SIGTERM, SIGHUP: end at once, record as interrupted
    recording: bool = False  # the run has begun to write; before that a signal may simply end it

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
    device: str | None = None  # which one, where the seal leaves it open
    limit: int | None = None  # attempts at most, for those who want a look first


@dataclass
class Listener:
    """Told of what happens, for a screen or a terminal; never needed for the truth."""

    message: Callable[[ProgressFile], None] = field(default=lambda progress: None)
    attempt: Callable[[Attempt, State], None] = field(default=lambda attempt, state: None)
    say: Callable[[str], None] = field(default=lambda sentence: None)


@dataclass(frozen=True)
class RunEnd:
    """How a run ended: in words, how many slots are open, and whether a wish cut it short."""

    why: str
    state: State
    open_slots: int
    cut_short: bool = False


class Runner:
    """One run over one campaign. Use :func:`run`."""

    def __init__(
        self, campaign: Campaign, wishes: Wishes, listener: Listener, options: Options
    ) -> None:
        private = Private(campaign.folder)
        me = started(os.getpid()) or ""
        self.campaign = campaign
        self.record = Record(campaign, private)
        self.protocol = self.record.protocol
        self.wishes = wishes
        self.listener = listener
        self.options = options
        self.progress = ProgressFile(campaign.progress_file, os.getpid(), me)
        self.control = Control(campaign.control_file, os.getpid(), me)
        self.measurer = self._measurer(private)
        self.pause = False
        self._framework: dict[str, Any] | None = None
        self._largest = 0  # bytes of the largest prediction file so far

    def _measurer(self, private: Private) -> Measurer:
        if self.protocol.measurement.process == "thread":
            return ThreadMeasurer()
        return ChildMeasurer(BoundedLog(self.campaign.logs / "child.log", private.hide))

    # -- the run -----------------------------------------------------------------------------

    def run(self) -> RunEnd:
        self.wishes.recording = True
        recover(self.record, self.listener.say)
        extend(self.record, self.options.more_rounds, self.options.repeat, self.listener.say)
        self.record.append("run_started", {"detached": self.options.detached})
        self.progress.write(force=True)
        try:
            why = self._fill()
        except BaseException as error:
            self._broken_off(str(error) if isinstance(error, GpucostError) else repr(error))
            raise
        self.measurer.close()
        state = self._end(why)
        left = len(state.open_slots(self.protocol))
        return RunEnd(why, state, left, self.wishes.stop is not None and left > 0)

    def _broken_off(self, why: str) -> None:
        self.measurer.close()
        # The disk may be what failed; then the next run records it all, from what is there.
        with contextlib.suppress(GpucostError, OSError):
            interrupt(self.record, f"the run broke off: {why}")
            self._end(why)

    def _end(self, why: str) -> State:
        self.record.append("run_ended", {"why": self.record.hide(why)})
        self.progress.now.state = "ended"
        self.progress.write(force=True)
        self.record.tables(final=True)
        return self.record.state()

    def _fill(self) -> str:
        attempts = 0
        while True:
            self._controls()
            state = self.record.state()
            open_slots = state.open_slots(self.protocol)
            self.progress.now.done = len(state.slots(self.protocol)) - len(open_slots)
            self.progress.now.open = len(open_slots)
            if not open_slots:
                return "every slot is done"
            if self.options.limit is not None and attempts >= self.options.limit:
                return f"the limit of {count(attempts, 'attempt')} is reached"
            self._need_reference(state, open_slots)
            if self.pause:
                self._paused()
            if self.wishes.stop:
                return self._stop_words()
            attempts += self._attempt(open_slots[0], state)

    def _stop_words(self) -> str:
        return "interrupted by a signal" if self.wishes.interrupted else "stopped on request"

    def _paused(self) -> None:
        """Wait; the measuring process is given back, so the device is free meanwhile."""
        self.measurer.close()
        self.progress.now.state = "paused"
        self.progress.now.attempt = None
        self.progress.phase(None)
        self.listener.say("Paused. `gpucost run` in another terminal goes on, `gpucost stop` ends.")
        while self.pause and not self.wishes.stop:
            time.sleep(0.1)
            self._controls()
            self.progress.write()
        self.progress.now.state = "running"

    def _controls(self) -> None:
        wish = self.control.look()
        if wish == "pause":
            self.pause = True
        elif wish == "resume":
            self.pause = False
        elif wish == "stop":
            self.wishes.stop = self.wishes.stop or "batch"
        self.progress.now.asked = "stop" if self.wishes.stop else "pause" if self.pause else None

    def _need_reference(self, state: State, open_slots: list[Slot]) -> None:
        """Refuse to go on where a reference pass is used up and gave no reference."""
        if self.protocol.reference_variant() is None:
            return
        ahead = {slot.deliverable for slot in open_slots if slot.round == 0}
        for deliverable in (d.name for d in self.protocol.deliverables):
            if deliverable in ahead or self.record.judge.has_reference(deliverable):
                continue
            last = max(
                (a for a in state.attempts.values() if _is_reference(a, deliverable)),
                key=lambda attempt: attempt.number,
            )
            again = f"`gpucost run --repeat {last.number}` tries again"
            other = "Its variant can't be the reference: make a new campaign with `gpucost new`"
            raise AnswerIsNo(
                f"the reference pass of '{last.row['variant']}' did not give a usable reference "
                f"({', '.join(last.reasons) or last.row['status']}): nothing can be judged",
                where=f"attempt {last.number}",
                fix=again if last.row["status"] == "failed" else other,
            )

    # -- one attempt -------------------------------------------------------------------------

    def _attempt(self, slot: Slot, state: State) -> bool:
        """Fill a slot; return whether an attempt was made."""
        number = max(state.attempts, default=0) + 1
        self._need_room()
        model = model_folder(self.campaign)
        self.progress.begin(
            attempt=number,
            slot=slot.slot,
            variant=slot.variant,
            round=slot.round,
            deliverable=slot.deliverable,
            seed=slot.seed,
            expected_ids=self.record.manifest.corpus(slot.deliverable)["entries"],
        )
        framework = self.measurer.start(self._tick)
        if framework is None:
            return False
        if framework != self._framework:
            with on_disk("hosts"):
                journal = self.record.journal
                self.record.host = record_host(self.campaign, journal, framework, state)
            self._framework = framework
        self.progress.now.ready = True
        device = self._device(slot.variant)
        ensure_device(self.record.manifest, slot, framework, device)
        folder = self.record.begin(slot, number, framework, device)
        job = job_of(self.campaign, self.record.manifest, slot, number, folder, model, device)
        outcome = self.measurer.run(job, self._tick)
        if self.wishes.interrupted and outcome.status == "stopped":
            outcome.status = "interrupted"
            outcome.notes.append("interrupted by SIGTERM or SIGHUP")
        complete(self.campaign, slot, number, framework, outcome)
        self.record.finish(outcome, str(folder.relative_to(self.campaign.folder)))
        if self.protocol.measurement.process == "child-per-attempt":
            self.measurer.close()
        self.progress.phase("evaluate")
        self.record.judged(self.record.state().attempts[number])
        self._after(number, poisoned=outcome.poisoned)
        return True

    def _device(self, variant: str) -> str | None:
        """Return the device that was chosen for this run, where the seal leaves it open."""
        return self.options.device if self.protocol.settings(variant).device == "auto" else None

    def _need_room(self) -> None:
        """Refuse to begin an attempt whose predictions would not find room on the disk."""
        needed = _RESERVE + 2 * self._largest
        with on_disk(self.campaign.folder.name):
            free = shutil.disk_usage(self.campaign.folder).free
        if free < needed:
            raise EnvironmentLacks(
                f"only {size(free)} of the disk are free, the next attempt needs about "
                f"{size(needed)}",
                where=self.campaign.folder.name,
                fix="Make space; `gpucost run` goes on with the next open slot",
            )

    def _after(self, number: int, *, poisoned: bool) -> None:
        state = self.record.state()
        attempt = state.attempts[number]
        self.record.take_reference(attempt)
        row = attempt.row
        if row["predictions_path"]:
            with on_disk(row["predictions_path"]):
                written = (self.campaign.folder / row["predictions_path"]).stat().st_size
            self._largest = max(self._largest, written)
        if row["status"] == "failed":
            self.progress.failed(
                {
                    "attempt": number,
                    "variant": row["variant"],
                    "kind": row["failure"],
                    "why": attempt.error,
                }
            )
        self.record.tables()
        self.listener.attempt(attempt, state)
        self._fit_to_go_on(attempt, poisoned=poisoned)

    def _fit_to_go_on(self, attempt: Attempt, *, poisoned: bool) -> None:
        """End the run where the next attempt would fail for the same reason."""
        where = f"attempt {attempt.number}"
        again = f"`gpucost run --repeat {attempt.number}` makes the lost attempt good"
        if self.measurer.lost_in_a_row >= DEATHS:
            raise EnvironmentLacks(
                f"the measuring process was lost {DEATHS} times in a row; the last time: "
                f"{attempt.error}",
                where=where,
                fix="See logs/child.log; `gpucost run` continues with the next open slot",
            )
        if attempt.row["status"] == "failed" and no_room(attempt.error):
            raise EnvironmentLacks(
                f"the disk refused the predictions ({attempt.error})",
                where=where,
                fix=f"Make space; `gpucost run` goes on, {again}",
            )
        if poisoned and self.protocol.measurement.process == "thread":
            raise EnvironmentLacks(
                "the device can't be used again by this process (policy 'thread')",
                where=where,
                fix=f"`gpucost run` goes on in a new one, {again}",
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
            devices, error = message["devices"], message.get("error")
            self.progress.memory(devices, message["rss_bytes"], error)


def run(
    campaign: Campaign, *, wishes: Wishes, listener: Listener, options: Options = Options()
) -> RunEnd:
    """Run the open slots of a sealed campaign.

    Raises:
        Refused: Not sealed; another runner is at work; more rounds than sealed.
        Differs: Protocol, corpus, reference, model or journal are not what they were.
        AnswerIsNo: The reference pass gave no reference.
        EnvironmentLacks: The model, the disk or the device is not there.
    """
    check_device(campaign.manifest, options.device)
    with RunnerLock(campaign.folder, detached=options.detached, take_over=options.take_over):
        with on_disk(campaign.folder.name):
            ensure_unchanged(campaign)
        return Runner(campaign, wishes, listener, options).run()


def _is_reference(attempt: Attempt, deliverable: str) -> bool:
    return bool(attempt.row["round"] == 0 and attempt.row["deliverable"] == deliverable)
