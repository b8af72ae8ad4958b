"""Confidence intervals of metrics: against the library, and against the figure they surround."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn import metrics

from gpucost_tui.tasks import intervals
from gpucost_tui.tasks.intervals import LEVEL, METRICS, bootstrap_labels, bootstrap_mean, wilson


@pytest.mark.parametrize("level", [0.9, LEVEL, 0.999])
@pytest.mark.parametrize("total", [1, 7, 1000, 10_000_000])
def test_wilson_is_scipys(total: int, level: float) -> None:
    for correct in sorted({0, 1, total // 3, 88 * total // 100, total - 1, total}):
        found = wilson(correct, total, level)
        expected = binomtest(correct, total).proportion_ci(level, method="wilson")
        assert found is not None
        assert (found.low, found.high) == pytest.approx(tuple(expected), rel=1e-12, abs=1e-15)


def test_wilson_without_entries_and_with_counts_that_cannot_be() -> None:
    assert wilson(0, 0) is None
    for correct, total in ((11, 10), (-1, 10), (1, 0)):
        with pytest.raises(ValueError):
            wilson(correct, total)


@pytest.mark.parametrize("seed", range(4))
def test_metrics_from_counts_are_scikit_learns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    if seed == 3:
        predicted[:] = 1  # one label only
    counts = metrics.confusion_matrix(truth, predicted).astype(float)[None]
    expected = {
        "accuracy": metrics.accuracy_score(truth, predicted),
        "macro_f1": metrics.f1_score(truth, predicted, average="macro", zero_division=0),
        "balanced_accuracy": metrics.balanced_accuracy_score(truth, predicted),
        "mcc": metrics.matthews_corrcoef(truth, predicted),
    }
    for name, value in expected.items():
        assert METRICS[name](counts)[0] == pytest.approx(value, abs=1e-12), name


def test_bootstrap_agrees_with_wilson_for_accuracy() -> None:
    truth = ["a"] * 500 + ["b"] * 500
    predicted = ["a"] * 440 + ["b"] * 60 + ["b"] * 440 + ["a"] * 60
    drawn, exact = bootstrap_labels(truth, predicted, "accuracy"), wilson(880, 1000)
    assert drawn is not None and exact is not None
    assert drawn.low == pytest.approx(exact.low, abs=0.005)
    assert drawn.high == pytest.approx(exact.high, abs=0.005)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_bootstrap_surrounds_the_metric_and_repeats(name: str) -> None:
    rng = np.random.default_rng(1)
    truth = [str(label) for label in rng.integers(0, 5, 400)]
    predicted = [t if rng.random() < 0.8 else "0" for t in truth]
    found = bootstrap_labels(truth, predicted, name)
    assert found is not None and found == bootstrap_labels(truth, predicted, name)
    labels = sorted({*truth, *predicted})
    counts = metrics.confusion_matrix(truth, predicted, labels=labels).astype(float)[None]
    assert found.low < METRICS[name](counts)[0] < found.high


def test_means_and_edges() -> None:
    values = np.random.default_rng(2).normal(0.9, 0.02, 300)
    found = bootstrap_mean(values, draws=500)
    assert found is not None
    assert found.low < values.mean() < found.high
    assert found.high - found.low == pytest.approx(4 * 0.02 / 300**0.5, rel=0.25)
    assert bootstrap_mean([]) is None
    assert bootstrap_labels([], [], "mcc") is None
    with pytest.raises(ValueError):
        bootstrap_mean([1.0, float("nan")])
    with pytest.raises(ValueError):
        bootstrap_labels(["a"], [], "mcc")
    with pytest.raises(ValueError):
        bootstrap_labels(["a"], ["a"], "bleu")


def test_many_labels_are_drawn_a_few_resamples_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"l{i}" for i in range(30)] * 3
    given = names[:80] + names[:10]
    whole = bootstrap_labels(names, given, "macro_f1")
    monkeypatch.setattr(intervals, "_CELLS", 7 * 900)
    assert bootstrap_labels(names, given, "macro_f1") == whole


def test_the_mean_of_many_entries_has_the_normal_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).uniform(size=4000)
    resampled = bootstrap_mean(values)
    monkeypatch.setattr(intervals, "MANY", 4000)
    found = bootstrap_mean(values)
    assert found is not None and resampled is not None and found.method == "normal"
    assert (found.low, found.high) == pytest.approx((resampled.low, resampled.high), abs=1e-3)
