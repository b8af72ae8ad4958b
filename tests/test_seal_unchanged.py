"""After the seal: whatever differs is named, by `check` and before a run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from campaign_parts import edited, made, rows, write_jsonl
from test_seal_manifest import MODEL

from gpucost_tui.campaign import unchanged
from gpucost_tui.campaign.check import check
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.runner import Listener, Wishes, run
from gpucost_tui.campaign.seal import seal
from gpucost_tui.campaign.unchanged import differences, ensure_unchanged, model_folder, place_model
from gpucost_tui.errors import Differs, EnvironmentLacks, Refused
from gpucost_tui.models import fingerprint
from gpucost_tui.watch import Watch


@pytest.fixture
def model(tmp_path: Path) -> Path:
    shutil.copytree(MODEL, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def sealed(tmp_path: Path, model: Path) -> Campaign:
    tuning = write_jsonl(tmp_path / "tuning.jsonl", [{"id": "t", "text": "one of its own"}])
    campaign = made(tmp_path / "c", tuning=[str(tuning)], model=str(model))
    seal(campaign)
    return Campaign.open(campaign.folder)


def _replace(path: Path, before: bytes, after: bytes) -> None:
    data = path.read_bytes()
    assert before in data, path
    path.write_bytes(data.replace(before, after, 1))


def _label(c: Campaign) -> None:
    first = rows()[0]["label"]
    other = "praise" if first != "praise" else "defect"
    _replace(c.corpus_file("corpus"), f'"{first}"'.encode(), f'"{other}"'.encode())


def _answer(c: Campaign) -> None:
    lines = c.reference_file("corpus").read_text("utf-8").splitlines()
    first = json.loads(lines[0])
    first["answer"] = "praise" if first["answer"] != "praise" else "defect"
    c.reference_file("corpus").write_text("\n".join([json.dumps(first), *lines[1:]]), "utf-8")


def _strata(c: Campaign) -> None:
    path = c.strata_file("corpus")
    frame = pl.read_parquet(path)
    frame.with_columns(tokens=pl.col("tokens") + 1).write_parquet(path)


def _model(name: str, change: Callable[[Path], None]) -> Callable[[Campaign], None]:
    return lambda c: change(c.folder.parent / "model" / name)


def _flip(path: Path) -> None:
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


#: change -> (what is named, where)
_CHANGES: dict[str, tuple[Callable[[Campaign], None], str, str]] = {
    "a threshold": (
        lambda c: edited(c, "threshold = 0.85 ", "threshold = 0.8 ") and None,
        "the protocol", "protocol.toml"),
    "the model's source": (
        lambda c: edited(c, f'source = "{c.folder.parent / "model"}"', 'source = "demo"') and None,
        "the protocol", "protocol.toml"),
    "a broken protocol": (
        lambda c: edited(c, "format = 1", "format = ") and None, "the protocol", "protocol.toml"),
    "a text": (
        lambda c: _replace(c.corpus_file("corpus"), b'"text":"', b'"text":"x'),
        "the corpus", "corpus/corpus.jsonl"),
    "a line that is no entry": (
        lambda c: _replace(c.corpus_file("corpus"), b"{", b""),
        "the corpus", "corpus/corpus.jsonl, line 1"),
    "a repeated entry": (
        lambda c: c.corpus_file("corpus").write_bytes(
            c.corpus_file("corpus").read_bytes() * 2) and None,
        "the corpus", "corpus.jsonl"),
    "an empty corpus": (
        lambda c: c.corpus_file("corpus").write_bytes(b"") and None, "the corpus", "corpus.jsonl"),
    "no corpus": (lambda c: c.corpus_file("corpus").unlink(), "the corpus", "corpus.jsonl"),
    "a label": (_label, "column 'label' of the corpus", "corpus/corpus.jsonl"),
    "an answer": (_answer, "the reference", "reference/corpus.jsonl"),
    "no answers": (lambda c: c.reference_file("corpus").unlink(), "the reference", "corpus.jsonl"),
    "strata": (_strata, "the strata", "corpus/corpus.strata.parquet"),
    "damaged strata": (
        lambda c: c.strata_file("corpus").write_bytes(b"PAR1nonsense") and None,
        "the strata", "corpus/corpus.strata.parquet"),
    "strata of other columns": (
        lambda c: pl.DataFrame({"a": [1]}).write_parquet(c.strata_file("corpus")),
        "the strata", "corpus/corpus.strata.parquet"),
    "no strata": (lambda c: c.strata_file("corpus").unlink(), "the strata", "strata.parquet"),
    "tuning data": (
        lambda c: _replace(c.tuning_file, b"one of", b"two of"), "the tuning data", "tuning.jsonl"),
    "weights": (_model("model.safetensors", _flip), "model.safetensors", "model.safetensors"),
    "configuration": (_model("config.json", _flip), "config.json", "config.json"),
    "no tokenizer": (_model("tokenizer.json", Path.unlink), "is gone", "tokenizer.json"),
    "a file more": (
        _model("vocab.txt", lambda p: p.write_text("x") and None), "was added", "vocab.txt"),
    "the manifest": (
        lambda c: _replace(c.manifest_file, b'"rounds":5', b'"rounds":1'),
        "the manifest", "manifest.json"),
    "a pretty manifest": (
        lambda c: c.manifest_file.write_text(
            json.dumps(json.loads(c.manifest_file.read_bytes()), indent=1)) and None,
        "the manifest", "manifest.json"),
    "no JSON": (lambda c: c.manifest_file.write_bytes(b"{") and None, "the manifest", "manifest"),
    "no manifest": (lambda c: c.manifest_file.unlink(), "the manifest is gone", "manifest.json"),
    "the journal": (
        lambda c: _replace(c.folder / "journal.jsonl", b'"seq":1', b'"seq":2'),
        "the journal is not", "journal.jsonl"),
}  # fmt: skip


@pytest.mark.parametrize("name", _CHANGES)
def test_what_differs_is_named(sealed: Campaign, name: str) -> None:
    ensure_unchanged(sealed)
    change, what, where = _CHANGES[name]
    change(sealed)
    now = Campaign.open(sealed.folder)
    with pytest.raises(Differs) as refusal:
        run(now, wishes=Wishes(), listener=Listener())
    said = str(refusal.value)
    assert what in said and where in said and "\n" not in said and refusal.value.fix
    assert refusal.value.exit_status == 1
    assert not (sealed.folder / "attempts").exists()
    blocking = check(Campaign.open(sealed.folder)).blocking
    assert any(what in p.where + p.what and where in p.where for p in blocking), blocking


def test_everything_that_differs_is_told(sealed: Campaign) -> None:
    assert differences(sealed) == []
    for name in ("a threshold", "a label", "an answer", "strata", "weights"):
        _CHANGES[name][0](sealed)
    found = differences(Campaign.open(sealed.folder))
    assert len(found) == 5 and all(isinstance(error, Differs) for error in found)
    assert len(check(Campaign.open(sealed.folder)).blocking) == 5


def test_what_may_change(sealed: Campaign) -> None:
    edited(sealed, "# one rule for every variant", "# one rule for all")
    for path in (sealed.corpus_file("corpus"), sealed.folder.parent / "model" / "config.json"):
        os.utime(path, (1, 1))
    ensure_unchanged(sealed)
    sealed.protocol_file.unlink()  # the manifest has it all
    shutil.rmtree(sealed.tuning_file.parent)
    ensure_unchanged(Campaign.open(sealed.folder))
    assert not check(Campaign.open(sealed.folder)).blocking


def test_a_draft_is_not_unchanged(tmp_path: Path) -> None:
    campaign = made(tmp_path / "c")
    with pytest.raises(Refused, match="not sealed"):
        ensure_unchanged(campaign)
    with pytest.raises(Refused, match="not sealed"):
        place_model(campaign, MODEL)
    seal(campaign)
    (campaign.folder / "journal.jsonl").unlink()
    (campaign.folder / "journal.head").unlink()
    with pytest.raises(Refused, match=r"cut off.*gpucost seal"):
        ensure_unchanged(Campaign.open(campaign.folder))
    assert not check(Campaign.open(campaign.folder)).blocking  # it can be sealed


# -- where the model lies ----------------------------------------------------------------------


def test_a_model_that_moved(sealed: Campaign, model: Path) -> None:
    moved = model.rename(model.with_name("moved"))
    with pytest.raises(EnvironmentLacks, match="--model FOLDER") as refusal:
        ensure_unchanged(sealed)
    assert refusal.value.exit_status == 3
    with pytest.raises(EnvironmentLacks, match="there is no folder"):
        place_model(sealed, model)
    with pytest.raises(EnvironmentLacks, match="there is no folder"):
        place_model(sealed, "x" * 5000)
    place_model(sealed, moved)
    assert model_folder(sealed) == moved
    ensure_unchanged(sealed)


def test_a_wrong_model_does_not_take_the_place(sealed: Campaign, model: Path) -> None:
    wrong = model.with_name("wrong")
    shutil.copytree(model, wrong)
    _flip(wrong / "model.safetensors")
    before = sealed.sources()
    with pytest.raises(Differs, match=r"model.safetensors"):
        place_model(sealed, wrong)
    with pytest.raises(Differs, match="is gone"):
        place_model(sealed, sealed.folder)
    assert sealed.sources() == before
    ensure_unchanged(sealed)


def test_a_campaign_copied_to_another_machine(tmp_path: Path) -> None:
    campaign = made(tmp_path / "c")
    seal(campaign)
    (campaign.folder / "sources.json").unlink()
    ensure_unchanged(Campaign.open(campaign.folder))  # 'demo' is found wherever it is installed


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 9999, '{"model": 3}', '{"model": {"folder": 7, "seen": []}}']
)
def test_a_damaged_memo_is_no_obstacle(tmp_path: Path, text: str) -> None:
    campaign = made(tmp_path / "c")
    seal(campaign)
    campaign.sources_file.write_text(text)
    ensure_unchanged(Campaign.open(campaign.folder))
    assert Path(campaign.sources()["model"]["folder"]) == MODEL


# -- a large model is not read again at every run ----------------------------------------------


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The model's files that were read whole."""
    paths: list[str] = []
    real = fingerprint._hash

    def counted(folder: Path, path: str, watch: Watch) -> fingerprint.ModelFile:
        paths.append(path)
        return real(folder, path, watch)

    monkeypatch.setattr(fingerprint, "_hash", counted)
    return paths


