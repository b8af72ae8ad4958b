"""The dossier: whole, deterministic, verified by a stranger; ZIPs from elsewhere not trusted."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import dossier_support as support
import pytest
from click.testing import CliRunner

from gpucost_tui.campaign.committing import Pack, commit
from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.lock import RunnerLock
from gpucost_tui.campaign.seal import seal
from gpucost_tui.campaign.window import need
from gpucost_tui.cli import group, main
from gpucost_tui.dossier import archive
from gpucost_tui.dossier.archive import verify_archive
from gpucost_tui.dossier.export import Exported, export
from gpucost_tui.dossier.verify import verify
from gpucost_tui.errors import EnvironmentLacks, InputError, Refused, WrongUse
from gpucost_tui.files import sha256_file
from gpucost_tui.pricing import catalogue
from gpucost_tui.report.note import write_report


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign with a commitment and a note; never written to."""
    campaign = support.finished(tmp_path_factory.mktemp("sound") / "camp")
    commit(campaign, Pack("rtx-4090", 7, 1), catalogue.load())
    write_report([campaign.folder])
    return campaign.folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "camp"))


@pytest.fixture
def done(folder: Path, tmp_path: Path) -> Exported:
    return export([folder], tmp_path / "out.zip")


def names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as opened:
        return opened.namelist()


def test_a_dossier_is_whole_and_verifies(done: Exported, sound: Path) -> None:
    answer = verify_archive(done.path)
    assert answer.ok, answer.findings.differences
    assert answer.to_json()["head"] == verify([sound]).to_json()["head"]
    assert done.heads == (answer.to_json()["head"],)
    assert answer.findings.checked["notes"] == 2
    assert verify_archive(done.path, heads=done.heads).findings.not_checkable == []
    inside = {name.removeprefix("campaigns/01-camp/") for name in names(done.path)}
    assert inside >= {
        "README.txt",
        "SHA256SUMS",
        "manifest.json",
        "protocol.toml",
        "journal.jsonl",
        "journal.head",
        "corpus/corpus.jsonl",
        "corpus/corpus.strata.parquet",
        "reference/corpus.jsonl",
        "tuning/tuning.jsonl",
        "raw_results.csv",
        "raw_results.parquet",
        "device_memory.csv",
        "report/decision.md",
        "report/report.html",
        "attempts/0002-batch-4-r1/failure.txt",
        "attempts/0006-batch-1-r2/predictions.parquet",
        "attempts/0006-batch-1-r2/verdict.json",
    }


def test_nothing_of_this_machine_is_packed(done: Exported, folder: Path) -> None:
    for name in names(done.path):
        assert not name.endswith(("sources.json", "runner.lock", "progress.json", "child.log"))
    with zipfile.ZipFile(done.path) as opened:
        for name in opened.namelist():
            assert str(folder.parent).encode() not in opened.read(name), name


def test_the_readme_has_what_a_stranger_needs(done: Exported) -> None:
    with zipfile.ZipFile(done.path) as opened:
        assert opened.namelist()[0] == "SHA256SUMS"
        text = opened.read("README.txt").decode()
    assert f"gpucost verify DOSSIER.zip --head {done.heads[0]}" in text
    assert done.manifest in text
    assert "Which batch size processes the whole corpus" in text
    assert "synthetic demonstration" in text
    assert "neither an MLPerf run nor a certification" in text
    assert "01-camp: 6 attempts." in text


def test_the_same_content_gives_the_same_bytes(sound: Path, tmp_path: Path) -> None:
    one = Path(shutil.copytree(sound, tmp_path / "one"))
    other = Path(shutil.copytree(sound, tmp_path / "two" / "of another name"))
    for path in other.rglob("*"):
        os.utime(path, (1, 1))
    first, second = export([one], tmp_path / "1.zip"), export([other], tmp_path / "2.zip")
    assert first.sha256 == second.sha256 == sha256_file(first.path)


def test_an_export_is_recorded_and_measures_the_window(done: Exported, folder: Path) -> None:
    campaign = Campaign(folder)
    last = campaign.events()[-1]
    assert last.event == "exported"
    assert last.data["seconds"] == pytest.approx(done.seconds, abs=0.001)
    state = support.fold(campaign.events())
    window = need(campaign.manifest.protocol, state)
    assert window.basis == "measured"
    # The head that was given away names the record before: it grew, and stands as it was.
    shutil.rmtree(folder / "report")
    answer = verify([folder], heads=done.heads)
    assert answer.ok
    assert any("1 more lines" in note for note in answer.findings.notes)


