"""Looks at everything that a seal would freeze, and gathers what stands in its way.

`check` shows the problems, the review screen the facts, `seal` freezes them when no problem blocks.
Reading the corpora is streaming; token counts come from ``tokenizers`` alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.conditions import check_causes
from gpucost_tui.campaign.fingerprints import columns_sha256, tuning_facts
from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.relaxed import relaxations
from gpucost_tui.campaign.window import check_tasks
from gpucost_tui.corpus.answers import answers_for, read_answers
from gpucost_tui.corpus.classes import Distribution, class_distribution, deviations
from gpucost_tui.corpus.fingerprint import Fingerprint, answers_fingerprint
from gpucost_tui.corpus.overlap import Overlap, overlap
from gpucost_tui.corpus.read import read_entries, read_tuning
from gpucost_tui.corpus.store import sealed_frame
from gpucost_tui.corpus.tokens import load_tokenizer, strata_frame, strata_summary, truncated
from gpucost_tui.errors import GpucostError
from gpucost_tui.models import facts as model_facts
from gpucost_tui.models.facts import ModelFacts
from gpucost_tui.models.source import ResolvedModel, resolve
from gpucost_tui.protocol.load import Source
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.protocol.problem import Problem, ProtocolError
from gpucost_tui.protocol.rules import problems as rule_problems
from gpucost_tui.tasks.base import Task
from gpucost_tui.tasks.registry import create
from gpucost_tui.text import clean, count, listed


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


@dataclass(slots=True)
class Survey:
    """All that was found.

    ``protocol`` is None when the file is no protocol. Of a sealed campaign there are ``manifest``
    and ``protocol``, and the fields that only a draft needs stay empty.
    """

    manifest: Manifest | None = None
    source: Source | None = None
    protocol: Protocol | None = None
    task: Task | None = None
    model: ResolvedModel | None = None
    model_facts: ModelFacts | None = None
    corpora: dict[str, CorpusSurvey] = field(default_factory=dict)
    tuning: dict[str, Any] | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def model_name(self) -> str:
        """How tables call the model: as the protocol says, else its id, else by its content."""
        assert self.model is not None  # noqa: S101 - asked where the model was found
        named = self.protocol.model.name if self.protocol else None
        return named or default_name(self.model, self.model_facts)

    @property
    def blocking(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.blocking]

    def add(self, where: str, error: GpucostError, *, blocking: bool = True) -> None:
        place = f"{where}, {error.where}" if error.where and where not in error.where else where
        self.problems.append(Problem(place, error.what, error.fix or "Correct it", blocking))


def survey(campaign: Campaign) -> Survey:
    """Look at a campaign that is not sealed yet. Problems are gathered, not raised."""
    found = Survey()
    try:
        found.source, found.protocol = campaign.draft()
    except ProtocolError as error:
        found.problems.extend(error.problems)
        return found
    except GpucostError as error:
        found.add("protocol.toml", error)
        return found
    found.problems.extend(rule_problems(found.protocol, found.source))
    found.problems.extend(check_tasks(found.protocol, found.source))
    found.problems.extend(check_causes(found.protocol, found.source))
    _task(found, found.protocol, found.source)
    _model(found, found.protocol, found.source)
    _tuning(found, campaign, found.protocol, found.source)
    for deliverable in found.protocol.deliverables:
        _corpus(found, campaign, found.protocol, deliverable.name)
    prints = {name: one.sha256 for name, one in found.corpora.items()}
    found.problems.extend(relaxations(campaign, found.protocol, found.source, prints))
    return found


def default_name(model: ResolvedModel, facts: ModelFacts | None) -> str:
    """Return a name for a model that the protocol gives none.

    A folder's own name says where it lies, which is no part of a manifest: two machines would seal
    two campaigns. What its files say is the same everywhere.
    """
    if model.kind != "folder":
        return model.name
    kind = (facts.model_type or facts.architecture if facts else None) or "model"
    return f"{kind}-{model.sha256[:8]}"


def _task(found: Survey, protocol: Protocol, source: Source) -> None:
    try:
        found.task = create(protocol.task)
    except GpucostError as error:
        place = source.where(*(error.where or "task").split(".", 1))
        found.problems.append(Problem(place, error.what, error.fix or "Correct it"))
        return
    quality = protocol.quality
    if quality.metric not in found.task.metrics:
        what = f"'{clean(quality.metric)}' is no metric of {found.task.name}"
        fix = f"Known: {', '.join(found.task.metrics)}"
        found.problems.append(Problem(source.where("quality", "metric"), what, fix))
    elif quality.interval == "lower-bound" and quality.metric not in found.task.with_interval:
        what = f"no confidence interval is known for {quality.metric}: it has no lower end"
        fix = f"Known for: {', '.join(found.task.with_interval)}; or write interval = 'shown'"
        found.problems.append(Problem(source.where("quality", "interval"), what, fix))
    _reachable(found, source, ("quality", "threshold"), quality.threshold)
    for number, group in enumerate(quality.subgroups):
        path = ("quality", "subgroups", number, "threshold")
        _reachable(found, source, path, group.threshold)


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


def _reachable(
    found: Survey, source: Source, path: tuple[str | int, ...], threshold: float
) -> None:
    assert found.task is not None  # noqa: S101 - it was just made
    most = found.task.highest
    if threshold > most:
        what = f"no corpus can reach {threshold:g}: metrics of {found.task.name} end at {most:g}"
        found.problems.append(Problem(source.where(*path), what, "Write a value that is possible"))


def _model(found: Survey, protocol: Protocol, source: Source) -> None:
    wanted, place = protocol.model.source.strip(), source.where("model", "source")
    if not wanted:
        return  # said by the rules
    try:
        found.model = resolve(
            wanted,
            allow_remote_code=protocol.model.allow_remote_code,
            allow_pickle=protocol.model.allow_pickle,
        )
        found.model_facts = model_facts.read(found.model.folder)
    except GpucostError as error:
        found.model = None
        found.add(place, error)
        return
    pinned = f"{found.model.name}@{found.model.revision}"
    if found.model.kind == "hub" and wanted != pinned:
        what = "the model's revision is not fixed: another commit would be another model (R8)"
        found.problems.append(Problem(place, what, f"Write source = '{clean(pinned)}'"))
    for note in found.model.notes:
        found.problems.append(Problem(place, clean(note), "Nothing to do", blocking=False))
    _length(found, protocol, source)


def _length(found: Survey, protocol: Protocol, source: Source) -> None:
    """A length that the model can't take, or the tokenizer can't fill, fails every pass."""
    assert found.model is not None  # noqa: S101 - it was just resolved
    try:
        least = load_tokenizer(found.model.folder).num_special_tokens_to_add(False) + 1
    except GpucostError as error:
        found.add(source.where("model", "source"), error)
        return
    most = found.model_facts.max_tokens if found.model_facts else None
    asked: list[tuple[tuple[str, ...], int]] = [(("execution",), protocol.execution.max_length)]
    for name, changes in protocol.variants.items():
        if type(changes.get("max_length")) is int:
            asked.append((("variants", name), changes["max_length"]))
    for table, length in asked:
        place = source.where(*table, "max_length")
        if most is not None and length > most:
            what = f"max_length {length:,} is more than the model's {most:,} positions"
            found.problems.append(Problem(place, what, f"Write at most {most}"))
        if 0 < length < least:
            what = f"max_length {length} leaves no token of a text beside the special ones"
            found.problems.append(Problem(place, what, f"Write at least {least}"))


def _tuning(found: Survey, campaign: Campaign, protocol: Protocol, source: Source) -> None:
    where = source.where("tuning", "declared")
    present = campaign.tuning_file.is_file()
    if protocol.tuning.declared == "none":
        if present:
            what = "the protocol states that there is no tuning data, and the campaign has some"
            found.problems.append(Problem(where, what, "Write declared = 'files'"))
        elif not (protocol.tuning.statement or "").strip():
            what = "'none' needs a statement: say that nothing was tuned for this comparison (R6)"
            found.problems.append(Problem(source.where("tuning"), what, "Add statement = …"))
        return
    if not present:
        what = "tuning data is declared and was not given (R6)"
        found.problems.append(Problem(where, what, "Make the campaign with --tuning"))
        return
    try:
        found.tuning = tuning_facts(campaign.tuning_file)
    except GpucostError as error:
        found.add("tuning", error)


def _corpus(found: Survey, campaign: Campaign, protocol: Protocol, deliverable: str) -> None:
    path = campaign.corpus_file(deliverable)
    where = f"corpus '{deliverable}'"
    print_, entries = Fingerprint(), 0
    try:
        for entry in read_entries([path]):
            print_.update(entry.id, entry.text)
            entries += 1
    except GpucostError as error:
        found.add(where, error)
        return
    size = path.stat().st_size
    one = CorpusSurvey(deliverable, entries, print_.hexdigest(), size, {})
    _within(found, protocol, deliverable, entries)
    found.corpora[deliverable] = one
    _overlap(found, campaign, one, path)
    _strata(found, protocol, one, path)
    _columns(found, campaign, protocol, one, path)
    _reference(found, campaign, protocol, one, path)


def _overlap(found: Survey, campaign: Campaign, one: CorpusSurvey, path: Path) -> None:
    if found.tuning is None:
        return
    one.overlap = overlap(read_entries([path]), read_tuning([campaign.tuning_file]))
    where = f"corpus '{one.deliverable}'"
    try:
        one.overlap.refuse(where=where)
    except GpucostError as error:
        found.add(where, error)


def _strata(found: Survey, protocol: Protocol, one: CorpusSurvey, path: Path) -> None:
    if found.model is None:
        return
    where = f"corpus '{one.deliverable}'"
    try:
        tokenizer = load_tokenizer(found.model.folder)
        one.strata = strata_frame(tokenizer, read_entries([path]), protocol.corpus.strata)
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
    found: Survey, campaign: Campaign, protocol: Protocol, one: CorpusSurvey, path: Path
) -> None:
    """Fingerprint the columns that the protocol uses, and look at the classes (R12)."""
    used = [protocol.corpus.label_column, protocol.reference.column]
    used += [group.column for group in protocol.quality.subgroups if group.column != "stratum"]
    # Columns with a meaning of their own are refused by the rules.
    own = (None, "id", "text")
    names = [name for name in dict.fromkeys(used) if name is not None and name not in own]
    where = f"corpus '{one.deliverable}'"
    try:
        frame = sealed_frame(path, columns=["id", *names])
    except GpucostError as error:
        found.add(where, error)
        return
    one.columns = columns_sha256(frame, names)
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
    found: Survey, campaign: Campaign, protocol: Protocol, one: CorpusSurvey, path: Path
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
    try:
        ids = sealed_frame(path, columns=["id"])["id"]
        answers = answers_for(
            ids, read_answers(sources, answer_column=answer_column), where=sources[0].name
        )
    except GpucostError as error:
        found.add(where, error)
        return
    one.answers = answers
    pairs = answers.select("id", "answer").iter_rows()
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
