"""Finding repeated identifiers among millions, in eight bytes each (R7)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from gpucost_tui.errors import InputError
from gpucost_tui.text import clean

_NAMED = 5
#: Hashes that coincide may be different ids, so a few more pairs than are named are looked at.
_LOOKED_AT = 64


class SeenIds:
    """The ids of a stream, kept as 64-bit hashes: 80 MB for ten million.

    Equal hashes are only a suspicion; :meth:`refuse_repeated` reads the stream a second time and
    compares the ids themselves, so no collision can refuse a sound corpus.
    """

    def __init__(self) -> None:
        self._hashes = array("q")

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, name: str) -> None:
        self._hashes.append(hash(name))

    def refuse_repeated(self, again: Callable[[], Iterator[tuple[str, str]]]) -> None:
        """Name repeated ids, with both places.

        Args:
            again: Gives the stream a second time, as (id, place). Called on suspicion only.

        Raises:
            InputError: Ids repeat; the first five are named.
        """
        count, pairs = self._suspects()
        if not count:
            return
        found = _confirmed(pairs, again())
        if not found:
            return
        total = max(count, len(found))
        rest = total - len(found[:_NAMED])
        raise InputError(
            f"{'an id stands' if total == 1 else f'{total:,} ids stand'} more than once: "
            + "; ".join(found[:_NAMED])
            + (f"; and {rest:,} more" if rest else ""),
            fix="Give every entry an id of its own (R7)",
        )

    def _suspects(self) -> tuple[int, list[tuple[int, int]]]:
        """Return how many hashes repeat, and the positions of the first pairs of them."""
        hashes = np.frombuffer(self._hashes, dtype=np.int64)
        ordered = np.sort(hashes)
        if not (ordered[1:] == ordered[:-1]).any():
            return 0, []
        order = np.argsort(hashes, kind="stable")
        return _first_pairs(hashes[order], order)


def _first_pairs(
    ordered: npt.NDArray[np.int64], order: npt.NDArray[np.intp]
) -> tuple[int, list[tuple[int, int]]]:
    same = ordered[1:] == ordered[:-1]
    starts = np.flatnonzero(same & ~np.concatenate(([False], same[:-1])))
    seconds = order[starts + 1]
    first = starts[np.argsort(seconds, kind="stable")[:_LOOKED_AT]]
    return len(starts), [(int(order[i]), int(order[i + 1])) for i in first]


def _confirmed(pairs: list[tuple[int, int]], rows: Iterator[tuple[str, str]]) -> list[str]:
    wanted = {position for pair in pairs for position in pair}
    found: dict[int, tuple[str, str]] = {}
    for position, (name, place) in enumerate(rows):
        if position in wanted:
            found[position] = (name, place)
        if len(found) == len(wanted):
            break
    return [
        f"'{clean(found[one][0], limit=80)}' ({found[one][1]} and {found[other][1]})"
        for one, other in pairs
        if one in found and other in found and found[one][0] == found[other][0]
    ]