def test_files_that_were_seen_are_not_read_again(
    sealed: Campaign, model: Path, hashed: list[str]
) -> None:
    ensure_unchanged(sealed)
    assert "model.safetensors" in hashed  # the first time here
    hashed.clear()
    ensure_unchanged(Campaign.open(sealed.folder))
    assert hashed == []
    os.utime(model / "config.json")
    ensure_unchanged(sealed)
    assert hashed == ["config.json"]  # the one that was touched
    hashed.clear()
    ensure_unchanged(sealed)
    assert hashed == []


def test_check_reads_every_byte(sealed: Campaign, model: Path, hashed: list[str]) -> None:
    ensure_unchanged(sealed)
    weights = model / "model.safetensors"
    before = weights.stat()
    _flip(weights)
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))  # as a forger would
    hashed.clear()
    assert "model.safetensors" in check(sealed).blocking[0].where
    assert "model.safetensors" in hashed
    with pytest.raises(Differs):
        ensure_unchanged(sealed, every_byte=True)


def test_what_was_seen_holds_for_one_model_in_one_place(
    sealed: Campaign, model: Path, hashed: list[str]
) -> None:
    ensure_unchanged(sealed)
    memo = sealed.sources()
    memo["model"]["seen_as"] = "0" * 64
    sealed.sources_file.write_text(json.dumps(memo))
    hashed.clear()
    ensure_unchanged(sealed)
    assert "model.safetensors" in hashed
    twin = model.with_name("twin")
    shutil.copytree(model, twin)
    memo = sealed.sources()
    memo["model"]["folder"] = str(twin)
    sealed.sources_file.write_text(json.dumps(memo))
    hashed.clear()
    ensure_unchanged(sealed)  # copied with its times, and still seen: sizes and times are equal
    assert sealed.sources()["model"]["folder"] == str(twin)
    place_model(sealed, model)
    assert "model.safetensors" in hashed  # another place is read whole


def test_what_a_download_took_stays_with_its_place(sealed: Campaign, model: Path) -> None:
    sealed.remember_model(download_s=12.5)
    ensure_unchanged(sealed)
    assert sealed.sources()["model"]["download_s"] == 12.5
    place_model(sealed, model.rename(model.with_name("moved")))
    assert sealed.sources()["model"]["download_s"] is None


def test_a_memo_that_can_not_be_kept(
    sealed: Campaign, monkeypatch: pytest.MonkeyPatch, hashed: list[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(unchanged.Campaign, "remember_model", full)
    for _ in range(2):
        hashed.clear()
        ensure_unchanged(sealed)  # the answer stands, and the files are read again
        assert "model.safetensors" in hashed
