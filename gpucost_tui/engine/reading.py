"""Reads the sealed corpus, a batch at a time, as every pass does (R16)."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from gpucost_tui.errors import EnvironmentLacks, InputError


class CorpusReader:
    """Entries of a JSONL file in order; ``id`` and ``text`` of each line."""

    def __init__(self, stream: BinaryIO, path: str) -> None:
        self._stream = stream
        self._path = path
        self.line = 0

    def take(self, count: int) -> tuple[list[str], list[str]]:
        """Return the ids and texts of the next entries, at most ``count``; empty at the end.

        Raises:
            InputError: A line is no entry; names the line.
        """
        ids: list[str] = []
        texts: list[str] = []
        for line in islice(self._stream, count):
            try:
                entry = json.loads(line)
                texts.append(entry["text"])
                ids.append(entry["id"])
            except (ValueError, KeyError, TypeError) as error:
                why = f"{error} is absent" if isinstance(error, KeyError) else str(error)
                raise self._no_entry(len(ids), why) from None
        self.line += len(ids)
        return ids, texts

    def _no_entry(self, offset: int, why: str) -> InputError:
        return InputError(
            f"not an entry with 'id' and 'text' ({why})",
            where=f"{self._path}, line {self.line + offset + 1}",
            fix="The sealed corpus has changed: make the campaign again from its source",
        )


@contextlib.contextmanager
def opened(path: str) -> Iterator[CorpusReader]:
    """Open a corpus for one traversal.

    Raises:
        EnvironmentLacks: The file is not there or can't be read.
    """
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(Path(path).open("rb", buffering=1 << 18))
        except OSError as error:
            raise EnvironmentLacks(
                f"the corpus can't be read ({error.strerror})",
                where=path,
                fix="Put the sealed file back",
            ) from None
        yield CorpusReader(stream, path)


def selected(path: str, positions: Iterable[int]) -> dict[int, str]:
    """Return the texts of the entries at the given positions (0-based)."""
    wanted = set(positions)
    texts: dict[int, str] = {}
    if not wanted:
        return texts
    last = max(wanted)
    with Path(path).open("rb") as stream:
        for position, line in enumerate(islice(stream, last + 1)):
            if position in wanted:
                texts[position] = json.loads(line)["text"]
    return texts


def forget_cached(path: str) -> None:
    """Ask the kernel to drop a file from its page cache.

    Raises:
        OSError: The kernel or the file system can't.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)  # pages that are not on the disk yet can't be dropped
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
