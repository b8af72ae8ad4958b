"""The manifest: the same inputs give the same hash anywhere; another input gives another hash."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_parts import RIGHT, TEMPLATE, edited, made, rows, template, write_jsonl

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.seal import seal
from gpucost_tui.demo import generate
from gpucost_tui.errors import Differs, Refused
from gpucost_tui.files import canonical_json, sha256_bytes

MODEL = Path(generate.__file__).parent / "model"


def sealed_hash(folder: Path, *args: Any, **inputs: Any) -> str:
    return seal(made(folder, *args, **inputs))[0].sha256


@pytest.fixture
def base(tmp_path: Path) -> str:
    return sealed_hash(tmp_path / "base")


def _csv(path: Path) -> list[str]:
    pl.DataFrame(rows()).select("label", "text", "id").write_csv(path / "c.csv")
    return [str(path / "c.csv")]


def _gz(path: Path) -> list[str]:
    plain = write_jsonl(path / "x.jsonl", rows())
    (path / "c.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    return [str(path / "c.jsonl.gz")]


def _parquet(path: Path) -> list[str]:
    pl.DataFrame(rows()).write_parquet(path / "c.parquet")
    return [str(path / "c.parquet")]


def _glob(path: Path) -> list[str]:
    for number, row in enumerate(rows()):
        write_jsonl(path / f"part-{number:02d}.jsonl", [row])
    return [str(path / "part-*.jsonl")]


def _crlf(path: Path) -> list[str]:
    plain = write_jsonl(path / "x.jsonl", rows()).read_bytes()
    (path / "c.jsonl").write_bytes(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n\r\n"))
    return [str(path / "c.jsonl")]


@pytest.mark.parametrize("form", [_csv, _gz, _parquet, _glob, _crlf])
def test_the_form_of_the_files_does_not_matter(
    tmp_path: Path, base: str, form: Callable[[Path], list[str]]
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    given = Inputs(TEMPLATE, form(files), "demo", settings=[RIGHT])
    manifest, _ = seal(create(tmp_path / "else where" / "c", given))
    assert manifest.sha256 == base


def test_nothing_of_the_machine_stands_in_it(tmp_path: Path) -> None:
    model = tmp_path / "secret-place" / "model"
    shutil.copytree(MODEL, model)
    campaign = made(tmp_path / "secret-name", model=str(model))
    manifest, _ = seal(campaign)
    data = campaign.manifest_file.read_bytes()
    assert data == canonical_json(json.loads(data)) and manifest.sha256 == sha256_bytes(data)
    text = data.decode()
    for word in ("secret", str(tmp_path), os.uname().nodename, "2026", "mtime", "torch"):
        assert word not in text
    # the same model in a folder of another name, and the campaign in another folder
    other = tmp_path / "b" / "weights"
    shutil.copytree(MODEL, other)
    os.utime(other / "model.safetensors", (1, 1))
    twin = made(tmp_path / "b" / "twin", model=str(other))
    assert seal(twin)[0].sha256 == manifest.sha256
    assert manifest.model_name.startswith("bert-")


def test_comments_and_formatting_do_not_matter(tmp_path: Path, base: str) -> None:
    text = template().replace("threshold = 0.85 ", "threshold = 8.5e-1 # low\n\n\n")
    text = text.replace("seeds = [0]", "seeds = [\n  0x0,\n]")
    text = text.replace("[variants.batch-4]\nbatch_size = 4", "variants.batch-4 = {batch_size = 4}")
    at = text.index("variants.batch-4 =")
    text = 'variants."batch-4".batch_size = 4\n' + text[:at] + text[text.index("\n", at) :]
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert sealed_hash(tmp_path / "c", protocol=str(path)) == base
    # what a default says is sealed like what is written
    written = made(tmp_path / "d", settings=[("task.scores", "softmax"), ("execution.threads", 0)])
    assert seal(written)[0].sha256 == base


def _row(number: int, **changes: Any) -> list[dict[str, Any]]:
    return [{**row, **(changes if i == number else {})} for i, row in enumerate(rows())]


_OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("an id", {"items": _row(3, id="other")}),
    ("a text", {"items": _row(3, text=rows()[3]["text"] + " ")}),
    ("a label", {"items": _row(3, label="praise" if rows()[3]["label"] != "praise" else "defect")}),
    ("the order", {"items": rows()[::-1]}),
    ("an entry", {"items": rows()[1:]}),
    ("a threshold", {"settings": [("quality.threshold", 0.851)]}),
    ("a subgroup", {"settings": [("quality.subgroups.0.min_entries", 51)]}),
    ("the deadline", {"settings": [("decision.deadline_hours", 167.5)]}),
    ("the budget", {"settings": [("decision.budget_usd", "500")]}),
    ("the question", {"settings": [("decision.question", "Another one?")]}),
    ("max_length", {"settings": [("execution.max_length", 127)]}),
    ("the rounds", {"settings": [("measurement.rounds", 4)]}),
    ("the order of variants",
     {"settings": [("series.0.variants", ["batch-4", "batch-1", "batch-8"])]}),
    ("a bound of strata", {"settings": [("corpus.strata.0.max_tokens", 31)]}),
    ("a task's option", {"settings": [("task.scores", "sigmoid")]}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "change"), _OTHERS, ids=[what for what, _ in _OTHERS])
def test_another_input_is_another_campaign(
    tmp_path: Path, base: str, what: str, change: dict[str, Any]
) -> None:
    assert sealed_hash(tmp_path / "c", **change) != base


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_another_model_is_another_campaign(tmp_path: Path, name: str) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    shutil.copytree(MODEL, one)
    shutil.copytree(MODEL, other)
    data = bytearray((other / name).read_bytes())
    if name.endswith(".json"):
        data += b"\n"
    else:
        data[-1] ^= 1
    (other / name).write_bytes(bytes(data))
    hashes = [sealed_hash(tmp_path / f"c-{m.name}", model=str(m)) for m in (one, other)]
    assert hashes[0] != hashes[1]


def test_what_r8_asks_for(tmp_path: Path) -> None:
    manifest, _ = seal(made(tmp_path / "c"))
    corpus = manifest.corpus("corpus")
    assert corpus["entries"] == len(rows()) and corpus["order"] == "as in the corpus"
    assert set(corpus["columns"]) == {"label"} and corpus["reference"]["entries"] == len(rows())
    assert sum(corpus["strata"].values()) == len(rows()) and set(corpus["truncated"]) == {"128"}
    model = manifest.json["model"]
    assert model["name"] == "demo" and len(model["labels"]) == 6
    assert {f["path"] for f in model["files"]} >= {"config.json", "model.safetensors"}
    execution = manifest.json["protocol"]["execution"]
    assert {"dtype", "attention", "padding", "max_length", "batch_size"} <= set(execution)
    assert manifest.json["tuning"] == {"declared": "none"}


# -- sealing itself ----------------------------------------------------------------------------


def test_sealed_twice(tmp_path: Path) -> None:
    campaign = made(tmp_path / "c")
    manifest, _ = seal(campaign)
    before = {p: p.read_bytes() for p in campaign.folder.rglob("*") if p.is_file()}
    with pytest.raises(Refused, match=manifest.sha256):
        seal(Campaign.open(campaign.folder))
    assert before == {p: p.read_bytes() for p in campaign.folder.rglob("*") if p.is_file()}


def test_a_seal_can_not_be_made_anew_by_removing_the_manifest(tmp_path: Path) -> None:
    campaign = made(tmp_path / "c")
    manifest, _ = seal(campaign)
    campaign.manifest_file.unlink()
    edited(campaign, "threshold = 0.85", "threshold = 0.1 ")
    with pytest.raises(Refused, match=manifest.sha256):
        seal(Campaign.open(campaign.folder))
    with pytest.raises(Differs, match="manifest is gone"):
        _ = Campaign.open(campaign.folder).manifest


def test_a_seal_that_was_cut_off_is_done_again(tmp_path: Path) -> None:
    campaign = made(tmp_path / "c")
    manifest, _ = seal(campaign)
    for name in ("journal.jsonl", "journal.head"):
        (campaign.folder / name).unlink()
    again = Campaign.open(campaign.folder)
    assert seal(again)[0].sha256 == manifest.sha256 == again.manifest.sha256
    # and what was changed in between is what is sealed
    for name in ("journal.jsonl", "journal.head"):
        (campaign.folder / name).unlink()
    other = edited(again, "threshold = 0.85", "threshold = 0.8 ")
    assert other.manifest.sha256 == manifest.sha256  # still the one that was cut off
    assert seal(other)[0].sha256 == other.manifest.sha256 != manifest.sha256


def test_a_blocked_seal_changes_nothing(tmp_path: Path) -> None:
    campaign = made(tmp_path / "c", settings=[("corpus.right_of_use", "")])
    before = {p.name for p in campaign.folder.rglob("*")}
    with pytest.raises(Refused, match=r"protocol.toml, line \d+, \[corpus\] right_of_use.*\(R5\)"):
        seal(campaign)
    assert {p.name for p in campaign.folder.rglob("*")} == before
    assert not campaign.sealed
