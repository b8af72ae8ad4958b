"""Text embedding: one vector per entry; its quality is the cosine to a reference vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from gpucost_tui.errors import InputError
from gpucost_tui.protocol.base import Frozen
from gpucost_tui.tasks.base import ModelFacts, Task, known_metric, named
from gpucost_tui.tasks.classification import largest_difference

#: Two vectors of one entry whose cosine is below this count as a different answer: a change of
#: precision stays well above it, another truncation or pooling does not.
SAME_VECTOR = 0.999

_VECTOR = pl.col("prediction")
_CHUNK = 65_536  # rows of a cosine at a time: bounds the float64 copies


class Options(Frozen):
    """``pooling``: mean over real tokens, or the first token (cls); ``normalize``: length 1."""

    pooling: Literal["mean", "cls"] = "mean"
    normalize: bool = True


class TextEmbedding(Task):
    """The last hidden state pooled to one vector, float32."""

    name = "text-embedding"
    summary = "one vector per text, mean or CLS pooling"
    metrics: ClassVar[tuple[str, ...]] = ("mean_cosine", "min_cosine")
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
        known_metric(self, metric)
        similarity = self.compared(predictions, answers)["similarity"]
        if similarity.is_empty() or similarity.null_count():
            return None
        value = similarity.mean() if metric == "mean_cosine" else similarity.min()
        return float(value)  # type: ignore[arg-type]

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
