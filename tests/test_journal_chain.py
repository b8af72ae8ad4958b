"""The journal: chain, head, torn tails, several writers, full disks, clocks."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpucost_tui.campaign import journal as module
from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.journal import GENESIS, Journal, Tail, read, trusted
from gpucost_tui.errors import Differs, EnvironmentLacks


def filled(folder: Path, events: int = 5) -> Path:
    journal = Journal(folder)
    for i in range(events):
        journal.append("note", {"i": i, "text": "é" * i}, host="cpu-1")
    return folder / "journal.jsonl"


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_every_line_names_the_one_before(tmp_path: Path) -> None:
    path = filled(tmp_path)
    raw = [json.loads(line) for line in lines(path)]
    assert [record["seq"] for record in raw] == [1, 2, 3, 4, 5]
    assert raw[0]["prev"] == GENESIS
    for line, after in zip(lines(path), raw[1:], strict=False):
        assert after["prev"] == module.sha256_bytes(line.rstrip(b"\n"))
    head = json.loads((tmp_path / "journal.head").read_bytes())
    assert head == {"seq": 5, "hash": trusted(tmp_path).head}
    assert raw[4]["data"] == {"i": 4, "text": "éééé"}
    assert raw[4]["time"].endswith("Z")


def test_nothing_yet_is_an_empty_journal(tmp_path: Path) -> None:
    reading = trusted(tmp_path)
    assert (reading.events, reading.torn, reading.head) == ([], b"", GENESIS)


def test_a_tail_cut_anywhere_is_set_aside_and_the_record_goes_on(tmp_path: Path) -> None:
    """A power cut: the last two lines are there up to some byte, the head is older than both."""
    path = filled(tmp_path, 3)
    head = (tmp_path / "journal.head").read_bytes()
    kept = path.read_bytes()
    journal = Journal(tmp_path)
    journal.append("note", {"i": 3, "text": "x" * 20})
    journal.append("note", {"i": 4, "text": "y" * 20})
    whole = path.read_bytes()
    second = whole.index(b"\n", len(kept)) + 1
    for cut in range(len(kept), len(whole) + 1):
        path.write_bytes(whole[:cut])
        (tmp_path / "journal.head").write_bytes(head)
        reading = trusted(tmp_path)
        expected = 3 + (cut >= second) + (cut == len(whole))
        assert len(reading.events) == expected
        end = [len(kept), second, len(whole)][expected - 3]
        assert reading.torn == whole[end:cut]
        Journal(tmp_path).append("after", {})
        after = trusted(tmp_path)
        assert after.torn == b""
        kinds = [event.event for event in after.events]
        torn = ["torn_line_set_aside"] if reading.torn else []
        assert kinds == ["note"] * expected + torn + ["after"]
        if reading.torn:
            (aside,) = fold(after.events).set_aside
            assert (tmp_path / aside["kept"]).read_bytes() == reading.torn
            assert aside["bytes"] == len(reading.torn)
            (tmp_path / aside["kept"]).unlink()


@pytest.mark.parametrize("zeros", [1, 100, 5000])
def test_a_tail_of_zeros_is_set_aside(tmp_path: Path, zeros: int) -> None:
    path = filled(tmp_path)
    with path.open("ab") as stream:
        stream.write(b"\0" * zeros)
    Journal(tmp_path).append("after", {})
    assert [e.event for e in trusted(tmp_path).events][-2:] == ["torn_line_set_aside", "after"]


def test_a_last_line_of_which_a_page_is_zeros_is_set_aside(tmp_path: Path) -> None:
    path = filled(tmp_path, 3)
    head = (tmp_path / "journal.head").read_bytes()
    Journal(tmp_path).append("note", {"text": "x" * 200})
    *rest, last = lines(path)
    path.write_bytes(b"".join(rest) + b"\0" * 100 + last[100:])
    with pytest.raises(Differs, match="line 4 is no JSON"):
        trusted(tmp_path)  # the head says that it had been written whole
    (tmp_path / "journal.head").write_bytes(head)
    assert len(trusted(tmp_path).torn) == len(last)
    Journal(tmp_path).append("after", {})
    assert [e.event for e in trusted(tmp_path).events][-2:] == ["torn_line_set_aside", "after"]


def removed(raw: list[bytes]) -> list[bytes]:
    return raw[:2] + raw[3:]


def reordered(raw: list[bytes]) -> list[bytes]:
    return [*raw[:1], raw[2], raw[1], *raw[3:]]


def edited(raw: list[bytes]) -> list[bytes]:
    return [*raw[:2], raw[2].replace(b'"i":2', b'"i":7'), *raw[3:]]


def edited_last(raw: list[bytes]) -> list[bytes]:
    return [*raw[:-1], raw[-1].replace(b'"i":4', b'"i":9')]


def tail_cut(raw: list[bytes]) -> list[bytes]:
    return raw[:-1]


def last_torn(raw: list[bytes]) -> list[bytes]:
    return [*raw[:-1], raw[-1][:-5]]


def doubled(raw: list[bytes]) -> list[bytes]:
    return [*raw, raw[-1]]


def garbage_inside(raw: list[bytes]) -> list[bytes]:
    return [*raw[:2], b"\0" * 50 + b"\n", *raw[2:]]


def blank_line(raw: list[bytes]) -> list[bytes]:
    return [*raw[:2], b"\n", *raw[2:]]


def other_types(raw: list[bytes]) -> list[bytes]:
    return [*raw[:4], raw[4].replace(b'"seq":5', b'"seq":"5"')]


def not_an_object(raw: list[bytes]) -> list[bytes]:
    return [*raw, b"[1]\n"]


@pytest.mark.parametrize(
    "spoil",
    [
        removed,
        reordered,
        edited,
        edited_last,
        tail_cut,
        last_torn,
        doubled,
        garbage_inside,
        blank_line,
        other_types,
        not_an_object,
    ],
)
def test_what_was_done_to_it_is_noticed_and_nothing_is_repaired(
    tmp_path: Path, spoil: Callable[[list[bytes]], list[bytes]]
) -> None:
    path = filled(tmp_path)
    path.write_bytes(b"".join(spoil(lines(path))))
    before = path.read_bytes()
    with pytest.raises(Differs, match="not the one that was written"):
        trusted(tmp_path)
    with pytest.raises(Differs):
        Journal(tmp_path).append("after", {})
    assert path.read_bytes() == before
    fold(read(tmp_path).events)  # what is valid before the damage can be shown


@pytest.mark.parametrize(
    "head",
    [b"", b"{", b"[]", b'{"seq": "5"}', b'{"seq": 0, "hash": "x"}', b'{"seq": 5, "hash": "x"}'],
)
def test_a_spoiled_head_is_noticed(tmp_path: Path, head: bytes) -> None:
    filled(tmp_path)
    (tmp_path / "journal.head").write_bytes(head)
    with pytest.raises(Differs):
        trusted(tmp_path)


def test_a_head_that_is_ahead_names_the_cut(tmp_path: Path) -> None:
    path = filled(tmp_path)
    path.write_bytes(b"".join(lines(path)[:3]))
    with pytest.raises(Differs, match="ends with line 3, its head names line 5: the tail is cut"):
        trusted(tmp_path)


def test_a_missing_head_or_journal_is_noticed(tmp_path: Path) -> None:
    path = filled(tmp_path)
    (tmp_path / "journal.head").rename(tmp_path / "kept")
    with pytest.raises(Differs, match="head is missing"):
        trusted(tmp_path)
    (tmp_path / "kept").rename(tmp_path / "journal.head")
    path.unlink()
    with pytest.raises(Differs, match="is missing"):
        trusted(tmp_path)
    with pytest.raises(Differs, match="is missing"):
        Journal(tmp_path).append("after", {})
    assert not path.exists()


def test_a_power_cut_before_the_first_head(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    (tmp_path / "journal.head").unlink()
    Journal(tmp_path).append("after", {})
    assert len(trusted(tmp_path).events) == 2


@pytest.mark.parametrize("where", ["journal.jsonl", "journal.head"])
def test_a_folder_in_its_place_is_a_sentence(tmp_path: Path, where: str) -> None:
    (tmp_path / where).mkdir()
    with pytest.raises(EnvironmentLacks, match="journal can't be"):
        Journal(tmp_path).append("note", {})
    with pytest.raises(EnvironmentLacks, match="journal can't be"):
        trusted(tmp_path)


def test_a_tail_reads_only_what_is_new(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    tail = Tail(tmp_path)
    assert [e.seq for e in tail.new()] == [1, 2, 3]
    assert tail.new() == []
    other = Journal(tmp_path)
    other.append("note", {})
    other.append("note", {})
    assert [e.seq for e in tail.new()] == [4, 5]
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(lines(path)[:4]))
    with pytest.raises(Differs):
        tail.new()


def append_many(folder: Path, who: int, count: int) -> None:
    journal = Journal(folder)
    for i in range(count):
        journal.append("note", {"who": who, "i": i})


def test_several_processes_append_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=append_many, args=(tmp_path, w, 40)) for w in range(4)]
    for worker in workers:
        worker.start()
    seen = 0
    while any(worker.is_alive() for worker in workers):
        reading = trusted(tmp_path)  # a reader never sees anything but a valid journal
        assert len(reading.events) >= seen
        seen = len(reading.events)
    assert [worker.exitcode for worker in workers] == [0] * 4
    events = trusted(tmp_path).events
    assert len(events) == 160
    for who in range(4):
        assert [e.data["i"] for e in events if e.data["who"] == who] == list(range(40))


def test_a_file_size_limit_leaves_a_valid_journal(tmp_path: Path) -> None:
    """As a full disk does, at every length of the journal in turn: no half line stays."""
    filled(tmp_path, 2)
    size = (tmp_path / "journal.jsonl").stat().st_size
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from gpucost_tui.campaign.journal import Journal\n"
        "from gpucost_tui.errors import EnvironmentLacks\n"
        "limit = int(sys.argv[2]); resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
        "try: Journal(Path(sys.argv[1])).append('note', {'text': 'z' * 100})\n"
        "except EnvironmentLacks as error: print(error); sys.exit(3)\n"
    )
    for extra in (0, 1, 60, 200):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), str(size + extra)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 3, done.stderr
        assert "the journal can't be written (File too large)" in done.stdout
        reading = trusted(tmp_path)
        assert (len(reading.events), reading.torn) == (2, b"")
    Journal(tmp_path).append("note", {})
    assert len(trusted(tmp_path).events) == 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here; the file-size limit stands in for it")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_leaves_a_valid_journal_that_goes_on(small_disk: Path) -> None:
    journal = Journal(small_disk)
    with pytest.raises(EnvironmentLacks, match="No space left on device"):
        for _ in range(1000):
            journal.append("note", {"text": "z" * 500})
    written = trusted(small_disk).events
    assert len(written) > 10
    (small_disk / "fill").write_bytes(b"")
    with pytest.raises(EnvironmentLacks):
        journal.append("note", {"text": "z" * 5000})
    path = small_disk / "journal.jsonl"
    assert not trusted(small_disk).torn
    subprocess.run(["mount", "-o", "remount,size=256k", str(small_disk)], check=True)
    journal.append("note", {"text": "z" * 5000})
    events = trusted(small_disk).events
    assert [e.hash for e in events[: len(written)]] == [e.hash for e in written]
    assert path.stat().st_size > 10_000


def test_a_clock_that_goes_backwards_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(["2026-05-01T10:00:00.000000Z", "2026-05-01T09:00:00.000000Z"])
    monkeypatch.setattr(module, "utc_now", lambda: next(times))
    journal = Journal(tmp_path)
    journal.append("note", {})
    journal.append("note", {})
    (said,) = fold(trusted(tmp_path).events).clock
    assert said == (
        "line 2: the wall clock went backwards: the line before is 2026-05-01T10:00:00.000000Z"
    )


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_a_sentence(tmp_path: Path) -> None:
    filled(tmp_path)
    tmp_path.chmod(0o500)
    (tmp_path / "journal.jsonl").chmod(0o400)
    try:
        with pytest.raises(EnvironmentLacks, match="Permission denied"):
            Journal(tmp_path).append("note", {})
    finally:
        tmp_path.chmod(0o700)
