"""Campaigns that are unfinished, at work, cut off or nothing yet: each gets the right answer."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import dossier_support as support
import pytest
from dossier_support import lines, rewrite

from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.lock import RunnerLock
from gpucost_tui.campaign.seal import seal
from gpucost_tui.campaign.table import write_tables
from gpucost_tui.dossier.verify import verify
from gpucost_tui.dossier.views import STALE
from gpucost_tui.errors import EnvironmentLacks, NotACampaign


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign; never written to."""
    return support.finished(tmp_path_factory.mktemp("sound") / "camp").folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "camp"))


def cut_after(folder: Path, last: int) -> None:
    """Leave a campaign as it stood after a line: journal, head, tables, and later folders gone."""
    rewrite(folder, lines(folder)[:last], tables=False)
    state = fold(Campaign(folder).events())
    known = {attempt.folder for attempt in state.attempts.values()}
    for path in (folder / "attempts").iterdir():
        if f"attempts/{path.name}" not in known:
            shutil.rmtree(path)
    (folder / "raw_results.parquet").unlink()
    write_tables(folder, state)


def test_a_draft_is_nothing_to_verify(tmp_path: Path) -> None:
    campaign = support.draft(tmp_path / "camp")
    answer = verify([campaign.folder])
    assert not answer.ok
    assert not answer.sealed
    assert answer.findings.differences == []
    assert any("not sealed" in sentence for sentence in answer.findings.not_checkable)
    assert answer.to_json()["head"] is None


def test_a_sealed_campaign_without_a_run_is_sound(tmp_path: Path) -> None:
    campaign = support.draft(tmp_path / "camp")
    seal(campaign)
    answer = verify([campaign.folder])
    assert answer.ok, answer.findings.differences
    assert answer.to_json()["checked"]["journal_lines"] == 1


def test_no_folder_and_no_campaign(tmp_path: Path) -> None:
    with pytest.raises(NotACampaign):
        verify([tmp_path / "nowhere"])
    with pytest.raises(NotACampaign):
        verify([tmp_path])


def test_a_journal_that_is_empty_but_has_a_head(folder: Path) -> None:
    (folder / "journal.jsonl").write_bytes(b"")
    assert any("tail is cut" in one.found for one in verify([folder]).findings.differences)


@pytest.mark.parametrize("last", [3, 4, 5, 6, 9, 13])
def test_every_moment_of_a_run_is_sound(folder: Path, last: int) -> None:
    cut_after(folder, last)
    answer = verify([folder])
    assert answer.findings.differences == []
    assert answer.ok


def test_a_torn_last_line_is_said_and_no_difference(folder: Path) -> None:
    cut_after(folder, 9)
    with (folder / "journal.jsonl").open("ab") as stream:
        stream.write(b'{"data":{"attempt":3,"dev')
    answer = verify([folder])
    assert answer.findings.differences == []
    assert any("cut off (25 bytes)" in note for note in answer.findings.notes)


def test_a_lost_runner_leaves_a_stale_table_which_is_named(folder: Path) -> None:
    cut_after(folder, 9)
    write_tables(folder, fold(Campaign(folder).events()[:7]))
    answer = verify([folder])
    where = {one.where for one in answer.findings.differences}
    assert where == {"raw_results.csv", "device_memory.csv"}
    for one in answer.findings.differences:
        assert one.found.startswith("line ")
        assert "the fold of an earlier journal: stale" in one.found
    # The next run rebuilds it.
    support.filled(Campaign(folder))
    assert verify([folder]).ok


def test_a_lost_runner_leaves_an_attempt_without_end(folder: Path) -> None:
    cut_after(folder, 7)
    answer = verify([folder])
    assert answer.ok
    assert any("attempt 2 has no end" in note for note in answer.findings.notes)
    # The table as it was when the attempt began, as a runner leaves it that is killed in a pass.
    write_tables(folder, fold(Campaign(folder).events()[:6]))
    answer = verify([folder])
    assert answer.ok, answer.findings.differences
    notes = answer.findings.notes
    assert "raw_results.csv has no row yet of the attempt without end" in notes
    assert {one.where for one in verify([folder], resting=True).findings.differences} == {
        "raw_results.csv"
    }, "an export writes it again"
    support.replace(folder / "raw_results.csv", "completed", "failed")
    assert not verify([folder]).ok
    write_tables(folder, fold(Campaign(folder).events()))
    (folder / "attempts" / "0003-batch-8-r1").mkdir()  # made, and killed before its line
    assert verify([folder]).ok
    (folder / "attempts" / "0003-batch-8-r1" / "predictions.parquet").write_bytes(b"x")
    assert not verify([folder]).ok


