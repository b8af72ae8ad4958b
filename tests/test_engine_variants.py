"""Variants of the engine: what is requested takes effect, stands in the row, or fails (R8, R10)."""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import engine_parts as parts
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gpucost_tui.engine import compiling
from gpucost_tui.engine.batching import Batching
from gpucost_tui.engine.contract import Outcome
from gpucost_tui.engine.devices import CudaUploader
from gpucost_tui.engine.prefetching import Prefetched
from gpucost_tui.protocol.execution import (
    FACTORS,
    Execution,
    conflicts,
    differing,
    requested_columns,
)

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


@pytest.fixture(scope="module")
def plain(
    host: Any, corpus: Path, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> np.ndarray:
    """Scores of the plain loop at batch size 4."""
    job = parts.job(corpus, model, tmp_path_factory.mktemp("plain") / "p", batch_size=4)
    assert host.run(job).status == "completed"
    return scores(job)


def scores(job: Any) -> np.ndarray:
    return np.stack(parts.read(job)["scores"].to_list())


def done(outcome: Outcome) -> Outcome:
    assert outcome.status == "completed", outcome.error
    return outcome


def noted(outcome: Outcome, piece: str) -> bool:
    return any(piece in note for note in outcome.notes)


# -- settings --------------------------------------------------------------------------------

NEW = {
    "tf32": True,
    "quantization": "int8-dynamic",
    "attention": "sdpa-flash",
    "compile": "default",
    "compile_dynamic": "no",
    "compile_cache": "fresh",
    "pad_multiple": 8,
    "tokenize": "first",
    "token_budget": 512,
    "prefetch": 2,
}


def test_every_new_setting_is_a_factor_and_stands_in_the_manifest_once_it_is_set() -> None:
    plain = Execution(max_length=48)
    dumped = plain.model_dump(mode="json")
    assert not (set(NEW) - {"attention"}) & set(dumped), "a sealed manifest would change its hash"
    assert Execution.model_validate(dumped) == plain
    for name, value in NEW.items():
        assert name in FACTORS
        one = Execution.model_validate({"max_length": 48, name: value})
        assert differing(plain, one) == [name]
        assert one.model_dump(mode="json")[name] == value
        assert Execution.model_validate(json.loads(one.model_dump_json())) == one


@pytest.mark.parametrize(
    ("name", "value"),
    [("tf32", "yes"), ("prefetch", -1), ("pad_multiple", 0), ("token_budget", 1.5),
     ("quantization", "int3"), ("compile", "fast"), ("attention", "sdpa-own"), ("tokenize", "")],
)  # fmt: skip
def test_impossible_values_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        Execution.model_validate({"max_length": 48, name: value})


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"tf32": True, "dtype": "bfloat16"}, "tf32"),
        ({"pad_multiple": 8, "padding": "max_length"}, "pad_multiple"),
        ({"quantization": "int8-dynamic", "dtype": "float16", "device": "cpu"}, "quantization"),
        ({"quantization": "int4", "dtype": "float16"}, "quantization"),
        ({"quantization": "int8-dynamic", "compile": "default", "device": "cpu"}, "compile"),
    ],
)
def test_settings_that_contradict_each_other(
    host: Any, corpus: Path, model: Path, tmp_path: Path, changes: dict[str, Any], key: str
) -> None:
    found = conflicts(Execution.model_validate({"max_length": 48, **changes}))
    assert [conflict.key for conflict in found] == [key]
    outcome = host.run(parts.job(corpus, model, tmp_path / "p", **changes))
    assert (outcome.status, outcome.failure) == ("failed", "error")
    assert found[0].what in str(outcome.error)
    assert not conflicts(Execution(max_length=48))


