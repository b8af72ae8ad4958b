"""What two passes have in common, as the protocol names it; vectors of another length (R28, R3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import runner_parts as parts

from gpucost_tui.campaign.judge import Judge, Subject
from gpucost_tui.campaign.reproducing import FirstAttempt, compared
from gpucost_tui.files import sha256_file
from gpucost_tui.protocol.model import Reproduction
from gpucost_tui.tasks.registry import create

TASK = create({"name": "text-classification"})
LABELS = ["a", "b"]


def frame(*scores: float) -> pl.DataFrame:
    """Predictions whose first label has the given scores."""
    both = [[score, 1 - score] for score in scores]
    return pl.DataFrame(
        {
            "id": [f"{i:03d}" for i in range(len(both))],
            "order": range(len(both)),
            "prediction": [LABELS[int(pair[1] > pair[0])] for pair in both],
            "score": [max(pair) for pair in both],
            "scores": both,
        },
        schema=TASK.schema(),
    )


def first(folder: Path, predictions: pl.DataFrame) -> FirstAttempt:
    path = folder / "first.parquet"
    predictions.write_parquet(path)
    return FirstAttempt(1, path, sha256_file(path))


def aim(name: str, bound: float | None = None) -> Reproduction:
    return Reproduction(aim=name, max_difference=bound)  # type: ignore[arg-type]


BEFORE = (0.9, 0.2, 0.51, 0.7)


@pytest.mark.parametrize(
    ("wanted", "after", "reason", "flips"),
    [
        (aim("identical-outputs"), BEFORE, None, []),
        (aim("identical-outputs"), (0.9, 0.2, 0.5100001, 0.7), "quality", []),
        (aim("bounded-difference", 0.05), (0.91, 0.2, 0.51, 0.7), None, []),
        (aim("bounded-difference", 0.05), (0.9, 0.2, 0.49, 0.7), None, ["002"]),
        (aim("bounded-difference", 0.01), (0.9, 0.2, 0.49, 0.7), "quality", ["002"]),
        (aim("business-quality"), (0.1, 0.8, 0.49, 0.7), None, ["000", "001", "002"]),
    ],
)
def test_an_attempt_is_held_against_the_first(
    tmp_path: Path,
    wanted: Reproduction,
    after: tuple[float, ...],
    reason: str | None,
    flips: list[str],
) -> None:
    details, notes, found = compared(TASK, wanted, first(tmp_path, frame(*BEFORE)), frame(*after))
    assert found == reason
    assert details["flipped_ids"] == flips
    assert details["flips"] == len(flips)
    assert details["ok"] == (reason is None)
    assert details["reference_attempt"] == 1
    assert bool(notes) == (after != BEFORE)
    assert all(("is missed" in note) == (reason is not None) for note in notes)


def test_another_order_of_rows_is_the_same_output(tmp_path: Path) -> None:
    shuffled = frame(*BEFORE).reverse().with_columns(order=pl.Series([3, 1, 0, 2]))
    wanted = aim("identical-outputs")
    details, notes, reason = compared(TASK, wanted, first(tmp_path, frame(*BEFORE)), shuffled)
    assert (details["identical"], notes, reason) == (True, [], None)


@pytest.mark.parametrize(("name", "reason"), [("identical-outputs", "missing"),
                                              ("business-quality", None)])  # fmt: skip
def test_a_first_attempt_whose_file_changed_proves_nothing(
    tmp_path: Path, name: str, reason: str | None
) -> None:
    one = first(tmp_path, frame(*BEFORE))
    frame(0.1, 0.2).write_parquet(one.path)
    _, notes, found = compared(TASK, aim(name), one, frame(*BEFORE))
    assert found == reason
    assert "not those written" in notes[0]
    one.path.unlink()
    assert compared(TASK, aim(name), one, frame(*BEFORE))[2] == reason


def verdict(made: Any, number: int) -> dict[str, Any]:
    row = parts.rows(made)[number - 1]
    path = made.folder / Path(row["predictions_path"]).with_name("verdict.json")
    return json.loads(path.read_text("utf-8"))  # type: ignore[no-any-return]


def test_attempts_of_a_campaign_are_held_against_the_first_of_their_variant_and_seed(
    tmp_path: Path,
) -> None:
    made = parts.campaign(
        tmp_path / "c",
        reproduction__aim="identical-outputs",
        reproduction__seeds=[0, 1],
        measurement__rounds=2,
    )
    parts.run_here(made)
    rows = parts.rows(made)
    seen: dict[tuple[str, int], int] = {}
    for number, row in enumerate(rows, 1):
        found = verdict(made, number)["details"].get("reproduction")
        key = (row["variant"], row["seed"])
        if key in seen:
            assert found["reference_attempt"] == seen[key]
            assert (found["identical"], found["flips"]) == (True, 0)
        else:
            assert found is None
        seen.setdefault(key, number)
    assert len(seen) == 6
    assert {row["corpus_accepted"] for row in rows} == {True}


def test_an_output_that_does_not_repeat_is_rejected_also_after_a_new_start(tmp_path: Path) -> None:
    made = parts.campaign(
        tmp_path / "c", reproduction__aim="identical-outputs", measurement__rounds=2
    )
    from gpucost_tui.campaign.runner import Options

    parts.run_here(made, Options(limit=3))
    parts.run_here(made, script={"attempts": {"5": {"accuracy": 0.6}}})
    accepted = [row["corpus_accepted"] for row in parts.rows(made)]
    assert accepted == [True, True, True, True, False, True]
    told = verdict(made, 5)
    assert told["reasons"] == ["quality"]
    assert told["details"]["reproduction"]["flips"] == len(
        told["details"]["reproduction"]["flipped_ids"]
    )
    assert told["details"]["reproduction"]["flips"] > 0
    assert any("identical-outputs is missed" in note for note in told["notes"])


def test_vectors_of_one_wrong_length_fail_the_format(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c")
    judge = Judge(made, made.manifest)
    judge._task = create({"name": "text-embedding"})
    ids = [row["id"] for row in parts.corpus_rows()]
    vectors = pl.DataFrame(
        {"id": ids, "order": range(len(ids)), "prediction": [[1.0, 0.0]] * len(ids)},
        schema=judge._task.schema(),
    )
    path = tmp_path / "p.parquet"
    vectors.write_parquet(path)
    deliverable = made.manifest.protocol.deliverables[0].name

    def format_ok(dimension: int | None) -> bool:
        subject = Subject(
            attempt=1,
            status="stopped",
            deliverable=deliverable,
            round=1,
            predictions=path,
            predictions_sha256=sha256_file(path),
            labels=None,
            dimension=dimension,
        )
        return bool(judge.judge(subject).row["format_ok"])

    assert format_ok(None)
    assert format_ok(2)
    assert not format_ok(384)
