"""Which campaigns there are: in a folder, and opened recently. Read in a thread."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucost_tui.errors import GpucostError
from gpucost_tui.text import clean
from gpucost_tui.tui.work import Work, program_error

#: More rows than this are no list to choose from.
MOST = 500
_FILES = ("protocol.toml", "manifest.json", "journal.jsonl", "runner.lock")


@dataclass(frozen=True, slots=True)
class Listed:
    """One campaign as Home shows it; its texts are as written."""

    folder: Path
    here: bool
    state: str
    name: str = ""
    question: str = ""
    done: int = 0
    slots: int = 0
    verdict: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """What was found. ``more``: campaigns beyond :data:`MOST`; ``problem``: why none is seen."""

    rows: tuple[Listed, ...] = ()
    more: int = 0
    problem: str = ""


class Lister:
    """Keeps what it read, so that a second look reads only what changed."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[object, Listed]] = {}

    def list(self, work: Work, here: Path, recent: Sequence[str]) -> Listing:
        """Return the campaigns in ``here``, the latest first, then recent ones elsewhere."""
        found, problem = campaigns_in(here)
        known = {folder.resolve() for folder in found}
        others = [Path(r) for r in recent if Path(r) not in known and is_campaign(Path(r))]
        folders = [*found, *others]
        rows = []
        for number, folder in enumerate(folders[:MOST]):
            work.report("Looking at campaigns", number, len(folders))
            rows.append(self._row(folder, number < len(found)))
        return Listing(tuple(rows), max(len(folders) - MOST, 0), problem)

    def _row(self, folder: Path, here: bool) -> Listed:
        from gpucost_tui.campaign.lock import holder

        key = (here, holder(folder), *(_touched(folder / name) for name in _FILES))
        kept = self._kept.get(folder)
        if kept is None or kept[0] != key:
            kept = self._kept[folder] = (key, describe(folder, here))
        return kept[1]


def campaigns_in(here: Path) -> tuple[list[Path], str]:
    """Return the campaigns in a folder (itself, or its children), and why it can't be read."""
    try:
        with os.scandir(here) as entries:
            folders = [Path(e.path) for e in entries if not e.name.startswith(".") and e.is_dir()]
    except OSError as error:
        return [], f"{clean(here)} can't be read ({error.strerror})"
    found = [here] if is_campaign(here) else []
    found += [folder for folder in folders if is_campaign(folder)]
    return sorted(found, key=lambda folder: (-(_touched(folder) or 0), folder.name)), ""


def is_campaign(folder: Path) -> bool:
    try:
        return any((folder / name).is_file() for name in _FILES[:2])
    except (OSError, ValueError):
        return False


def _touched(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def describe(folder: Path, here: bool) -> Listed:
    """Read one campaign; what can't be read is a row that says why."""
    try:
        return _described(folder, here)
    except GpucostError as error:
        return Listed(folder, here, "damaged", folder.name, problem=str(error))
    except Exception as error:
        return Listed(folder, here, "damaged", folder.name, problem=program_error(error))


def _described(folder: Path, here: bool) -> Listed:
    from gpucost_tui.campaign.fold import fold
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.status import status

    campaign = Campaign.open(folder)
    now = status(campaign)
    problem = ""
    try:
        protocol = campaign.manifest.protocol if campaign.sealed else campaign.draft()[1]
        name, question = protocol.name, protocol.decision.question
    except GpucostError as error:
        name, question, problem = folder.name, "", str(error)
    rows: list[dict[str, Any]] = []
    if campaign.sealed:
        rows = [a.row for _, a in sorted(fold(campaign.events()).attempts.items())]
    return Listed(
        folder,
        here,
        now["state"],
        name,
        question,
        now["done"],
        now["done"] + now["open"],
        _verdict(rows),
        problem,
    )


def _verdict(rows: list[dict[str, Any]]) -> str:
    """Return the verdict of the last attempt that has one, or how the last one failed."""
    for row in reversed(rows):
        if row["status"] == "failed":
            return f"✗ failed ({row['failure']})"
        if row["status"] == "completed" and row["corpus_accepted"] is not None:
            return "✓ accepted" if row["corpus_accepted"] else "✗ rejected"
    return ""