def test_requested_columns_say_what_was_asked_for() -> None:
    asked = Execution(
        max_length=48, tf32=True, pad_multiple=8, tokenize="first", token_budget=99, prefetch=3
    )
    found = requested_columns(asked)
    assert found["dtype_requested"] == "float32, tf32 products"
    assert found["padding"] == "longest right, multiple of 8"
    assert found["grouping"] == "none, tokenized first, token budget 99"
    assert (found["batch_size"], found["prefetch"]) == (None, 3)


# -- organisation ----------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=80),
    st.integers(1, 9),
    st.sampled_from([0, 1, 64, 200, 10_000]),
    st.sampled_from([1, 8, 64]),
    st.sampled_from([None, 60]),
)
def test_batches_hold_their_bound_and_no_less_than_fits(
    lengths: list[int], size: int, budget: int, multiple: int, fixed: int | None
) -> None:
    rule = Batching(size, 60, budget, multiple, fixed)
    bounds = [*rule.starts(lengths).tolist(), len(lengths)]
    assert bounds[0] == 0 and sorted(set(bounds)) == bounds
    for first, end in pairwise(bounds):
        inside = lengths[first:end]
        width = rule.width(max(inside))
        assert max(inside) <= width <= 60
        assert width == 60 or width % multiple == 0
        if not budget:
            assert len(inside) == size or end == len(lengths)
            continue
        assert len(inside) == 1 or len(inside) * width <= budget
        if end < len(lengths):
            longer = rule.width(max(*inside, lengths[end]))
            assert (len(inside) + 1) * longer > budget


ORGANISED: list[dict[str, Any]] = [
    {"batch_size": 4, "tokenize": "first"},
    {"batch_size": 4, "prefetch": 1},
    {"batch_size": 4, "prefetch": 3, "grouping": "length"},
    {"batch_size": 4, "pad_multiple": 16},
    {"token_budget": 160},
    {"token_budget": 160, "grouping": "length", "prefetch": 2, "pad_multiple": 8},
    {"token_budget": 1, "tokenize": "first"},
]


@pytest.mark.parametrize("changes", ORGANISED, ids=str)
def test_organisation_changes_no_prediction(
    host: Any,
    corpus: Path,
    model: Path,
    tmp_path: Path,
    plain: np.ndarray,
    changes: dict[str, Any],
) -> None:
    job = parts.job(corpus, model, tmp_path / "p", **changes)
    outcome = done(host.run(job))
    frame = parts.read(job)
    assert frame["id"].to_list() == [f"{i:03d}" for i in range(ENTRIES)]
    np.testing.assert_allclose(scores(job), plain, atol=3e-6)
    row = outcome.row
    assert row["prefetch"] == changes.get("prefetch", 0)
    if "token_budget" in changes:
        assert row["batch_size"] is None
        assert "token budget" in outcome.missing["batch_size"]
        assert f"token budget {changes['token_budget']}" in row["grouping"]
    if "prefetch" in changes:
        assert noted(outcome, "beside the forward passes")
    if changes.get("tokenize") == "first":
        assert "tokenized first" in row["grouping"]
    covered = next(note for note in outcome.notes if note.startswith("warm-up"))
    numbers = [int(word) for word in covered.split() if word.isdigit()]
    assert numbers[0] == numbers[1], covered


