"""Leaving a pass out for a sealed external cause, with trace, and by one rule for all (R24).

A cause with a condition holds for the attempts whose rows meet it; a cause without one takes an
interval of time, and holds for the attempts that ran in it. Whatever it holds for is named, so that
no variant is spared: :func:`unequal` finds where the rule was not applied alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gpucost_tui.campaign.acts import Exclusion
from gpucost_tui.campaign.conditions import parse
from gpucost_tui.campaign.fold import Attempt, State, fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.record import on_disk
from gpucost_tui.campaign.table import raw_table, write_tables
from gpucost_tui.campaign.unchanged import sealed_manifest
from gpucost_tui.errors import Refused, WrongUse
from gpucost_tui.protocol.model import ExclusionCause, Protocol
from gpucost_tui.text import clean, listed


@dataclass(frozen=True, slots=True)
class Unequal:
    """An attempt to which a cause was not applied as to the others, or was applied wrongly."""

    attempt: int
    cause: str
    what: str


@dataclass(frozen=True, slots=True)
class Left:
    """What an act did, and the other attempts to which the same cause applies."""

    attempts: tuple[int, ...]
    cause: str
    also: tuple[int, ...]


def exclude(
    campaign: Campaign,
    attempts: Sequence[int],
    cause: str,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Left:
    """Leave attempts out for a cause of the seal.

    Args:
        campaign: A sealed campaign.
        attempts: Their numbers.
        cause: The name of a sealed cause.
        since: Begin of the cause, aware; for a cause without a condition, as is ``until``.
        until: Its end.

    Raises:
        Refused: The cause is not sealed, does not hold for an attempt, or there is nothing to
            leave out (no end yet, stopped, interrupted, the reference pass, excluded already).
        WrongUse: No such attempt; an interval where none belongs, or none where one does.
        Differs: Manifest or journal are not what they were.
    """
    protocol = sealed_manifest(campaign).protocol
    state = fold(campaign.events())
    known = _cause(protocol, cause)
    if known.condition is not None and (since or until):
        raise WrongUse(
            f"the cause '{clean(cause)}' has a sealed condition and takes no interval",
            fix=f"Leave --from and --to out; it holds where {clean(known.condition, limit=200)}",
        )
    if known.condition is None and not (since and until):
        raise WrongUse(
            f"the cause '{clean(cause)}' takes the interval of time in which it was at work",
            fix="Add --from and --to, such as --from 2026-09-28T09:00Z --to 2026-09-28T09:20Z",
        )
    if since and until and until <= since:
        raise WrongUse("--to is not after --from", fix="Give the interval of the cause")
    numbers = list(dict.fromkeys(attempts))
    applies = _in_interval(state, since, until) if since and until else _meeting(known, state)
    for number in numbers:
        _refuse_unless_left_out(state, number, known, applies)
    journal = Journal(campaign.folder)
    for number in numbers:
        data = {"attempt": number, "cause": cause, "from": _utc(since), "to": _utc(until)}
        journal.append("excluded", data)
    also = _also(protocol, rebuild(campaign), cause)
    return Left(tuple(numbers), cause, also)


def withdraw(campaign: Campaign, attempts: Sequence[int]) -> list[Left]:
    """Take exclusions back; both acts stay in the journal and in the notes.

    Raises:
        Refused: An attempt is not excluded.
        WrongUse: No such attempt.
    """
    protocol = sealed_manifest(campaign).protocol
    state = fold(campaign.events())
    numbers = list(dict.fromkeys(attempts))
    for number in numbers:
        _attempt(state, number)
        if number not in state.acts.exclusions:
            raise Refused(f"attempt {number} is not excluded", fix="`gpucost attempts` shows it")
    journal = Journal(campaign.folder)
    causes = {number: state.acts.exclusions[number].cause for number in numbers}
    for number, cause in causes.items():
        journal.append("exclusion_withdrawn", {"attempt": number, "cause": cause})
    state = rebuild(campaign)
    return [
        Left(
            tuple(number for number, named in causes.items() if named == cause),
            cause,
            _also(protocol, state, cause),
        )
        for cause in dict.fromkeys(causes.values())
    ]


def rebuild(campaign: Campaign) -> State:
    """Fold the journal again and write the tables from it; return the state."""
    state = fold(campaign.events())
    with on_disk("raw_results.csv"):
        final = (campaign.folder / "raw_results.parquet").exists()
        write_tables(campaign.folder, state, final=final)
    return state


def applies_to(protocol: Protocol, state: State) -> dict[str, list[int]]:
    """Return for every sealed cause the attempts that it holds for, excluded or not.

    A cause without a condition holds for what ran in the intervals of its exclusions in force.
    """
    found: dict[str, list[int]] = {}
    for cause in protocol.exclusion_causes:
        if cause.condition is not None:
            found[cause.name] = _meeting(cause, state)
            continue
        numbers: set[int] = set()
        for one in state.acts.exclusions.values():
            if one.cause == cause.name and one.since and one.until:
                numbers.update(_in_interval(state, one.since, one.until))
        found[cause.name] = sorted(numbers)
    return found


def unequal(protocol: Protocol, state: State) -> list[Unequal]:
    """Return where an exclusion cause was not applied alike, for `verify` (R24)."""
    applies = applies_to(protocol, state)
    conditions = {c.name: c.condition for c in protocol.exclusion_causes}
    found = [
        Unequal(number, cause, "the cause applies to it, and it is not excluded")
        for cause, numbers in applies.items()
        for number in numbers
        if number not in state.acts.exclusions
    ]
    for one in state.acts.exclusions.values():
        if one.cause not in conditions:
            found.append(Unequal(one.attempt, one.cause, "the seal allows no such cause"))
        elif one.attempt not in applies[one.cause]:
            found.append(Unequal(one.attempt, one.cause, _why_not(one, conditions[one.cause])))
    return sorted(found, key=lambda item: (item.attempt, item.cause))


def _why_not(one: Exclusion, condition: str | None) -> str:
    if condition is not None:
        return f"it is excluded, and does not meet the condition {condition}"
    if one.since is None or one.until is None:
        return "it is excluded without the interval that its cause takes"
    return "it is excluded for an interval in which it did not run"


def _cause(protocol: Protocol, name: str) -> ExclusionCause:
    by_name = {cause.name: cause for cause in protocol.exclusion_causes}
    if name not in by_name:
        allowed = listed(list(by_name), limit=10) or "none"
        raise Refused(
            f"the seal allows no exclusion for '{clean(name, limit=60)}' (R24)",
            fix=f"Sealed causes: {allowed}. Another one needs a new campaign, sealed with it",
        )
    return by_name[name]


def _attempt(state: State, number: int) -> Attempt:
    if number not in state.attempts:
        raise WrongUse(f"there is no attempt {number}", fix="`gpucost attempts` lists them")
    return state.attempts[number]


def _refuse_unless_left_out(
    state: State, number: int, cause: ExclusionCause, applies: Sequence[int]
) -> None:
    attempt = _attempt(state, number)
    row = attempt.row
    if not attempt.finished:
        raise Refused(f"attempt {number} has not ended", fix="Exclude it when it has")
    if row["round"] == 0:
        raise Refused(f"attempt {number} is the reference pass: there is no duration to leave out")
    if not _counts(attempt):
        raise Refused(
            f"attempt {number} was {row['status']}: it gives no duration and is not counted as a "
            "failure, so there is nothing to leave out"
        )
    if row["excluded"]:
        raise Refused(
            f"attempt {number} is excluded already for '{clean(row['exclusion_cause'])}'",
            fix="--withdraw takes it back",
        )
    if number not in applies:
        ran = f"it ran from {row['started_at']} to {row['ended_at'] or 'an unknown time'}"
        what = (
            f"it did not run in that interval ({ran})"
            if cause.condition is None
            else f"its row does not meet the sealed condition {clean(cause.condition, limit=200)}"
        )
        raise Refused(f"'{clean(cause.name)}' does not apply to attempt {number}: {what} (R24)")


def _counts(attempt: Attempt) -> bool:
    """Whether an attempt gives a duration or counts as a failure: leaving it out matters."""
    ended = attempt.row["status"] in ("completed", "failed")
    return attempt.finished and ended and bool(attempt.row["round"])


def _meeting(cause: ExclusionCause, state: State) -> list[int]:
    assert cause.condition is not None  # noqa: S101 - asked only of causes that have one
    try:
        condition = parse(cause.condition)
    except ValueError as error:
        raise Refused(
            f"the condition of '{clean(cause.name)}' can't be applied: {error}",
            fix="It was sealed so: no pass can be left out for this cause",
        ) from None
    met = condition.met(raw_table(state))
    return [number for number in met if _counts(state.attempts[number])]


def _in_interval(state: State, since: datetime, until: datetime) -> list[int]:
    found = []
    for number, attempt in sorted(state.attempts.items()):
        if not _counts(attempt):
            continue
        begun = datetime.fromisoformat(attempt.row["started_at"])
        ended = datetime.fromisoformat(attempt.row["ended_at"] or attempt.row["started_at"])
        if begun <= until and ended >= since:
            found.append(number)
    return found


def _also(protocol: Protocol, state: State, cause: str) -> tuple[int, ...]:
    """Return the attempts that are not excluded and to which the same cause applies."""
    numbers = applies_to(protocol, state)[cause]
    return tuple(number for number in numbers if number not in state.acts.exclusions)


def _utc(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
