"""Shows a document as Markdown that no text from outside can steer."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from gpucost_tui.report.blocks import (
    Block,
    Bullets,
    Code,
    Document,
    Heading,
    Inline,
    Paragraph,
    Strong,
    Table,
    Text,
    inlines,
)
from gpucost_tui.text import clean

_WIDTH = 100
# Emphasis, code, links, images, HTML, entities, tables, strike-through, mathematics.
_SPECIAL = re.compile(r"([\\`*_\[\]<>&|~$#])")
# What some readers turn into links by themselves, and what begins a block at a line's start.
_LINK = re.compile(r"(?i)(?<=www)\.|:(?=//)|@|(?<=mailto):")
_BLOCK = re.compile(
    r"^(\s*)(?:([-+](?=\s|$)|-{2,}\s*$|=+\s*$|:(?=\s)|:{3,})|(\d{1,9})([.)])(?=\s|$))"
)


def markdown(document: Document) -> str:
    """Return a document as Markdown; plots are left to the HTML page."""
    return "\n".join(line for block in document.blocks for line in _block(block)).strip() + "\n"


def escaped(text: object) -> str:
    """Return outside text cleaned, with everything escaped that Markdown would obey."""
    plain = _SPECIAL.sub(r"\\\1", clean(text))
    return _LINK.sub(lambda found: "\\" + found.group(), plain)


def _harmless(found: re.Match[str]) -> str:
    if found.group(2):
        return f"{found.group(1)}\\{found.group(2)}"
    return f"{found.group(1)}{found.group(3)}\\{found.group(4)}"


def _inline(piece: Inline) -> str:
    if isinstance(piece, Strong):
        # Emphasis ends only after a word: the space around it stays outside.
        inner = piece.text.strip()
        # One space, whatever it was: a tab at a line's start would make the line a block of code.
        before = " " if piece.text[:1].isspace() else ""
        after = " " if piece.text[-1:].isspace() else ""
        return f"{before}**{escaped(inner)}**{after}" if inner else before
    if isinstance(piece, Code):
        # A code span ends at its backticks whatever is escaped: none may be in it.
        return f"`{clean(piece.text).replace('`', chr(39))}`"
    return escaped(piece)


def _text(text: Text) -> str:
    return "".join(_inline(piece) for piece in inlines(text))


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield from (f"{'#' * block.level} {escaped(block.text)}", "")
    elif isinstance(block, Paragraph):
        lines = _wrapped(_text(block.text))
        yield from ([f"> {line}" for line in lines] if block.mark else lines)
        yield ""
    elif isinstance(block, Bullets):
        for item in block.items:
            first, *rest = _wrapped(_text(item), _WIDTH - 2) or [""]
            yield from (f"- {first}", *(f"  {line}" for line in rest))
        yield ""
    elif isinstance(block, Table):
        yield from _table(block)
        yield ""


def _wrapped(text: str, width: int = _WIDTH) -> list[str]:
    """Wrap at spaces. What would begin a block at a line's start is kept from it."""
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [_BLOCK.sub(_harmless, line) for line in lines]


def _table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(escaped(head) for head in table.headers)} |"
    marks = ("---:" if column in table.right else "---" for column in range(len(table.headers)))
    yield f"| {' | '.join(marks)} |"
    for row in table.rows:
        # In a table a bar ends a cell even in code.
        cells = (_text(cell).replace("\\|", "&#124;") for cell in row)
        yield f"| {' | '.join(cells)} |"
