"""How far long work has come, told to who waits for it; who is told may end the work.

The loops that take long (entries of a corpus, bytes of a model) go past a :class:`Watch`. Who is
told may raise :class:`Cancelled`: it leaves the loop, and the work ends where it stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

from gpucost_tui.text import count, size

_EVERY_S = 0.1

T = TypeVar("T")
Unit = Literal["entries", "bytes"]


class Cancelled(Exception):
    """The person asked this work to end. No error: nothing gathers it, nothing explains it."""


@dataclass(frozen=True, slots=True)
class Step:
    """Where work stands: the stage in words, what is done of it, and of how much, where known."""

    stage: str
    done: int = 0
    total: int | None = None
    unit: Unit = "entries"

    def __str__(self) -> str:
        if not self.done:
            return self.stage
        if not self.total:
            return f"{self.stage}: {self._amount(self.done)}"
        done = size(self.done) if self.unit == "bytes" else f"{self.done:,}"
        share = min(100 * self.done // self.total, 100)
        return f"{self.stage}: {done} of {self._amount(self.total)} ({share} %)"

    def _amount(self, number: int) -> str:
        return size(number) if self.unit == "bytes" else count(number, "entry", "entries")


class Watch:
    """Takes note of stages and of what is done of them; this one tells nobody."""

    def stage(self, words: str, total: int | None = None, unit: Unit = "entries") -> None:
        """Begin a stage."""

    def add(self, number: int) -> None:
        """Note that so many entries or bytes more are done."""

    def reach(self, done: int, total: int | None) -> None:
        """Note how far another counter is."""

    def each(self, items: Iterable[T]) -> Iterable[T]:
        """Return the items, each noted as done when the next one is asked for."""
        return items


#: For work that nobody waits for.
NOBODY = Watch()


class Told(Watch):
    """Tells of every stage at once, and ten times a second how far it is.

    Args:
        tell: Gets each step; may raise :class:`Cancelled`.
    """

    def __init__(self, tell: Callable[[Step], object]) -> None:
        self._tell = tell
        self._stage = ""
        self._total: int | None = None
        self._unit: Unit = "entries"
        self._done, self._told_at = 0, 0.0

    def stage(self, words: str, total: int | None = None, unit: Unit = "entries") -> None:
        self._stage, self._total, self._unit, self._done = words, total, unit, 0
        self._say(time.monotonic())

    def add(self, number: int) -> None:
        self.reach(self._done + number, self._total)

    def reach(self, done: int, total: int | None) -> None:
        self._done, self._total = done, total
        now = time.monotonic()
        if now - self._told_at >= _EVERY_S:
            self._say(now)

    def each(self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            yield item
            self.add(1)

    def _say(self, now: float) -> None:
        self._told_at = now
        self._tell(Step(self._stage, self._done, self._total, self._unit))
