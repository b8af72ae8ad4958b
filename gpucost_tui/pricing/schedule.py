"""The window as a schedule: tasks, their order, and the waits during which a rental is kept (R32).

Tasks that overlap count once: the window is the longest chain, not the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

from gpucost_tui.errors import InputError
from gpucost_tui.pricing.sheets import read_bytes
from gpucost_tui.text import clean, listed

#: Ten years: a longer task is a slip of the pen.
MAX_HOURS = 87_600
_KINDS = ("work", "wait")


class Task(NamedTuple):
    """A piece of the rental: ``hours`` long, begun when all of ``after`` have ended."""

    name: str
    hours: Decimal
    after: tuple[str, ...] = ()
    kind: str = "work"


class Scheduled(NamedTuple):
    """A task in its place; hours from the start of the rental, exact."""

    task: str
    start_h: Fraction
    end_h: Fraction
    kind: str


class Schedule(NamedTuple):
    """Tasks by start; ``chain`` is a longest chain, whose tasks decide the length."""

    timeline: tuple[Scheduled, ...]
    chain: tuple[Scheduled, ...]

    @property
    def seconds(self) -> Fraction:
        """The window needed, exact."""
        return max(item.end_h for item in self.timeline) * 3600


def schedule(tasks: Sequence[Task], where: str = "tasks") -> Schedule:
    """Put tasks into the earliest places that their order allows.

    Args:
        tasks: At least one; those without ``after`` start at hour 0.
        where: How the source of the tasks is called in sentences.

    Raises:
        InputError: No task, two of one name, an unknown name in ``after``, an impossible
            duration, or tasks that wait for each other.
    """
    by_name = _checked(tasks, where)
    order = TopologicalSorter({task.name: task.after for task in tasks})
    try:
        names = list(order.static_order())
    except CycleError as error:
        circle = set(error.args[1])
        waiting = [task.name for task in tasks if task.name in circle]
        raise InputError(
            f"tasks wait for each other: {listed(waiting, limit=10)}",
            where=where,
            fix="Take one of them out of the other's 'after'",
        ) from None
    placed: dict[str, Scheduled] = {}
    for name in names:
        task = by_name[name]
        start = max((placed[other].end_h for other in task.after), default=Fraction(0))
        placed[name] = Scheduled(name, start, start + Fraction(task.hours), task.kind)
    position = {task.name: number for number, task in enumerate(tasks)}
    timeline = sorted(placed.values(), key=lambda item: (item.start_h, position[item.task]))
    return Schedule(tuple(timeline), _chain(timeline, by_name, placed))


def _chain(
    timeline: Sequence[Scheduled], by_name: dict[str, Task], placed: dict[str, Scheduled]
) -> tuple[Scheduled, ...]:
    last = max(timeline, key=lambda item: item.end_h)
    chain = [last]
    while by_name[chain[-1].task].after:
        before = (placed[name] for name in by_name[chain[-1].task].after)
        chain.append(max(before, key=lambda item: item.end_h))
    return tuple(reversed(chain))


def _checked(tasks: Sequence[Task], where: str) -> dict[str, Task]:
    if not tasks:
        raise InputError("there is no task", where=where, fix="Add one, with name and hours")
    by_name: dict[str, Task] = {}
    for task in tasks:
        shown = clean(task.name, limit=80)
        at = f"{where}, task {shown}"
        if task.name in by_name:
            raise InputError(f"two tasks have the name {shown}", where=where, fix="Rename one")
        by_name[task.name] = task
        _check_hours(task.hours, at)
        if task.kind not in _KINDS:
            raise InputError("kind is neither work nor wait", where=at, fix="Write one of the two")
    for task in tasks:
        for other in task.after:
            if other not in by_name:
                raise InputError(
                    f"unknown task: {clean(other, limit=80)}",
                    where=f"{where}, task {clean(task.name, limit=80)}",
                    fix="'after' names tasks of the same list",
                )
    return by_name


def _check_hours(hours: Decimal, at: str) -> None:
    if not hours.is_finite():
        raise InputError("hours is no finite number", where=at, fix="Give 0 or more hours")
    if hours < 0:
        raise InputError("hours is not negative", where=at, fix="Give 0 or more hours")
    if hours > MAX_HOURS:
        raise InputError(f"hours is above {MAX_HOURS:,}", where=at, fix="Give its real length")
    if hours.adjusted() < -30 or len(hours.as_tuple().digits) > 60:
        raise InputError("hours has too many decimals", where=at, fix="Round it to seconds")


def read_tasks(path: Path) -> list[Task]:
    """Read tasks from a TOML file: ``[[tasks]]`` with name, hours, after, kind.

    Raises:
        InputError: The file is no TOML, or a table has an unknown key or a value of another type.
    """
    import tomllib

    where = clean(path)
    try:
        document = tomllib.loads(read_bytes(path).decode("utf-8-sig"), parse_float=Decimal)
    except UnicodeDecodeError as error:
        raise InputError(
            f"the file is not UTF-8 (byte {error.start})", where=where, fix="Save it as UTF-8"
        ) from None
    except ArithmeticError:
        raise InputError(
            "a number has an exponent that no duration has", where=where, fix=_FORM
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the file is no TOML: {clean(error, limit=200)}", where=where, fix=_FORM
        ) from None
    unknown = sorted(set(document) - {"tasks"})
    tables = document.get("tasks")
    if unknown or not isinstance(tables, list):
        what = f"unknown key '{clean(unknown[0])}'" if unknown else "there is no [[tasks]] table"
        raise InputError(what, where=where, fix=_FORM)
    return [
        task_from_table(table, f"{where}, task {number}") for number, table in enumerate(tables, 1)
    ]


_FORM = 'Write each task as [[tasks]] with name = "...", hours = 2, after = ["..."], kind = "work"'


def task_from_table(table: Any, where: str) -> Task:
    """Return a task from a mapping with name, hours, after, kind, checked for types.

    Raises:
        InputError: An unknown or missing key, or a value of another type.
    """
    if not isinstance(table, dict):
        raise InputError("a task is a table", where=where, fix=_FORM)
    unknown = sorted(set(table) - {"name", "hours", "after", "kind"})
    if unknown:
        raise InputError(f"unknown key '{clean(unknown[0], limit=60)}'", where=where, fix=_FORM)
    name, hours = table.get("name"), table.get("hours")
    if not isinstance(name, str) or not name.strip() or len(name) > 200:
        raise InputError("name is missing or no short text", where=where, fix=_FORM)
    at = f"{where} ({clean(name, limit=80)})"
    if isinstance(hours, bool) or not isinstance(hours, int | float | Decimal):
        raise InputError("hours is missing or no number", where=at, fix=_FORM)
    after, kind = table.get("after", []), table.get("kind", "work")
    if not isinstance(after, list) or not all(isinstance(other, str) for other in after):
        raise InputError("after is no list of names", where=at, fix=_FORM)
    if not isinstance(kind, str):
        raise InputError("kind is neither work nor wait", where=at, fix=_FORM)
    return Task(name, Decimal(str(hours)), tuple(dict.fromkeys(after)), kind)


def timeline_json(plan: Schedule) -> list[dict[str, object]]:
    """Return ``[{task, start_h, end_h, kind}]`` by start, hours to a millionth."""
    return [
        {
            "task": item.task,
            "start_h": float(round(item.start_h, 6)),
            "end_h": float(round(item.end_h, 6)),
            "kind": item.kind,
        }
        for item in plan.timeline
    ]
