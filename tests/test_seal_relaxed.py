"""A child may not relax its parent's quality rule over a corpus whose verdicts were seen."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from campaign_parts import blocking, only, write_jsonl
from runner_parts import campaign, corpus_rows, run_here

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.seal import seal
from gpucost_tui.campaign.survey import survey
from gpucost_tui.errors import GpucostError

TEAMS = [{"column": "team", "threshold": 0.4, "min_entries": 2}]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign whose passes were judged."""
    made = campaign(
        tmp_path_factory.mktemp("relaxed") / "parent",
        measurement__rounds=1,
        quality__subgroups=TEAMS,
        quality__interval="lower-bound",
        quality__tolerance=0.01,
        quality__tolerance_variant="batch-1",
    )
    run_here(made)
    return made


def child(folder: Path, parent: Campaign, **more: Any) -> Campaign:
    return create(folder, Inputs(None, parent=parent.folder, **more))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("quality.threshold", 0.4, "the threshold is 0.4 and was 0.5"),
        (
            "quality.interval",
            "shown",
            "the threshold is for the metric, and was for the lower end of its interval",
        ),
        ("quality.metric", "macro_f1", "the metric is macro_f1 and was accuracy"),
        ("quality.tolerance", 0.02, "the tolerance is 0.02 and was 0.01"),
        ("quality.subgroups", [], "the subgroups of 'team' are gone"),
        ("quality.subgroups", [{**TEAMS[0], "threshold": 0.3}], "is 0.3 and was 0.4"),
        (
            "quality.subgroups",
            [{**TEAMS[0], "min_entries": 9}],
            "from 9 entries on and were from 2",
        ),
    ],
)
def test_what_is_relaxed_after_the_verdicts_blocks_the_seal(
    tmp_path: Path, judged: Campaign, key: str, value: Any, said: str
) -> None:
    made = child(tmp_path / "c", judged, settings=[(key, value)])
    problem = only(blocking(made))
    assert said in problem.what and "'parent' judged the same corpus" in problem.what
    assert "--corpus" in problem.fix and "[quality]" in problem.where
    with pytest.raises(GpucostError, match="R6, R27"):
        seal(made)


def test_a_stricter_rule_and_other_documents_are_free(tmp_path: Path, judged: Campaign) -> None:
    stricter = [("quality.threshold", 0.6), ("quality.tolerance", 0.001)]
    assert blocking(child(tmp_path / "strict", judged, settings=stricter)) == []
    rows = [{**row, "id": f"new-{row['id']}"} for row in corpus_rows()]
    other = [str(write_jsonl(tmp_path / "other.jsonl", rows))]
    lower = [("quality.threshold", 0.1)]
    assert blocking(child(tmp_path / "other", judged, corpus=other, settings=lower)) == []


def test_a_rule_may_change_while_nothing_was_judged(tmp_path: Path) -> None:
    parent = campaign(tmp_path / "parent")
    assert blocking(child(tmp_path / "c", parent, settings=[("quality.threshold", 0.1)])) == []


def test_a_grandparent_counts(tmp_path: Path, judged: Campaign) -> None:
    between = child(tmp_path / "between", judged)
    seal(between)
    made = child(tmp_path / "c", between, settings=[("quality.threshold", 0.1)])
    assert "'parent' judged the same corpus" in only(blocking(made)).what


def test_a_parent_that_is_elsewhere_is_said(tmp_path: Path) -> None:
    parent = campaign(tmp_path / "parent")
    made = child(tmp_path / "c", parent)
    shutil.rmtree(parent.folder)
    assert blocking(made) == []
    assert "a parent is not here" in only(survey(made).problems).what
