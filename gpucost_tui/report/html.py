"""Shows a document as one HTML page: nothing is loaded, nothing runs, outside text is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterator

from gpucost_tui.report.blocks import (
    Block,
    Bullets,
    Code,
    Document,
    Heading,
    Inline,
    Paragraph,
    Plot,
    Strong,
    Table,
    Text,
    inlines,
)
from gpucost_tui.report.svg import svg
from gpucost_tui.text import clean

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
"""
_TAIL = "</main>\n</body>\n</html>\n"
_STYLE = """\
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #5a6472;
  --line: #d5dae1; --shade: #f4f6f8; --mark: #7a4b00; --mark-back: #fff4dc; --dot: #0b6bcb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #14171b; --soft: #a3acb8;
  --line: #363d47; --shade: #1d2127; --mark: #ffd58a; --mark-back: #33280f; --dot: #6cb2ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; padding-bottom: .25rem;
  border-bottom: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 1.4rem 0 .4rem; }
p, li { max-width: 48rem; overflow-wrap: anywhere; }
.mark { background: var(--mark-back); color: var(--mark); padding: .6rem .9rem;
  border-radius: .4rem; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .87em;
  overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: .6rem 0 1.2rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: bottom; padding: .35rem .8rem .35rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; min-width: 4rem; }
td { vertical-align: top; }
th { color: var(--soft); font-weight: 600; overflow-wrap: normal; }
td.n { white-space: nowrap; overflow-wrap: normal; }
.n { text-align: right; }
figure { margin: .6rem 0 1.4rem; }
figcaption { color: var(--soft); font-size: .87rem; }
svg { display: block; width: 100%; max-width: 54rem; height: auto; }
svg text { fill: var(--ink); font: 13px system-ui, "DejaVu Sans", sans-serif; }
svg .soft { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--line); }
svg .dot { fill: var(--dot); fill-opacity: .8; }
svg .out { fill: none; stroke: var(--soft); stroke-width: 1.5; }
svg .median { stroke: var(--ink); stroke-width: 2; }
@media print {
  :root { color-scheme: light; --ink: #000; --paper: #fff; --soft: #444; --line: #bbb;
    --mark: #000; --mark-back: #eee; --dot: #0b6bcb; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  h2, h3 { break-after: avoid; }
  tr, figure, li { break-inside: avoid; }
  .wide { overflow: visible; }
  table { font-size: 8pt; }
  th, td { min-width: 0; padding-right: .4rem; }
}
"""


def page(document: Document) -> str:
    """Return a document as a page of its own."""
    head = _HEAD.format(title=escaped(document.title), style=_STYLE)
    return (
        head + "".join(line + "\n" for block in document.blocks for line in _block(block)) + _TAIL
    )


def escaped(text: object) -> str:
    """Return outside text cleaned and escaped, for an element or a quoted attribute."""
    return html.escape(clean(text), quote=True)


def _inline(piece: Inline) -> str:
    if isinstance(piece, Strong):
        return f"<strong>{escaped(piece.text)}</strong>"
    if isinstance(piece, Code):
        return f"<code>{escaped(piece.text)}</code>"
    return escaped(piece)


def _text(text: Text) -> str:
    return "".join(_inline(piece) for piece in inlines(text))


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"<h{block.level}>{escaped(block.text)}</h{block.level}>"
    elif isinstance(block, Paragraph):
        kind = ' class="mark"' if block.mark else ""
        yield f"<p{kind}>{_text(block.text)}</p>"
    elif isinstance(block, Bullets):
        yield "<ul>"
        yield from (f"<li>{_text(item)}</li>" for item in block.items)
        yield "</ul>"
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Plot):
        yield f"<figure>{svg(block)}<figcaption>{escaped(block.title)}</figcaption></figure>"


def _table(table: Table) -> Iterator[str]:
    numbers = [
        ' class="n"' if column in table.right else "" for column in range(len(table.headers))
    ]
    yield '<div class="wide"><table>'
    heads = zip(table.headers, numbers, strict=True)
    yield f"<thead><tr>{''.join(f'<th{n}>{escaped(h)}</th>' for h, n in heads)}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        cells = zip(row, numbers, strict=True)
        yield f"<tr>{''.join(f'<td{n}>{_text(cell)}</td>' for cell, n in cells)}</tr>"
    yield "</tbody></table></div>"
