"""What a survey found, as lines for people: the facts beside the problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpucost_tui.campaign.folder import Manifest
from gpucost_tui.campaign.survey import CorpusSurvey, Survey
from gpucost_tui.corpus.classes import Distribution
from gpucost_tui.protocol.model import Corpus
from gpucost_tui.text import clean, count, size

#: Classes that are shown by name; a corpus with more is summed up.
_CLASSES = 20


def facts(found: Survey) -> Iterator[str]:
    """Yield one line per fact: corpora, strata, classes, truncation, overlap, model."""
    if found.manifest is not None:
        yield from _sealed(found.manifest)
        return
    for one in found.corpora.values():
        yield from _corpus(one, found)
    if found.model is not None:
        bytes_ = sum(file.bytes for file in found.model.files)
        yield _model(found.model_name, found.model.revision, bytes_, found.model.sha256)


def _sealed(manifest: Manifest) -> Iterator[str]:
    yield f"Sealed: {manifest.sha256}"
    for name, one in manifest.json["corpora"].items():
        yield f"Corpus '{clean(name)}': {_entries(one['entries'])}, {one['sha256'][:16]}…"
        strata: dict[str, int] = one["strata"]
        for stratum in [s.name for s in manifest.protocol.corpus.strata] or strata:
            yield f"  {clean(stratum)}: {_entries(strata[stratum])}"
        yield from _truncated(one["truncated"])
    model: dict[str, Any] = manifest.json["model"]
    bytes_ = sum(file["bytes"] for file in model["files"])
    yield _model(model["name"], model["revision"], bytes_, model["sha256"])


def _corpus(one: CorpusSurvey, found: Survey) -> Iterator[str]:
    yield (
        f"Corpus '{clean(one.deliverable)}': {_entries(one.entries)}, {size(one.bytes)}, "
        f"{one.sha256[:16]}…"
    )
    if one.summary is not None:
        for row in one.summary.iter_rows(named=True):
            name = clean(row["stratum"] or "all lengths")
            length = (
                f", {row['min_tokens']} to {row['max_tokens']} tokens" if row["entries"] else ""
            )
            yield f"  {name}: {_entries(row['entries'])}{length}"
    yield from _truncated(one.truncated)
    if one.classes is not None and found.protocol is not None:
        yield from _classes(one.classes, found.protocol.corpus)
    if one.overlap is not None and not one.overlap:
        yield "  shares no id and no text with the tuning data"


def _classes(classes: Distribution, declared: Corpus) -> Iterator[str]:
    """Yield each class's share of the source, the corpus and every stratum (R12)."""
    source = declared.source_distribution
    yield f"  {count(len(classes.overall), 'class', 'classes')}:"
    for label in list(classes.overall)[:_CLASSES]:
        shares = [f"{_share(label, classes.overall)} of the corpus"]
        if label in source:
            shares.append(f"{source[label]:.1%} of the source")
        for stratum in (s.name for s in declared.strata if s.name in classes.strata):
            shares.append(f"{_share(label, classes.strata[stratum])} of {clean(stratum)}")
        yield f"    {clean(label, limit=40)}: {', '.join(shares)}"
    if len(classes.overall) > _CLASSES:
        yield f"    and {len(classes.overall) - _CLASSES:,} more"


def _share(label: str, counts: Mapping[str, int]) -> str:
    return f"{counts.get(label, 0) / sum(counts.values()):.1%}"


def _truncated(lengths: Mapping[Any, int]) -> Iterator[str]:
    for length, entries in lengths.items():
        yield f"  truncated at {length} tokens: {_entries(entries)}"


def _model(name: str, revision: str | None, bytes_: int, sha256: str) -> str:
    at = f" at {revision[:12]}" if revision else ""
    return f"Model {clean(name, limit=80)}{at}: {size(bytes_)}, {sha256[:16]}…"


def _entries(number: int) -> str:
    return count(number, "entry", "entries")
