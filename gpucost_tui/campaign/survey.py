"""Looks at everything that a seal would freeze, and gathers what stands in its way.

`check` shows the problems, the review screen the facts, `seal` freezes them when no problem blocks.
Reading the corpora is streaming; token counts come from ``tokenizers`` alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.window import check_tasks
from gpucost_tui.corpus.answers import answers_for, read_answers
from gpucost_tui.corpus.classes import Distribution, class_distribution, deviations
from gpucost_tui.corpus.fingerprint import Fingerprint, answer_text
from gpucost_tui.corpus.overlap import Overlap, overlap
from gpucost_tui.corpus.read import read_entries, read_tuning
from gpucost_tui.corpus.store import sealed_frame, spelled
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
    """All that was found. ``protocol`` is None when the file is no protocol."""

    source: Source | None = None
    protocol: Protocol | None = None
    task: Task | None = None
    model: ResolvedModel | None = None
    model_facts: ModelFacts | None = None
    corpora: dict[str, CorpusSurvey] = field(default_factory=dict)
    tuning: dict[str, Any] | None = None
    problems: list[Problem] = field(default_factory=list)

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
    _task(found, found.protocol, found.source)
    _model(found, campaign, found.protocol, found.source)
    _tuning(found, campaign, found.protocol, found.source)
    for deliverable in found.protocol.deliverables:
        _corpus(found, campaign, found.protocol, deliverable.name)
    return found


def _task(found: Survey, protocol: Protocol, source: Source) -> None:
    try:
        found.task = create(protocol.task)
    except GpucostError as error:
        found.add(source.where("task"), error)
        return
    if protocol.quality.metric not in found.task.metrics:
        found.problems.append(
            Problem(
                source.where("quality", "metric"),
                f"'{clean(protocol.quality.metric)}' is no metric of {found.task.name}",
                f"Known: {', '.join(found.task.metrics)}",
            )
        )


def _model(found: Survey, campaign: Campaign, protocol: Protocol, source: Source) -> None:
    if not protocol.model.source.strip():
        return  # said by the rules
    try:
        found.model = resolve(
            campaign.sources().get("model", {}).get("folder") or protocol.model.source,
            allow_remote_code=protocol.model.allow_remote_code,
            allow_pickle=protocol.model.allow_pickle,
        )
        found.model_facts = model_facts.read(found.model.folder)
    except GpucostError as error:
        found.add(source.where("model", "source"), error)
        return
    _length(found, protocol, source)


def _length(found: Survey, protocol: Protocol, source: Source) -> None:
    """More positions than the model has would fail at the first long text: say so now."""
    most = found.model_facts.max_tokens if found.model_facts else None
    asked = [("execution", protocol.execution.max_length)]
    for name, changes in protocol.variants.items():
        asked.append((f"variants.{name}", changes.get("max_length", 0)))
    for table, length in asked:
        if most is not None and isinstance(length, int) and length > most:
            found.problems.append(
                Problem(
                    source.where(*table.split(".", 1), "max_length"),
                    f"max_length {length} is more than the model's {most} positions",
                    f"Write at most {most}",
                )
            )


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
    print_ = Fingerprint()
    rows = 0
    try:
        for row in read_tuning([campaign.tuning_file]):
            print_.update(row.id or "", row.text)
            rows += 1
    except GpucostError as error:
        found.add("tuning", error)
        return
    found.tuning = {"rows": rows, "sha256": print_.hexdigest()}


def _corpus(found: Survey, campaign: Campaign, protocol: Protocol, deliverable: str) -> None:
    path = campaign.corpus_file(deliverable)
    where = f"corpus '{deliverable}'"
    print_, size = Fingerprint(), 0
    entries = 0
    try:
        for entry in read_entries([path]):
            print_.update(entry.id, entry.text)
            entries += 1
        size = path.stat().st_size
    except GpucostError as error:
        found.add(where, error)
        return
    one = CorpusSurvey(deliverable, entries, print_.hexdigest(), size, {})
    found.corpora[deliverable] = one
    _overlap(found, campaign, one, path)
    _strata(found, protocol, one, path)
    _columns(found, campaign, protocol, one, path)
    _reference(found, campaign, protocol, one, path)


def _overlap(found: Survey, campaign: Campaign, one: CorpusSurvey, path: Path) -> None:
    if found.tuning is None:
        return
    one.overlap = overlap(read_entries([path]), read_tuning([campaign.tuning_file]))
    try:
        one.overlap.refuse(where=f"corpus '{one.deliverable}'")
    except GpucostError as error:
        found.add(f"corpus '{one.deliverable}'", error)


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
    for row in one.summary.iter_rows(named=True):
        expected = row["expected_entries"]
        if expected is not None and expected != row["entries"]:
            found.problems.append(
                Problem(
                    where,
                    f"stratum '{row['stratum']}' has {count(row['entries'], 'entry', 'entries')}, "
                    f"{expected:,} are declared (R12)",
                    "Correct the corpus, or the declaration in [[corpus.strata]]",
                    blocking=False,
                )
            )


def _columns(
    found: Survey, campaign: Campaign, protocol: Protocol, one: CorpusSurvey, path: Path
) -> None:
    """Fingerprint the columns that the protocol uses, and look at the classes (R12)."""
    used = [protocol.corpus.label_column, protocol.reference.column]
    used += [group.column for group in protocol.quality.subgroups if group.column != "stratum"]
    names = list(dict.fromkeys(name for name in used if name is not None))
    where = f"corpus '{one.deliverable}'"
    try:
        frame = sealed_frame(path, columns=["id", *[n for n in names if n != "id"]])
    except GpucostError as error:
        found.add(where, error)
        return
    for name in names:
        print_ = Fingerprint()
        for key, value in frame.select("id", name).iter_rows():
            print_.update(key, spelled(value) or "")
        one.columns[name] = print_.hexdigest()
    if protocol.corpus.label_column is None:
        return
    if one.strata is not None:
        frame = frame.with_columns(one.strata["stratum"])
    try:
        one.classes = class_distribution(frame, protocol.corpus.label_column)
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
    one.reference = {"entries": answers.height, "sha256": answers_sha256(answers)}
    _labels(found, protocol, answers, where)


def _labels(found: Survey, protocol: Protocol, answers: pl.DataFrame, where: str) -> None:
    """Answers that no prediction can equal would make every variant fail: say so before the seal."""
    labels = found.model_facts.labels if found.model_facts is not None else None
    if labels is None or answers.schema["answer"] != pl.String:
        return
    mapped = answers["answer"].replace(protocol.reference.label_map)
    unknown = sorted(set(mapped.unique()) - set(labels))
    if unknown:
        found.problems.append(
            Problem(
                where,
                f"answers that the model has no label for: {listed(unknown, limit=8)}; "
                f"its labels: {listed(list(labels), limit=8)}",
                "Map them in [reference] label_map, or use the model that has these labels",
                blocking=len(unknown) == mapped.n_unique(),
            )
        )


def answers_sha256(answers: pl.DataFrame) -> str:
    """Return the fingerprint of answers in the corpus's order."""
    print_ = Fingerprint()
    for key, answer in answers.select("id", "answer").iter_rows():
        print_.update(key, answer_text(answer))
    return print_.hexdigest()


def strata_sha256(strata: pl.DataFrame) -> str:
    """Return the fingerprint of (id, tokens and stratum): it defines the planned subgroups."""
    print_ = Fingerprint()
    for key, tokens, stratum in strata.select("id", "tokens", "stratum").iter_rows():
        print_.update(key, f"{tokens} {stratum or ''}")
    return print_.hexdigest()
