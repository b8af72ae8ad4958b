"""What a survey finds of one deliverable's corpus: its texts, lengths, classes and answers.

Reading is streaming; each stage goes past a watch, which may end it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gpucost_tui.campaign.fingerprints import columns_sha256
from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.corpus.answers import answers_for, read_answers
from gpucost_tui.corpus.classes import Distribution, class_distribution, deviations
from gpucost_tui.corpus.fingerprint import Fingerprint, answers_fingerprint
from gpucost_tui.corpus.overlap import Overlap, overlap
from gpucost_tui.corpus.read import read_entries, read_tuning
from gpucost_tui.corpus.store import sealed_frame
from gpucost_tui.corpus.tokens import load_tokenizer, strata_frame, strata_summary, truncated
from gpucost_tui.errors import GpucostError
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.protocol.problem import Problem
from gpucost_tui.text import clean, count, listed
from gpucost_tui.watch import Watch

if TYPE_CHECKING:
    from gpucost_tui.campaign.survey import Survey


@dataclass(slots=True)
class CorpusSurvey:
    """What is known of one deliverable's corpus. Fields are None where a problem stands instead."""

    deliverable: str
    entries: int
    sha256: str
    bytes: int
    columns: dict[str, str]  # sealed columns: name -> fingerprint over (id, value)
    strata: pl.DataFrame | None = None  # id, tokens, stratum
    summary: pl.DataFrame | None = None
    truncated: dict[int, int] = field(default_factory=dict)  # max_length -> entries
    classes: Distribution | None = None
    overlap: Overlap | None = None
    reference: dict[str, Any] | None = None
    answers: pl.DataFrame | None = None


def survey_corpus(
    found: Survey, campaign: Campaign, protocol: Protocol, deliverable: str, watch: Watch
) -> None:
    """Look at one deliverable's corpus, and add it and its problems to what was found."""
    path = campaign.corpus_file(deliverable)
    where = f"corpus '{deliverable}'"
    print_, entries = Fingerprint(), 0
    try:
        watch.stage(f"Reading {where}")
        for entry in watch.each(read_entries([path])):
            print_.update(entry.id, entry.text)
            entries += 1
    except GpucostError as error:
        found.add(where, error)
        return
    size = path.stat().st_size
    one = CorpusSurvey(deliverable, entries, print_.hexdigest(), size, {})
    _within(found, protocol, deliverable, entries)
    found.corpora[deliverable] = one
    _overlap(found, campaign, one, path, watch)
    _strata(found, protocol, one, path, watch)
    _columns(found, protocol, one, path, watch)
    _reference(found, campaign, protocol, one, path, watch)


