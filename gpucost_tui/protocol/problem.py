"""A problem that `check` shows: where it is, what it is, what to do, and whether it blocks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gpucost_tui.errors import InputError
from gpucost_tui.text import count


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding. ``blocking`` ones stand in the way of sealing."""

    where: str
    what: str
    fix: str
    blocking: bool = True

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def sentence(self) -> str:
        return f"{self.where}: {self.what}. {self.fix}."


class ProtocolError(InputError):
    """A protocol that can't be read as one, with every problem found in it."""

    def __init__(self, problems: list[Problem]) -> None:
        first, *rest = problems
        more = f" (and {count(len(rest), 'more problem')})" if rest else ""
        super().__init__(first.what + more, where=first.where, fix=first.fix)
        self.problems = problems
