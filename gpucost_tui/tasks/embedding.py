"""Text embedding: one vector per entry; its quality is the cosine to a reference vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from gpucost_tui.errors import InputError
from gpucost_tui.protocol.base import Frozen
from gpucost_tui.tasks.base import Figure, ModelFacts, Task, known_metric, named
from gpucost_tui.tasks.classification import largest_difference
from gpucost_tui.tasks.intervals import bootstrap_mean
from gpucost_tui.tasks.neighbours import MOST_VECTORS, recall_at_k

#: Two vectors of one entry whose cosine is below this count as a different answer: a change of
#: precision stays well above it, another truncation or pooling does not.
SAME_VECTOR = 0.999

_K = 10
_VECTOR = pl.col("prediction")
_CHUNK = 65_536  # rows of a cosine at a time: bounds the float64 copies


class Options(Frozen):
    """``pooling``: mean over real tokens, or the first token (cls); ``normalize``: length 1;
    ``k``: neighbours of recall_at_k."""

    pooling: Literal["mean", "cls"] = "mean"
    normalize: bool = True
    k: Annotated[int, Field(strict=True, ge=1, le=1000)] = _K

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Came after the first protocols: at its default a manifest made before keeps its hash.
        return {name: v for name, v in dump(self).items() if (name, v) != ("k", _K)}


class TextEmbedding(Task):
    """The last hidden state pooled to one vector, float32."""

    name = "text-embedding"
    summary = "one vector per text, mean or CLS pooling"
    metrics: ClassVar[tuple[str, ...]] = ("mean_cosine", "min_cosine", "recall_at_k")
    with_interval: ClassVar[tuple[str, ...]] = ("mean_cosine", "recall_at_k")
    Options = Options
    auto_model = "AutoModel"
    unused_weights: ClassVar[tuple[str, ...]] = ("pooler.",)

    def columns_schema(self) -> dict[str, pl.DataType]:
        return {"prediction": pl.List(pl.Float32())}

    def check_values(
        self, frame: pl.DataFrame, *, labels: Sequence[str] | None, dimension: int | None
    ) -> list[str]:
        empty = _VECTOR.is_null() | (_VECTOR.list.len() == 0)
        problems = named(frame, empty, "without a vector")
        finite = _VECTOR.list.eval(pl.element().is_finite().fill_null(False)).list.all()
        problems += named(frame, ~empty & ~finite, "with a vector that is not finite")
        zero = _VECTOR.list.eval(pl.element() == 0).list.all()
        problems += named(frame, ~empty & zero, "with a vector of zeros, which has no direction")
        if dimension is not None:
            fits = _VECTOR.list.len() == dimension
            problems += named(frame, ~empty & ~fits, f"with a vector not of length {dimension}")
        elif frame.height and frame.select(_VECTOR.list.len().n_unique()).item() > 1:
            problems.append("the vectors are of several lengths")
        return problems

    def compared(self, predictions: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
        given = predictions.select("id", "prediction").unique("id", keep="first")
        rows = answers.select("id", pl.col("answer").cast(pl.List(pl.Float32))).join(
            given, on="id", how="left", maintain_order="left"
        )
        return rows.with_columns(similarity=cosines(rows["answer"], rows["prediction"]))

    def quality(
        self, metric: str, predictions: pl.DataFrame, answers: pl.DataFrame
    ) -> float | None:
        """Undefined (None) as soon as one answer has no sound vector beside it."""
        return _value(metric, self._each(metric, predictions, answers))

    def figure(self, metric: str, predictions: pl.DataFrame, answers: pl.DataFrame) -> Figure:
        each = self._each(metric, predictions, answers)
        value = _value(metric, each)
        found = None
        if value is not None and metric in self.with_interval:
            found = bootstrap_mean(each["value"].to_numpy())
        return Figure(value, found, each if metric == "recall_at_k" else None)

    def most_entries(self, metric: str) -> int | None:
        return MOST_VECTORS if metric == "recall_at_k" else None

    def _each(self, metric: str, predictions: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
        """Return ``id`` and ``value``: the cosine, or the recall among all the answers."""
        known_metric(self, metric)
        rows = self.compared(predictions, answers)
        values = rows["similarity"]
        if metric == "recall_at_k" and rows.height and not values.null_count():
            values = _recalls(rows, self.options.k)  # type: ignore[attr-defined]
        return rows.select("id", value=values)

    def flips(self, one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
        """Entries whose two vectors have a cosine below :data:`SAME_VECTOR`, or none."""
        both = _both(one, other)
        near = cosines(both["one"], both["other"])
        return both.filter((near < SAME_VECTOR) | near.is_null())

    def max_difference(self, one: pl.DataFrame, other: pl.DataFrame) -> float | None:
        return largest_difference(_both(one, other))

    def facts(self, model: Any) -> ModelFacts:
        size = getattr(model.config, "hidden_size", None)
        if not isinstance(size, int):
            raise InputError(
                "the model does not say how long its vectors are (hidden_size in config.json)",
                where="model",
                fix="Take an encoder whose last hidden state is one vector per token",
            )
        return ModelFacts(dimension=size)

    def predict(self, model: Any, inputs: dict[str, Any]) -> Any:
        hidden = model(**inputs).last_hidden_state.float()
        pooled = self._pool(hidden, inputs.get("attention_mask"))
        if self.options.normalize:  # type: ignore[attr-defined]
            pooled = pooled / pooled.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        return pooled

    def _pool(self, hidden: Any, mask: Any) -> Any:
        if self.options.pooling == "cls":  # type: ignore[attr-defined]
            if mask is None:
                return hidden[:, 0]
            # The first real token: with padding on the left it is not at position 0.
            rows = mask.new_ones(mask.shape[0]).cumsum(0) - 1
            return hidden[rows, mask.argmax(dim=1)]
        if mask is None:
            return hidden.mean(dim=1)
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-9)

    def columns(self, parts: Sequence[np.ndarray], facts: ModelFacts) -> dict[str, Any]:
        empty = np.zeros((0, facts.dimension or 0), np.float32)
        return {"prediction": np.concatenate(parts) if parts else empty}


def _recalls(rows: pl.DataFrame, k: int) -> pl.Series:
    sizes = rows["answer"].list.len().unique()
    if len(sizes) > 1:  # vectors of several lengths lie in no common space
        return pl.Series([None] * rows.height, dtype=pl.Float64)
    size = int(sizes[0])
    return pl.Series(
        recall_at_k(_matrix(rows["answer"], size), _matrix(rows["prediction"], size), k)
    )


def _value(metric: str, each: pl.DataFrame) -> float | None:
    values = each["value"]
    if values.is_empty() or values.null_count():
        return None
    return float(values.min() if metric == "min_cosine" else values.mean())  # type: ignore[arg-type]


def cosines(left: pl.Series, right: pl.Series) -> pl.Series:
    """Return the cosine of each pair of vectors; null where one is absent, not finite, of another
    length, or of length zero."""
    pairs = pl.DataFrame({"left": left, "right": right}).with_row_index("row")
    sizes = pairs["left"].list.len()
    pairs = pairs.filter(
        (sizes == pairs["right"].list.len()).fill_null(False) & (sizes > 0).fill_null(False)
    )
    result = np.full(len(left), np.nan)
    for (size,), same in pairs.group_by(pl.col("left").list.len()):
        for piece in same.iter_slices(_CHUNK):
            one = _matrix(piece["left"], int(str(size)))
            other = _matrix(piece["right"], int(str(size)))
            with np.errstate(all="ignore"):
                scale = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
                result[piece["row"].to_numpy()] = (one * other).sum(axis=1) / scale
    return pl.Series("similarity", result, dtype=pl.Float64).fill_nan(None)


def _matrix(vectors: pl.Series, size: int) -> np.ndarray:
    return vectors.explode().to_numpy().astype(np.float64).reshape(-1, size)


def _both(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    left = one.select("id", one=_VECTOR).unique("id", keep="first", maintain_order=True)
    right = other.select("id", other=_VECTOR).unique("id", keep="first")
    return left.join(right, on="id", how="inner", maintain_order="left")