def test_tables_may_lag_while_a_runner_is_at_work(folder: Path) -> None:
    cut_after(folder, 9)
    write_tables(folder, fold(Campaign(folder).events()[:7]))
    with RunnerLock(folder):
        answer = verify([folder])
    assert answer.ok, answer.findings.differences
    assert any("a runner is at work" in note for note in answer.findings.notes)


def started_runner(folder: Path) -> subprocess.Popen[bytes]:
    """Start a runner of its own process over the fake engine."""
    code = (
        "import pathlib, sys\n"
        "from gpucost_tui.campaign.folder import Campaign\n"
        "from gpucost_tui.campaign.runner import Listener, Options, Wishes, run\n"
        "campaign = Campaign(pathlib.Path(sys.argv[1]))\n"
        "run(campaign, wishes=Wishes(), listener=Listener(), options=Options())"
    )
    environment = {
        **support.environment(),
        "GPUCOST_ENGINE": "fake_engine:FakeEngine",
        "GPUCOST_FAKE": json.dumps({**support.SCRIPT, "default": {"batch_s": 0.01}}),
        "HF_HUB_OFFLINE": "1",
    }
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], env=environment)


def test_a_running_campaign_is_verified_from_another_process(tmp_path: Path) -> None:
    """A real runner writes while the folder is verified again and again."""
    campaign = support.draft(tmp_path / "camp", entries=12)
    seal(campaign)
    runner = started_runner(campaign.folder)
    looks = 0
    try:
        while runner.poll() is None:
            answer = verify([campaign.folder])
            assert answer.findings.differences == []
            looks += 1
    finally:
        runner.kill()
        runner.wait()
    assert runner.returncode == 0
    assert looks > 1
    assert verify([campaign.folder]).ok


def test_a_runner_that_is_killed_leaves_nothing_but_stale_tables(tmp_path: Path) -> None:
    campaign = support.draft(tmp_path / "camp", entries=12)
    seal(campaign)
    runner = started_runner(campaign.folder)
    journal = campaign.journal_file
    while journal.read_bytes().count(b'"event":"attempt_started"') < 3:
        assert runner.poll() is None
    runner.kill()
    runner.wait()
    answer = verify([campaign.folder])
    assert all(one.found.endswith(STALE) for one in answer.findings.differences)
    support.filled(campaign)
    answer = verify([campaign.folder])
    assert answer.ok, answer.findings.differences


def test_what_was_set_aside_is_held_against_its_name(folder: Path) -> None:
    cut_after(folder, 9)
    with (folder / "journal.jsonl").open("ab") as stream:
        stream.write(b'{"torn')
    Journal(folder).append("run_ended", {"why": "a test"})
    write_tables(folder, fold(Campaign(folder).events()), final=True)
    assert verify([folder]).findings.differences == []
    (piece,) = folder.glob("journal.torn-*")
    piece.write_bytes(b"another")
    assert [one.where for one in verify([folder]).findings.differences] == [piece.name]
    piece.unlink()
    assert [one.where for one in verify([folder]).findings.differences] == [piece.name]


def test_a_head_that_was_kept_earlier_names_a_record_that_grew(folder: Path) -> None:
    kept = verify([folder]).to_json()["head"]
    Journal(folder).append("run_ended", {"why": "a test"})
    write_tables(folder, fold(Campaign(folder).events()), final=True)
    answer = verify([folder], heads=[kept])
    assert answer.ok
    assert any("1 more lines" in note for note in answer.findings.notes)


def test_the_model_need_not_be_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sources.json").unlink()
    monkeypatch.setattr("gpucost_tui.dossier.inputs.resolve", _lacking)
    answer = verify([folder])
    assert answer.ok
    assert any("model: its files are not" in said for said in answer.findings.not_checkable)


