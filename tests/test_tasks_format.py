"""Tasks in the parent: registry, form of predictions, quality. No torch."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpucost_tui.errors import InputError
from gpucost_tui.tasks import neighbours, registry
from gpucost_tui.tasks.base import ModelFacts, Task

LABELS = ["billing", "bug", "question"]


@pytest.fixture
def classify() -> Task:
    return registry.create({"name": "text-classification"})


@pytest.fixture
def embed() -> Task:
    return registry.create({"name": "text-embedding"})


def classified(task: Task, scores: Any, labels: list[str] = LABELS) -> pl.DataFrame:
    columns = task.columns([np.asarray(scores, np.float32)], ModelFacts(labels=tuple(labels)))
    from gpucost_tui.engine.contract import Measured
    from gpucost_tui.engine.rows import predictions_frame

    count = len(scores)
    measured = Measured(
        [f"id{i}" for i in range(count)], list(range(count)), columns, 1, *[None] * 5, 0, None
    )
    return predictions_frame(task, measured)


def vectors(task: Task, rows: Any) -> pl.DataFrame:
    return pl.DataFrame(
        {"id": [f"id{i}" for i in range(len(rows))], "order": range(len(rows)), "prediction": rows},
        schema=task.schema(),
    )


def answers(values: list[Any], kind: Any = pl.String) -> pl.DataFrame:
    ids = [f"id{i}" for i in range(len(values))]
    return pl.DataFrame({"id": ids, "answer": values}, schema={"id": pl.String, "answer": kind})


def test_the_tasks_are_found_and_described() -> None:
    assert registry.known() == ["text-classification", "text-embedding"]
    assert set(registry.summaries()) == set(registry.known())


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "no name"),
        ({"name": "translation"}, "Known tasks: text-classification, text-embedding"),
        ({"name": ["text-embedding"]}, "no task"),
        ({"name": "\x1b[31m"}, "\\x1b[31m"),
        ({"name": "text-embedding", "pool": "mean"}, "pooling (default 'mean'), normalize"),
        ({"name": "text-embedding", "pooling": "max"}, "task.pooling"),
        ({"name": "text-classification", "scores": 3}, "task.scores"),
    ],
)
def test_a_wrong_table_is_refused_with_what_there_is(table: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        registry.create(table)
    assert said in str(caught.value)


def test_no_torch_is_imported_by_tasks() -> None:
    script = (
        "import sys; from gpucost_tui.tasks import registry; registry.known();"
        "sys.exit(bool({'torch', 'transformers', 'sklearn'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_sound_predictions_have_no_problems(classify: Task) -> None:
    frame = classified(classify, [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    assert frame["prediction"].to_list() == ["billing", "question"]
    assert classify.check_format(frame, labels=LABELS) == []
    assert classify.check_format(frame) == []
    assert classify.check_format(frame.clear(), labels=LABELS) == []


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_no_prediction_of_class_0(
    classify: Task, bad: float
) -> None:
    frame = classified(classify, [[bad] * 3, [0.2, bad, 0.1], [0.1, 0.1, 0.8]])
    assert frame["prediction"].to_list() == [None, None, "question"]
    problems = classify.check_format(frame, labels=LABELS)
    assert "2 entries with scores that are not finite: id0, id1" in problems
    assert "2 entries without a label: id0, id1" in problems


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prediction": ["bug", "martian"]}, "unknown to the model: id1"),
        ({"prediction": ["bug", ""]}, "without a label: id1"),
        ({"prediction": ["bug", "question"]}, "not that of its highest score: id1"),
        ({"score": [0.9, 0.8]}, "not the highest one: id0"),
        ({"scores": [[0.1, 0.7, 0.2], None]}, "without scores: id1"),
        ({"scores": [[0.1, 0.7, 0.2], []]}, "without scores: id1"),
        ({"scores": [[0.1, 0.7, 0.2], [0.8, 0.2]]}, "without exactly 3 scores: id1"),
        ({"scores": [[0.1, 0.7, 0.2], [0.8, None, 0.1]]}, "not finite: id1"),
    ],
)
def test_each_wrong_value_is_named(classify: Task, change: dict[str, Any], said: str) -> None:
    sound = {
        "id": ["id0", "id1"],
        "order": [0, 1],
        "prediction": ["bug", "billing"],
        "score": [0.7, 0.8],
        "scores": [[0.1, 0.7, 0.2], [0.8, 0.1, 0.1]],
    }
    frame = pl.DataFrame({**sound, **change}, schema=classify.schema())
    assert classify.check_format(pl.DataFrame(sound, schema=classify.schema()), labels=LABELS) == []
    problems = classify.check_format(frame, labels=LABELS)
    assert any(problem.endswith(said) for problem in problems), problems


def test_a_wrong_column_is_named(classify: Task) -> None:
    frame = classified(classify, [[0.7, 0.2, 0.1]])
    assert "'scores' is absent" in classify.check_format(frame.drop("scores"))[0]
    as_text = frame.with_columns(pl.col("score").cast(pl.String))
    assert "'score' is String" in classify.check_format(as_text)[0]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1.0, 0.0], [math.nan, 1.0]], "not finite: id1"),
        ([[1.0, 0.0], None], "without a vector: id1"),
        ([[1.0, 0.0], [1.0]], "not of length 2: id1"),
        ([[1.0, 0.0], [0.0, 0.0]], "no direction: id1"),
    ],
)
def test_wrong_vectors_are_named(embed: Task, rows: Any, said: str) -> None:
    problems = embed.check_format(vectors(embed, rows), dimension=2)
    assert any(problem.endswith(said) for problem in problems), problems
    assert embed.check_format(vectors(embed, [[1.0, 0.0], [0.6, 0.8]]), dimension=2) == []


def test_hostile_ids_are_cleaned_in_sentences(embed: Task) -> None:
    frame = vectors(embed, [None]).with_columns(id=pl.lit("\x1b]0;owned\x07[/INST]"))
    assert "\x1b" not in embed.check_format(frame)[0]


def test_quality_of_labels_by_hand(classify: Task) -> None:
    frame = classified(classify, [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    right = answers(["billing", "bug", "billing", "question"])
    assert classify.quality("accuracy", frame, right) == 0.75
    assert classify.quality("balanced_accuracy", frame, right) == pytest.approx((0.5 + 1 + 1) / 3)
    assert classify.quality("macro_f1", frame, right) == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    mcc = classify.quality("mcc", frame, right)
    assert mcc is not None and 0.5 < mcc < 1
    compared = classify.compared(frame, right)
    assert compared["correct"].to_list() == [True, True, False, True]
    with pytest.raises(ValueError, match="known: accuracy"):
        classify.quality("bleu", frame, right)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=40)
)
def test_quality_agrees_with_sklearn(pairs: list[tuple[str, str]]) -> None:
    from sklearn import metrics

    task = registry.create({"name": "text-classification"})
    given_, true = [p for p, _ in pairs], [t for _, t in pairs]
    assume(len({*given_, *true}) > 1)  # sklearn warns of a single label
    scores = np.eye(3)[[LABELS.index(label) for label in given_]]
    frame, right = classified(task, scores), answers(true)
    assert task.quality("accuracy", frame, right) == pytest.approx(
        metrics.accuracy_score(true, given_)
    )
    assert task.quality("mcc", frame, right) == pytest.approx(
        metrics.matthews_corrcoef(true, given_)
    )
    assert task.quality("macro_f1", frame, right) == pytest.approx(
        metrics.f1_score(true, given_, average="macro", zero_division=0)
    )


def test_missing_repeated_and_extra_predictions(classify: Task, embed: Task) -> None:
    frame = classified(classify, [[1, 0, 0], [0, 1, 0]])
    twice = pl.concat([frame, frame.with_columns(prediction=pl.lit("question"))])
    right = answers(["billing", "bug"])
    assert classify.quality("accuracy", twice, right) == 1.0
    assert classify.quality("accuracy", frame.head(1), right) == 0.5
    assert classify.quality("macro_f1", frame.head(1), right) == pytest.approx(1 / 3)
    assert classify.quality("accuracy", frame, right.head(1)) == 1.0
    assert classify.quality("accuracy", frame, right.clear()) is None
    reference = answers([[1.0, 0.0], [0.0, 1.0]], pl.List(pl.Float32))
    one = vectors(embed, [[1.0, 0.0]])
    assert embed.quality("mean_cosine", one, reference) is None


def test_cosine_to_a_reference(embed: Task) -> None:
    frame = vectors(embed, [[3.0, 4.0], [0.0, 2.0]])
    reference = answers([[0.6, 0.8], [1.0, 1.0]], pl.List(pl.Float32))
    assert embed.quality("mean_cosine", frame, reference) == pytest.approx((1 + 0.5**0.5) / 2)
    assert embed.quality("min_cosine", frame, reference) == pytest.approx(0.5**0.5)
    for bad in ([math.nan, 1.0], [0.0, 0.0], [1.0], None):
        broken = vectors(embed, [[3.0, 4.0], bad])
        assert embed.quality("mean_cosine", broken, reference) is None
        assert embed.compared(broken, reference)["similarity"].null_count() == 1


def test_recall_of_the_references_neighbours_by_hand() -> None:
    embed = registry.create({"name": "text-embedding", "k": 1})
    angles = np.radians([0, 10, 90, 101])
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    reference = answers(circle.tolist(), pl.List(pl.Float32))
    assert embed.quality("recall_at_k", vectors(embed, circle), reference) == 1.0
    moved = circle[[0, 2, 1, 3]]  # the neighbours of every entry but those of 90 and 10 degrees
    figure = embed.figure("recall_at_k", vectors(embed, moved), reference)
    assert figure.value == 0.0 and figure.each is not None
    assert figure.each["id"].to_list() == ["id0", "id1", "id2", "id3"]
    turned = [circle[0], [0.5, 0.75**0.5], *circle[2:]]
    figure = embed.figure("recall_at_k", vectors(embed, turned), reference)
    # The second lies at 60 degrees now, nearer to the third: it alone loses its neighbour.
    assert figure.each is not None and figure.each["value"].to_list() == [1.0, 0.0, 1.0, 1.0]
    assert figure.interval is not None and figure.interval.low < 0.75 < figure.interval.high
    for bad in ([math.nan, 1.0], [1.0], None):
        broken = vectors(embed, [*circle[:3].tolist(), bad])
        assert embed.quality("recall_at_k", broken, reference) is None


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_recall_agrees_with_scikit_learn(entries: int, k: int, seed: int, chunk: int) -> None:
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(seed)
    one = rng.normal(size=(entries, 5))
    other = one + 0.5 * rng.normal(size=one.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "_CELLS", chunk * entries)  # blocks of a few rows
        found = neighbours.recall_at_k(one, other, k)
    if entries == 1:
        assert found.tolist() == [1.0]
        return
    near = min(k, entries - 1)
    sides = [
        NearestNeighbors(n_neighbors=near, metric="cosine").fit(each).kneighbors()[1]
        for each in (one, other)
    ]
    wanted = [len({*a} & {*b}) / near for a, b in zip(*sides, strict=True)]
    assert found.tolist() == pytest.approx(wanted)


def test_equally_near_neighbours_are_any_of_them() -> None:
    repeated = np.ones((12, 3))
    noise = repeated + 1e-8 * np.random.default_rng(0).normal(size=repeated.shape)
    assert neighbours.recall_at_k(repeated, noise, 3).tolist() == [1.0] * 12
    apart = np.eye(4)
    collapsed = np.repeat(apart[:1], 4, axis=0)
    spread = np.array([[1.0, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]])
    # What was told apart and is one point now: the first stand for all.
    assert neighbours.recall_at_k(spread, collapsed, 1).tolist() == [1.0, 1.0, 0.0, 0.0]
    with pytest.raises(ValueError):
        neighbours.recall_at_k(apart, apart[:2], 1)


def test_k_at_its_default_leaves_a_seal_as_it_was() -> None:
    assert registry.create({"name": "text-embedding"}).options.model_dump() == {
        "pooling": "mean",
        "normalize": True,
    }
    other = registry.create({"name": "text-embedding", "k": 5})
    assert other.options.model_dump(mode="json")["k"] == 5
    with pytest.raises(InputError, match="impossible value 0"):
        registry.create({"name": "text-embedding", "k": 0})


def test_an_interval_stands_beside_a_figure(classify: Task, embed: Task) -> None:
    sure = [[0.9, 0.1, 0]] * 8 + [[0.1, 0.9, 0]] * 2
    frame, right = classified(classify, sure), answers(["billing"] * 7 + ["bug"] * 3)
    for metric in classify.metrics:
        figure = classify.figure(metric, frame, right)
        assert figure.value == classify.quality(metric, frame, right) and figure.interval
        assert figure.interval.low <= figure.value <= figure.interval.high
        assert figure.interval.method == ("wilson" if metric == "accuracy" else "bootstrap")
        assert classify.figure(metric, frame, right.clear()).interval is None
    # An entry without a prediction is a wrong one for every label.
    lacking = frame.with_columns(
        prediction=pl.when(pl.col("id") != "id0").then(pl.col("prediction"))
    )
    assert classify.figure("macro_f1", lacking, right).interval is not None
    reference = answers([[1.0, 0.0], [0.0, 1.0]], pl.List(pl.Float32))
    turned = vectors(embed, [[1.0, 0.1], [0.5, 1.0]])
    figure = embed.figure("mean_cosine", turned, reference)
    assert figure.interval and figure.value and figure.interval.high >= figure.value
    assert embed.figure("min_cosine", turned, reference).interval is None


def test_flips_and_differences(classify: Task, embed: Task) -> None:
    one = classified(classify, [[0.6, 0.4, 0], [0, 1, 0], [math.nan, 0, 0]])
    other = classified(classify, [[0.4, 0.6, 0], [0, 1, 0], [0, 1, 0]])
    flips = classify.flips(one, other)
    assert flips.rows() == [("id0", "billing", "bug"), ("id2", None, "bug")]
    assert classify.max_difference(one, other) is None
    assert classify.max_difference(one.head(2), other.head(2)) == pytest.approx(0.2)
    left = vectors(embed, [[1.0, 0.0], [0.0, 1.0]])
    right = vectors(embed, [[1.0, 1e-4], [1.0, 1.0]])
    assert embed.flips(left, right)["id"].to_list() == ["id1"]
    assert embed.max_difference(left, right) == pytest.approx(1.0)
    assert embed.max_difference(left, right.clear()) is None


def test_the_empty_pass(classify: Task, embed: Task) -> None:
    assert len(classify.columns([], ModelFacts(labels=tuple(LABELS)))["prediction"]) == 0
    assert embed.columns([], ModelFacts(dimension=4))["prediction"].shape == (0, 4)
