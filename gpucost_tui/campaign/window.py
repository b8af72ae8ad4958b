"""The window that a campaign needs: sealed tasks, with measured durations in their place (R32)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from graphlib import CycleError, TopologicalSorter
from typing import Any

from gpucost_tui.campaign.fold import State
from gpucost_tui.pricing.schedule import Schedule, Task, schedule
from gpucost_tui.protocol.load import Source
from gpucost_tui.protocol.model import Protocol, WindowTask
from gpucost_tui.protocol.problem import Problem
from gpucost_tui.text import clean, listed

#: phase of the campaign -> raw-table columns that measure it; the first one must have a figure
_COLUMNS = {
    "load": ("load_s", "compile_s"),
    "warm-up": ("warmup_s",),
    "pass": ("pass_s",),
    "evaluate": ("evaluate_s", "write_s"),
}
_BEFORE_THE_PASS = ("load_s", "compile_s", "warmup_s")


@dataclass(frozen=True, slots=True)
class WindowNeed:
    """Hours that the rental must last. ``basis``: measured, or assumed (R40)."""

    hours: float | None
    basis: str
    schedule: Schedule | None
    unknown: tuple[str, ...]  # tasks with neither a measured nor a given figure


def check_tasks(protocol: Protocol, source: Source) -> Iterator[Problem]:
    """Yield what is wrong with the window's tasks: names, order, and figures that are missing."""
    tasks = protocol.window.tasks
    if not tasks:
        what = "no task of the rental is named: the window needed can't be known (R32)"
        fix = "Add [[window.tasks]], from preparing the rental to collecting the results"
        yield Problem(source.where("window"), what, fix, blocking=False)
        return
    names = [task.name for task in tasks]
    problems = [*_names(names, source), *_order(tasks, names, source)]
    yield from problems or _circle(tasks, names, source)
    for number, task in enumerate(tasks):
        if task.hours is None and not task.measured:
            what = f"task '{clean(task.name)}' has neither hours nor a phase that is measured (R32)"
            fix = "Give its hours, or the window needed stays unknown"
            yield Problem(source.where("window", "tasks", number), what, fix, blocking=False)


def _names(names: list[str], source: Source) -> Iterator[Problem]:
    for name, times in Counter(names).items():
        if times > 1:
            second = [i for i, other in enumerate(names) if other == name][1]
            where = source.where("window", "tasks", second, "name")
            yield Problem(where, f"'{clean(name)}' is used {times} times", "Name each once")


def _order(tasks: tuple[WindowTask, ...], names: list[str], source: Source) -> Iterator[Problem]:
    for number, task in enumerate(tasks):
        for index, other in enumerate(task.after):
            if other not in names:
                where = source.where("window", "tasks", number, "after", index)
                fix = f"Tasks here: {listed(names, limit=12)}"
                yield Problem(where, f"there is no task '{clean(other)}' to come after", fix)


def _circle(tasks: tuple[WindowTask, ...], names: list[str], source: Source) -> Iterator[Problem]:
    try:
        TopologicalSorter({task.name: task.after for task in tasks}).prepare()
    except CycleError as error:
        circle = [name for name in names if name in error.args[1]]
        where = source.where("window", "tasks", names.index(circle[0]), "after")
        what = f"tasks wait for each other: {listed(circle, limit=10)}"
        yield Problem(where, what, "Take one of them out of the other's 'after'")


def need(
    protocol: Protocol,
    state: State,
    export_s: float | None = None,
    *,
    variant: str | None = None,
    over: bool = False,
) -> WindowNeed:
    """Return the window of a campaign, as far as its tasks are known.

    A task with ``measured`` phases takes their durations once every slot is done; until then, or
    where a phase was never measured, it takes its given hours, and the basis is *assumed*.

    Args:
        protocol: The sealed protocol (or a draft).
        state: What the journal says.
        export_s: Seconds that the export took; by default what the journal says.
        variant: Of tasks with scope ``deliverable``, the variant whose passes count; without it
            the slowest one.
        over: Nothing more will run here (a parent campaign): what was made is all there is, and a
            phase that was never measured took no time.

    Raises:
        InputError: The tasks are in no order (a draft).
    """
    export_s = state.acts.export_s if export_s is None else export_s
    if over and not state.attempts:
        return WindowNeed(0.0, "measured", None, ())
    complete = bool(state.attempts) and (over or not state.open_slots(protocol))
    rows = [attempt.row for attempt in state.attempts.values()]
    tasks, unknown, assumed = [], [], not complete
    for task in protocol.window.tasks:
        hours = task.hours
        if task.measured:
            measured = _measured(task, rows, export_s, variant) if complete else None
            measured = 0.0 if measured is None and over else measured
            assumed = assumed or measured is None
            hours = task.hours if measured is None else measured
        if hours is None:
            unknown.append(task.name)
        else:
            tasks.append(Task(task.name, Decimal(repr(float(hours))), task.after, task.kind))
    if unknown or not tasks:
        return WindowNeed(None, "assumed", None, tuple(unknown))
    plan = schedule(tasks, "the protocol, [[window.tasks]]")
    basis = "assumed" if assumed else "measured"
    return WindowNeed(float(plan.seconds / 3600), basis, plan, ())


def _measured(
    task: WindowTask, rows: list[dict[str, Any]], export_s: float | None, variant: str | None
) -> float | None:
    """Return the hours of a task's phases; None where one of them was never measured."""
    total = 0.0
    for phase in task.measured:
        seconds = export_s if phase == "export" else _phase(phase, task.scope, rows, variant)
        if seconds is None:
            return None
        total += seconds
    return total / 3600


def _phase(
    phase: str, scope: str, rows: Iterable[dict[str, Any]], variant: str | None
) -> float | None:
    columns = _COLUMNS[phase]
    if scope == "campaign":
        rows = list(rows)
        if all(row[columns[0]] is None for row in rows):
            return None
        return sum(_unmeasured_pass(row) if phase == "pass" else 0.0 for row in rows) + sum(
            _sum(row, columns) for row in rows
        )
    longest: dict[str, float] = {}
    for row in rows:
        if row[columns[0]] is not None and variant in (None, row["variant"]):
            before = longest.get(row["deliverable"], 0.0)
            longest[row["deliverable"]] = max(before, _sum(row, columns))
    return sum(longest.values()) if longest else None


def _unmeasured_pass(row: dict[str, Any]) -> float:
    """Return the elapsed seconds of an attempt without a pass duration: the rental was kept (R14).

    Failed, stopped and interrupted attempts and the reference pass have none; what their time
    was, from their start to their recorded end, the journal knows.
    """
    if row["pass_s"] is not None or not (row["started_at"] and row["ended_at"]):
        return 0.0
    began, ended = (
        datetime.fromisoformat(row["started_at"]),
        datetime.fromisoformat(row["ended_at"]),
    )
    return max((ended - began).total_seconds() - _sum(row, _BEFORE_THE_PASS), 0.0)


def _sum(row: dict[str, Any], columns: Iterable[str]) -> float:
    # An empty load belongs to the attempt that loaded, an empty compilation to none.
    return sum(row[column] or 0.0 for column in columns)
