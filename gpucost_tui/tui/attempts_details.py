"""One attempt in full: what its row, its verdict and its traceback say. Read in a thread."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost_tui.tui.attempts_columns import FOLDER, LINE

if TYPE_CHECKING:
    from gpucost_tui.campaign.fold import Attempt

#: Bytes of a traceback that are shown: its end, where the reason stands.
_TRACE = 65_536
_VERDICT = 16 << 20


@dataclass(frozen=True)
class Details:
    """What is known of one attempt; texts are as written."""

    row: dict[str, Any]
    missing: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    verdict: dict[str, Any] | None = None  # details of verdict.json
    devices: tuple[dict[str, Any], ...] = ()
    trace: str = ""
    problems: tuple[str, ...] = ()
    line: int | None = None

    @property
    def folder(self) -> Path | None:
        """The campaign; none for the row of a table file."""
        return Path(self.row[FOLDER]) if self.row.get(FOLDER) else None


def read_details(row: dict[str, Any]) -> Details:
    """Read all about the attempt of a row.

    Raises:
        GpucostError: Its campaign can't be read.
    """
    missing = tuple(reasons_of(row.get("missing")))
    if not row.get(FOLDER):
        notes = tuple(part for part in (row.get("notes") or "").split("; ") if part)
        return Details(row, missing, notes, line=row.get(LINE))
    folder = Path(row[FOLDER])
    attempt = _attempt(folder, row["attempt"])
    if attempt is None:
        return Details(row, missing, (), problems=("the journal has no such attempt any more",))
    problems: list[str] = []
    own = folder / attempt.folder if attempt.folder else folder
    verdict = _verdict(own / "verdict.json", problems) if attempt.judged else None
    trace = _trace(own / "failure.txt", problems) or attempt.error or ""
    return Details(
        row,
        missing,
        tuple(attempt.notes),
        tuple(attempt.reasons),
        verdict,
        tuple(attempt.device_memory),
        trace,
        tuple(problems),
    )


def _attempt(folder: Path, number: int) -> Attempt | None:
    from gpucost_tui.campaign.fold import fold
    from gpucost_tui.campaign.folder import Campaign

    return fold(Campaign.open(folder).events()).attempts.get(number)


def _verdict(path: Path, problems: list[str]) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > _VERDICT:
            raise ValueError("it is larger than 16 MiB")
        details = json.loads(path.read_bytes())["details"]
        if not isinstance(details, dict):
            raise TypeError("its details are no object")
    except FileNotFoundError:
        problems.append("verdict.json is not there: only the journal's reasons are shown")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        problems.append(f"verdict.json can't be read ({error}): the journal's reasons are shown")
    else:
        return details
    return None


def _trace(path: Path, problems: list[str]) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(0, 2)
            start = max(stream.tell() - _TRACE, 0)
            stream.seek(start)
            text = stream.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        problems.append(f"failure.txt can't be read ({error.strerror})")
        return ""
    return f"… its last {_TRACE // 1024} KiB:\n{text}" if start else text


def reasons_of(missing: str | None) -> Iterator[tuple[str, str]]:
    """Split ``column: reason; …`` at the names of columns: a reason may have a semicolon."""
    parts = _starts().split(missing or "")
    yield from zip(parts[1::2], parts[2::2], strict=True)


@cache
def _starts() -> re.Pattern[str]:
    from gpucost_tui.campaign.columns import NAMES

    return re.compile(rf"(?:^|; )({'|'.join(map(re.escape, NAMES))}): ")
