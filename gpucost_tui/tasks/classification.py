"""Text classification: one label per entry, with the score of every label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from gpucost_tui.errors import InputError
from gpucost_tui.protocol.base import Frozen
from gpucost_tui.tasks.base import Figure, ModelFacts, Task, known_metric, named
from gpucost_tui.tasks.intervals import Interval, bootstrap_labels, wilson
from gpucost_tui.text import listed

_SCORES = pl.col("scores")
#: A label that no model has, which is wrong for every answer. No NUL: numpy cuts it off.
_NO_PREDICTION = "\ue000"


class Options(Frozen):
    """``scores``: softmax for exclusive labels, sigmoid where the model was trained per label."""

    scores: Literal["softmax", "sigmoid"] = "softmax"


class TextClassification(Task):
    """The label with the highest score. A row whose scores are not finite has no label:
    ``argmax`` of all NaN would be the first class and look like a prediction."""

    name = "text-classification"
    summary = "one label per text, with the score of every label"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1", "balanced_accuracy", "mcc")
    with_interval: ClassVar[tuple[str, ...]] = metrics
    Options = Options
    auto_model = "AutoModelForSequenceClassification"

    def columns_schema(self) -> dict[str, pl.DataType]:
        return {
            "prediction": pl.String(),
            "score": pl.Float32(),
            "scores": pl.List(pl.Float32()),
        }

    def check_values(
        self, frame: pl.DataFrame, *, labels: Sequence[str] | None, dimension: int | None
    ) -> list[str]:
        finite = _SCORES.list.eval(pl.element().is_finite().fill_null(False)).list.all()
        empty = _SCORES.is_null() | (_SCORES.list.len() == 0)
        problems = named(frame, empty, "without scores")
        problems += named(frame, ~empty & ~finite, "with scores that are not finite")
        lacking = pl.col("prediction").is_null() | (pl.col("prediction") == "")
        problems += named(frame, lacking, "without a label")
        astray = (pl.col("score") - _SCORES.list.max()).abs() > 1e-6
        problems += named(frame, ~empty & finite & astray, "whose score is not the highest one")
        if labels is None:
            return problems
        names = list(labels)
        problems += named(
            frame,
            ~lacking & ~pl.col("prediction").is_in(names),
            "with a label unknown to the model",
        )
        fits = _SCORES.list.len() == len(names)
        problems += named(frame, ~empty & ~fits, f"without exactly {len(names)} scores")
        top = _SCORES.list.arg_max().cast(pl.Int64)
        chosen = top.replace_strict(dict(enumerate(names)), default=None, return_dtype=pl.String)
        differs = chosen != pl.col("prediction")
        problems += named(
            frame, ~empty & fits & finite & differs, "whose label is not that of its highest score"
        )
        return problems

    def compared(self, predictions: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
        given = predictions.select("id", "prediction").unique("id", keep="first")
        return (
            answers.select("id", pl.col("answer").cast(pl.String))
            .join(given, on="id", how="left", maintain_order="left")
            .with_columns(correct=(pl.col("prediction") == pl.col("answer")).fill_null(False))
        )

    def quality(
        self, metric: str, predictions: pl.DataFrame, answers: pl.DataFrame
    ) -> float | None:
        """An answer without a prediction counts as a wrong one; no answers, no quality."""
        known_metric(self, metric)
        return _value(metric, self.compared(predictions, answers))

    def figure(self, metric: str, predictions: pl.DataFrame, answers: pl.DataFrame) -> Figure:
        known_metric(self, metric)
        rows = self.compared(predictions, answers)
        value = _value(metric, rows)
        return Figure(value, None if value is None else _interval(metric, rows))

    def flips(self, one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
        both = _both(one, other, "prediction")
        return both.filter(pl.col("one").ne_missing(pl.col("other")))

    def max_difference(self, one: pl.DataFrame, other: pl.DataFrame) -> float | None:
        return largest_difference(_both(one, other, "scores"))

    def facts(self, model: Any) -> ModelFacts:
        named_labels = {int(k): str(v) for k, v in (model.config.id2label or {}).items()}
        labels = tuple(named_labels.get(i, f"LABEL_{i}") for i in range(model.config.num_labels))
        if len(labels) < 2:
            raise InputError(
                "the model has one output: it gives a number, not one of several labels",
                where="model",
                fix="Take a model with at least two labels",
            )
        if len(set(labels)) != len(labels):
            twice = sorted({label for label in labels if labels.count(label) > 1})
            raise InputError(
                f"the model gives one name to several labels: {listed(twice)}",
                where="model, config.json, id2label",
                fix="Give every label a name of its own",
            )
        return ModelFacts(labels=labels)

    def predict(self, model: Any, inputs: dict[str, Any]) -> Any:
        # In float32 whatever the model computes in: half precision would round the scores twice.
        logits = model(**inputs).logits.float()
        return logits.softmax(-1) if self.options.scores == "softmax" else logits.sigmoid()  # type: ignore[attr-defined]

    def columns(self, parts: Sequence[np.ndarray], facts: ModelFacts) -> dict[str, Any]:
        labels = np.array(facts.labels or (), dtype=object)
        scores = np.concatenate(parts) if parts else np.zeros((0, len(labels)), np.float32)
        sound = np.isfinite(scores).all(axis=1)
        best = scores.argmax(axis=1) if len(scores) else np.zeros(0, np.int64)
        top = scores[np.arange(len(scores)), best]
        chosen = labels[best] if len(labels) else np.full(len(scores), None, dtype=object)
        chosen[~sound] = None
        return {"prediction": chosen, "score": top, "scores": scores}


def _value(metric: str, rows: pl.DataFrame) -> float | None:
    if rows.is_empty() or rows["answer"].null_count():
        return None
    if metric == "accuracy":
        return float(rows["correct"].mean())  # type: ignore[arg-type]
    return _agreement(metric, rows)


def _interval(metric: str, rows: pl.DataFrame) -> Interval | None:
    if metric == "accuracy":
        return wilson(int(rows["correct"].sum()), rows.height)
    given = rows["prediction"].fill_null(_NO_PREDICTION).to_list()
    return bootstrap_labels(rows["answer"].to_list(), given, metric)


def _agreement(metric: str, rows: pl.DataFrame) -> float:
    from sklearn import metrics

    given = rows["prediction"].fill_null(_NO_PREDICTION).to_numpy()
    true = rows["answer"].to_numpy()
    if metric == "macro_f1":
        return float(metrics.f1_score(true, given, average="macro", zero_division=0))
    if metric == "balanced_accuracy":
        # As sklearn's own, without its warning about predicted classes that have no answer.
        present = sorted(set(true))
        return float(
            metrics.recall_score(true, given, labels=present, average="macro", zero_division=0)
        )
    if len({*true, *given}) < 2:
        return 0.0  # sklearn's value too, which it gives with a warning: nothing to correlate
    return float(metrics.matthews_corrcoef(true, given))


def _both(one: pl.DataFrame, other: pl.DataFrame, column: str) -> pl.DataFrame:
    left = one.select("id", one=pl.col(column)).unique("id", keep="first", maintain_order=True)
    right = other.select("id", other=pl.col(column)).unique("id", keep="first")
    return left.join(right, on="id", how="inner", maintain_order="left")


def largest_difference(both: pl.DataFrame) -> float | None:
    """Return the largest absolute difference between the lists ``one`` and ``other``."""
    aligned = both.filter(pl.col("one").list.len() == pl.col("other").list.len())
    if aligned.is_empty() or aligned.height != both.height:
        return None
    left = aligned["one"].explode().to_numpy().astype(np.float64)
    right = aligned["other"].explode().to_numpy().astype(np.float64)
    if not left.size:
        return None
    largest = float(np.abs(left - right).max())
    return largest if np.isfinite(largest) else None
