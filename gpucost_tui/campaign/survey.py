"""Looks at everything that a seal would freeze, and gathers what stands in its way.

`check` shows the problems, the review screen the facts, `seal` freezes them when no problem blocks.
Reading the corpora is streaming; token counts come from ``tokenizers`` alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpucost_tui.campaign.conditions import check_causes
from gpucost_tui.campaign.fingerprints import tuning_facts
from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.relaxed import relaxations
from gpucost_tui.campaign.survey_corpus import CorpusSurvey, survey_corpus
from gpucost_tui.campaign.window import check_tasks
from gpucost_tui.corpus.tokens import load_tokenizer
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
from gpucost_tui.text import clean
from gpucost_tui.watch import NOBODY, Watch

__all__ = ["CorpusSurvey", "Survey", "default_name", "survey"]


@dataclass(slots=True)
class Survey:
    """All that was found.

    ``protocol`` is None when the file is no protocol. Of a sealed campaign ``manifest``,
    ``protocol``, ``corpora`` and ``tuning`` say what was sealed, and the fields that only a draft
    needs stay empty.
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


def survey(campaign: Campaign, watch: Watch = NOBODY) -> Survey:
    """Look at a campaign that is not sealed yet. Problems are gathered, not raised.

    Args:
        campaign: A draft.
        watch: Is told of each stage and the entries or bytes done, and may end the look there.
    """
    found = Survey()
    watch.stage("Reading the protocol")
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
    _model(found, found.protocol, found.source, watch)
    _tuning(found, campaign, found.protocol, found.source, watch)
    for deliverable in found.protocol.deliverables:
        survey_corpus(found, campaign, found.protocol, deliverable.name, watch)
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


def _reachable(
    found: Survey, source: Source, path: tuple[str | int, ...], threshold: float
) -> None:
    assert found.task is not None  # noqa: S101 - it was just made
    most = found.task.highest
    if threshold > most:
        what = f"no corpus can reach {threshold:g}: metrics of {found.task.name} end at {most:g}"
        found.problems.append(Problem(source.where(*path), what, "Write a value that is possible"))


def _model(found: Survey, protocol: Protocol, source: Source, watch: Watch) -> None:
    wanted, place = protocol.model.source.strip(), source.where("model", "source")
    if not wanted:
        return  # said by the rules
    try:
        found.model = resolve(
            wanted,
            allow_remote_code=protocol.model.allow_remote_code,
            allow_pickle=protocol.model.allow_pickle,
            watch=watch,
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


def _tuning(
    found: Survey, campaign: Campaign, protocol: Protocol, source: Source, watch: Watch
) -> None:
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
        found.tuning = tuning_facts(campaign.tuning_file, watch)
    except GpucostError as error:
        found.add("tuning", error)
