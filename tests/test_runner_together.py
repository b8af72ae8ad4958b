"""Two at once: runners, a seal, a copy of the folder, readers; real processes at many timings."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from pathlib import Path

import runner_parts as parts

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import trusted
from gpucost_tui.campaign.lock import holder
from gpucost_tui.campaign.status import status
from gpucost_tui.errors import Differs


def test_of_several_runners_one_wins(tmp_path: Path) -> None:
    for turn in range(3):
        made = parts.campaign(
            tmp_path / f"c{turn}", measurement__process="thread", measurement__rounds=1
        )
        script = {"default": {"batch_s": 0.02}}
        chance = random.Random(turn)
        runners = []
        for _ in range(4):
            runners.append(parts.start("run", made.folder, script=script))
            time.sleep(chance.random() * 0.1)
        said = [runner.communicate(timeout=60)[0] for runner in runners]
        won = [text for text, runner in zip(said, runners, strict=True) if runner.returncode == 0]
        lost = [text for text, runner in zip(said, runners, strict=True) if runner.returncode != 0]
        assert any("3 accepted" in text for text in won)
        for text in lost:
            assert "a runner is already at work on this campaign" in text
            assert "Traceback" not in text
        parts.sound(made, [1, 2, 3])
        assert [e.event for e in parts.events(made)].count("attempt_started") == 3


def test_a_run_and_a_seal(tmp_path: Path) -> None:
    corpus = parts.write_corpus(tmp_path / "corpus.jsonl", parts.corpus_rows())
    settings = {**parts.SETTINGS, "measurement.process": "thread", "measurement.rounds": 1}
    inputs = Inputs(
        "classification-batch", [str(corpus)], model="demo", settings=list(settings.items())
    )
    chance = random.Random(3)
    for turn in range(4):
        made = create(tmp_path / f"c{turn}", inputs)
        sealing = [parts.start("seal", made.folder)]
        time.sleep(chance.random() * 0.9)
        runner = parts.start("run", made.folder)
        sealing.append(parts.start("seal", made.folder))
        said = [process.communicate(timeout=60)[0] for process in (*sealing, runner)]
        for text in said:
            assert "Traceback" not in text
            assert "error of the program" not in text
        assert sealing[0].returncode == 0 or sealing[1].returncode == 0, said
        assert [e.event for e in parts.events(made)].count("sealed") == 1
        if runner.returncode:
            words = ("not sealed", "not completed", "already at work")
            assert any(word in said[2] for word in words), said[2]
        parts.run_here(Campaign(made.folder))
        parts.sound(made, [1, 2, 3])


def test_a_copy_of_the_folder_taken_during_a_run(tmp_path: Path) -> None:
    """A copy is a campaign of its own, or says that it must be copied again; nothing else."""
    made = parts.campaign(tmp_path / "c", measurement__rounds=2)
    runner = parts.start("run", made.folder, script={"default": {"batch_s": 0.02}})
    copies, number = [], 0
    while runner.poll() is None:
        number += 1
        copy = tmp_path / f"copy{number}"
        # Without rsync's care: files vanish and appear while they are copied.
        done = subprocess.run(["cp", "-r", made.folder, copy], capture_output=True, check=False)
        assert done.returncode in (0, 1)
        copies.append(copy)
        time.sleep(0.05)
    said, _ = runner.communicate()
    assert runner.returncode == 0, said
    parts.sound(made, range(1, 7))
    whole = []
    for copy in copies:
        assert holder(copy) is None, "the runner of the original is none of the copy's"
        try:
            trusted(copy)
            whole.append(copy)
        except Differs as error:
            assert "copy it again" in str(error)
    assert whole
    chosen = whole[len(whole) // 2]
    end = parts.run_here(Campaign(chosen))
    assert end.open_slots == 0
    parts.sound(Campaign(chosen), range(1, 7))


def test_readers_never_see_anything_but_a_valid_campaign(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=4)
    runner = parts.start("run", made.folder, script={"default": {"batch_s": 0.005}})
    seen, last = set(), 0
    while runner.poll() is None:
        now = status(made)
        seen.add(now["state"])
        assert now["done"] >= last
        last = now["done"]
        if made.table_file.exists():
            parts.table(made)
        time.sleep(0.005)
    runner.communicate()
    assert status(made)["state"] == "finished"
    assert "running" in seen
    assert seen <= {"sealed", "idle", "running", "finished"}


def test_a_lock_copied_with_its_folder_names_nobody_here(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    runner = parts.start("run", made.folder, script={"default": {"batch_s": 0.2}})
    parts.until(lambda: parts.running(made))
    shutil.copytree(made.folder, tmp_path / "copy", ignore=lambda *_: ["attempts"])
    now = json.loads(parts.gpucost("status", tmp_path / "copy", "--json").stdout)
    assert (now["runner"], now["elsewhere"], now["lost"]) == (None, None, True)
    assert parts.gpucost("stop", tmp_path / "copy").returncode == 1
    assert status(made)["runner"] is not None
    parts.gpucost("stop", made.folder)
    runner.communicate(timeout=30)
