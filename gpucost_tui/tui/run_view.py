"""What Run says of an attempt that goes on: which, where it stands, how long it will still take.

Plain functions of a snapshot; the progress file is another process's, so nothing of it is trusted
to be there or to be a number.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Any

from textual.content import Content

from gpucost_tui.text import clean, count, listed, seconds
from gpucost_tui.tui.run_memory import _number
from gpucost_tui.tui.safe import filled, fit, plain, state_word

if TYPE_CHECKING:
    from gpucost_tui.campaign.fold import Attempt, State
    from gpucost_tui.protocol.model import Protocol
    from gpucost_tui.tui.context import Snapshot

PHASES = ("load", "compile", "warm-up", "pass", "write", "evaluate")
#: Seconds without a word from the runner after which that is said.
SILENT_S = 5.0
_PARTS = ("load_s", "compile_s", "warmup_s", "pass_s", "write_s", "evaluate_s")
_LATEST = 5


@dataclass(frozen=True)
class Known:
    """Durations of finished attempts, by variant and deliverable; made once per journal."""

    passes: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    wholes: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, state: State | None) -> Known:
        known = cls()
        for attempt in state.attempts.values() if state else ():
            row = attempt.row
            if row["status"] == "completed" and row["pass_s"] is not None:
                key = row["variant"], row["deliverable"]
                known.passes.setdefault(key, []).append(row["pass_s"])
                whole = sum(row.get(name) or 0.0 for name in _PARTS)
                known.wholes.setdefault(key, []).append(whole)
        return known


def headline(snapshot: Snapshot, starting: bool) -> Content:
    """Say the state of the run, who runs it, and what to do next."""
    word, status = snapshot.word, snapshot.status or {}
    if starting and word not in ("running", "paused"):
        return filled("▶ Starting a detached runner…")
    if word in ("running", "paused"):
        return _running(snapshot, status)
    if word is None:
        return filled("[$text-muted]Reading…[/]")
    if word == "damaged":
        return filled("[$text-error]✗[/] $x", x=snapshot.problem)
    said = {
        "draft": "Not sealed yet: 2 Review checks and seals it; then it can run.",
        "sealed": f"{count(status['open'], 'slot')} open. [b]s[/b] starts a detached "
        "runner; it goes on when the app is closed.",
        "idle": f"{count(status['open'], 'slot')} open. [b]s[/b] goes on with a detached runner.",
        "finished": "Every slot is done: 5 Attempts has the rows.",
    }[word]
    lines = [filled("$word  ", word=state_word(word)) + Content.from_markup(said)]
    if word in ("idle", "finished") and status.get("last_end"):
        lines.append(filled("[$text-muted]The last run ended: $x.[/]", x=status["last_end"]))
    if status.get("committed_usd") is not None:
        lines.append(
            filled(
                "Committed by now: $usd USD ($packs).",
                usd=status["committed_usd"],
                packs=fit("; ".join(status["packs"]), 60),
            )
        )
    elif status.get("attempts"):
        lines.append(plain("Committed by now: nothing is recorded; 6 Pricing does it."))
    if status.get("spent_usd") is not None:
        lines.append(filled("Other spending: $usd USD.", usd=status["spent_usd"]))
    if elsewhere := status.get("elsewhere"):
        lines.append(
            filled(
                "[$text-warning]⚠[/] A runner on another machine left its lock (process $pid, "
                "since $since). [b]s[/b] asks before it takes over.",
                pid=elsewhere.get("pid"),
                since=_moment(elsewhere.get("since")),
            )
        )
    return Content("\n").join(lines)


def _running(snapshot: Snapshot, status: dict[str, Any]) -> Content:
    runner = status.get("runner") or {}
    kind = "detached" if runner.get("detached") else "in another terminal"
    line = filled(
        "[b]$word[/b] · runner $pid, $kind, since $since",
        word=state_word(str(snapshot.word)), pid=runner.get("pid"), kind=kind,
        since=_moment(runner.get("since")),
    )  # fmt: skip
    asked = (snapshot.progress or {}).get("asked")
    if snapshot.word == "paused":
        said = "Paused between two attempts; the device is free. [b]r[/b] goes on."
        return line + Content("\n") + Content.from_markup(said)
    if asked in ("pause", "stop"):
        said = {
            "pause": "‖ Pause asked for: it pauses after this attempt.",
            "stop": "■ Stop asked for: it stops after this batch.",
        }[asked]
        return line + filled("\n[$text-warning]$x[/]", x=said)
    return line


def _moment(written: object) -> str:
    """Return a journal's time to the second: ``2026-11-30 19:22:56 UTC``."""
    try:
        return f"{datetime.fromisoformat(str(written)):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return fit(written, 30)


