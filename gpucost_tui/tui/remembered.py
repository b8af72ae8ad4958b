"""What the app remembers between two starts: theme, campaigns opened last, the place of each."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gpucost_tui.files import write_atomic

_MOST = 20


@dataclass(slots=True)
class Remembered:
    """``recent``: folders with the place they were left at, the latest first."""

    theme: str = ""
    recent: list[tuple[str, str]] = field(default_factory=list)

    def opened(self, folder: Path, place: str) -> None:
        """Put a campaign in front, with the place where it is shown."""
        key = str(folder.resolve())
        rest = [entry for entry in self.recent if entry[0] != key]
        self.recent = [(key, place), *rest][:_MOST]

    def place_of(self, folder: Path) -> str | None:
        return dict(self.recent).get(str(folder.resolve()))


def state_file() -> Path:
    """Return where it is kept; ``GPUCOST_STATE_HOME`` names another folder."""
    home = os.environ.get("GPUCOST_STATE_HOME")
    if home:
        return Path(home) / "app.json"
    import platformdirs

    return Path(platformdirs.user_state_dir("gpucost-tui", appauthor=False)) / "app.json"


def recall() -> Remembered:
    """Read it; a missing or spoiled file is an empty memory."""
    try:
        value = json.loads(state_file().read_bytes())
        recent = [(str(folder), str(place)) for folder, place in value["recent"]]
        return Remembered(str(value["theme"]), recent[:_MOST])
    except (OSError, ValueError, KeyError, TypeError):
        return Remembered()


def remember(value: Remembered) -> str | None:
    """Write it; return why it can't be, if so: no reason to disturb the work on a campaign."""
    path = state_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps(asdict(value), ensure_ascii=True).encode(), sync=False)
    except OSError as error:
        return error.strerror or type(error).__name__
    return None
