"""Finds the tasks by looking through this package: a new module is a new task."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from gpucost_tui import tasks
from gpucost_tui.errors import InputError
from gpucost_tui.tasks.base import Task
from gpucost_tui.text import clean


@functools.cache
def _classes() -> dict[str, type[Task]]:
    found: dict[str, type[Task]] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(tasks.__path__)):
        holder = importlib.import_module(f"{tasks.__name__}.{module}")
        for _, member in inspect.getmembers(holder, inspect.isclass):
            own = member.__module__ == holder.__name__
            if own and issubclass(member, Task) and not inspect.isabstract(member):
                found[member.name] = member
    return found


def known() -> list[str]:
    """Return the names of the tasks."""
    return sorted(_classes())


def summaries() -> dict[str, str]:
    """Return the tasks' names with one line about each."""
    return {name: _classes()[name].summary for name in known()}


def create(table: Mapping[str, Any]) -> Task:
    """Return the task that a protocol's ``[task]`` table describes: ``name`` and its options.

    Raises:
        InputError: No such task, no such option, or an impossible value; names what there is.
    """
    options = dict(table)
    name = options.pop("name", None)
    task = _classes().get(name) if isinstance(name, str) else None
    if task is None:
        said = "the task has no name" if name is None else f"there is no task '{clean(name)}'"
        raise InputError(said, where="task.name", fix=f"Known tasks: {', '.join(known())}")
    try:
        return task(task.Options.model_validate(options))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            said = f"{task.name} has no option '{clean(key)}'"
        else:
            said = f"impossible value {clean(repr(first['input']), limit=80)}: {first['msg']}"
        raise InputError(
            said, where=f"task.{clean(key)}", fix=f"Options: {options_of(task)}"
        ) from None


def options_of(task: type[Task]) -> str:
    """Return a task's options with their defaults, for a sentence."""
    fields = task.Options.model_fields
    if not fields:
        return "none"
    return ", ".join(f"{name} (default {field.default!r})" for name, field in fields.items())
