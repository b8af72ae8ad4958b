"""What a survey found, as lines for people: the facts beside the problems."""

from __future__ import annotations

from collections.abc import Iterator

from gpucost_tui.campaign.survey import CorpusSurvey, Survey
from gpucost_tui.text import clean, count, size


def facts(found: Survey) -> Iterator[str]:
    """Yield one line per fact: corpora, strata, classes, truncation, overlap, model."""
    for one in found.corpora.values():
        yield from _corpus(one)
    if found.model is not None:
        model = found.model
        revision = f" at {model.revision[:12]}" if model.revision else ""
        yield (
            f"Model {clean(model.name, limit=80)}{revision}: "
            f"{size(sum(f.bytes for f in model.files))}, {model.sha256[:16]}…"
        )


def _corpus(one: CorpusSurvey) -> Iterator[str]:
    yield (
        f"Corpus '{clean(one.deliverable)}': {count(one.entries, 'entry', 'entries')}, "
        f"{size(one.bytes)}, {one.sha256[:16]}…"
    )
    if one.summary is not None:
        for row in one.summary.iter_rows(named=True):
            name = clean(row["stratum"] or "all lengths")
            yield (
                f"  {name}: {count(row['entries'], 'entry', 'entries')}, "
                f"{row['min_tokens'] or 0} to {row['max_tokens'] or 0} tokens"
            )
    for length, entries in one.truncated.items():
        yield f"  truncated at {length} tokens: {count(entries, 'entry', 'entries')}"
    if one.classes is not None:
        shares = (f"{clean(k, limit=30)} {v}" for k, v in one.classes.overall.items())
        yield f"  classes: {', '.join(list(shares)[:12])}"
    if one.overlap is not None and not one.overlap:
        yield "  shares no id and no text with the tuning data"