def attempt_lines(snapshot: Snapshot, known: Known, width: int) -> list[Content]:
    """Say which attempt goes on, its phase, how far it is and what remains."""
    progress, protocol = snapshot.progress, snapshot.protocol
    if progress is None or protocol is None or progress.get("attempt") is None:
        return [filled("[$text-muted]Getting ready…[/]")] if snapshot.word == "running" else []
    lines = [_which(progress, snapshot), _phases(progress, width), _bar(progress, width)]
    lines += [filled("$x", x=words) for words in remaining(progress, snapshot, known)]
    if (silent := silence(progress)) is not None:
        words = f"No word from the runner for {seconds(silent)}."
        lines.append(filled("[$text-warning]⚠ $x[/]", x=words))
    return lines


def _which(progress: dict[str, Any], snapshot: Snapshot) -> Content:
    protocol, state = snapshot.protocol, snapshot.state
    assert protocol is not None and state is not None  # noqa: S101 - checked by the caller
    round_ = progress.get("round")
    rounds = (
        "reference pass, untimed" if round_ == 0 else f"round {round_} of {state.rounds(protocol)}"
    )
    slots = len(state.slots(protocol))
    parts = [f"slot {progress.get('slot')} of {slots}", rounds]
    if len(protocol.deliverables) > 1:
        parts.append(clean(progress.get("deliverable"), limit=40))
    if len(protocol.reproduction.seeds) > 1:
        parts.append(f"seed {progress.get('seed')}")
    return filled(
        "[b]Attempt $n · $variant[/b] · $parts",
        n=progress.get("attempt"), variant=fit(progress.get("variant"), 40),
        parts=" · ".join(parts),
    )  # fmt: skip


def _phases(progress: dict[str, Any], width: int) -> Content:
    now = progress.get("phase")
    if now is None:
        ready = progress.get("ready")
        said = "starting" if ready else "starting the measuring process (it imports torch)"
        return filled("▶ $x · $s", x=said, s=seconds(_number(progress, "elapsed_s")))
    # A phase that has just begun, or in which nobody looks at the clock, shows no time.
    took = _number(progress, "phase_s")
    time = f" {seconds(took)}" if took else ""
    current = filled("[b reverse]▶ $x[/]$time", x=fit(now, 20), time=time)
    shown = [
        current if name == now else filled("[$text-muted]$x[/]", x=name)
        for name in PHASES
        if width >= 54 or name == now
    ]
    if now not in PHASES:
        shown.append(current)
    return Content("  " if width >= 62 else " ").join(shown)


def _bar(progress: dict[str, Any], width: int) -> Content:
    finished, expected = _whole(progress, "finished_entries"), _whole(progress, "expected_ids")
    share = min(finished / expected, 1.0) if expected else 0.0
    passed = _number(progress, "phase_s") if progress.get("phase") == "pass" else None
    parts = [f"{finished:,} of {expected:,} entries ({share * 100:.0f} %)"]
    if passed and finished:
        parts.append(f"{finished / passed:,.1f} entries/s")
    parts.append(f"{seconds(_number(progress, 'elapsed_s'))} elapsed")
    figures = packed(parts, width)
    beside = width - len(figures) - 1
    narrow = beside < 12
    cells = min(width, 60) if narrow else min(beside, 40)
    full = int(share * cells)
    return filled(
        "[$text-accent]$full[/][$text-muted]$rest[/]$between$figures",
        full="█" * full, rest="░" * (cells - full), between="\n" if narrow else " ",
        figures=figures,
    )  # fmt: skip