def test_a_second_export_does_not_move_the_window(folder: Path, tmp_path: Path) -> None:
    export([folder], tmp_path / "1.zip")
    write_report([folder])
    campaign = Campaign(folder)
    before = need(campaign.manifest.protocol, support.fold(campaign.events())).hours
    export([folder], tmp_path / "2.zip")
    after = need(campaign.manifest.protocol, support.fold(campaign.events())).hours
    assert before == after
    assert verify([folder]).ok
    assert verify_archive(tmp_path / "2.zip").ok


def test_another_attempt_makes_the_export_assumed_again(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder / "report")
    export([folder], tmp_path / "1.zip")
    campaign = support.filled(Campaign(folder), more_rounds=1)
    window = need(campaign.manifest.protocol, support.fold(campaign.events()))
    assert window.basis == "assumed"


def test_a_runner_at_work_is_no_rest(folder: Path, tmp_path: Path) -> None:
    with RunnerLock(folder), pytest.raises(Refused, match="at rest"):
        export([folder], tmp_path / "out.zip")
    assert not (tmp_path / "out.zip").exists()


def test_what_differs_is_refused_and_packed_only_anyway(folder: Path, tmp_path: Path) -> None:
    support.replace(folder / "corpus/corpus.jsonl", "My order 5 ", "My order five ")
    before = (folder / "journal.jsonl").read_bytes()
    with pytest.raises(Refused, match="differs from its record"):
        export([folder], tmp_path / "out.zip")
    assert not list(tmp_path.glob("*out.zip*"))
    assert (folder / "journal.jsonl").read_bytes() == before
    done = export([folder], tmp_path / "out.zip", anyway=True)
    assert done.verification.findings.differences
    where = {one.where for one in verify_archive(done.path).findings.differences}
    assert "corpus/corpus.jsonl" in where


def test_stale_tables_are_rebuilt(folder: Path, tmp_path: Path) -> None:
    from gpucost_tui.campaign.table import write_tables

    shutil.rmtree(folder / "report")
    write_tables(folder, support.fold(Campaign(folder).events()[:15]))
    export([folder], tmp_path / "out.zip")
    assert verify_archive(tmp_path / "out.zip").ok


def test_an_unsealed_campaign_is_refused(tmp_path: Path) -> None:
    campaign = support.draft(tmp_path / "camp")
    with pytest.raises(Refused, match="not sealed"):
        export([campaign.folder], tmp_path / "out.zip")


def test_places_that_can_not_be(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="lie in the campaign"):
        export([folder], folder / "out.zip")
    with pytest.raises(WrongUse, match="is a folder"):
        export([folder], tmp_path)
    with pytest.raises(WrongUse, match="named twice"):
        export([folder, folder], tmp_path / "out.zip")
    with pytest.raises(EnvironmentLacks):
        export([folder], tmp_path / "nowhere" / "out.zip")


def test_several_hosts_in_one_dossier(tmp_path: Path) -> None:
    one = support.draft(tmp_path / "one")
    seal(one)
    other = Campaign(Path(shutil.copytree(one.folder, tmp_path / "two")))
    folders = [support.filled(one).folder, support.filled(other).folder]
    write_report(folders)
    done = export(folders, tmp_path / "out.zip")
    answer = verify_archive(done.path, heads=done.heads)
    assert answer.ok, answer.findings.differences
    assert len(set(done.heads)) == 2
    assert answer.findings.checked["notes"] == 2
    stranger = support.draft(tmp_path / "stranger")
    seal(stranger)
    with pytest.raises(Refused, match="differ in their manifest"):
        export([folders[0], stranger.folder], tmp_path / "no.zip")


def test_parents_are_packed_with_their_child(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder / "report")
    child = create(tmp_path / "child", Inputs(protocol=None, parent=folder))
    seal(child)
    support.filled(child)
    write_report([child.folder])
    done = export([child.folder], tmp_path / "out.zip")
    assert any(name.startswith("parents/01-camp/journal.jsonl") for name in names(done.path))
    shutil.rmtree(folder)
    answer = verify_archive(done.path)
    assert answer.ok, answer.findings.differences
    assert not any("parent" in said for said in answer.findings.not_checkable)
    # Without its parent the folder says what it can't recompute.
    alone = verify([child.folder]).findings
    assert any("parent campaign" in said for said in alone.not_checkable)
    forged = rewritten(done.path, tmp_path / "f.zip", "parents/01-camp/raw_results.csv", b"x")
    where = {one.where for one in verify_archive(forged).findings.differences}
    assert any(one.startswith("parents/01-camp: raw_results.csv") for one in where)


