"""Verifies an attempt from its prediction file: identifiers, format, coverage, quality (R3, R13).

A verdict has every reason, from the closed list of :data:`REASONS`, and the details behind each.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.reproducing import FirstAttempt, compared, flips
from gpucost_tui.corpus.answers import answers_frame, read_answers
from gpucost_tui.corpus.identifiers import compare_ids
from gpucost_tui.corpus.store import sealed_frame
from gpucost_tui.files import sha256_file
from gpucost_tui.protocol.model import Subgroup
from gpucost_tui.tasks.base import Figure, Task
from gpucost_tui.tasks.registry import create
from gpucost_tui.text import clean, count

#: Reasons why something is not accepted or not admissible, in the order in which they are named.
REASONS = (
    "failed",
    "identifiers",
    "format",
    "missing",
    "quality",
    "deadline",
    "budget",
    "price",
    "window",
)


@dataclass(slots=True)
class Verdict:
    """What was found about one attempt. ``accepted`` is None for the reference pass itself."""

    attempt: int
    accepted: bool | None
    reasons: list[str]
    row: dict[str, Any]
    missing: dict[str, str]
    details: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Subject:
    """The attempt to judge, as far as a verdict needs it."""

    attempt: int
    status: str
    deliverable: str
    round: int
    predictions: Path | None
    predictions_sha256: str | None
    labels: list[str] | None
    dimension: int | None = None  # length of a vector, by the loaded model
    variant: str = ""
    seed: int | None = None

    @property
    def repeats(self) -> tuple[str, str, int | None]:
        """What attempts have in common that should reproduce one another (R28)."""
        return self.variant, self.deliverable, self.seed


class Judge:
    """Judges the attempts of one sealed campaign; keeps corpora and references in memory."""

    def __init__(self, campaign: Campaign, manifest: Manifest) -> None:
        self._campaign = campaign
        self._protocol = manifest.protocol
        self._task: Task = create(manifest.protocol.task)
        self._groups: dict[str, pl.DataFrame] = {}
        self._answers: dict[str, pl.DataFrame | None] = {}
        self._reference_passes: dict[str, pl.DataFrame] = {}
        self._first: dict[tuple[str, str, int | None], FirstAttempt] = {}

    def reference_pass(self, deliverable: str, predictions: Path) -> None:
        """Take an accepted round-0 pass as the reference of a deliverable."""
        self._reference_passes[deliverable] = pl.read_parquet(predictions)

    def has_reference(self, deliverable: str) -> bool:
        """Tell whether a reference pass was taken for a deliverable."""
        return deliverable in self._reference_passes

    def take_first(self, subject: Subject) -> None:
        """Take a sound, completed attempt as the one that its repetitions are held against, unless
        there is an earlier one (R28)."""
        if subject.predictions is None:
            return
        first = FirstAttempt(subject.attempt, subject.predictions, subject.predictions_sha256)
        self._first.setdefault(subject.repeats, first)

    def judge(self, subject: Subject) -> Verdict:
        """Return the verdict of one attempt; its evaluation time is in ``row['evaluate_s']``."""
        began = time.perf_counter()
        verdict = self._judge(subject)
        verdict.row["evaluate_s"] = time.perf_counter() - began
        return verdict

    def _judge(self, subject: Subject) -> Verdict:
        verdict = Verdict(subject.attempt, False, [], {}, {}, {})
        corpus = self._corpus(subject.deliverable)
        verdict.row["expected_ids"] = corpus.height
        verdict.row["quality_metric"] = self._protocol.quality.metric
        if subject.status == "failed":
            verdict.reasons.append("failed")
        frame = self._predictions(subject, verdict)
        if frame is not None:
            self._identifiers(corpus, frame, verdict)
            self._format(subject, frame, verdict)
        if subject.status != "completed":
            _unfinished(subject, verdict)
        elif frame is None:
            _no_quality(verdict, verdict.missing["observed_ids"])
        elif "identifiers" in verdict.reasons:
            _no_quality(verdict, "the identifiers do not match")
        else:
            self._quality(subject, frame, verdict)
            if "format" not in verdict.reasons:
                self._reproduction(subject, frame, verdict)
        return self._concluded(subject, verdict)

    def _concluded(self, subject: Subject, verdict: Verdict) -> Verdict:
        verdict.reasons = [reason for reason in REASONS if reason in verdict.reasons]
        verdict.accepted = not verdict.reasons
        if subject.round == 0 and verdict.reasons in ([], ["quality"]):
            verdict.accepted = None
            verdict.missing["corpus_accepted"] = "the reference pass is no result of its own"
        verdict.row["corpus_accepted"] = verdict.accepted
        verdict.details["reasons"] = verdict.reasons
        return verdict

    def _corpus(self, deliverable: str) -> pl.DataFrame:
        """Return ids with stratum and the columns that subgroups need, in the corpus's order."""
        if deliverable not in self._groups:
            columns = ["id", *self._subgroup_columns()]
            frame = sealed_frame(self._campaign.corpus_file(deliverable), columns=columns)
            strata = pl.read_parquet(self._campaign.strata_file(deliverable))
            frame = frame.with_columns(strata["stratum"])
            self._groups[deliverable] = frame
        return self._groups[deliverable]

    def _subgroup_columns(self) -> list[str]:
        columns = (subgroup.column for subgroup in self._protocol.quality.subgroups)
        return [column for column in dict.fromkeys(columns) if column not in ("stratum", "id")]

    def _predictions(self, subject: Subject, verdict: Verdict) -> pl.DataFrame | None:
        path = subject.predictions
        if path is not None and path.is_file():
            if sha256_file(path) == subject.predictions_sha256:
                return pl.read_parquet(path)
            why = "the prediction file is not the one that was written"
            verdict.reasons.append("format")
            verdict.notes.append(why)
        elif path is not None or subject.status == "completed":
            why = "the prediction file is missing"
            verdict.reasons.append("missing")
            verdict.notes.append(why)
        else:
            why = "there are no predictions"
        for column in ("observed_ids", "ids_match", "format_ok"):
            verdict.row[column] = None
            verdict.missing[column] = why
        return None

    def _identifiers(self, corpus: pl.DataFrame, frame: pl.DataFrame, verdict: Verdict) -> None:
        check = compare_ids(corpus["id"], frame["id"])
        verdict.row["observed_ids"] = check.observed_ids
        verdict.row["ids_match"] = check.ids_match
        verdict.details["identifiers"] = asdict(check)
        if not check.ids_match:
            verdict.reasons.append("identifiers")

    def _format(self, subject: Subject, frame: pl.DataFrame, verdict: Verdict) -> None:
        problems = self._task.check_format(
            frame, labels=subject.labels, dimension=subject.dimension
        )
        verdict.row["format_ok"] = not problems
        verdict.details["format"] = problems
        if problems:
            verdict.reasons.append("format")
            verdict.notes.extend(f"format: {problem}" for problem in problems[:3])

    def answers(self, deliverable: str) -> pl.DataFrame | None:
        """Return the sealed answers (id, answer) in the model's labels, or none."""
        if deliverable not in self._answers:
            self._answers[deliverable] = self._read_answers(deliverable)
        return self._answers[deliverable]

    def _read_answers(self, deliverable: str) -> pl.DataFrame | None:
        reference = self._protocol.reference
        if reference.kind == "variant":
            return None
        frame = answers_frame(read_answers([self._campaign.reference_file(deliverable)]))
        if reference.label_map:
            frame = frame.with_columns(pl.col("answer").replace(reference.label_map))
        return frame

    def _reference(self, subject: Subject) -> pl.DataFrame | None:
        """Return what predictions are held against: answers, or those of the reference pass."""
        answers = self.answers(subject.deliverable)
        if answers is not None:
            return answers
        passed = self._reference_passes.get(subject.deliverable)
        if passed is None:
            return None
        return passed.select("id", pl.col("prediction").alias("answer"))

    def _quality(self, subject: Subject, frame: pl.DataFrame, verdict: Verdict) -> None:
        reference = self._reference(subject)
        if reference is None:
            what = "it is the reference" if subject.round == 0 else "there is no reference pass"
            _no_quality(verdict, what)
            if subject.round != 0:
                verdict.reasons.append("missing")
            return
        metric, threshold = self._protocol.quality.metric, self._protocol.quality.threshold
        figure = self._task.figure(metric, frame, reference)
        value = figure.value
        found: dict[str, Any] = {"metric": metric, "value": value, "threshold": threshold}
        good = value is not None and value >= threshold
        if value is None:
            verdict.missing["quality"] = f"{metric} is undefined for these predictions"
        elif not good:
            verdict.notes.append(f"quality: {metric} {value:.6g} is below {threshold:g}")
        good = self._interval(figure, verdict) and good
        good = self._tolerance(subject, value, found, verdict) and good
        verdict.row.update(quality=value, quality_ok=good)
        verdict.details["quality"] = found
        self._subgroups(subject, frame, reference, figure.each, verdict)
        if not good or verdict.row["subgroups_ok"] is False:
            verdict.reasons.append("quality")

    def _reproduction(self, subject: Subject, frame: pl.DataFrame, verdict: Verdict) -> None:
        """Hold an attempt against the first of its kind, and count its label flips against the
        reference pass, where there is one (R28)."""
        passed = self._reference_passes.get(subject.deliverable)
        if passed is not None and subject.round != 0:
            found = flips(self._task, passed, frame)
            verdict.details["reference_pass"] = found
            if found["flips"]:
                said = count(found["flips"], "label flip")
                verdict.notes.append(f"{said} against the reference pass")
        first = self._first.get(subject.repeats)
        if first is None:
            self.take_first(subject)
        elif first.number != subject.attempt:
            wanted = self._protocol.reproduction
            details, notes, reason = compared(self._task, wanted, first, frame)
            verdict.details["reproduction"] = details
            verdict.notes += notes
            verdict.reasons += [reason] if reason else []

    def _interval(self, figure: Figure, verdict: Verdict) -> bool:
        """Put the interval beside the figure; where sealed so, its lower end decides."""
        quality, found = self._protocol.quality, figure.interval
        if found is not None:
            verdict.details["interval"] = asdict(found)
        if quality.interval != "lower-bound":
            return True
        if found is not None and found.low >= quality.threshold:
            return True
        if found is not None:
            verdict.notes.append(
                f"quality: the {100 * found.level:g} % interval of {quality.metric} begins at "
                f"{found.low:.6g}, below {quality.threshold:g}"
            )
        return False

    def _tolerance(
        self, subject: Subject, value: float | None, found: dict[str, Any], verdict: Verdict
    ) -> bool:
        """Hold a value against the reference variant's own, under the sealed tolerance (R27)."""
        tolerance = self._protocol.quality.tolerance
        if tolerance is None or subject.round == 0:
            return True
        passed = self._reference_passes.get(subject.deliverable)
        answers = self._reference(subject)
        if passed is None or answers is None:
            verdict.notes.append("tolerance: there is no reference pass to compare with")
            return False
        expected = self._task.quality(self._protocol.quality.metric, passed, answers)
        found.update(reference_value=expected, tolerance=tolerance)
        # Both figures are means over the same entries: only a loss counts, and rounding does not.
        if value is None or expected is None or expected - value > tolerance + 1e-12:
            verdict.notes.append(
                f"tolerance: {_shown(value)} against {_shown(expected)} of the reference variant "
                f"loses more than {tolerance:g}"
            )
            return False
        return True

    def _subgroups(
        self,
        subject: Subject,
        frame: pl.DataFrame,
        reference: pl.DataFrame,
        each: pl.DataFrame | None,
        verdict: Verdict,
    ) -> None:
        rows = []
        for subgroup in self._protocol.quality.subgroups:
            groups = self._corpus(subject.deliverable)
            for value, ids in groups.group_by(subgroup.column, maintain_order=True):
                quality = self._part(ids["id"], frame, reference, each)
                rows.append(_subgroup(subgroup, value[0], ids.height, quality))
        verdict.details["subgroups"] = rows
        if not rows:
            verdict.row["subgroups_ok"] = None
            verdict.missing["subgroups_ok"] = "no subgroup is planned"
            return
        below = [row for row in rows if row["ok"] is False]
        verdict.row["subgroups_ok"] = not below
        for row in below:
            verdict.notes.append(
                f"subgroup {clean(row['column'])} = {clean(row['value'], limit=60)}: "
                f"{_shown(row['quality'])} is below {row['threshold']:g}"
            )

    def _part(
        self,
        ids: pl.Series,
        frame: pl.DataFrame,
        reference: pl.DataFrame,
        each: pl.DataFrame | None,
    ) -> float | None:
        """Return the metric over a subgroup; neighbours are those in the whole corpus."""
        chosen = pl.col("id").is_in(ids.implode())
        if each is None:
            metric = self._protocol.quality.metric
            return self._task.quality(metric, frame, reference.filter(chosen))
        values = each.filter(chosen)["value"]
        return None if values.null_count() else values.mean()  # type: ignore[return-value]


def _subgroup(
    subgroup: Subgroup, value: Any, entries: int, quality: float | None
) -> dict[str, Any]:
    judged = entries >= subgroup.min_entries
    few = f"fewer than {count(subgroup.min_entries, 'entry', 'entries')}"
    return {
        "column": subgroup.column,
        "value": None if value is None else str(value),
        "entries": entries,
        "quality": quality,
        "threshold": subgroup.threshold,
        "ok": (quality is not None and quality >= subgroup.threshold) if judged else None,
        "note": "" if judged else few,
    }


def _unfinished(subject: Subject, verdict: Verdict) -> None:
    if subject.status in ("stopped", "interrupted"):
        # Not identifiers: what is there may be right, but the corpus is not all there.
        verdict.reasons = [r for r in verdict.reasons if r != "identifiers"]
        verdict.reasons.append("missing")
    _no_quality(verdict, f"the pass {'was ' if subject.status != 'failed' else ''}{subject.status}")


def _no_quality(verdict: Verdict, why: str) -> None:
    for column in ("quality", "quality_ok", "subgroups_ok"):
        verdict.row[column] = None
        verdict.missing[column] = why


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.6g}"
