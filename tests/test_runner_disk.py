"""Full disks, limits, read-only folders and things that stand in a file's place."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import runner_parts as parts

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.record import no_room
from gpucost_tui.errors import EnvironmentLacks, GpucostError


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here; file-size limits stand in for it")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def quota(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder that may hold 1 MB on a disk with room: the kernel's own quota (btrfs)."""
    image, place = tmp_path / "image", tmp_path / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(200 << 20)
    mount = ["mount", "-o", "loop", str(image), str(place)]
    for words in (["mkfs.btrfs", "-q", str(image)], mount):
        tried = shutil.which(words[0]) and subprocess.run(words, capture_output=True, check=False)
        if not tried or tried.returncode:
            pytest.skip(
                f"`{words[0]}` is not there or not allowed; file-size limits stand in for it"
            )
    try:
        folder = place / "mine"
        for words in (
            ["quota", "enable", place],
            ["subvolume", "create", folder],
            ["qgroup", "limit", "1m", folder],
        ):
            subprocess.run(["btrfs", *map(str, words)], check=True, capture_output=True)
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def on(disk: Path, tmp_path: Path, **settings: object) -> Campaign:
    made = parts.campaign(
        tmp_path / "c", measurement__process="thread", measurement__rounds=2, **settings
    )
    shutil.copytree(made.folder, disk / "c")
    return Campaign(disk / "c")


def fill(disk: Path, leave: int) -> Path:
    """Fill a disk until about ``leave`` bytes are free."""
    ballast = disk / "ballast"
    ballast.unlink(missing_ok=True)
    free = shutil.disk_usage(disk).free
    ballast.write_bytes(b"\0" * max(free - leave, 0))
    return ballast


def test_a_full_disk_refuses_the_next_attempt(small_disk: Path, tmp_path: Path) -> None:
    made = on(small_disk, tmp_path)
    done = parts.gpucost("run", made.folder, "--limit", "2")
    assert done.returncode == 0
    before = parts.rows(made)
    ballast = fill(small_disk, 100_000)
    done = parts.gpucost("run", made.folder)
    assert done.returncode == 3
    assert "of the disk are free, the next attempt needs about" in done.stderr
    assert "Traceback" not in done.stderr
    assert parts.rows(made) == before, "earlier rows are readable, nothing was begun"
    assert len(parts.gpucost("attempts", made.folder).stdout.splitlines()) >= 3
    ballast.unlink()
    assert parts.gpucost("run", made.folder).returncode == 0
    parts.sound(made, range(1, 7))


def test_a_disk_with_no_byte_left(small_disk: Path, tmp_path: Path) -> None:
    made = on(small_disk, tmp_path)
    parts.gpucost("run", made.folder, "--limit", "1")
    before = parts.rows(made)
    ballast = fill(small_disk, 0)
    for words in (("run",), ("run", "--detach"), ("status",), ("attempts",)):
        done = parts.gpucost(words[0], made.folder, *words[1:])
        assert done.returncode == (3 if words[0] == "run" else 0), done.stderr
        assert "Traceback" not in done.stderr
        assert "error of the program" not in done.stderr
    assert parts.rows(made) == before
    ballast.unlink()
    assert parts.gpucost("run", made.folder).returncode == 0
    parts.sound(made, range(1, 7))


def test_a_disk_that_fills_while_a_run_is_at_work(small_disk: Path, tmp_path: Path) -> None:
    """At many levels: whatever could not be written, the journal is valid and the run goes on."""
    made = on(small_disk, tmp_path)
    for leave in (300_000, 280_000, 270_000, 30_000):
        ballast = fill(small_disk, leave)
        ending = small_disk / "grows"
        runner = parts.start("run", made.folder, script={"default": {"batch_s": 0.02}})
        parts.until(lambda runner=runner: parts.running(made) or runner.poll() is not None)
        with contextlib.suppress(OSError):  # somebody else takes what is left
            ending.write_bytes(b"\0" * (4 << 20))
        if leave == 280_000:
            ending.write_bytes(b"")
        said, _ = runner.communicate(timeout=60)
        assert runner.returncode in (0, 3), said
        assert "Traceback" not in said
        assert "error of the program" not in said
        parts.state(made)
        ballast.unlink()
        ending.unlink(missing_ok=True)
    assert parts.gpucost("run", made.folder).returncode == 0
    failed = [row["attempt"] for row in parts.rows(made) if row["status"] == "failed"]
    for number in failed:
        assert parts.gpucost("run", made.folder, "--repeat", str(number)).returncode == 0
    parts.sound(made)
    done = [row for row in parts.rows(made) if row["status"] == "completed"]
    assert len(done) == 6


def test_a_quota_that_is_used_up(quota: Path, tmp_path: Path) -> None:
    """The disk has room and says so, and yet refuses: before a run, and while one is at work."""
    made = on(quota, tmp_path)
    assert parts.gpucost("run", made.folder, "--limit", "1").returncode == 0
    before = parts.rows(made)
    ballast = quota / "ballast"
    _use_up(ballast)
    done = parts.gpucost("run", made.folder)
    assert done.returncode == 3
    assert "Disk quota exceeded" in done.stderr
    assert "Traceback" not in done.stderr
    assert parts.rows(made) == before, "earlier rows are readable, nothing was begun"
    assert "completed" in parts.gpucost("attempts", made.folder).stdout
    assert "1 slot done" in parts.gpucost("status", made.folder).stdout
    ballast.unlink()
    runner = parts.start("run", made.folder, script={"default": {"batch_s": 0.05}})
    parts.until(lambda: parts.running(made, 2))
    _use_up(ballast)
    said, _ = runner.communicate(timeout=60)
    assert runner.returncode == 3, said
    assert "Disk quota exceeded" in said
    assert "Traceback" not in said
    parts.state(made)
    ballast.unlink()
    assert parts.gpucost("run", made.folder).returncode == 0
    for row in parts.rows(made):
        if row["status"] == "failed":
            number = str(row["attempt"])
            assert parts.gpucost("run", made.folder, "--repeat", number).returncode == 0
    parts.sound(made)
    assert [row["status"] for row in parts.rows(made)].count("completed") == 6