def _lacking(*_: object, **__: object) -> None:
    from gpucost_tui.errors import EnvironmentLacks

    raise EnvironmentLacks("not here")


def test_a_linked_corpus_that_is_gone_is_not_checkable(tmp_path: Path) -> None:
    text = tmp_path / "large.jsonl"
    text.write_text(support.corpus_text(12), encoding="utf-8")
    campaign = support.draft(tmp_path / "camp", inputs={"corpus": [str(text)], "link": True})
    seal(campaign)
    support.filled(campaign)
    assert verify([campaign.folder]).ok
    text.rename(tmp_path / "moved.jsonl")
    answer = verify([campaign.folder])
    assert answer.ok, answer.findings.differences
    assert any("referred to and not here" in said for said in answer.findings.not_checkable)
    text.write_text(support.corpus_text(12).replace("order 5", "order five"), encoding="utf-8")
    assert not verify([campaign.folder]).ok


def test_several_hosts_have_one_manifest(sound: Path, tmp_path: Path) -> None:
    one = support.draft(tmp_path / "one")
    seal(one)
    other = Campaign(Path(shutil.copytree(one.folder, tmp_path / "other")))
    support.filled(one)
    support.filled(other)
    answer = verify([one.folder, other.folder])
    assert answer.ok, answer.findings.differences
    assert len(set(answer.to_json()["heads"])) == 2
    heads = answer.to_json()["heads"]
    assert verify([one.folder, other.folder], heads=heads).findings.not_checkable == []
    only = verify([one.folder, other.folder], heads=heads[:1]).findings.not_checkable
    assert any("1 of 2 campaigns without --head" in said for said in only)
    # A copy is no second host: there is nothing to decide over both.
    copy = Path(shutil.copytree(sound, tmp_path / "copy"))
    answer = verify([sound, copy])
    assert answer.ok
    assert any("is a copy of" in said for said in answer.findings.not_checkable)
    stranger = support.draft(tmp_path / "stranger")
    seal(stranger)
    answer = verify([sound, stranger.folder])
    assert any("of one comparison" in one.where for one in answer.findings.differences)


def test_verify_needs_no_torch(sound: Path) -> None:
    code = (
        "import sys\nfrom gpucost_tui.dossier.open import verify_places\n"
        f"assert verify_places([{str(sound)!r}]).ok\n"
        "print([m for m in ('torch', 'transformers', 'textual') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_odd_values_in_a_forged_journal_are_differences(folder: Path) -> None:
    for change in (
        {"row": {"pass_s": "fast"}},
        {"row": {"predictions_path": "../../elsewhere.parquet"}},
        {"row": {"predictions_path": 7}},
        {"row": None},
        {"missing": []},
        {"device_memory": [{"index": "x"}]},
    ):
        records = lines(folder)
        data = support.event(records, "attempt_finished", 3)["data"]
        for key, value in change.items():
            merge = isinstance(value, dict) and isinstance(data[key], dict)
            data[key] = {**data[key], **value} if merge else value
        copy = Path(shutil.copytree(folder, folder.with_name("odd")))
        rewrite(copy, records, tables=False)
        assert verify([copy]).findings.differences, change
        shutil.rmtree(copy)


def test_a_file_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "manifest.json")

    monkeypatch.setattr("gpucost_tui.dossier.verify.check_manifest", refused)
    with pytest.raises(EnvironmentLacks, match=r"manifest\.json: it can't be read"):
        verify([folder])


@pytest.mark.parametrize("name", ["raw_results.csv", "manifest.json", "journal.jsonl"])
def test_a_folder_in_a_files_place(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    assert any(name in one.where for one in verify([folder]).findings.differences)


def test_a_traceback_without_a_recorded_hash_is_no_difference(folder: Path) -> None:
    """Earlier versions recorded none."""
    records = lines(folder)
    for record in records:
        record["data"].pop("failure_sha256", None)
    rewrite(folder, records)
    answer = verify([folder])
    assert answer.ok, answer.findings.differences
    assert any("no fingerprint" in sentence for sentence in answer.findings.notes)
