"""Power cuts over a whole campaign: at every line of the journal, within it, with what is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import runner_parts as parts

from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import trusted
from gpucost_tui.dossier.verify import verify
from gpucost_tui.files import canonical_json, sha256_bytes

VIEWS = ("raw_results.csv", "raw_results.parquet", "device_memory.csv", "progress.json")
THREAD: dict[str, Any] = {"measurement__process": "thread", "measurement__rounds": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign with a failed attempt; never written to."""
    made = parts.campaign(tmp_path_factory.mktemp("finished") / "c", **THREAD)
    failing = {"fail": {"kind": "raise", "after": 8}}
    parts.run_here(made, script={"attempts": {"2": failing}})
    return made.folder


def cut(finished: Path, folder: Path, whole: int, rest: float, head: int) -> Campaign:
    """Return a copy as it stood when the power failed.

    Args:
        finished: What would have become of it.
        folder: Where the copy goes.
        whole: Lines of the journal that are there whole.
        rest: The part of the next line that is there.
        head: The line that ``journal.head`` names.
    """
    made = Campaign(Path(shutil.copytree(finished, folder)))
    lines = made.journal_file.read_bytes().splitlines(keepends=True)
    following = lines[whole] if whole < len(lines) else b""
    made.journal_file.write_bytes(b"".join(lines[:whole]) + following[: int(rest * len(following))])
    named = {"seq": head, "hash": sha256_bytes(lines[head - 1].rstrip(b"\n"))}
    (made.folder / "journal.head").write_bytes(canonical_json(named))
    for name in VIEWS:  # written without waiting for the disk
        (made.folder / name).unlink()
    _only_what_was_there(made, [json.loads(line) for line in lines[: whole + 1]])
    return made


def _only_what_was_there(made: Campaign, lines: list[dict[str, Any]]) -> None:
    """Take away what is written after these lines, each of which waits for its files."""
    done = {kind: {line["data"]["attempt"] for line in lines if line["event"] == f"attempt_{kind}"}
            for kind in ("started", "finished", "judged")}  # fmt: skip
    for place in (made.folder / "attempts").iterdir():
        number = int(place.name[:4])
        if number not in done["started"]:
            shutil.rmtree(place)
            continue
        if number not in done["finished"]:
            for name in ("predictions.parquet", "failure.txt"):
                (place / name).unlink(missing_ok=True)
        if number not in done["judged"]:
            (place / "verdict.json").unlink(missing_ok=True)
    if not any(line["event"] == "host_seen" for line in lines):
        shutil.rmtree(made.folder / "hosts")


def goes_on(made: Campaign) -> None:
    before = trusted(made.folder)
    assert parts.run_here(made, script={}).open_slots == 0
    parts.sound(made, [1, 2, 3])
    after = parts.events(made)
    assert after[: len(before.events)] == before.events, "no line that was whole is lost"
    aside = fold(after).set_aside
    assert len(aside) == (1 if before.torn else 0)
    for piece in aside:
        assert (made.folder / piece["kept"]).read_bytes() == before.torn
    answer = verify([made.folder])
    assert answer.ok, answer.findings.differences


def test_the_power_fails_at_every_line(finished: Path, tmp_path: Path) -> None:
    """Of the last two lines the first is whole and the second is half; the head is older."""
    lines = len(trusted(finished).events)
    assert lines == 13
    for whole in range(2, lines):
        goes_on(cut(finished, tmp_path / f"c{whole}", whole, 0.5, whole - 1))


def test_the_power_fails_after_every_line(finished: Path, tmp_path: Path) -> None:
    """Two lines are whole, and their heads are not there yet."""
    lines = len(trusted(finished).events)
    for whole in range(3, lines + 1):
        goes_on(cut(finished, tmp_path / f"c{whole}", whole, 0, whole - 2))


@pytest.mark.slow
def test_the_power_fails_at_every_byte_of_the_last_two_lines(
    finished: Path, tmp_path: Path
) -> None:
    """Every byte of the last two lines; of earlier pairs, every 29th."""
    data = (finished / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for last in range(len(data), 2, -3):
        length = sum(map(len, data[last - 2 : last]))
        for at in range(0, length, 1 if last == len(data) else 29):
            first = len(data[last - 2])
            whole = last - 2 + (at >= first)
            inside = at - first if at >= first else at
            rest = inside / len(data[whole]) + 1e-9
            goes_on(cut(finished, tmp_path / "c", whole, rest, last - 2))
            shutil.rmtree(tmp_path / "c")
