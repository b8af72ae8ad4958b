"""Prepares the next batches in a thread of its own, beside the forward passes (R11)."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T")
#: Seconds after which a thread that waits looks whether the other one is still there.
_LOOK_S = 0.05


class Prefetched(Generic[_T]):
    """Iterates over ``items`` as they come from a thread, at most ``depth`` of them ahead.

    Args:
        items: Begun and exhausted in the thread; its exception is raised where it is iterated.
        depth: Items ready ahead of the one that is worked on.
        enter: Called first in the thread (a device's context belongs to the thread).
    """

    def __init__(
        self, items: Generator[_T, None, None], depth: int, enter: Callable[[], None] = lambda: None
    ) -> None:
        self._items = items
        self._enter = enter
        self._ready: queue.Queue[tuple[bool, _T | BaseException | None]] = queue.Queue(depth)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._fill, name="prefetch", daemon=True)
        self._thread.start()

    def _fill(self) -> None:
        try:
            self._enter()
            # Closed in this thread: what the iterator has opened may belong to it.
            with contextlib.closing(self._items) as items:
                for item in items:
                    if not self._put((True, item)):
                        return
        except BaseException as error:
            self._put((False, error))
        else:
            self._put((False, None))

    def _put(self, entry: tuple[bool, _T | BaseException | None]) -> bool:
        while not self._left.is_set():
            try:
                self._ready.put(entry, timeout=_LOOK_S)
            except queue.Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[_T]:
        while True:
            more, item = self._ready.get()
            if more:
                yield item  # type: ignore[misc]
                del item  # the next one is waited for without holding this one's tensors
            elif isinstance(item, BaseException):
                raise item
            else:
                return

    def close(self) -> None:
        """End the thread and wait for it: nothing prepares beside what comes next."""
        self._left.set()
        self._thread.join()