def sealed_corpus(
    campaign: Campaign, manifest: Manifest, deliverable: str, watch: Watch
) -> CorpusSurvey:
    """Return what was sealed of one deliverable's corpus, its lengths and classes as far as its
    files can be read: whether they are what was sealed is another question."""
    sealed, protocol = manifest.corpus(deliverable), manifest.protocol
    path = campaign.corpus_file(deliverable)
    one = CorpusSurvey(
        deliverable,
        sealed["entries"],
        sealed["sha256"],
        path.stat().st_size if path.is_file() else 0,
        dict(sealed["columns"]),
        truncated={int(length): entries for length, entries in sealed["truncated"].items()},
        # A corpus that shares anything with its tuning data is not sealed (R6).
        overlap=Overlap(0, 0, (), ()) if manifest.json["tuning"].get("sha256") else None,
        reference=sealed["reference"],
    )
    with contextlib.suppress(OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        strata = pl.read_parquet(campaign.strata_file(deliverable))
        one.summary = strata_summary(strata, protocol.corpus.strata)
        one.strata = strata
    label = protocol.corpus.label_column
    if label is not None:
        watch.stage(f"Reading the classes of corpus '{deliverable}'", one.entries)
        with contextlib.suppress(GpucostError):
            frame = sealed_frame(path, columns=["id", label], watch=watch)
            if one.strata is not None and one.strata.height == frame.height:
                frame = frame.with_columns(one.strata["stratum"])
            one.classes = class_distribution(frame, label)
    return one


def _within(found: Survey, protocol: Protocol, deliverable: str, entries: int) -> None:
    metric = protocol.quality.metric
    most = found.task.most_entries(metric) if found.task else None
    if most is not None and entries > most and found.source is not None:
        what = (
            f"{metric} compares every pair of entries and is computed for at most {most:,}; "
            f"'{clean(deliverable)}' has {entries:,}"
        )
        fix = "Take mean_cosine, or give the corpus as several deliverables"
        found.problems.append(Problem(found.source.where("quality", "metric"), what, fix))


def _overlap(
    found: Survey, campaign: Campaign, one: CorpusSurvey, path: Path, watch: Watch
) -> None:
    if found.tuning is None:
        return
    where = f"corpus '{one.deliverable}'"
    watch.stage(f"Comparing {where} with the tuning data", one.entries + found.tuning["rows"])
    tuning = watch.each(read_tuning([campaign.tuning_file]))
    one.overlap = overlap(watch.each(read_entries([path])), tuning)
    try:
        one.overlap.refuse(where=where)
    except GpucostError as error:
        found.add(where, error)


def _strata(found: Survey, protocol: Protocol, one: CorpusSurvey, path: Path, watch: Watch) -> None:
    if found.model is None:
        return
    where = f"corpus '{one.deliverable}'"
    watch.stage(f"Counting the tokens of {where}", one.entries)
    try:
        tokenizer = load_tokenizer(found.model.folder)
        entries = watch.each(read_entries([path]))
        one.strata = strata_frame(tokenizer, entries, protocol.corpus.strata)
    except GpucostError as error:
        found.add(where, error)
        return
    one.summary = strata_summary(one.strata, protocol.corpus.strata)
    lengths = {protocol.execution.max_length}
    lengths |= {
        changes["max_length"]
        for changes in protocol.variants.values()
        if isinstance(changes.get("max_length"), int)
    }
    one.truncated = {length: truncated(one.strata, length) for length in sorted(lengths)}
    off = [
        f"'{row['stratum']}' has {count(row['entries'], 'entry', 'entries')}, "
        f"{row['expected_entries']:,} are declared"
        for row in one.summary.iter_rows(named=True)
        if row["expected_entries"] not in (None, row["entries"])
    ]
    if off:
        what = f"stratum {'; '.join(off)} (R12)"
        fix = "Correct `entries` in [[corpus.strata]] or leave it out, or correct the corpus"
        found.problems.append(Problem(where, what, fix, blocking=False))


def _columns(
    found: Survey, protocol: Protocol, one: CorpusSurvey, path: Path, watch: Watch
) -> None:
    """Fingerprint the columns that the protocol uses, and look at the classes (R12)."""
    used = [protocol.corpus.label_column, protocol.reference.column]
    used += [group.column for group in protocol.quality.subgroups if group.column != "stratum"]
    # Columns with a meaning of their own are refused by the rules.
    own = (None, "id", "text")
    names = [name for name in dict.fromkeys(used) if name is not None and name not in own]
    where = f"corpus '{one.deliverable}'"
    watch.stage(f"Reading the columns of {where}", one.entries)
    try:
        frame = sealed_frame(path, columns=["id", *names], watch=watch)
    except GpucostError as error:
        found.add(where, error)
        return
    one.columns = columns_sha256(frame, names, watch)
    if protocol.corpus.label_column not in names:
        return
    if one.strata is not None:
        frame = frame.with_columns(one.strata["stratum"])
    try:
        one.classes = class_distribution(frame, str(protocol.corpus.label_column))
    except GpucostError as error:
        found.add(where, error)
        return
    source, limit = protocol.corpus.source_distribution, protocol.corpus.max_class_deviation
    for deviation in deviations(one.classes, source, limit):
        what = f"{deviation}: more than the declared limit of {limit:.1%} (R12)"
        fix = "Correct the corpus or the declared source, or let the note say it"
        found.problems.append(Problem(where, what, fix, blocking=False))


def _reference(
    found: Survey,
    campaign: Campaign,
    protocol: Protocol,
    one: CorpusSurvey,
    path: Path,
    watch: Watch,
) -> None:
    """Take the answers from the column named or the file given; they must fit the corpus (R27)."""
    if protocol.reference.kind == "variant":
        one.reference = {"variant": protocol.reference.variant}
        return
    where = f"reference '{one.deliverable}'"
    given = campaign.reference_file(one.deliverable)
    column = protocol.reference.column
    if column is not None:
        sources, answer_column = [path], column
    elif given.is_file():
        sources, answer_column = [given], "answer"
    else:
        what = "there are no answers to hold predictions against (R27)"
        fix = "Name their column in [reference] column, or make the campaign with --reference"
        found.problems.append(Problem(where, what, fix))
        return
    about = f"the answers for corpus '{one.deliverable}'"
    try:
        watch.stage(f"Reading the ids of corpus '{one.deliverable}'", one.entries)
        ids = sealed_frame(path, columns=["id"], watch=watch)["id"]
        watch.stage(f"Reading {about}", one.entries)
        read = watch.each(read_answers(sources, answer_column=answer_column))
        answers = answers_for(ids, read, where=sources[0].name)
    except GpucostError as error:
        found.add(where, error)
        return
    one.answers = answers
    watch.stage(f"Taking the fingerprint of {about}", answers.height)
    pairs = watch.each(answers.select("id", "answer").iter_rows())
    one.reference = {"entries": answers.height, "sha256": answers_fingerprint(pairs)}
    if _fit_task(found, answers, where):
        _labels(found, protocol, answers, where)


def _fit_task(found: Survey, answers: pl.DataFrame, where: str) -> bool:
    """Labels are no vectors: no prediction could be compared with such an answer."""
    if found.task is None:
        return True
    predicted = found.task.columns_schema()["prediction"]
    if (predicted == pl.String) == (answers.schema["answer"] == pl.String):
        return True
    given, wanted = "labels", "vectors"
    if predicted == pl.String:
        given, wanted = wanted, given
    what = f"the answers are {given}, and {found.task.name} predicts {wanted}"
    found.problems.append(Problem(where, what, f"Give {wanted}, or correct the task's name"))
    return False


def _labels(found: Survey, protocol: Protocol, answers: pl.DataFrame, where: str) -> None:
    """Answers that no prediction can equal fail every variant: say so before the seal."""
    labels = found.model_facts.labels if found.model_facts is not None else None
    if labels is None or answers.schema["answer"] != pl.String:
        return
    mapped = answers["answer"].replace(protocol.reference.label_map)
    unknown = sorted(set(mapped.unique()) - set(labels))
    if unknown:
        entries = int(mapped.is_in(unknown).sum())
        found.problems.append(
            Problem(
                where,
                f"answers that the model has no label for ({count(entries, 'entry', 'entries')}): "
                f"{listed(unknown, limit=8)}; its labels: {listed(list(labels), limit=8)}",
                "Map them in [reference] label_map, or use the model that has these labels",
                blocking=len(unknown) == mapped.n_unique(),
            )
        )
