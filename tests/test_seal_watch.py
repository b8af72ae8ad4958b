"""Long looks at a campaign: each stage told, how far it is, and ended where they stand."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from campaign_parts import made, rows, write_jsonl
from rich.cells import cell_len

from gpucost_tui import watch as watching
from gpucost_tui.campaign.check import check
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.seal import seal
from gpucost_tui.campaign.survey import survey
from gpucost_tui.cli.live import watched
from gpucost_tui.demo import MODEL_FOLDER
from gpucost_tui.watch import NOBODY, Cancelled, Step, Told

#: Stages of a draft whose answers stand in its corpus, with what is done at their ends.
STAGES = {
    "Reading the protocol": 0,
    "Reading the model's files": sum(
        path.stat().st_size for path in MODEL_FOLDER.iterdir() if path.suffix != ".md"
    ),
    "Reading the tuning data": 2,
    "Reading corpus 'corpus'": 14,
    "Comparing corpus 'corpus' with the tuning data": 16,
    "Counting the tokens of corpus 'corpus'": 14,
    "Reading the columns of corpus 'corpus'": 14,
    "Reading column 'label'": 14,
    "Reading the ids of corpus 'corpus'": 14,
    "Reading the answers for corpus 'corpus'": 14,
    "Taking the fingerprint of the answers for corpus 'corpus'": 14,
}


@pytest.fixture(autouse=True)
def _every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_EVERY_S", 0.0)


def draft(folder: Path) -> Campaign:
    tuning = write_jsonl(folder.parent / "t.jsonl", [{"text": "one"}, {"text": "two"}])
    return made(folder, tuning=[str(tuning)])


def told_by(work: object, *arguments: object) -> list[Step]:
    steps: list[Step] = []
    work(*arguments, Told(steps.append))  # type: ignore[operator]
    return steps


def ends(steps: list[Step]) -> dict[str, int]:
    """Return the stages in order, each with what was done of it at last."""
    return {step.stage: step.done for step in steps}


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_every_stage_of_a_draft_is_told_to_its_end(tmp_path: Path) -> None:
    steps = told_by(survey, draft(tmp_path / "c"))
    assert ends(steps) == STAGES
    for step in steps:
        assert step.total is None or 0 <= step.done <= step.total, step


def test_every_stage_of_a_sealed_campaign_is_told_to_its_end(tmp_path: Path) -> None:
    campaign = draft(tmp_path / "c")
    assert list(ends(told_by(seal, campaign)))[-1] == "Writing the seal"
    found = ends(told_by(check, Campaign.open(campaign.folder)))
    entries = len(rows())
    for stage, done in (
        ("Reading corpus 'corpus'", entries),
        ("Reading the strata of corpus 'corpus'", entries),
        ("Comparing the answers for corpus 'corpus'", entries),
        ("Reading the tuning data", 2),
        ("Reading the model's files", STAGES["Reading the model's files"]),
        ("Looking at disk and devices", 0),
    ):
        assert found[stage] == done, stage


@pytest.mark.parametrize("stage", STAGES)
def test_a_look_ends_within_any_stage_and_leaves_nothing(tmp_path: Path, stage: str) -> None:
    campaign = draft(tmp_path / "c")
    before = tree(campaign.folder)
    seen: list[Step] = []

    def tell(step: Step) -> None:
        seen.append(step)
        if step.stage == stage and step.done * 2 >= STAGES[stage]:
            raise Cancelled

    for work in (survey, seal):
        with pytest.raises(Cancelled):
            work(campaign, Told(tell))
        assert seen[-1].stage == stage and seen[-1].done < max(STAGES[stage], 1)
    assert tree(campaign.folder) == before
    assert seal(campaign)[0].sha256  # nothing stands in the way of the next


def test_a_seal_that_is_being_written_is_written(tmp_path: Path) -> None:
    campaign = draft(tmp_path / "c")

    def tell(step: Step) -> None:
        if campaign.manifest_file.exists():
            raise Cancelled

    assert seal(campaign, Told(tell))[0].sha256 == Campaign.open(campaign.folder).sealed_hash()


def test_what_is_told_in_words() -> None:
    assert str(Step("Reading")) == "Reading"
    assert str(Step("Reading", 1)) == "Reading: 1 entry"
    assert str(Step("Reading", 1_500, 100_000)) == "Reading: 1,500 of 100,000 entries (1 %)"
    assert str(Step("Reading", 3 << 20, 4 << 20, "bytes")) == "Reading: 3.0 MiB of 4.0 MiB (75 %)"
    assert str(Step("Reading", 9, 4)) == "Reading: 9 of 4 entries (100 %)"  # the file has grown


def test_who_is_told_seldom_hears_the_stages_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "_EVERY_S", 1e9)
    steps: list[Step] = []
    watch = Told(steps.append)
    for stage in ("one", "two"):
        watch.stage(stage, 3)
        assert list(watch.each("abc")) == ["a", "b", "c"]
    assert steps == [Step("one", 0, 3), Step("two", 0, 3)]
    assert list(NOBODY.each("abc")) == ["a", "b", "c"]


class Terminal(io.StringIO):
    """Standard error of somebody who sits there."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_one_line_that_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    with watched() as watch:
        survey(draft(tmp_path / "c"), watch)
        watch.stage("\x1b]0;title\x07 한국어" * 9, 7)
    lines = terminal.getvalue().split("\r\x1b[K")
    assert "Reading corpus 'corpus': 7 entries …" in lines
    assert lines[-1] == "" and all(cell_len(line) <= 39 for line in lines)
    assert "\x07" not in terminal.getvalue()


def test_a_file_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = io.StringIO()
    monkeypatch.setattr(sys, "stderr", found)
    with watched() as watch:
        watch.stage("Reading", 7)
    assert found.getvalue() == "" and watch is NOBODY
