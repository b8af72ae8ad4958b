"""A document of a few kinds of blocks, written once and shown as Markdown and as HTML.

Every text in it is plain: whatever came from outside is cleaned and escaped by the renderer, and by
nothing before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Strong:
    """Text that stands out."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A hash, a file or a command."""

    text: str


Inline = str | Strong | Code
#: One piece of text, or several in a row.
Text = Inline | Sequence[Inline]


@dataclass(frozen=True, slots=True)
class Heading:
    """``level`` 1 is the title."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """``mark``: a sentence that nobody may overlook."""

    text: Text
    mark: bool = False


@dataclass(frozen=True, slots=True)
class Bullets:
    items: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Table:
    """``right`` are the columns of numbers."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Text]]
    right: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Dot:
    """One pass on a plot. ``counted``: not excluded."""

    value_s: float
    label: str
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Plot:
    """Durations as dots, one row a variant; seconds from the left to the right.

    ``rows`` are (variant, median in seconds or None, dots).
    """

    title: str
    rows: Sequence[tuple[str, float | None, Sequence[Dot]]]


Block = Heading | Paragraph | Bullets | Table | Plot


@dataclass(slots=True)
class Document:
    """A title for the browser's tab, and blocks in order."""

    title: str
    blocks: list[Block] = field(default_factory=list)

    def add(self, *blocks: Block) -> None:
        self.blocks.extend(blocks)


def inlines(text: Text) -> list[Inline]:
    """Return a text's pieces."""
    return [text] if isinstance(text, str | Strong | Code) else list(text)
