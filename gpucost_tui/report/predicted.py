"""What was predicted: quality with its interval, and where variants differ (R27)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpucost_tui.analysis.predicted import Flips, Key, Quality
from gpucost_tui.report.blocks import Block, Bullets, Heading, Paragraph, Strong, Table, Text
from gpucost_tui.report.gather import Facts
from gpucost_tui.text import clean, count

#: Identifiers of flipped entries that a note names; `compare --json` has more of them.
_NAMED = 20
_NONE = "-"


def predicted_blocks(facts: Facts) -> Iterator[Block]:
    """Yield quality by variant, and the entries that variants predicted differently."""
    if not facts.qualities and not facts.flips:
        return
    yield Heading(2, "Predictions")
    sealed = facts.together.protocol.quality.interval == "lower-bound"
    use = "its lower end must reach the minimum too" if sealed else "it decides nothing"
    yield Paragraph(
        "The interval tells how far the figure hangs on which entries the corpus has, and nothing "
        f"of other data; by the seal, {use}."
    )
    if facts.qualities:
        headers = ["variant", "quality", "lowest", "highest", "interval of the lowest"]
        rows = [_quality(one) for one in facts.qualities]
        yield Table(headers, rows, right=frozenset({2, 3}))
    if facts.flips:
        yield Paragraph("Entries predicted differently, by the first sound attempt of each:")
        yield Bullets([_flips(one) for one in facts.flips])


def interval_words(interval: Mapping[str, Any] | None) -> str:
    """Return an interval in words, or a dash."""
    if interval is None:
        return _NONE
    low, high, level = interval["low"], interval["high"], interval["level"]
    return f"{low:.4f} to {high:.4f} ({100 * level:g} %, {interval['method']})"


def _quality(one: Quality) -> list[Text]:
    name = f"{one.key[0]}{_place(one.key)}"
    figures = (f"{one.low:.4f}", f"{one.high:.4f}")
    return [name, one.metric or _NONE, *figures, interval_words(one.interval)]


def _flips(one: Flips) -> Text:
    a, b = one.pair.names
    group = one.pair.a
    host = None if one.pair.between_hosts else group.host
    place = _place((group.variant, group.deliverable, group.seed, host))
    if one.flips is None:
        return (Strong(f"{a} and {b}{place}: not compared. "), f"{one.why}.")
    said = f"{one.flips:,} of {count(one.entries or 0, 'entry', 'entries')}"
    which = f"Attempts {one.attempts[0]} and {one.attempts[1]}."
    named = ", ".join(clean(name, limit=80) for name in one.ids[:_NAMED])
    more = f" and {one.flips - _NAMED:,} more" if one.flips > _NAMED else ""
    ids = f" Their ids: {named}{more}." if named else ""
    return (Strong(f"{a} and {b}{place}: {said}. "), f"{which}{ids}")


def _place(key: Key) -> str:
    words = zip(("deliverable", "seed", "host"), key[1:], strict=True)
    return "".join(f", {word} {value}" for word, value in words if value is not None)
