"""Two at once: runners, a seal, a copy of the folder, readers; real processes at many timings."""

from __future__ import annotations

import contextlib
import fcntl
import json
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
import runner_parts as parts
from together_parts import done, forge

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import trusted
from gpucost_tui.campaign.lock import RunnerLock, holder
from gpucost_tui.campaign.runner import Options
from gpucost_tui.campaign.status import status
from gpucost_tui.dossier.verify import verify
from gpucost_tui.errors import Differs, Refused


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


def test_a_lock_that_goes_with_its_holder_lets_one_in_at_a_time(tmp_path: Path) -> None:
    step = {"do": "locking", "folder": tmp_path, "times": 150, "at": [0]}
    with forge() as at:
        said = at.at_once(*[step] * 4)
    assert all(map(done, said)), said
    assert sum(one["ok"][0] for one in said) > 0
    assert list(tmp_path.iterdir()) == [], "a clean end leaves no file"


@pytest.mark.parametrize("how", ["signs", "leaves", "neither"])
def test_a_holder_that_has_not_signed_yet(tmp_path: Path, how: str) -> None:
    """Between taking the lock and signing it, nobody is named for somebody else."""
    with RunnerLock(tmp_path, "export"):
        signed = (tmp_path / "runner.lock").read_bytes()
    lock = tmp_path / "runner.lock"
    with lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        def act() -> None:
            if how == "signs":
                lock.write_bytes(signed)
            elif how == "leaves":
                lock.unlink()
                held.close()

        later = threading.Timer(0.2, act)
        later.start()
        if how == "leaves":
            with RunnerLock(tmp_path):
                pass
        else:
            what = "an export" if how == "signs" else "a runner"
            with pytest.raises(Refused, match=f"{what} is already at work"):
                RunnerLock(tmp_path).__enter__()
        later.join()


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


# -- the folder goes to another machine -----------------------------------------------------------


def copies_elsewhere(
    tmp_path: Path, rounds: int, every_s: float, seed: int, most: int
) -> Counter[str]:
    """Copy a folder all through a run, its lock too, as if to another machine; go on with some."""
    chance, met = random.Random(seed), Counter[str]()
    made = parts.campaign(
        tmp_path / "c",
        measurement__process="thread",
        measurement__rounds=rounds,
        measurement__max_rounds=rounds,
    )
    runner = parts.start("run", made.folder, script={"default": {"batch_s": 0.01}})
    copies = []
    while runner.poll() is None:
        copies.append(tmp_path / f"copy{len(copies)}")
        subprocess.run(["cp", "-r", made.folder, copies[-1]], capture_output=True, check=False)
        time.sleep(chance.random() * every_s)
    runner.communicate()
    for copy in chance.sample(copies, min(most, len(copies))):
        met[_go_on_elsewhere(Campaign(copy), slots=3 * rounds)] += 1
    assert verify([made.folder]).ok
    return met


def _go_on_elsewhere(copy: Campaign, slots: int) -> str:
    """Go on with a copy; return how it was found."""
    locked = moved(copy.folder)
    try:
        trusted(copy.folder)
    except Differs as error:
        assert "copy it again" in str(error)
        assert verify([copy.folder]).findings.differences
        return "to be copied again"
    found = verify([copy.folder]).findings.differences
    if locked:
        assert status(copy)["elsewhere"]["host"] == "0123456789ab"
        before = copy.journal_file.read_bytes()
        with pytest.raises(Refused, match=r"another machine.*gpucost run --take-over"):
            parts.run_here(copy)
        assert copy.journal_file.read_bytes() == before
    assert parts.run_here(copy, Options(take_over=True)).open_slots == 0
    parts.sound(copy, range(1, slots + 1))
    after = verify([copy.folder])
    assert after.ok, after.findings.differences
    return f"{'locked' if locked else 'free'}, {'some files newer' if found else 'verified'}"


def moved(folder: Path) -> bool:
    """Let a copy's lock be another machine's; tell whether it had one."""
    lock = folder / "runner.lock"
    try:
        written = json.loads(lock.read_bytes())
    except (OSError, ValueError):
        return False
    lock.write_text(json.dumps({**written, "machine": "0123456789ab"}))
    with contextlib.suppress(OSError, ValueError):  # and some time has passed
        progress = json.loads((folder / "progress.json").read_bytes())
        aged = {**progress, "updated": "2026-01-01T00:00:00Z"}
        (folder / "progress.json").write_text(json.dumps(aged))
    return True


def test_copies_to_another_machine_at_many_moments(tmp_path: Path) -> None:
    met = copies_elsewhere(tmp_path, rounds=2, every_s=0.1, seed=7, most=10)
    assert sum(number for how, number in met.items() if how.startswith("locked")) >= 2, met