def test_a_linked_corpus_is_packed_or_referred_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "large.jsonl"
    text.write_text(support.corpus_text(12), encoding="utf-8")
    campaign = support.draft(tmp_path / "camp", inputs={"corpus": [str(text)], "link": True})
    seal(campaign)
    support.filled(campaign)
    packed = export([campaign.folder], tmp_path / "1.zip")
    assert packed.referred == ()
    assert verify_archive(packed.path).ok
    monkeypatch.setattr("gpucost_tui.dossier.readme.REFERRED_ABOVE", 100)
    referred = export([campaign.folder], tmp_path / "2.zip")
    assert referred.referred == ("corpus/corpus.jsonl",)
    answer = verify_archive(referred.path)
    assert answer.ok, answer.findings.differences
    sealed = campaign.manifest.corpus("corpus")["sha256"]
    assert any(sealed in said for said in answer.findings.not_checkable)
    with zipfile.ZipFile(referred.path) as opened:
        told = json.loads(opened.read("campaigns/01-camp/corpus/corpus.jsonl.elsewhere.json"))
        assert told == {"bytes": text.stat().st_size, "entries": 12, "sha256": sealed}
        assert sealed in opened.read("README.txt").decode()


def test_a_protocol_that_names_a_folder_of_this_machine_stays_here(tmp_path: Path) -> None:
    import gpucost_tui

    model = Path(gpucost_tui.__file__).parent / "demo" / "model"
    copy = Path(shutil.copytree(model, tmp_path / "my-model"))
    campaign = support.draft(tmp_path / "camp", inputs={"model": str(copy)})
    seal(campaign)
    support.filled(campaign)
    done = export([campaign.folder], tmp_path / "out.zip")
    assert "campaigns/01-camp/protocol.toml" not in names(done.path)
    assert verify_archive(done.path).ok


# -- ZIPs from elsewhere -----------------------------------------------------------------------


