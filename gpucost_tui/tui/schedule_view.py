"""What Schedule shows, worked out in a thread: variants by series, the grid of slots, the window.

Everything here is plain data of finished words; nothing touches a widget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpucost_tui.errors import GpucostError
from gpucost_tui.text import clean, count, listed, seconds

if TYPE_CHECKING:
    from gpucost_tui.campaign.fold import Attempt, State
    from gpucost_tui.campaign.slots import Slot
    from gpucost_tui.pricing.answer import WindowAnswer
    from gpucost_tui.protocol.model import Protocol, Series
    from gpucost_tui.tui.context import Snapshot

#: States of a slot in the order in which they are counted.
STATES = ("done", "running", "open", "failed")


@dataclass(frozen=True, slots=True)
class VariantLine:
    """A variant in one series. ``extra``: settings beside the factor that R10 does not allow."""

    name: str
    factor: str  # "batch_size 4", or empty outside of every series
    others: tuple[str, ...]  # declared changes that all variants of the series share
    extra: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeriesLines:
    """A series with its variants; ``factor`` empty: those that are in no series."""

    name: str
    factor: str
    variants: tuple[VariantLine, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A slot of the grid: its state, a short label, and all that is known in a sentence."""

    state: str
    label: str
    detail: str


@dataclass(frozen=True, slots=True)
class Row:
    """A round of the grid; ``cells`` by position, from 1."""

    key: str
    label: str
    cells: dict[int, Cell]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that Schedule shows of one campaign."""

    series: tuple[SeriesLines, ...]
    rows: tuple[Row, ...]
    positions: int
    counts: dict[str, int]
    rounds: str
    problems: tuple[str, ...]
    window: tuple[str, ...]
    timeline: tuple[str, ...]


def plan_of(snapshot: Snapshot) -> Plan:
    """Work out what to show.

    Raises:
        GpucostError: The campaign or a price list can't be read.
    """
    from gpucost_tui.campaign.fold import State

    protocol, state = snapshot.protocol, snapshot.state or State()
    assert protocol is not None  # noqa: S101 - asked for only where there is one
    rows, positions = _grid(protocol, state, running=snapshot.word in ("running", "paused"))
    cells = [cell for row in rows for cell in row.cells.values()]
    return Plan(
        series=tuple(_series(protocol)),
        rows=rows,
        positions=positions,
        counts={word: sum(cell.state == word for cell in cells) for word in STATES},
        rounds=_rounds(protocol, state),
        problems=() if snapshot.sealed else tuple(_problems(snapshot)),
        window=_or_why(lambda: _window(protocol, state)),
        timeline=_or_why(lambda: _timeline(protocol, state)),
    )


# -- variants ------------------------------------------------------------------------------------


def _series(protocol: Protocol) -> Iterable[SeriesLines]:
    for series in protocol.series:
        lines = tuple(_line(protocol, series, name) for name in series.variants)
        yield SeriesLines(series.name, series.factor, lines)
    alone = [name for name in protocol.variants if name not in protocol.order()]
    if alone:
        lines = tuple(
            VariantLine(name, "", tuple(_words(protocol.variants[name])), ()) for name in alone
        )
        yield SeriesLines("in no series", "", lines)


def _line(protocol: Protocol, series: Series, name: str) -> VariantLine:
    from pydantic import ValidationError

    from gpucost_tui.protocol.execution import differing

    changes = protocol.variants.get(name)
    if changes is None:
        return VariantLine(name, "not defined", (), ())
    try:
        first, mine = protocol.settings(series.variants[0]), protocol.settings(name)
    except (ValidationError, KeyError):
        return VariantLine(name, "a value that can't be", tuple(_words(changes)), ())
    if series.factor == "hardware":
        return VariantLine(name, "hardware", tuple(_words(changes)), ())
    extra = [key for key in differing(first, mine) if key != series.factor]
    shared = {key: changes[key] for key in changes if key != series.factor and key not in extra}
    factor = f"{series.factor} {_value(getattr(mine, series.factor))}"
    wrong = tuple(f"{key} {_value(getattr(mine, key))}" for key in extra)
    return VariantLine(name, factor, tuple(_words(shared)), wrong)


def _words(changes: dict[str, Any]) -> Iterable[str]:
    return (f"{clean(key, limit=40)} {_value(value)}" for key, value in changes.items())


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else clean(value, limit=40)


def _problems(snapshot: Snapshot) -> Iterable[str]:
    """Yield what the rules refuse about variants and series, each as a sentence."""
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.protocol.rules import problems

    assert snapshot.folder is not None  # noqa: S101 - a protocol was read from it
    source, protocol = Campaign(snapshot.folder).draft()
    for problem in problems(protocol, source):
        if "variant" in problem.what or "R10" in problem.what or "[variants" in problem.where:
            yield problem.sentence()


# -- the grid ------------------------------------------------------------------------------------


def _grid(protocol: Protocol, state: State, *, running: bool) -> tuple[tuple[Row, ...], int]:
    by_slot: dict[int, list[Attempt]] = {}
    for attempt in state.attempts.values():
        by_slot.setdefault(attempt.slot, []).append(attempt)
    several = len(protocol.deliverables) > 1, len(protocol.reproduction.seeds) > 1
    rows: dict[str, Row] = {}
    positions = 0
    for slot in state.slots(protocol):
        key, label = _row_of(slot)
        row = rows.setdefault(key, Row(key, label, {}))
        row.cells[slot.position] = _cell(slot, by_slot.get(slot.slot, []), several, running)
        positions = max(positions, slot.position)
    return tuple(rows.values()), positions


def _row_of(slot: Slot) -> tuple[str, str]:
    if slot.repeats is not None:
        return f"again-{slot.slot}", f"{slot.round} again"
    return str(slot.round), "0 ref." if slot.round == 0 else str(slot.round)


def _cell(slot: Slot, attempts: list[Attempt], several: tuple[bool, bool], running: bool) -> Cell:
    parts = [slot.variant]
    if several[0]:
        parts.append(slot.deliverable)
    if several[1]:
        parts.append(f"seed {slot.seed}")
    last = attempts[-1] if attempts else None
    word = slot_state(last, running)
    round_ = "Reference pass (round 0)" if slot.round == 0 else f"Round {slot.round}"
    said = [f"{round_}, position {slot.position}: {' · '.join(parts)}", word]
    if slot.repeats is not None:
        said.insert(1, f"repeats attempt {slot.repeats}")
    said += [_attempt(attempt) for attempt in attempts if attempt.finished or word != "running"]
    return Cell(word, " ".join(parts), " · ".join(said))


def slot_state(last: Attempt | None, running: bool) -> str:
    """Return the state of a slot by its latest attempt; stopped and interrupted leave it open."""
    if last is None:
        return "open"
    if not last.finished:
        return "running" if running else "open"
    return {"completed": "done", "failed": "failed"}.get(last.row["status"], "open")


def _attempt(attempt: Attempt) -> str:
    row = attempt.row
    words = row["failure"] if row["status"] == "failed" else row["status"] or "cut off"
    verdict = {True: ", accepted", False: ", rejected"}.get(row["corpus_accepted"], "")
    took = f", {seconds(row['pass_s'])}" if row["pass_s"] is not None else ""
    return f"attempt {attempt.number} {words}{verdict if words == 'completed' else ''}{took}"


def _rounds(protocol: Protocol, state: State) -> str:
    now, most = state.rounds(protocol), protocol.measurement.max_rounds
    added = now - protocol.measurement.rounds
    words = f"{count(now, 'round')} planned"
    if added:
        words += f" ({added} of them added)"
    return f"{words}, at most {most}"


# -- the window ----------------------------------------------------------------------------------

_MOST_PACKS = 5
_TIMELINE = 76  # columns


def _or_why(lines: Callable[[], Iterable[str]]) -> tuple[str, ...]:
    """A window that can't be worked out takes nothing else from the screen."""
    try:
        return tuple(lines())
    except GpucostError as error:
        return (clean(error),)