@pytest.mark.slow
def test_copies_to_another_machine_at_many_more_moments(tmp_path: Path) -> None:
    print(dict(copies_elsewhere(tmp_path, rounds=10, every_s=0.1, seed=8, most=60)))


def test_what_each_word_says_of_a_copy_with_another_machines_lock(tmp_path: Path) -> None:
    """A sentence names only what its own word can do."""
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    runner = parts.start("run", made.folder, script={"default": {"batch_s": 0.05}})
    parts.until(lambda: parts.running(made, 2))
    runner.kill()
    runner.communicate()
    copy = tmp_path / "copy"
    shutil.copytree(made.folder, copy)
    assert moved(copy)
    said = parts.gpucost("status", copy).stdout
    assert "A runner on another machine (0123456789ab) has held this campaign since" in said
    assert "`gpucost run`, `seal` and `export` take --take-over" in said
    assert "no runner is at work on this campaign here" in parts.gpucost("stop", copy).stderr
    for words in (("run",), ("seal",), ("export", tmp_path / "x.zip")):
        refused = parts.gpucost(words[0], copy, *words[1:])
        assert refused.returncode == 1
        assert "a runner may still be at work there" in refused.stderr
        assert f"`gpucost {words[0]} --take-over` goes on here" in refused.stderr
    detached = parts.gpucost("run", copy, "--detach")
    assert "on another machine" in detached.stderr
    assert "add --take-over" in detached.stderr
    packed = parts.gpucost("export", copy, tmp_path / "x.zip", "--take-over")
    assert packed.returncode == 0, packed.stderr
    assert parts.gpucost("verify", tmp_path / "x.zip").returncode == 0
    assert parts.gpucost("run", copy).returncode == 0
    parts.sound(Campaign(copy), [1, 2, 3])


def test_a_draft_whose_seal_was_killed_on_another_machine(tmp_path: Path) -> None:
    corpus = parts.write_corpus(tmp_path / "corpus.jsonl", parts.corpus_rows())
    inputs = Inputs(
        "classification-batch", [str(corpus)], model="demo", settings=list(parts.SETTINGS.items())
    )
    made = create(tmp_path / "c", inputs)
    lock = made.folder / "runner.lock"
    holding = (
        "import sys, time; from pathlib import Path\n"
        "from gpucost_tui.campaign.lock import RunnerLock\n"
        "with RunnerLock(Path(sys.argv[1]), 'seal'): time.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", holding, made.folder])
    parts.until(lambda: lock.exists() and lock.read_bytes())
    for word in ("seal", "run"):
        said = parts.gpucost(word, made.folder)
        assert said.returncode == 1
        assert "a seal is already at work" in said.stderr or "not sealed" in said.stderr
        assert "gpucost stop" not in said.stderr
    other.kill()
    other.wait()
    assert moved(made.folder)
    said = parts.gpucost("seal", made.folder)
    assert "a seal may still be at work there. If it is not, `gpucost seal --take-over`" in (
        said.stderr
    )
    assert parts.gpucost("seal", made.folder, "--take-over").returncode == 0
    assert not lock.exists()


def test_another_machine_by_its_own_name(tmp_path: Path) -> None:
    """A namespace with another host name is another machine to the program."""
    other = ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"]
    if subprocess.run([*other, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no host name of its own is allowed here; a written lock stands in for it")
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    words = [sys.executable, "-m", "gpucost_tui"]
    runner = subprocess.Popen(
        [*other, *words, "run", made.folder],
        env=parts.environment({"default": {"batch_s": 0.05}, "attempts": {"2": {"batch_s": 5}}}),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    parts.until(lambda: parts.running(made, 2))
    # One folder, two machines: while the other is at work, even a wish to take over is refused.
    assert "a runner is already at work" in parts.gpucost("run", made.folder, "--take-over").stderr
    assert status(made)["runner"]["pid"] == runner.pid
    said = parts.gpucost("status", made.folder).stdout
    assert f"Runner: process {runner.pid} on another machine" in said
    assert "gpucost stop" not in said
    runner.kill()
    runner.wait()
    refused = parts.gpucost("run", made.folder)
    assert "written on another machine" in refused.stderr
    done = subprocess.run(
        [*other, *words, "run", made.folder, "--limit", "1"], env=parts.environment(), check=False
    )
    assert done.returncode == 0, "the machine that wrote it takes over from its own dead"
    assert parts.gpucost("run", made.folder).returncode == 0
    parts.sound(made, [1, 2, 3])
