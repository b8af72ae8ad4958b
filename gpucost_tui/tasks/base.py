"""The one interface between the program and a task.

A task is a subclass of :class:`Task` in a module of this package; the registry finds it there, so
another task touches no other file. The upper half of the interface runs in the parent (polars, no
torch); the lower half runs in the measuring child and is given torch's objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from gpucost_tui.protocol.base import Frozen
from gpucost_tui.tasks.encoding import Batch, Encoder, Tokens
from gpucost_tui.tasks.intervals import Interval
from gpucost_tui.text import count, listed

#: Entries of a prediction file that every task writes first: id, and the position (0-based) at
#: which the pass predicted it.
COMMON: dict[str, pl.DataType] = {"id": pl.String(), "order": pl.Int64()}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a prediction must agree with, read from the loaded model."""

    labels: tuple[str, ...] | None = None  # in the order of the scores
    dimension: int | None = None  # length of a vector


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric over every answer: its value, the interval beside it, and each entry's part.

    ``value`` is None where the metric is undefined, ``interval`` also where none is known for the
    metric. ``each`` has ``id`` and ``value`` (null where undefined) where the metric is a mean
    over entries that hangs on the other entries too, so that a subgroup is a part of it.
    """

    value: float | None
    interval: Interval | None = None
    each: pl.DataFrame | None = None


class Task(ABC):
    """A task with its options. Every metric is better when it is higher."""

    name: ClassVar[str]
    summary: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    #: metrics with a confidence interval
    with_interval: ClassVar[tuple[str, ...]] = ()
    #: no metric has a value above it: a higher threshold is a slip of the pen (85 for 0.85)
    highest: ClassVar[float] = 1.0
    Options: ClassVar[type[Frozen]] = Frozen
    #: class of transformers that loads the model
    auto_model: ClassVar[str]
    #: weights that may be absent from the files, by prefix: the task never uses them
    unused_weights: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: Frozen) -> None:
        self.options = options

    # -- in the parent -----------------------------------------------------------------------

    @abstractmethod
    def columns_schema(self) -> dict[str, pl.DataType]:
        """Return this task's own columns of a prediction file."""

    def schema(self) -> dict[str, pl.DataType]:
        """Return every column of a prediction file, in order."""
        return {**COMMON, **self.columns_schema()}

    def check_format(
        self,
        frame: pl.DataFrame,
        *,
        labels: Sequence[str] | None = None,
        dimension: int | None = None,
    ) -> list[str]:
        """Return what is wrong with the form of predictions, a sentence each; empty when sound.

        Args:
            frame: A prediction file.
            labels: The model's labels in order, where the task has some.
            dimension: Length of a vector, where the task gives vectors.
        """
        wrong = [
            f"column '{name}' is {frame.schema.get(name, 'absent')}, {kind} is expected"
            for name, kind in self.schema().items()
            if frame.schema.get(name) != kind
        ]
        return wrong or self.check_values(frame, labels=labels, dimension=dimension)

    @abstractmethod
    def check_values(
        self, frame: pl.DataFrame, *, labels: Sequence[str] | None, dimension: int | None
    ) -> list[str]:
        """Return what is wrong with the values of a frame whose columns are right."""

    @abstractmethod
    def compared(self, predictions: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
        """Return one row per answer, in the answers' order, beside what was predicted for it.

        Args:
            predictions: A prediction file; of a repeated id the first row counts, ids without an
                answer are left out.
            answers: Columns ``id`` and ``answer``, ids unique.

        Returns:
            Columns ``id``, ``answer``, ``prediction`` (null where there is none) and either
            ``correct`` (bool) or ``similarity`` (float, null where undefined).
        """

    @abstractmethod
    def quality(
        self, metric: str, predictions: pl.DataFrame, answers: pl.DataFrame
    ) -> float | None:
        """Return a metric over every answer, or None where it is undefined.

        Raises:
            ValueError: ``metric`` is none of :attr:`metrics`.
        """

    def figure(self, metric: str, predictions: pl.DataFrame, answers: pl.DataFrame) -> Figure:
        """Return :meth:`quality` with the interval beside it.

        Raises:
            ValueError: ``metric`` is none of :attr:`metrics`.
        """
        return Figure(self.quality(metric, predictions, answers))

    def most_entries(self, metric: str) -> int | None:
        """Return the size of the largest corpus that a metric is computed for, or None."""
        return None

    @abstractmethod
    def flips(self, one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
        """Return the entries that two passes predicted differently: ``id``, ``one``, ``other``."""

    @abstractmethod
    def max_difference(self, one: pl.DataFrame, other: pl.DataFrame) -> float | None:
        """Return the largest absolute difference of a score or component between two passes.

        None where there is nothing in common to compare or a value is not finite (R28).
        """

    def prediction_bytes(self, *, labels: int, width: int) -> int:
        """Return about how many bytes of a prediction file one entry takes (id of 32 bytes).

        Args:
            labels: Number of the model's labels; 0 without.
            width: The model's hidden size: the length of a vector.
        """
        numbers = labels if "scores" in self.columns_schema() else width
        return 64 + 4 * numbers

    # -- in the measuring child --------------------------------------------------------------

    @abstractmethod
    def facts(self, model: Any) -> ModelFacts:
        """Return what the loaded model says of itself.

        Raises:
            InputError: The model does not fit the task.
        """

    def warm_up_inputs(self, plan: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the batches (positions of entries) to warm up with, of those the rule chose."""
        return plan

    def encode(self, encoder: Encoder, tokens: Sequence[Tokens]) -> Batch:
        """Return one padded batch on the host."""
        return encoder.collate(tokens)

    @abstractmethod
    def predict(self, model: Any, inputs: dict[str, Any]) -> Any:
        """Return one device tensor with one row per entry: the model's forward pass and head."""

    def materialize(self, output: Any) -> np.ndarray:
        """Return a device tensor as a float32 array on the host; waits for the device."""
        return output.float().cpu().numpy()  # type: ignore[no-any-return]

    @abstractmethod
    def columns(self, parts: Sequence[np.ndarray], facts: ModelFacts) -> dict[str, Any]:
        """Return the columns of :meth:`columns_schema` from the batches' arrays, in their order."""


def named(frame: pl.DataFrame, bad: pl.Expr, what: str) -> list[str]:
    """Return a sentence with the first ids for which ``bad`` holds; empty when there are none."""
    ids = [str(one) for one in frame.filter(bad)["id"]]
    return [f"{count(len(ids), 'entry', 'entries')} {what}: {listed(ids)}"] if ids else []


def known_metric(task: Task, metric: str) -> str:
    """Return ``metric``; raise ValueError with the known ones where it is none of them."""
    if metric not in task.metrics:
        known = ", ".join(task.metrics)
        raise ValueError(f"'{metric}' is no metric of {task.name}; known: {known}")
    return metric
