"""The campaign in front: a thread looks at its files and posts snapshots of what changed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost_tui.errors import GpucostError
from gpucost_tui.text import clean
from gpucost_tui.tui.messages import StateChanged
from gpucost_tui.tui.work import program_error

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from gpucost_tui.campaign.fold import State
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.protocol.model import Protocol

#: Seconds between looks. Repainting while a pass is measured costs it time, so not faster.
EVERY_S = 1.0

Version = tuple[int, int] | None  # modification time in ns, and size; None: there is no such file


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known of the campaign in front. Never changed; a new one takes its place.

    ``folder`` None: no campaign is open. ``status`` None with a folder: not read yet, or
    ``problem`` says why it can't be.
    """

    folder: Path | None = None
    status: dict[str, Any] | None = None
    progress: dict[str, Any] | None = None
    state: State | None = None
    protocol: Protocol | None = None
    problem: str | None = None
    versions: dict[str, Version] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The campaign's name, cleaned; its folder's while the protocol is not read."""
        if self.protocol is not None:
            return clean(self.protocol.name, limit=200)
        return clean(self.folder.name, limit=200) if self.folder else ""

    @property
    def word(self) -> str | None:
        """The state: draft, sealed, running, paused, idle, finished, damaged, or none yet."""
        if self.status is not None:
            return str(self.status["state"])
        return "damaged" if self.problem else None

    @property
    def sealed(self) -> bool:
        return self.versions.get("manifest") is not None


class CampaignContext:
    """Looks at one folder at a time, in one daemon thread, for as long as the app lives."""

    def __init__(self, owner: MessagePump) -> None:
        self._owner = owner
        self._wake = threading.Event()
        self._ended = False
        self._folder: Path | None = None
        self._forced = True
        self._thread: threading.Thread | None = None

    @property
    def folder(self) -> Path | None:
        return self._folder

    def start(self) -> None:
        """Begin to look; called after the first paint."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gpucost-watch", daemon=True)
            self._thread.start()

    def open(self, folder: Path | None) -> None:
        """Look at another folder from now on."""
        self._folder = folder
        self.nudge()

    def nudge(self) -> None:
        """Look at once, and tell even if nothing seems to have changed."""
        self._forced = True
        self._wake.set()

    def close(self) -> None:
        self._ended = True
        self._wake.set()

    def _run(self) -> None:
        looker: _Looker | None = None
        while not self._ended:
            folder, forced = self._folder, self._forced
            self._forced = False
            if folder is not None:
                if looker is None or looker.folder != folder:
                    looker = _Looker(folder)
                snapshot = looker.look(forced)
                if snapshot is not None and folder == self._folder:
                    self._owner.post_message(StateChanged(snapshot))
            self._wake.wait(EVERY_S)
            self._wake.clear()


class _Looker:
    """Reads a campaign's files again only when they changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._before: object = None
        self._journal: tuple[object, State] | None = None
        self._protocol: tuple[object, Protocol | None] | None = None

    def look(self, forced: bool) -> Snapshot | None:
        """Return a snapshot, or None when nothing changed since the last look."""
        try:
            versions = {
                name: _version(self.folder / file)
                for name, file in (
                    ("protocol", "protocol.toml"),
                    ("manifest", "manifest.json"),
                    ("journal", "journal.jsonl"),
                    ("progress", "progress.json"),
                    ("lock", "runner.lock"),
                )
            }
            now = (versions, self._runner())
            if now == self._before and not forced:
                return None
            self._before = now
            return self._snapshot(versions)
        except GpucostError as error:
            return self._broken(clean(error, one_line=False))
        except Exception as error:
            return self._broken(program_error(error))

    def _broken(self, why: str) -> Snapshot:
        return Snapshot(self.folder, problem=why)

    def _runner(self) -> object:
        from gpucost_tui.campaign.lock import holder

        return holder(self.folder)

    def _snapshot(self, versions: dict[str, Version]) -> Snapshot:
        from gpucost_tui.campaign.folder import Campaign
        from gpucost_tui.campaign.progress import read_progress
        from gpucost_tui.campaign.status import status

        opened = Campaign.open(self.folder)
        campaign, state = self._folded(opened, versions)
        protocol, problem = self._read_protocol(campaign, versions)
        now = status(campaign)
        progress = read_progress(campaign.progress_file) if now["runner"] else None
        return Snapshot(self.folder, now, progress, state, protocol, problem, versions)

    def _folded(self, campaign: Campaign, versions: dict[str, Version]) -> tuple[Campaign, State]:
        """Return the campaign and its folded journal, which is read only when it grew."""
        from gpucost_tui.campaign.fold import State, fold

        if not campaign.sealed:
            return campaign, State()
        key = (versions["journal"], versions["manifest"])
        if self._journal is None or self._journal[0] != key:
            self._journal = (key, fold(campaign.events()))
        return campaign, self._journal[1]

    def _read_protocol(
        self, campaign: Campaign, versions: dict[str, Version]
    ) -> tuple[Protocol | None, str | None]:
        if campaign.sealed:
            key: object = versions["manifest"]
            if self._protocol is None or self._protocol[0] != key:
                self._protocol = (key, campaign.manifest.protocol)
            return self._protocol[1], None
        try:
            return campaign.draft()[1], None
        except GpucostError as error:
            return None, clean(error, one_line=False)


def _version(path: Path) -> Version:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