def _timeline(protocol: Protocol, state: State) -> Iterable[str]:
    from gpucost_tui.campaign.window import need
    from gpucost_tui.pricing.showing_window import timeline_lines

    needed = need(protocol, state)
    return timeline_lines(needed.schedule, _TIMELINE) if needed.schedule else ()


def _window(protocol: Protocol, state: State) -> Iterable[str]:
    from gpucost_tui.campaign.window import need
    from gpucost_tui.pricing.answer import answer_window
    from gpucost_tui.pricing.catalogue import load

    needed = need(protocol, state)
    if needed.schedule is None:
        yield _unknown(needed.unknown)
        return
    answer = answer_window(load(), needed.schedule)
    yield f"{needed.hours:,.2f} h, {needed.basis}: {_basis(needed.basis, protocol, state)}."
    chain = " > ".join(clean(item.task, limit=24) for item in needed.schedule.chain)
    yield f"Longest chain: {chain}."
    yield from _packs(answer)


def _unknown(tasks: tuple[str, ...]) -> str:
    if not tasks:
        return "Not known: no task of the rental is named. Add [[window.tasks]] to the protocol."
    verb = "has" if len(tasks) == 1 else "have"
    return (
        f"Not known: {listed(tasks)} {verb} neither hours given nor a measured duration. "
        "Give hours in [[window.tasks]], or run the campaign."
    )


def _basis(basis: str, protocol: Protocol, state: State) -> str:
    if basis == "measured":
        return "the campaign's own durations, other tasks as sealed"
    open_slots = len(state.open_slots(protocol))
    if open_slots:
        return f"hours as given in the protocol, {count(open_slots, 'slot')} still open"
    return "a task has no measured duration yet"


def _packs(answer: WindowAnswer) -> Iterable[str]:
    from gpucost_tui.pricing.showing_window import candidate_lines

    if not answer.covering:
        yield "No single pack covers it."
        yield from answer.ways
        return
    days = ", ".join(f"{n} days ({n * 24} h)" for n in answer.covering)
    yield f"Packs that cover it: {days}."
    if not answer.candidates:
        yield "None of them has a price in the catalogue."
        return
    yield from candidate_lines(answer.candidates[:_MOST_PACKS])
    if unpriced := len(answer.unpriced):
        have = "has" if unpriced == 1 else "have"
        yield f"{count(unpriced, 'more pack')} would cover it and {have} no price."
    rest = len(answer.candidates) - _MOST_PACKS
    more = f"{rest} more, other lots and other GPUs: 6 Pricing. " if rest > 0 else ""
    yield f"{more}A pack that covers the window does not prove that the work ends in time."