def _use_up(ballast: Path) -> None:
    """Write until the disk takes no more, to the last kilobyte."""
    with ballast.open("ab", buffering=0) as file:
        for size in (64 << 10, 4 << 10, 1 << 10):
            with contextlib.suppress(OSError):
                while file.write(b"\xa5" * size):
                    os.fsync(file.fileno())


def test_predictions_that_find_no_room_end_the_run(tmp_path: Path) -> None:
    """A limit on a file's size, as a quota has it: only the predictions are too large for it."""
    rows = parts.corpus_rows(4000)
    made = parts.campaign(
        tmp_path / "c", rows=rows, measurement__process="child", measurement__rounds=1
    )
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))\n"
        "from gpucost_tui.cli import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", str(made.folder)],
        env=parts.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "the disk refused the predictions" in done.stderr
    assert "--repeat 1" in done.stderr
    (row,) = parts.rows(made)
    assert (row["status"], row["failure"]) == ("failed", "error")
    assert row["finished_entries"] == 4000
    assert row["predictions_path"] is None
    assert parts.gpucost("run", made.folder, "--repeat", "1").returncode == 0
    parts.sound(made)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("raw_results.csv", "raw_results.csv"),
        ("device_memory.csv", "raw_results.csv"),
        ("raw_results.parquet", "raw_results.csv"),
        ("journal.jsonl", "journal"),
        ("journal.head", "journal"),
        ("runner.lock", "runner.lock"),
        ("manifest.json", None),
        ("corpus/corpus.jsonl", None),
        ("corpus/corpus.strata.parquet", None),
        ("protocol.toml", "protocol.toml"),
        ("progress.json", ""),
        ("control.json", ""),
        ("logs", ""),
        ("attempts", "attempts"),
        ("hosts", "hosts"),
        ("attempts/0001-batch-1-r1/verdict.json", "attempts/0001"),
        ("attempts/0001-batch-1-r1/predictions.parquet", "predictions"),
    ],
)
def test_something_else_in_a_files_place(tmp_path: Path, name: str, where: str | None) -> None:
    """``where`` is named by the refusal; empty where the run needs no such file."""
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    place = made.folder / name
    kept = tmp_path / "kept"
    if place.exists():
        place.rename(kept)
    place.parent.mkdir(parents=True, exist_ok=True)
    if name in ("logs", "attempts", "hosts"):
        place.write_text("a file, and no folder")
    else:
        place.mkdir()
    said = ""
    try:
        parts.run_here(made)
    except GpucostError as error:
        said = str(error)
    if where == "":
        assert said == ""
    elif name.endswith("predictions.parquet"):
        assert said == ""
        assert parts.rows(made)[0]["status"] == "failed"
    else:
        assert said
        assert (where or "") in said
    if place.is_dir():
        place.rmdir()
    else:
        place.unlink()
    if kept.exists():
        kept.rename(place)
    parts.run_here(Campaign(made.folder))
    parts.sound(made, [1, 2, 3])


def test_a_read_only_campaign(small_disk: Path, tmp_path: Path) -> None:
    made = on(small_disk, tmp_path)
    parts.gpucost("run", made.folder, "--limit", "1")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = parts.gpucost("run", made.folder)
    assert done.returncode == 3
    assert "Read-only file system" in done.stderr
    assert "Traceback" not in done.stderr
    detached = parts.gpucost("run", made.folder, "--detach")
    assert detached.returncode == 3
    assert "Read-only file system" in detached.stderr
    assert "1 slot done" in parts.gpucost("status", made.folder).stdout
    assert "completed" in parts.gpucost("attempts", made.folder).stdout
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert parts.gpucost("run", made.folder).returncode == 0
    parts.sound(made, range(1, 7))


def test_the_log_of_a_noisy_child_is_bounded(tmp_path: Path) -> None:
    from gpucost_tui.campaign.logs import BoundedLog

    log = BoundedLog(tmp_path / "logs/child.log", limit=10_000)
    shell = subprocess.Popen(["sh", "-c", "yes 'a line of noise' | head -c 200000"], stdout=-1)
    assert shell.stdout is not None
    with shell.stdout:
        log.drain(shell.stdout)
    shell.wait()
    sizes = [file.stat().st_size for file in (tmp_path / "logs").iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= 10_000
    assert "a line of noise" in log.tail()


def test_errors_of_a_disk_without_room_are_known() -> None:
    assert no_room("OSError: [Errno 28] No space left on device: 'x'")
    assert no_room("ComputeError: disk quota: Disk quota exceeded (os error 122)")
    assert not no_room("OSError: [Errno 2] No such file or directory")
    assert not no_room(None)


def test_a_run_that_finds_no_room_for_its_own_tables_keeps_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    from gpucost_tui.campaign import record

    real, calls = record.write_tables, []

    def refuse(*args: object, **words: object) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(*args, **words)  # type: ignore[arg-type]

    monkeypatch.setattr(record, "write_tables", refuse)
    with pytest.raises(EnvironmentLacks, match="No space left on device"):
        parts.run_here(made)
    assert [row["status"] for row in parts.rows(made)] == ["completed"]
    parts.run_here(made)
    parts.sound(made, [1, 2, 3])
