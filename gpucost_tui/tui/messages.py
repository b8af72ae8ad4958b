"""What threads tell the event loop. Small, immutable, and coalescing where only the last counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.message import Message

if TYPE_CHECKING:
    from gpucost_tui.tui.context import Snapshot
    from gpucost_tui.tui.work import Work


class StateChanged(Message):
    """The campaign in front is not what it was."""

    bubble = False

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, StateChanged)


class WorkProgressed(Message):
    """Work got further. ``done`` of ``total``, where both are known."""

    bubble = False

    def __init__(self, work: Work, text: str, done: int | None, total: int | None) -> None:
        super().__init__()
        self.work, self.text, self.done, self.total = work, text, done, total

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, WorkProgressed) and message.work is self.work


class WorkEnded(Message):
    """Work finished with a value, failed with a sentence, or was cancelled (neither)."""

    bubble = False

    def __init__(
        self, work: Work, value: Any = None, failure: str | None = None, cancelled: bool = False
    ) -> None:
        super().__init__()
        self.work, self.value, self.failure, self.cancelled = work, value, failure, cancelled
