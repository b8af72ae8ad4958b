"""A file that somebody else saves at the same moment: what they save stays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucost_tui.campaign import swapping
from gpucost_tui.campaign.swapping import exchange, replaced
from gpucost_tui.files import sha256_bytes

READ = b"as it was read\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "protocol.toml"
    path.write_bytes(READ)
    path.chmod(0o640)
    return path


@pytest.fixture
def exchanging(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    if not exchange(one, other):
        pytest.skip("this file system can't let two files change places")
    assert (one.read_bytes(), other.read_bytes()) == (b"2", b"1")
    one.unlink()
    other.unlink()


def alone(path: Path) -> bool:
    return [p.name for p in path.parent.iterdir()] == [path.name]


def saved(path: Path, data: bytes) -> None:
    """Save as editors do that rename."""
    other = path.with_name("other~")
    other.write_bytes(data)
    other.replace(path)


def test_what_was_read_is_replaced_and_keeps_its_mode(file: Path) -> None:
    assert replaced(file, b"ours", sha256_bytes(READ))
    assert file.read_bytes() == b"ours"
    assert file.stat().st_mode & 0o777 == 0o640
    assert alone(file)


def test_another_content_is_left(file: Path) -> None:
    assert not replaced(file, b"ours", sha256_bytes(b"something else"))
    assert file.read_bytes() == READ
    assert alone(file)


def at_the_exchange(
    monkeypatch: pytest.MonkeyPatch, acts: list[Callable[[], object]]
) -> list[Callable[[], object]]:
    """Let something happen just before each exchange; return what has not happened."""
    real = swapping.exchange

    def after(one: Path, other: Path) -> bool:
        if acts:
            acts.pop(0)()
        return real(one, other)

    monkeypatch.setattr(swapping, "exchange", after)
    return acts


@pytest.mark.usefixtures("exchanging")
@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_saves_between_the_look_and_the_exchange_stay(
    file: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The latest of them is what stays."""
    saves = [lambda n=n: saved(file, b"theirs %d" % n) for n in range(times)]
    left = at_the_exchange(monkeypatch, saves)
    assert not replaced(file, b"ours", sha256_bytes(READ))
    assert file.read_bytes() == b"theirs %d" % (times - 1)
    assert not left
    assert alone(file)


@pytest.mark.usefixtures("exchanging")
def test_who_had_it_open_may_finish(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that saves in place opens, and writes a moment later."""
    stream = file.open("r+b", buffering=0)

    def write() -> None:
        stream.write(b"theirs")
        stream.truncate()
        stream.close()

    later = threading.Timer(0.2, write)
    at_the_exchange(monkeypatch, [later.start])
    assert not replaced(file, b"ours", sha256_bytes(READ))
    later.join()
    assert file.read_bytes() == b"theirs"
    assert alone(file)


def test_a_reader_that_stays_is_not_waited_for_for_ever(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swapping, "_PATIENCE_S", 0.1)
    with file.open("rb") as stream:
        assert replaced(file, b"ours", sha256_bytes(READ))
        assert stream.read() in (READ, b"ours")
    assert file.read_bytes() == b"ours"


def test_without_an_exchange_the_look_comes_last(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swapping, "exchange", lambda one, other: False)
    assert replaced(file, b"ours", sha256_bytes(READ))
    assert file.read_bytes() == b"ours"
    saved(file, b"theirs")
    assert not replaced(file, b"more", sha256_bytes(b"ours"))
    assert file.read_bytes() == b"theirs"
    assert alone(file)


def test_a_disk_that_refuses_leaves_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(swapping, "sync_path", refuse)
    with pytest.raises(OSError, match="No space"):
        replaced(file, b"ours", sha256_bytes(READ))
    assert file.read_bytes() == READ
    assert alone(file)
