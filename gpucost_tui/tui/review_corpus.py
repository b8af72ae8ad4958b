"""The review's corpus section: fingerprint, strata as a bar, classes, truncation, overlap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from gpucost_tui.text import count, size
from gpucost_tui.tui.review_text import NARROW, pair, title
from gpucost_tui.tui.safe import filled, fit, plain

if TYPE_CHECKING:
    from gpucost_tui.campaign.survey import CorpusSurvey
    from gpucost_tui.protocol.model import Protocol
    from gpucost_tui.tui.review_facts import Review

#: Fill and colour of a stratum: told apart without colour too.
_FILLS = "█▓▒░▚▞"
_COLOURS = ("$primary", "$accent", "$success", "$warning", "$secondary", "$error")
_MOST_CLASSES = 40


def corpus(review: Review, width: int) -> Iterator[Content]:
    """Yield the corpora, one after the other. ``width``: cells of a line."""
    found = review.survey
    if not found.corpora:
        yield plain("No corpus could be read: Problems says why.")
    for one in found.corpora.values():
        yield from _one(one, review.protocol, width)
    if found.tuning is not None:
        yield title("Tuning data, apart from the comparison")
        yield pair("Rows", f"{found.tuning['rows']:,}", width)
        yield pair("Fingerprint", found.tuning["sha256"], width)


def _one(one: CorpusSurvey, protocol: Protocol | None, width: int) -> Iterator[Content]:
    def fact(label: str, value: object) -> Content:
        return pair(label, value, width)

    yield filled("[b]$x[/b]", x=one.deliverable)
    yield fact("Entries", f"{one.entries:,} ({size(one.bytes)})")
    yield fact("Order", "as in the corpus")
    yield fact("Fingerprint", one.sha256)
    for name, sha256 in one.columns.items():
        yield fact(f"  {fit(name, 17)}", f"{sha256[:16]}…")
    for length, entries in one.truncated.items():
        share = entries / one.entries if one.entries else 0
        yield fact("Truncated", f"{entries:,} of {one.entries:,} at {length} tokens ({share:.1%})")
    yield fact("Tuning overlap", _overlap(one))
    yield fact("Reference", _reference(one))
    yield from _strata(one, width)
    if one.classes is not None and protocol is not None:
        yield from _classes(one, protocol, width)
    yield Content("")


def _overlap(one: CorpusSurvey) -> str:
    if one.overlap is None:
        return "no tuning data was given"
    if not one.overlap:
        return "✓ no id and no text shared"
    return f"✗ {count(one.overlap.ids, 'id')} and {count(one.overlap.texts, 'text')} shared (R6)"


def _reference(one: CorpusSurvey) -> str | None:
    reference = one.reference
    if reference is None:
        return None
    if "variant" in reference:
        return f"the untimed pass of '{reference['variant']}'"
    return f"{reference['entries']:,} answers, {reference['sha256'][:16]}…"


def _strata(one: CorpusSurvey, width: int) -> Iterator[Content]:
    if one.summary is None:
        return
    rows = list(one.summary.iter_rows(named=True))
    yield title("Strata, by the model's tokenizer")
    yield stacked([row["entries"] for row in rows], max(min(width - 2, 72), 10))
    for number, row in enumerate(rows):
        look = _COLOURS[number % 6]
        expected = row["expected_entries"]
        declared = "" if expected is None else f", {expected:,} declared"
        tokens = (
            "no entries"
            if row["min_tokens"] is None
            else f"{row['min_tokens']} to {row['max_tokens']} tokens"
        )
        share = row["entries"] / one.entries if one.entries else 0
        yield filled(
            f"[{look}]{_FILLS[number % 6] * 2}[/] $name $entries ($share), $tokens$declared",
            name=f"{fit(row['stratum'] or 'all lengths', 14):<14}",
            entries=f"{row['entries']:>7,}",
            share=f"{share:.1%}",
            tokens=tokens,
            declared=declared,
        )


def stacked(parts: list[int], width: int) -> Content:
    """Return parts of a whole as one bar; a part that is there has a cell at least."""
    total = sum(parts)
    if not total:
        return plain("(empty)")
    cells = [max(round(part / total * width), 1) if part else 0 for part in parts]
    while sum(cells) > width:
        cells[cells.index(max(cells))] -= 1
    pieces = [
        Content.styled(_FILLS[n % 6] * length, _COLOURS[n % 6]) for n, length in enumerate(cells)
    ]
    return Content("").join(pieces)


def _classes(one: CorpusSurvey, protocol: Protocol, width: int) -> Iterator[Content]:
    """Yield the classes: share in the corpus, in the declared source, in each stratum (R12)."""
    from gpucost_tui.corpus.classes import deviations

    assert one.classes is not None  # noqa: S101 - asked by the caller
    limits = protocol.corpus
    found = deviations(one.classes, limits.source_distribution, limits.max_class_deviation)
    off = {deviation.label for deviation in found if deviation.stratum is None}
    overall = one.classes.overall
    order = [stratum.name for stratum in limits.strata if stratum.name in one.classes.strata]
    label = 16 if width >= NARROW else 12
    shown = order[: max((width - label - 25) // 8, 0)]
    yield title(f"Classes; a share may be off by {limits.max_class_deviation:.1%}")
    heads = "".join(f"{fit(name, 7):>8}" for name in shown)
    head = f"  {'class':<{label}}{'entries':>8}{'share':>7}{'source':>8}{heads}"
    yield filled("[$text-muted]$x[/]", x=head)
    names = list(dict.fromkeys([*overall, *limits.source_distribution]))
    for name in names[:_MOST_CLASSES]:
        source = limits.source_distribution.get(name)
        told = "-" if source is None else f"{source:.1%}"
        columns = "".join(f"{_share(one.classes.strata[s], name):>8}" for s in shown)
        known = fit(name, label - 1)
        padded = f"{'!' if name in off else ' '} {known}{' ' * (label - cell_len(known))}"
        line = f"{padded}{overall.get(name, 0):>8,}{_share(overall, name):>7}{told:>8}{columns}"
        yield filled("[$text-warning]$line[/]" if name in off else "$line", line=line)
    if off:
        yield filled("[$text-warning]! beyond the limit[/]")
    if len(names) > _MOST_CLASSES:
        yield plain(f"and {len(names) - _MOST_CLASSES:,} more classes")


def _share(counts: Mapping[str, int], name: str) -> str:
    total = sum(counts.values())
    return f"{counts.get(name, 0) / total:.1%}" if total else "-"