def test_padding_to_a_multiple_is_in_the_ratio(
    host: Any, corpus: Path, model: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    ids = AutoTokenizer.from_pretrained(model)(
        parts.texts(ENTRIES), truncation=True, max_length=48
    )["input_ids"]
    sizes = [len(row) for row in ids]
    job = parts.job(corpus, model, tmp_path / "p", batch_size=4, pad_multiple=10)
    outcome = done(host.run(job))
    batches = [sizes[i : i + 4] for i in range(0, ENTRIES, 4)]
    computed = sum(min(48, -(-max(b) // 10) * 10) * len(b) for b in batches)
    assert outcome.row["padding_ratio"] == pytest.approx(computed / sum(sizes))
    assert outcome.row["padding"] == "longest right, multiple of 10"


def test_a_stop_ends_a_prefetched_pass_and_its_thread(
    corpus: Path, model: Path, tmp_path: Path
) -> None:
    from gpucost_tui.engine.torch_engine import TorchEngine

    stop = threading.Event()

    class StopsAfter:
        def phase(self, name: str) -> None: ...

        def batch(self, entries: int, width: int) -> None: ...

        def progress(self, finished: int) -> None:
            if finished >= 8:
                stop.set()

    engine = TorchEngine()
    job = parts.job(corpus, model, tmp_path / "p", batch_size=4, prefetch=4)
    engine.load(job, StopsAfter())
    part = engine.measure(job, StopsAfter(), stop)
    assert part.stopped
    assert part.ids == [f"{i:03d}" for i in range(8)]
    assert not [t for t in threading.enumerate() if t.name == "prefetch"]
    engine.release()


def test_an_error_in_the_prefetching_thread_is_the_pass_s_own(
    host: Any, model: Path, tmp_path: Path
) -> None:
    corpus = parts.write_corpus(tmp_path / "c.jsonl", 40)
    job = parts.job(
        corpus,
        model,
        tmp_path / "p",
        batch_size=4,
        prefetch=2,
        warmup={"inputs": "first-batch"},
    )
    done(host.run(job))  # token lengths are known now: the damage shows in the pass
    stat = corpus.stat()
    lines = corpus.read_bytes().splitlines(keepends=True)
    lines[36] = b"{" + b" " * (len(lines[36]) - 2) + b"\n"
    corpus.write_bytes(b"".join(lines))
    import os

    os.utime(corpus, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    outcome = host.run(job)
    assert (outcome.status, outcome.failure) == ("failed", "error")
    assert "line 37" in str(outcome.error)
    assert outcome.finished_entries == 36


def test_prefetching_keeps_order_and_depth() -> None:
    made: list[int] = []
    taken: list[int] = []

    def items() -> Any:
        for k in range(20):
            assert k - len(taken) <= 4, "more was prepared ahead than asked for"
            made.append(k)
            yield k

    ahead = Prefetched(items(), 2)
    for item in ahead:
        taken.append(item)
    ahead.close()
    assert taken == made == list(range(20))


class FakeCuda:
    """As much of torch.cuda as a copy on a stream of its own needs."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def set_device(self, index: int) -> None:
        self.said.append(("device", index))

    def Stream(self, device: int) -> str:  # noqa: N802 - torch's name
        return "copies"

    def stream(self, stream: str) -> Any:
        import contextlib

        self.said.append(("on", stream))
        return contextlib.nullcontext()

    def Event(self) -> Any:  # noqa: N802 - torch's name
        cuda = self

        class Done:
            def record(self, stream: str) -> None:
                cuda.said.append(("recorded", stream))

        return Done()

    def current_stream(self, index: int) -> Any:
        cuda = self

        class Computing:
            def wait_event(self, event: Any) -> None:
                cuda.said.append("waited")

        return Computing()


class FakeTensor:
    def __init__(self, said: list[Any]) -> None:
        self.said = said

    def pin_memory(self) -> FakeTensor:
        self.said.append("pinned")
        return self

    def to(self, device: str, *, non_blocking: bool) -> FakeTensor:
        self.said.append((device, non_blocking))
        return self

    def record_stream(self, stream: Any) -> None:
        self.said.append("kept")


def test_a_device_is_sent_pinned_copies_that_the_computing_stream_waits_for() -> None:
    cuda = FakeCuda()
    upload = CudaUploader(cuda, 1)
    upload.enter()
    sent = upload.send({"input_ids": FakeTensor(cuda.said)})
    before = [("device", 1), ("on", "copies"), "pinned", ("cuda:1", True), ("recorded", "copies")]
    assert cuda.said == before
    sent.arrived()
    assert cuda.said[len(before) :] == ["waited", "kept"]


# -- precision, quantization, attention ------------------------------------------------------


def test_tf32_on_a_cpu_is_a_fallback(host: Any, corpus: Path, model: Path, tmp_path: Path) -> None:
    outcome = host.run(parts.job(corpus, model, tmp_path / "p", tf32=True))
    assert (outcome.status, outcome.failure) == ("failed", "fallback")
    assert "a CPU multiplies float32 in full" in str(outcome.error)
    assert outcome.row["dtype_requested"] == "float32, tf32 products"


def test_dynamic_int8_changes_layers_and_scores(
    host: Any, corpus: Path, model: Path, tmp_path: Path, plain: np.ndarray
) -> None:
    job = parts.job(corpus, model, tmp_path / "p", batch_size=4, quantization="int8-dynamic")
    outcome = done(host.run(job))
    assert outcome.row["quantization"].startswith("int8-dynamic (torch, ")
    assert "14 layers" in outcome.row["quantization"]
    found = scores(job)
    assert 1e-6 < np.abs(found - plain).max() < 0.2
    again = parts.job(corpus, model, tmp_path / "q", batch_size=4)
    assert done(host.run(again)).row["quantization"] == "none"
    np.testing.assert_array_equal(scores(again), plain)


@pytest.mark.parametrize("scheme", ["int8", "int4", "bnb-int8", "bnb-nf4"])
def test_schemes_of_a_gpu_are_refused_on_a_cpu(
    host: Any, corpus: Path, model: Path, tmp_path: Path, scheme: str
) -> None:
    dtype = "bfloat16" if scheme == "int4" else "float32"
    job = parts.job(corpus, model, tmp_path / "p", quantization=scheme, dtype=dtype)
    outcome = host.run(job)
    assert outcome.failure == "error"
    assert f"'{scheme}' needs a GPU" in str(outcome.error)


def test_a_missing_package_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpucost_tui.engine import quantizing
    from gpucost_tui.errors import EnvironmentLacks

    monkeypatch.setattr(quantizing.importlib.util, "find_spec", lambda name: None)
    for scheme, package in (("int8-dynamic", "torchao"), ("int4", "torchao"), ("bnb-nf4", "bits")):
        execution = Execution(max_length=48, quantization=scheme)  # type: ignore[arg-type]
        with pytest.raises(EnvironmentLacks, match=f"needs the Python package {package}"):
            quantizing.loading_options(execution, "cuda:0", None)


def test_quantization_without_a_linear_layer_is_a_fallback() -> None:
    import torch

    from gpucost_tui.engine.contract import PassFailed
    from gpucost_tui.engine.quantizing import quantize

    execution = Execution(max_length=48, quantization="int8-dynamic")
    with pytest.raises(PassFailed, match="changed no layer"):
        quantize(torch.nn.ReLU(), execution, "cpu")


def test_the_kernel_of_sdpa_is_named(host: Any, corpus: Path, model: Path, tmp_path: Path) -> None:
    def effective(**changes: Any) -> Any:
        return done(host.run(parts.job(corpus, model, tmp_path / "p", **changes))).row[
            "attention_effective"
        ]

    assert effective(batch_size=4) == "sdpa (flash)"
    assert effective(batch_size=4, attention="sdpa-math") == "sdpa (math)"
    assert effective(batch_size=4, attention="sdpa-flash") == "sdpa (flash)"
    assert effective(attention="eager") == "eager"


def test_a_kernel_that_is_not_here_is_refused(
    host: Any, corpus: Path, model: Path, tmp_path: Path
) -> None:
    for kernel in ("sdpa-efficient", "sdpa-cudnn"):
        outcome = host.run(parts.job(corpus, model, tmp_path / "p", attention=kernel))
        assert outcome.status == "failed"
        assert f"attention '{kernel}'" in str(outcome.error)
    assert done(host.run(parts.job(corpus, model, tmp_path / "q"))).status == "completed"


# -- torch.compile ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three batches of four: three shapes to compile."""
    return parts.write_corpus(tmp_path_factory.mktemp("few") / "mail.jsonl", 12)


@pytest.fixture
def no_compiler_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamo's tracing and guards, without generated code."""
    monkeypatch.setattr(compiling, "BACKEND", "eager")


@pytest.mark.usefixtures("no_compiler_needed")
def test_a_compiled_variant_has_its_time_apart(
    host: Any, few: Path, model: Path, tmp_path: Path, plain: np.ndarray
) -> None:
    changes = {"batch_size": 4, "compile": "default", "compile_dynamic": "no"}
    job = parts.job(few, model, tmp_path / "p", **changes)
    host.events.clear()
    outcome = done(host.run(job))
    phases = [event["phase"] for event in host.events if event["event"] == "phase"]
    assert phases == ["load", "compile", "warm-up", "pass", "write"]
    assert outcome.row["compiled"] is True
    assert outcome.row["compile_s"] > 0
    assert outcome.row["warmup_s"] > 0
    assert noted(outcome, "torch.compile: mode default, dynamic no, cache kept")
    assert not noted(outcome, "fell into the measured pass"), outcome.notes
    np.testing.assert_allclose(scores(job), plain[:12], atol=3e-6)
    again = done(host.run(parts.job(few, model, tmp_path / "q", **changes)))
    assert again.row["compile_s"] is None
    assert again.missing["compile_s"] == "already compiled"
    assert again.row["compiled"] is True
    fresh = {**changes, "compile_cache": "fresh"}
    for name in ("r",):
        anew = done(host.run(parts.job(few, model, tmp_path / name, **fresh)))
        assert anew.row["compile_s"] > 0
    none = done(host.run(parts.job(few, model, tmp_path / "t", batch_size=4)))
    assert (none.row["compiled"], none.missing["compile_s"]) == (False, "not compiled")


@pytest.mark.usefixtures("no_compiler_needed")
def test_a_recompilation_in_a_measured_pass_is_said_or_refused(
    host: Any, few: Path, model: Path, tmp_path: Path
) -> None:
    changes = {"batch_size": 4, "compile": "default", "compile_dynamic": "no"}
    changes["compile_cache"] = "fresh"
    rule = {"inputs": "first-batch", "passes": 1}
    job = parts.job(few, model, tmp_path / "p", warmup=rule, **changes)
    outcome = done(host.run(job))
    assert noted(outcome, "fell into the measured pass"), outcome.notes
    rule = {**rule, "recompilation": "refuse"}
    refused = parts.job(few, model, tmp_path / "q", warmup=rule, **changes)
    outcome = host.run(refused)
    assert (outcome.status, outcome.failure) == ("failed", "error")
    assert "refuses (R15)" in str(outcome.error)
    assert outcome.finished_entries == 12
    assert outcome.row["pass_s"] is None
    assert parts.read(refused).height == 12


@pytest.mark.usefixtures("no_compiler_needed")
def test_compiling_nothing_is_a_fallback(
    host: Any, few: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling.Compiler, "_compiled", lambda self, model, execution: model)
    outcome = host.run(parts.job(few, model, tmp_path / "p", compile="default"))
    assert (outcome.status, outcome.failure) == ("failed", "fallback")
    assert "compiled nothing" in str(outcome.error)
    host.run(parts.job(few, model, tmp_path / "q"))


@pytest.mark.slow
def test_generated_code_agrees_with_the_plain_pass(
    host: Any, corpus: Path, model: Path, tmp_path: Path, plain: np.ndarray
) -> None:
    job = parts.job(
        corpus, model, tmp_path / "p", batch_size=4, compile="default", compile_dynamic="yes"
    )
    outcome = done(host.run(job))
    assert outcome.row["compile_s"] > 0
    np.testing.assert_allclose(scores(job), plain, atol=1e-5)
