"""`check --try`: the longest batch of each variant, its memory and never a duration (R1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import campaign_parts as made_parts
import numpy as np
import pytest
import runner_parts as parts

from gpucost_tui.campaign.trying import longest_batch
from gpucost_tui.protocol.execution import Execution

LENGTHS = np.array([5, 9, 3, 60, 4, 4, 8, 200])


@pytest.mark.parametrize(
    ("changes", "positions", "width"),
    [
        ({"batch_size": 1}, [7], 100),
        ({"batch_size": 4}, [4, 5, 6, 7], 100),
        ({"batch_size": 4, "grouping": "length"}, [1, 3, 6, 7], 100),
        ({"batch_size": 4, "padding": "max_length"}, [0, 1, 2, 3], 100),
        ({"batch_size": 3, "pad_multiple": 64}, [0, 1, 2], 64),
        ({"token_budget": 90}, [7], 100),
    ],
)
def test_the_longest_batch_is_one_that_the_pass_has(
    changes: dict[str, Any], positions: list[int], width: int
) -> None:
    execution = Execution.model_validate({"max_length": 100, **changes})
    lengths = LENGTHS[:6] if changes.get("batch_size") == 3 else LENGTHS
    found, padded = longest_batch(lengths, execution)
    assert (found.tolist(), padded) == (positions, width)


def tried(folder: Path, script: dict[str, Any] | None = None, **more: str) -> Any:
    done = parts.gpucost("check", folder, "--try", "--json", script=script, **more)
    assert done.stdout, done.stderr
    return done, json.loads(done.stdout)


def test_every_variant_is_tried_in_a_draft_and_nothing_is_left_behind(tmp_path: Path) -> None:
    made = made_parts.made(tmp_path / "c")
    before = sorted(str(path) for path in made.folder.rglob("*"))
    cards = {"devices": [{"name": "H200", "capacity_bytes": 150 << 30}]}
    done, value = tried(made.folder, cards)
    assert done.returncode == 0, done.stderr
    assert [one["variant"] for one in value["tried"]] == ["batch-1", "batch-4", "batch-8"]
    assert [one["entries"] for one in value["tried"]] == [1, 4, 8]
    assert all(one["peak_allocated_bytes"] == 2 << 30 for one in value["tried"])
    assert all(one["peak_rss_bytes"] > 0 for one in value["tried"])
    assert not [key for one in value["tried"] for key in one if key.endswith("_s")]
    assert sorted(str(path) for path in made.folder.rglob("*")) == before
    shown = parts.gpucost("check", made.folder, "--try", script=cards)
    assert "never added" in shown.stdout
    assert "2.0 GiB" in shown.stdout


def test_what_fails_is_told_and_blocks_nothing(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c")
    fails = {"kind": "out-of-memory", "after": 0}
    done, value = tried(made.folder, {"default": {"fail": fails}})
    assert done.returncode == 0
    assert value["ok"] is True
    assert {one["failure"] for one in value["tried"]} == {"out-of-memory"}
    assert len([p for p in value["problems"] if "longest batch" in p["what"]]) == 3
    assert not any(problem["blocking"] for problem in value["problems"])
    assert not parts.state(made).attempts
    done, value = tried(made.folder, {"default": {"fail": {"kind": "kill", "after": 0}}})
    assert {one["failure"] for one in value["tried"]} <= {"killed", "out-of-memory"}
    assert all(one["missing"]["peak_rss_bytes"] for one in value["tried"])


def test_an_engine_that_can_not_start_is_a_sentence(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c")
    done = parts.gpucost("check", made.folder, "--try", script={"broken": "No module 'torch'"})
    assert done.returncode == 3
    assert "No module 'torch'" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_try_nothing_is_run(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c")
    done = parts.gpucost("check", made.folder, "--json", script={"broken": "never asked"})
    assert done.returncode == 0
    assert "tried" not in json.loads(done.stdout)