def packed(parts: Iterable[str], width: int) -> str:
    """Join parts with dots, as many on a line as fit, and break no part."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 3 + len(part) <= width:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return "\n".join(lines)


def remaining(progress: dict[str, Any], snapshot: Snapshot, known: Known) -> list[str]:
    """Say what remains of this pass and of the run, each with its basis (a forecast, R39)."""
    lines = [_of_the_pass(progress, known)]
    if snapshot.protocol is not None and snapshot.state is not None:
        lines.append(_of_the_run(progress, snapshot.protocol, snapshot.state, known))
    return [line for line in lines if line]


def _of_the_pass(progress: dict[str, Any], known: Known) -> str:
    if progress.get("round") == 0:
        return "This pass: no forecast, the reference pass is untimed."
    if progress.get("phase") in ("write", "evaluate"):
        return "This pass: done; its predictions are written and judged."
    variant = clean(progress.get("variant"), limit=40)
    passes = known.passes.get(_key(progress))
    took = (_number(progress, "phase_s") or 0.0) if progress.get("phase") == "pass" else 0.0
    if passes:
        basis = f"median of {count(len(passes), 'finished pass', 'finished passes')} of {variant}"
        left = median(passes) - took
        if left < 0:
            return f"This pass: {seconds(-left)} over the {basis}."
        return f"This pass: about {seconds(left)} left ({basis})."
    finished, expected = _whole(progress, "finished_entries"), _whole(progress, "expected_ids")
    if took and finished and expected:
        left = took / finished * max(expected - finished, 0)
        return (
            f"This pass: about {seconds(left)} left at its rate so far (no pass of {variant} has "
            "finished yet)."
        )
    return f"This pass: no pass of {variant} has finished yet, so there is no forecast."


def _of_the_run(progress: dict[str, Any], protocol: Protocol, state: State, known: Known) -> str:
    """Sum the medians of whole attempts over the open slots; name variants without one."""
    open_slots = [slot for slot in state.open_slots(protocol) if slot.round > 0]
    total, counted, without = 0.0, 0, []
    for slot in open_slots:
        wholes = known.wholes.get((slot.variant, slot.deliverable))
        if wholes is None:
            without.append(slot.variant)
            continue
        counted += 1
        total += median(wholes)
        if slot.slot == progress.get("slot"):
            total -= min(_number(progress, "elapsed_s") or 0.0, median(wholes))
    if not counted:
        return "The run: no forecast before a first attempt has finished." if open_slots else ""
    words = f"The run: about {seconds(total)} left for {counted} of {len(open_slots)} open slots"
    basis = "medians of finished attempts"
    if without:
        basis += f"; none yet of {listed(list(dict.fromkeys(without)), 3)}"
    return f"{words} ({basis})."


def silence(progress: dict[str, Any], now: float | None = None) -> float | None:
    """Return seconds since the runner's last word, if they are many."""
    try:
        updated = datetime.fromisoformat(str(progress["updated"])).timestamp()
    except (KeyError, ValueError):
        return None
    passed = (time.time() if now is None else now) - updated
    return passed if passed > SILENT_S else None


def ended_lines(state: State | None) -> list[Content]:
    """Return the failures, latest first, and the latest other attempts."""
    ended = [a for a in reversed(state.attempts.values()) if a.finished] if state else []
    failed = [a for a in ended if a.row["status"] == "failed"]
    lines = []
    if failed:
        title = count(len(failed), "failure")
        lines.append(filled("[b]$x[/b]", x=title))
        lines += [_failure(attempt) for attempt in failed[:_LATEST]]
        if len(failed) > _LATEST:
            rest = len(failed) - _LATEST
            lines.append(filled("[$text-muted]  and $n earlier: 5 Attempts[/]", n=rest))
    others = [a for a in ended if a.row["status"] != "failed"][:_LATEST]
    if others:
        lines.append(filled("[b]Latest attempts[/b]"))
        lines += [_other(attempt) for attempt in others]
    return lines


def _failure(attempt: Attempt) -> Content:
    return filled(
        "  [$text-error]✗[/] #$n $variant r$round  [b]$kind[/b]  $why",
        n=attempt.number, variant=fit(attempt.row["variant"], 24), round=attempt.row["round"],
        kind=attempt.row["failure"], why=fit(first_line(attempt.error), 200),
    )  # fmt: skip


def first_line(error: str | None) -> str:
    """Return the first line of an error that says something."""
    lines: Iterable[str] = (line.strip() for line in (error or "").splitlines())
    return next((line for line in lines if line), "no word of why")


def _other(attempt: Attempt) -> Content:
    row = attempt.row
    verdict = {True: "✓ accepted", False: "✗ rejected"}.get(row["corpus_accepted"], "")
    reasons = f" ({', '.join(attempt.reasons)})" if attempt.reasons else ""
    if row["status"] != "completed":
        verdict = reasons = ""
    elif row["round"] == 0:
        verdict, reasons = "reference pass", ""
    return filled(
        "  $word #$n $variant r$round  $took  $verdict",
        word=state_word(row["status"] or "open"), n=attempt.number,
        variant=fit(row["variant"], 24), round=row["round"], took=seconds(row["pass_s"]),
        verdict=verdict + reasons,
    )  # fmt: skip


def _key(progress: dict[str, Any]) -> tuple[str, str]:
    return str(progress.get("variant")), str(progress.get("deliverable"))


def _whole(progress: dict[str, Any], key: str) -> int:
    return int(_number(progress, key) or 0)
