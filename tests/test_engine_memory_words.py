"""`memory`, `op`, and the notebook on memory: estimates apart from observations (R31), single
operations apart from passes (R17)."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import campaign_parts as made_parts
import pytest
import runner_parts as parts

import gpucost_tui
from gpucost_tui import resources
from gpucost_tui.models import facts as model_facts
from gpucost_tui.models.memory import estimate
from gpucost_tui.protocol.execution import Execution

MODEL = Path(gpucost_tui.__file__).parent / "demo" / "model"
FOLDER = resources.file("protocols", "memory")


def execution(**changes: Any) -> Execution:
    return Execution.model_validate({"max_length": 128, **changes})


def test_an_estimate_follows_dtype_quantization_batch_and_attention() -> None:
    facts = model_facts.read(MODEL)
    plain = estimate(facts, execution(), 8, 128)
    assert plain.weights_bytes == 4 * (facts.parameters or 0) > 0
    half = estimate(facts, execution(dtype="bfloat16"), 8, 128)
    assert half.total_bytes is not None and plain.total_bytes is not None
    assert 2 * half.total_bytes == plain.total_bytes
    eight = estimate(facts, execution(quantization="int8-dynamic"), 8, 128)
    assert (eight.weights_bytes or 0) < plain.weights_bytes
    assert eight.activations_bytes == plain.activations_bytes
    twice = estimate(facts, execution(), 16, 128)
    assert twice.activations_bytes == 2 * (plain.activations_bytes or 0)
    long = [estimate(facts, execution(attention=a), 1, 4096) for a in ("sdpa", "eager")]
    assert (long[1].activations_bytes or 0) > 2 * (long[0].activations_bytes or 0)


def test_what_the_files_do_not_say_is_no_number() -> None:
    import dataclasses

    facts = dataclasses.replace(model_facts.read(MODEL), heads=None)
    assert estimate(facts, execution(), 8, 128).activations_bytes is None
    assert "attention heads" in str(estimate(facts, execution(), 8, 128).reason)
    facts = dataclasses.replace(model_facts.read(MODEL), parameters=None)
    assert estimate(facts, execution(), 8, 128).total_bytes is None


def test_memory_shows_both_and_neither_for_the_other(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c")
    before = json.loads(parts.gpucost("memory", made.folder, "--json").stdout)
    assert {one["attempts"] for one in before["variants"]} == {0}
    for one in before["variants"]:
        assert all(value > 0 for value in one["estimated"].values())
        assert set(one["observed"].values()) == {None}
        assert one["missing"]["peak_rss_bytes"] == "no attempt yet"
    parts.run_here(made, script={"devices": [{"name": "H200", "capacity_bytes": 150 << 30}]})
    after = json.loads(parts.gpucost("memory", made.folder, "--json").stdout)
    for one, earlier in zip(after["variants"], before["variants"], strict=True):
        assert one["estimated"] == earlier["estimated"]
        assert one["attempts"] == 2
        assert one["observed"]["peak_allocated_bytes"] == 2 << 30
        assert one["observed"]["peak_rss_bytes"] > 0
    shown = parts.gpucost("memory", made.folder).stdout
    assert "Estimated, not observed:" in shown
    assert "2.0 GiB" in shown


def test_memory_of_a_draft_and_of_a_broken_one(tmp_path: Path) -> None:
    made = made_parts.made(tmp_path / "c")
    found = json.loads(parts.gpucost("memory", made.folder, "--json").stdout)
    assert [one["variant"] for one in found["variants"]] == ["batch-1", "batch-4", "batch-8"]
    made.protocol_file.write_text("nothing of the kind", "utf-8")
    done = parts.gpucost("memory", made.folder)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_memory_without_the_model_says_so(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c")
    made.remember_model(folder=str(tmp_path / "gone"))
    done = parts.gpucost("memory", made.folder, "--json")
    assert done.returncode == 0, done.stderr
    for one in json.loads(done.stdout)["variants"]:
        known = {value for value in one["estimated"].values() if value is not None}
        assert known or one["missing"]["weights_bytes"]


def test_op_times_operations_apart_from_any_pass(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c")
    before = made.journal_file.read_bytes()
    done = parts.gpucost("op", made.folder, "--variant", "batch-4", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["variant"], found["entries"]) == ("batch-4", 4)
    names = [one["operation"] for one in found["operations"]]
    assert names == ["tokenize", "collate", "transfer", "forward", "materialize"]
    assert all(one["median_s"] > 0 and one["runs"] > 0 for one in found["operations"])
    assert "never comparable" in found["note"]
    assert made.journal_file.read_bytes() == before


def test_op_before_the_seal_or_with_an_unknown_variant_is_refused(tmp_path: Path) -> None:
    draft = made_parts.made(tmp_path / "d")
    done = parts.gpucost("op", draft.folder)
    assert done.returncode == 1
    assert done.stderr == "gpucost: d: the campaign is not sealed. `gpucost seal` does it.\n"
    made = parts.campaign(tmp_path / "c")
    done = parts.gpucost("op", made.folder, "--variant", "batch-5")
    assert done.returncode == 2
    assert "there is no variant 'batch-5'" in done.stderr
    assert "batch-1, batch-4, batch-8" in done.stderr


# -- the notebook and its script -------------------------------------------------------------


def script(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / "estimate_memory.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_script_estimates_as_the_program_does() -> None:
    done = script(MODEL, "--batch", "4", "--length", "64", "--dtype", "float16", "--observe")
    assert done.returncode == 0, done.stderr
    guess = estimate(model_facts.read(MODEL), execution(dtype="float16"), 4, 64)
    assert guess.weights_bytes is not None and guess.activations_bytes is not None
    assert f"weights {guess.weights_bytes / 2**20:,.1f} MiB" in done.stdout
    assert f"activations {guess.activations_bytes / 2**20:,.1f} MiB" in done.stdout
    import torch

    if not torch.cuda.is_available():
        assert "none: estimate only" in done.stdout
        assert "observed:  nothing: there is no GPU" in done.stdout


@pytest.mark.parametrize("words", [("nowhere",), (FOLDER,), (MODEL, "--batch", "0")])
def test_bad_input_of_the_script_is_a_sentence(words: tuple[Any, ...]) -> None:
    done = script(*words)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_broken_files_end_the_script_with_a_sentence(tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(MODEL, folder)
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    for spoiled in (b"", whole[:100], b"\xff" * 64, b"\x02" + b"\0" * 7 + b"[]"):
        weights.write_bytes(spoiled)
        done = script(folder)
        assert done.returncode == 1
        assert "model.safetensors can't be read" in done.stderr and "Traceback" not in done.stderr
    weights.unlink()
    assert "no model.safetensors" in script(folder).stderr
    # Shards count once, by the index, whatever else lies in the folder.
    (folder / "model-00001-of-00001.safetensors").write_bytes(whole)
    (folder / "copy.safetensors").write_bytes(whole)
    index = folder / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "model-00001-of-00001.safetensors"}}', "utf-8")
    expected = estimate(model_facts.read(MODEL), execution(), 8, 128).weights_bytes
    assert f"weights {(expected or 0) / 2**20:,.1f} MiB" in script(folder).stdout
    index.write_text("[]", "utf-8")
    assert "names no files" in script(folder).stderr
    (folder / "config.json").write_text("[]", "utf-8")
    assert "does not say enough" in script(folder).stderr


def test_the_notebook_runs_from_the_kit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpucost_tui.pricing.kit import FOLDER as KIT
    from gpucost_tui.pricing.kit import write_kit

    write_kit(tmp_path / "kit.zip")
    with zipfile.ZipFile(tmp_path / "kit.zip") as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / KIT / "memory"
    notebook = json.loads((folder / "memory.ipynb").read_text("utf-8"))
    monkeypatch.setenv("MEMORY_MODEL", str(MODEL))
    monkeypatch.syspath_prepend(str(folder))
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    said = capsys.readouterr().out
    assert "weights" in said and "activations" in said
    assert names["estimated"]["weights"] > 0
    import torch

    if not torch.cuda.is_available():
        assert "No GPU: only the estimate follows." in said
        assert names["observed"] is None
