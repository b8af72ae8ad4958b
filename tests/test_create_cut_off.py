"""`new` killed at any moment: the next one in the same place clears what is left, and no more."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from campaign_parts import TEMPLATE, rows, write_jsonl

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.lock import machine, started
from gpucost_tui.campaign.place import new_folder, sweep
from gpucost_tui.errors import WrongUse

LEFT = ".gpucost-new-*"


def corpus(tmp_path: Path, entries: int) -> Path:
    path = tmp_path / "corpus.jsonl"
    lines = (
        f'{{"id": "t{n}", "text": "text number {n}", "label": "bug"}}\n' for n in range(entries)
    )
    path.write_text("".join(lines))
    return path


def making(place: Path, source: Path) -> subprocess.Popen[bytes]:
    words = ["new", str(place), "--protocol", TEMPLATE, "--model", "demo", "--corpus", str(source)]
    return subprocess.Popen(
        [sys.executable, "-m", "gpucost_tui", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("filled", [False, True], ids=["new", "an empty folder"])
def test_killed_at_many_moments(tmp_path: Path, filled: bool) -> None:
    chance, source = random.Random(1), corpus(tmp_path, 20_000)
    place = tmp_path / "here" / "c"
    place.parent.mkdir()
    if filled:
        place.mkdir()
    inside = place if filled else place.parent
    for _ in range(6):
        process = making(place, source)
        while process.poll() is None and not list(inside.glob(LEFT)):
            time.sleep(0.001)
        time.sleep(chance.random() * 0.1)
        number = chance.choice([signal.SIGKILL, signal.SIGTERM])
        process.send_signal(number)
        if process.wait() == 0:  # it was quicker
            shutil.rmtree(place)
            if filled:
                place.mkdir()
            continue
        assert len(list(inside.glob(LEFT))) <= 1, "what the one before had left is gone"
        if not filled:
            assert not place.exists() or (place / "protocol.toml").exists()
    if place.exists() and any(p for p in place.iterdir() if not p.match(LEFT)):
        shutil.rmtree(place)
    made = create(place, Inputs(TEMPLATE, [str(source)], "demo"))
    assert not list(inside.glob(LEFT))
    assert made.protocol_file.exists()


def dead() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(["true"])
    process.wait()
    return process


def test_only_what_nobody_works_at_is_removed(tmp_path: Path) -> None:
    gone, me = dead().pid, os.getpid()
    with new_folder(tmp_path / "mine", "x") as scratch:
        mine = scratch.name
        assert sweep(tmp_path) is False, "its process is alive"
    own = mine.split("-")[4]
    names = {
        f".gpucost-new-{machine()}-{gone}-{own}-1": False,
        f".gpucost-new-{machine()}-{me}-{own}-9": True,
        f".gpucost-new-{machine()}-{me}-00000000-1": False,  # our number, another process
        f".gpucost-new-0123456789ab-{gone}-{own}-1": True,  # another machine's
        f".gpucost-new-{gone}": True,  # no name of ours
        "gpucost-new": True,
    }
    for name in names:
        (tmp_path / name / "corpus").mkdir(parents=True)
    (tmp_path / f".gpucost-new-{machine()}-{gone}-{own}-2").write_text("a file of that name")
    assert sweep(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {
        "mine",
        *(n for n, kept in names.items() if kept),
    }
    assert started(me) is not None


def test_several_at_once_in_one_process_and_place(tmp_path: Path) -> None:
    with new_folder(tmp_path / "a", "x") as one, new_folder(tmp_path / "b", "x") as other:
        assert one != other
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_several_processes_at_once_in_one_place(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "source.jsonl", rows())
    running = [making(tmp_path / f"c{n}", source) for n in range(3)]
    running += [making(tmp_path / "same", source) for _ in range(2)]
    ended = [process.wait() for process in running]
    assert ended[:3] == [0, 0, 0]
    assert sorted(ended[3:]) == [0, 2], "one makes it, the other says so"
    assert not list(tmp_path.glob(LEFT))
    assert all((tmp_path / name / "sources.json").exists() for name in ("c0", "c1", "c2", "same"))


def test_a_folder_that_was_half_filled_says_so(tmp_path: Path) -> None:
    place = tmp_path / "c"
    (place / "corpus").mkdir(parents=True)
    (place / f".gpucost-new-{machine()}-{dead().pid}-01234567-1").mkdir()
    with pytest.raises(WrongUse, match="not empty: an earlier `gpucost new` was cut off in it"):
        create(place, Inputs(TEMPLATE, []))
    assert [p.name for p in place.iterdir()] == ["corpus"]
