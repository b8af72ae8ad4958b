"""The window that a campaign needs: sealed tasks, with measured durations in their place (R32)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpucost_tui.campaign.fold import State
from gpucost_tui.errors import GpucostError
from gpucost_tui.pricing.schedule import Schedule, Task, schedule
from gpucost_tui.protocol.load import Source
from gpucost_tui.protocol.model import Protocol, WindowTask
from gpucost_tui.protocol.problem import Problem

#: phase of the campaign -> raw-table columns that measure it
_COLUMNS = {
    "load": ("load_s", "compile_s"),
    "warm-up": ("warmup_s",),
    "pass": ("pass_s",),
    "evaluate": ("evaluate_s", "write_s"),
}


@dataclass(frozen=True, slots=True)
class WindowNeed:
    """Hours that the rental must last. ``basis``: measured, or assumed (R40)."""

    hours: float | None
    basis: str
    schedule: Schedule | None
    unknown: tuple[str, ...]  # tasks with neither a measured nor a given figure


def check_tasks(protocol: Protocol, source: Source) -> Iterator[Problem]:
    """Yield what is wrong with the order of the window's tasks."""
    tasks = [Task(t.name, Decimal(0), t.after, t.kind) for t in protocol.window.tasks]
    if not tasks:
        yield Problem(
            source.where("window"),
            "no task of the rental is named: the window needed can't be known (R32)",
            "Add [[window.tasks]], from preparing the rental to collecting the results",
            blocking=False,
        )
        return
    try:
        schedule(tasks, source.where("window", "tasks"))
    except GpucostError as error:
        place = source.where("window", "tasks")
        yield Problem(place, error.what, error.fix or "Correct the tasks")


def need(protocol: Protocol, state: State, export_s: float | None = None) -> WindowNeed:
    """Return the window of a campaign, as far as its tasks are known.

    A task with ``measured`` phases takes their sum over all attempts once every slot is done; until
    then, or where a phase was never measured, it takes its given hours, and the basis is *assumed*.
    """
    complete = bool(state.attempts) and not state.open_slots(protocol)
    tasks, unknown, assumed = [], [], False
    for task in protocol.window.tasks:
        hours = _measured(task, state, export_s) if task.measured and complete else None
        if task.measured and hours is None:
            assumed = True
            hours = task.hours
        elif not task.measured:
            hours = task.hours
        if hours is None:
            unknown.append(task.name)
            continue
        tasks.append(Task(task.name, Decimal(repr(float(hours))), task.after, task.kind))
    basis = "assumed" if assumed or unknown or not complete else "measured"
    if unknown or not tasks:
        return WindowNeed(None, "assumed", None, tuple(unknown))
    plan = schedule(tasks)
    return WindowNeed(float(plan.seconds / 3600), basis, plan, ())


def _measured(task: WindowTask, state: State, export_s: float | None) -> float | None:
    total = 0.0
    for phase in task.measured:
        if phase == "export":
            if export_s is None:
                return None
            total += export_s
            continue
        rows = [attempt.row for attempt in state.attempts.values()]
        total += sum(_seconds(row, _COLUMNS[phase]) for row in rows)
    return total / 3600


def _seconds(row: dict[str, Any], columns: tuple[str, ...]) -> float:
    return sum(row[column] or 0.0 for column in columns)
