"""What two passes of one variant have in common, in the way the protocol names (R28).

The reference attempt is the first one, by number, of the same variant, deliverable and seed that
completed with the right identifiers and form; a reference pass (round 0) is one too. Seeds are
never pooled: each has its own. Against it

* ``identical-outputs``: every column but ``order`` is equal, to the last bit;
* ``bounded-difference``: no score or component differs by more than ``max_difference``;
* ``business-quality``: the sealed quality is the criterion, and it is judged by itself.

Entries that were predicted differently (label flips) are counted and named under every aim.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.files import sha256_file
from gpucost_tui.protocol.model import Reproduction
from gpucost_tui.tasks.base import Task
from gpucost_tui.text import count

#: Identifiers of flipped entries that a verdict names; the count is always whole.
NAMED = 10_000


@dataclass(frozen=True, slots=True)
class FirstAttempt:
    """The attempt that later ones are held against, and its prediction file as it was written."""

    number: int
    path: Path
    sha256: str | None

    def read(self) -> pl.DataFrame | None:
        """Return its predictions; None where the file is not the one that was written."""
        if not self.path.is_file() or sha256_file(self.path) != self.sha256:
            return None
        return pl.read_parquet(self.path)


def flips(task: Task, first: pl.DataFrame, frame: pl.DataFrame) -> dict[str, Any]:
    """Return how many entries were predicted differently, and which."""
    found = task.flips(first, frame)
    return {"flips": found.height, "flipped_ids": found["id"].head(NAMED).to_list()}


def compared(
    task: Task, wanted: Reproduction, first: FirstAttempt, frame: pl.DataFrame
) -> tuple[dict[str, Any], list[str], str | None]:
    """Hold an attempt's predictions against the reference attempt's.

    Returns:
        Details for ``verdict.json``, notes for the row, and the reason for a rejection (``missing``
        where the reference attempt's file is gone, ``quality`` where the aim is missed) or None.
    """
    details: dict[str, Any] = {"aim": wanted.aim, "reference_attempt": first.number}
    strict = wanted.aim != "business-quality"
    there = first.read()
    if there is None:
        said = f"reproduction: the predictions of attempt {first.number} are not those written"
        return details, [said], "missing" if strict else None
    identical = _sorted(there).equals(_sorted(frame))
    largest = 0.0 if identical else task.max_difference(there, frame)
    details |= {"identical": identical, "max_difference": largest, **flips(task, there, frame)}
    if identical:
        return details | {"ok": True}, [], None
    kept = _kept(wanted, largest)
    details["ok"] = kept
    shown = "undefined" if largest is None else f"{largest:.3g}"
    said = (
        f"reproduction: {count(details['flips'], 'label flip')}, largest difference {shown} "
        f"against attempt {first.number}"
    )
    if not kept:
        bound = "" if wanted.max_difference is None else f" of {wanted.max_difference:g}"
        said += f"; the sealed aim {wanted.aim}{bound} is missed"
    return details, [said], None if kept else "quality"


def _kept(wanted: Reproduction, largest: float | None) -> bool:
    if wanted.aim == "identical-outputs":
        return False
    if wanted.max_difference is None:
        return True
    return largest is not None and largest <= wanted.max_difference


def _sorted(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop("order").sort("id")