def rewritten(path: Path, target: Path, name: str, data: bytes | None) -> Path:
    """Copy a dossier with one file replaced, or left out."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            if info.filename != name:
                new.writestr(info, old.read(info))
        if data is not None:
            new.writestr(name, data)
    return target


@pytest.mark.parametrize(
    ("name", "data", "where", "found"),
    [
        ("README.txt", b"Nothing to see here.\n", "README.txt", "Nothing to see"),
        ("README.txt", None, "README.txt", "no file"),
        ("SHA256SUMS", b"", "README.txt", "one that it does not"),
        ("SHA256SUMS", None, "SHA256SUMS", "no file"),
        ("campaigns/01-camp/raw_results.csv", b"attempt\n", "raw_results.csv", ""),
        ("campaigns/01-camp/extra.txt", b"hello", "campaigns/01-camp/extra.txt", "does not"),
        ("campaigns/01-camp/journal.head", None, "journal.head", "missing"),
    ],
)
def test_a_forged_dossier_is_found(
    done: Exported, tmp_path: Path, name: str, data: bytes | None, where: str, found: str
) -> None:
    answer = verify_archive(rewritten(done.path, tmp_path / "forged.zip", name, data))
    assert not answer.ok
    assert any(where in d.where and found in d.found for d in answer.findings.differences), [
        (d.where, d.found) for d in answer.findings.differences
    ]


def link(archive: zipfile.ZipFile) -> None:
    info = zipfile.ZipInfo("campaigns/01/corpus/corpus.jsonl")
    info.create_system, info.external_attr = 3, 0o120777 << 16
    archive.writestr(info, "/etc/passwd")


def bomb(archive: zipfile.ZipFile) -> None:
    archive.writestr("a", b"\0" * (4 << 20), compress_type=zipfile.ZIP_DEFLATED)


def twins(archive: zipfile.ZipFile) -> None:
    archive.writestr("campaigns/A", b"1")
    archive.writestr("campaigns/a", b"2")


def file_and_folder(archive: zipfile.ZipFile) -> None:
    archive.writestr("campaigns", b"1")
    archive.writestr("campaigns/a/manifest.json", b"2")


def named(name: str) -> Callable[[zipfile.ZipFile], None]:
    def write(archive: zipfile.ZipFile) -> None:
        archive.writestr(zipfile.ZipInfo(name), b"x")

    return write


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (named("../evil"), "leads outside"),
        (named("campaigns/../../evil"), "leads outside"),
        (named("/etc/evil"), "leads outside"),
        (named("C:/evil"), "leads outside"),
        (named("campaigns\\..\\evil"), "leads outside"),
        (named("campaigns//evil"), "leads outside"),
        (named("campaigns/./evil"), "leads outside"),
        (named("x" * 2000), "too long"),
        (named("y" * 300), "too long"),
        (link, "a link or a special file"),
        (bomb, "more than"),
        (twins, "two files are called"),
        (file_and_folder, "is a file and a folder"),
        (named("hello"), "holds no campaign"),
        (named("campaigns/01/hello"), "is no campaign"),
    ],
)
def test_an_unsafe_zip_is_refused(
    make: Callable[[zipfile.ZipFile], None],
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    path = tmp_path / "made.zip"
    with zipfile.ZipFile(path, "w") as opened:
        make(opened)
    with pytest.raises(InputError, match=what):
        verify_archive(path)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made.zip", "scratch"]


def test_a_size_that_lies_is_noticed(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("campaigns/a", b"\0" * 100_000)
    data = buffer.getvalue()
    lied = data.replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    (tmp_path / "made.zip").write_bytes(lied)
    with pytest.raises(InputError):
        verify_archive(tmp_path / "made.zip")


@pytest.mark.parametrize("keep", [0, 10, 5000, -30])
def test_a_damaged_zip_is_one_sentence(done: Exported, tmp_path: Path, keep: int) -> None:
    path = tmp_path / "cut.zip"
    path.write_bytes(done.path.read_bytes()[:keep])
    with pytest.raises(InputError, match="can't be read"):
        verify_archive(path)


def test_a_flipped_byte_is_found(done: Exported, tmp_path: Path) -> None:
    data = bytearray(done.path.read_bytes())
    data[data.index(b'"event":"sealed"') + 9] ^= 1
    path = tmp_path / "flipped.zip"
    path.write_bytes(data)
    with pytest.raises(InputError, match="can't be read"):  # the ZIP's own checksum
        verify_archive(path)


# -- the command -------------------------------------------------------------------------------


def test_the_words_from_end_to_end(folder: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    target = tmp_path / "out.zip"
    told = runner.invoke(group, ["export", str(folder), str(target), "--json"])
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    told = runner.invoke(group, ["verify", str(target), "--head", document["heads"][0], "--json"])
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert answer["ok"] is True
    assert answer["differences"] == []
    assert answer["head"] == document["heads"][0]
    assert answer["manifest"] == document["manifest"]
    told = runner.invoke(group, ["verify", str(target)])
    assert "a consistent rewrite of all files" in told.output.lower()
    assert "No difference." in told.output
    assert document["manifest"] in told.output
    told = runner.invoke(group, ["verify", str(target), "--head", "0" * 64])
    assert told.exit_code == 1
    assert "DIFFERS   journal.head (--head)" in told.output
    told = runner.invoke(group, ["verify", str(folder)])  # the note came before the export
    assert told.exit_code == 1
    assert "stale" in told.output
    told = runner.invoke(group, ["report", str(folder), "--json"])
    assert told.exit_code == 0
    assert json.loads(told.stdout)["outcome"] in ("decided", "tied")
    assert runner.invoke(group, ["verify", str(folder)]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["verify", "nowhere"], 2),
        (["verify", "{camp}", "--head", "xyz"], 2),
        (["verify", "{camp}", "{zip}"], 2),
        (["verify", "{draft}"], 1),
        (["verify", "{draft}", "--json"], 1),
        (["export", "{camp}"], 2),
        (["export", "{draft}", "{zip}"], 1),
        (["report", "{draft}"], 1),
        (["report", "nowhere"], 2),
    ],
)
def test_wrong_use_ends_in_one_sentence(
    sound: Path,
    tmp_path: Path,
    arguments: list[str],
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    draft = support.draft(tmp_path / "draft").folder
    (tmp_path / "no.zip").write_bytes(b"no zip")
    places = {"camp": str(sound), "draft": str(draft), "zip": str(tmp_path / "no.zip")}
    given = [argument.format(**places) for argument in arguments]
    with pytest.raises(SystemExit) as left:
        main(given)
    told = capsys.readouterr()
    assert left.value.code == status, told.err
    assert "Traceback" not in told.err
    if "--json" in given:
        assert json.loads(told.out)["ok"] is False
    elif status == 2:
        assert told.err.startswith("gpucost: ")
        assert told.err.count("\n") == 1
