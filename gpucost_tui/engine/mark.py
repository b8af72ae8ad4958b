"""What a measuring process leaves behind when it is killed: a page shared with the runner.

Messages through the pipe are a fifth of a second apart, and the last of them may never be sent.
The page is written before and after each batch at the price of a few stores, and outlives the
process: how far it came, which batch it had in work and how much memory it held are exact (R21).
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from typing import NamedTuple

#: Native order: each number is one aligned store, so a kill can't fall into the middle of it.
_NUMBER = struct.Struct("@q")
_FINISHED, _ENTRIES, _WIDTH, _RSS = range(0, 4 * _NUMBER.size, _NUMBER.size)
_SIZE = mmap.PAGESIZE


class Left(NamedTuple):
    """What a page says. ``entries`` is 0 where no batch was in work; ``rss_bytes`` is sampled."""

    finished: int
    entries: int
    width: int
    rss_bytes: int


def page() -> int:
    """Return the descriptor of a new, empty page; the caller closes it.

    It lies in memory where the system can do so: a full disk must not end who writes to it.
    """
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("gpucost-mark")
    else:
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    os.truncate(handle, _SIZE)
    return handle


class Mark:
    """A page, opened by its descriptor, which may be closed afterwards."""

    def __init__(self, handle: int) -> None:
        self._page = mmap.mmap(handle, _SIZE)

    @classmethod
    def private(cls) -> Mark:
        """Return a page that nobody else reads."""
        handle = page()
        try:
            return cls(handle)
        finally:
            os.close(handle)

    def begin(self) -> None:
        """Begin an attempt: nothing is finished, no batch is in work."""
        self._page[: 4 * _NUMBER.size] = bytes(4 * _NUMBER.size)

    def batch(self, entries: int, width: int) -> None:
        """A batch of ``entries``, padded to ``width`` tokens, is in work."""
        _NUMBER.pack_into(self._page, _WIDTH, width)
        _NUMBER.pack_into(self._page, _ENTRIES, entries)

    def done(self, finished: int) -> None:
        """So many entries are finished, the batch in work among them."""
        _NUMBER.pack_into(self._page, _FINISHED, finished)
        _NUMBER.pack_into(self._page, _ENTRIES, 0)

    def rss(self, held: int) -> None:
        """Keep the highest resident memory that was sampled."""
        if held > _NUMBER.unpack_from(self._page, _RSS)[0]:
            _NUMBER.pack_into(self._page, _RSS, held)

    def read(self) -> Left:
        places = (_FINISHED, _ENTRIES, _WIDTH, _RSS)
        return Left(*(_NUMBER.unpack_from(self._page, place)[0] for place in places))

    def close(self) -> None:
        self._page.close()
