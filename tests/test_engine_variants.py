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
from gpucost_tui.engine.devices import Cpu, CudaUploader
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
        ({"attention": "flash_attention_2", "dtype": "float32"}, "attention"),
        ({"attention": "flash_attention_2", "dtype": "bfloat16", "device": "cpu"}, "attention"),
        ({"compile": "reduce-overhead", "device": "cpu"}, "compile"),
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


def test_what_has_no_column_of_its_own_is_noted_as_it_was_asked_for(
    host: Any, corpus: Path, model: Path, tmp_path: Path
) -> None:
    job = parts.job(corpus, model, tmp_path / "p", device="auto", truncation_side="left")
    outcome = done(host.run(job))
    assert noted(outcome, "requested: device auto, threads 1, quantization none, compile none, "
                          "truncation_side left")  # fmt: skip
    assert (outcome.row["device"], outcome.row["threads"]) == ("cpu", 1)


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


def test_a_prefetching_iterator_is_closed_in_its_own_thread() -> None:
    closed: list[str] = []

    def items() -> Any:
        try:
            yield from range(100)
        finally:
            closed.append(threading.current_thread().name)

    ahead = Prefetched(items(), 2)
    assert next(iter(ahead)) == 0
    ahead.close()
    assert closed == ["prefetch"]


class Watched(Cpu):
    """A processor that says what it is asked for, as a device would be."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def send(self, tensors: dict[str, Any]) -> Any:
        self.asked.append("send")
        return super().send(tensors)

    def uploader(self) -> Any:
        self.asked.append("upload")
        return super()

    def reset_peaks(self) -> None:
        self.asked.append("reset")

    def empty_cache(self) -> None:
        self.asked.append("empty")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    from gpucost_tui.engine import torch_engine

    device = Watched()
    monkeypatch.setattr(torch_engine, "resolve", lambda requested, torch: device)
    return device


def test_each_attempt_begins_its_peaks_with_an_empty_cache(
    host: Any, corpus: Path, model: Path, tmp_path: Path, watched: Watched
) -> None:
    """What an attempt at batch 8 left in the allocator is no peak of the next one at batch 1."""
    for size in (8, 1):
        watched.asked.clear()
        done(host.run(parts.job(corpus, model, tmp_path / "p", batch_size=size)))
        asked = [what for what in watched.asked if what != "send"]
        assert asked[-2:] == ["empty", "reset"]


def test_a_prefetched_pass_is_warmed_up_in_its_own_way(
    host: Any, corpus: Path, model: Path, tmp_path: Path, watched: Watched
) -> None:
    done(host.run(parts.job(corpus, model, tmp_path / "p", batch_size=4)))
    assert "upload" not in watched.asked
    watched.asked.clear()
    done(host.run(parts.job(corpus, model, tmp_path / "p", batch_size=4, prefetch=2)))
    # Once for every batch of the warm-up, and once for the pass.
    assert watched.asked.count("upload") > 2


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
    upload.enter()  # of the pass, after that of the warm-up: the stream stays
    assert upload._stream == "copies" and cuda.said[-1] == ("device", 1)


# -- precision, quantization, attention ------------------------------------------------------


def test_tf32_on_a_cpu_is_a_fallback(host: Any, corpus: Path, model: Path, tmp_path: Path) -> None:
    outcome = host.run(parts.job(corpus, model, tmp_path / "p", tf32=True))
    assert (outcome.status, outcome.failure) == ("failed", "fallback")
    assert "a CPU multiplies float32 in full" in str(outcome.error)
    assert outcome.row["dtype_requested"] == "float32, tf32 products"


def test_float32_that_is_rounded_all_the_same_is_a_fallback(
    host: Any, corpus: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    real = torch.nn.functional.linear

    def rounding(values: Any, weights: Any, *rest: Any) -> Any:
        return real(values.bfloat16().to(values.dtype), weights, *rest)

    monkeypatch.setattr(torch.nn.functional, "linear", rounding)
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    outcome = host.run(parts.job(corpus, model, tmp_path / "p"))
    assert (outcome.status, outcome.failure) == ("failed", "fallback")
    assert "the environment sets NVIDIA_TF32_OVERRIDE" in str(outcome.error)
    assert done(host.run(parts.job(corpus, model, tmp_path / "q", dtype="bfloat16")))


@pytest.mark.parametrize(
    ("rounds", "major", "hip", "said"),
    [
        (True, 9, None, None),
        (False, 9, None, "multiplied float32 in full, and the environment sets NVIDIA_TF32"),
        (False, 7, None, "compute capability 7.x has no tf32"),
        (False, 9, "6.4", "this ROCm multiplies float32 in full"),
    ],
)
def test_tf32_of_a_device_is_proved_by_a_product(
    rounds: bool,
    major: int,
    hip: str | None,
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from types import SimpleNamespace

    from gpucost_tui.engine.contract import PassFailed
    from gpucost_tui.engine.settings import check_products

    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    kind = np.float16 if rounds else np.float32  # as many bits behind the point as tf32

    def linear(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return values.astype(kind).astype(np.float32)

    torch: Any = SimpleNamespace(
        full=lambda shape, value, device: np.full(shape, value, np.float32),
        eye=lambda size, device: np.eye(size, dtype=np.float32),
        nn=SimpleNamespace(functional=SimpleNamespace(linear=linear)),
        version=SimpleNamespace(hip=hip),
        cuda=SimpleNamespace(get_device_properties=lambda index: SimpleNamespace(major=major)),
    )
    asked = Execution(max_length=48, tf32=True)
    if said is None:
        check_products(torch, asked, "cuda:0")
        with pytest.raises(PassFailed, match="exact float32 was requested"):
            check_products(torch, Execution(max_length=48), "cuda:0")
    else:
        check_products(torch, Execution(max_length=48), "cuda:0")
        with pytest.raises(PassFailed, match=said) as caught:
            check_products(torch, asked, "cuda:0")
        assert caught.value.kind == "fallback"


def test_dynamic_int8_changes_layers_and_scores(
    host: Any, corpus: Path, model: Path, tmp_path: Path, plain: np.ndarray
) -> None:
    job = parts.job(corpus, model, tmp_path / "p", batch_size=4, quantization="int8-dynamic")
    outcome = done(host.run(job))
    assert outcome.row["quantization"].startswith("int8-dynamic (torch, ")
    assert "14 of 14 linear layers" in outcome.row["quantization"]
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


class FakeTorchao:
    """As much of ``torchao.quantization`` as is called; a layer of width 96 is left out."""

    def __init__(self, options: dict[str, Any], error: Exception | None = None) -> None:
        import dataclasses

        self.error = error
        self.taken: Any = None
        fields = [(name, type(value), value) for name, value in options.items()]
        self.Int4WeightOnlyConfig = dataclasses.make_dataclass("Int4", fields)

    def quantize_(self, model: Any, config: Any) -> None:
        import torch

        class Packed(torch.nn.Parameter):
            pass

        Packed.__module__ = "torchao.dtypes"
        if self.error is not None:
            raise self.error
        self.taken = config
        for part in model:
            if part.in_features % 128 == 0:
                part.weight = Packed(part.weight.data)


@pytest.mark.parametrize(
    ("known", "taken"),
    [
        ({"group_size": 128}, {"group_size": 128}),
        (
            {"set_inductor_config": True, "int4_packing_format": "plain"},
            {"set_inductor_config": False, "int4_packing_format": "tile_packed_to_4d"},
        ),
    ],
)
def test_torchao_takes_torch_s_own_kernels_and_no_switch_of_the_process(
    known: dict[str, Any], taken: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import dataclasses
    import sys

    import torch

    from gpucost_tui.engine.quantizing import quantize

    fake: Any = FakeTorchao(known)
    monkeypatch.setitem(sys.modules, "torchao.quantization", fake)
    layers = torch.nn.Sequential(torch.nn.Linear(256, 8), torch.nn.Linear(96, 8))
    asked = Execution(max_length=48, quantization="int4", dtype="bfloat16")
    _, effective = quantize(layers, asked, "cuda:0")
    assert dataclasses.asdict(fake.taken) == taken
    assert effective.startswith("int4 (torchao") and "1 of 2 linear layers" in effective


def test_a_torchao_that_can_not_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    import torch

    from gpucost_tui.engine.quantizing import quantize
    from gpucost_tui.errors import EnvironmentLacks

    asked = Execution(max_length=48, quantization="int4", dtype="bfloat16")
    layers = torch.nn.Sequential(torch.nn.Linear(256, 8))
    for error in (ImportError("Requires mslk"), ValueError("compute capability (7, 5)")):
        fake: Any = FakeTorchao({}, error)
        monkeypatch.setitem(sys.modules, "torchao.quantization", fake)
        with pytest.raises(EnvironmentLacks, match=r"'int4' can't be had here .*(mslk|7, 5)"):
            quantize(layers, asked, "cuda:0")
    monkeypatch.setitem(sys.modules, "torchao.quantization", object())
    with pytest.raises(EnvironmentLacks, match="unknown to the installed torchao"):
        quantize(layers, asked, "cuda:0")


def test_keys_and_values_for_a_next_token_are_not_kept() -> None:
    import torch
    from transformers import Qwen3Config, Qwen3ForSequenceClassification

    from gpucost_tui.engine.loading import _keep_no_cache

    config = Qwen3Config(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=16,
        head_dim=8,
        pad_token_id=0,
    )
    decoder = Qwen3ForSequenceClassification(config).eval()
    ids = torch.arange(1, 7).reshape(2, 3)
    with torch.inference_mode():
        before = decoder(input_ids=ids)
        _keep_no_cache(decoder)
        after = decoder(input_ids=ids)
    assert set(before) - {"logits"} and list(after) == ["logits"]
    assert torch.equal(before.logits, after.logits)


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
    for name in ("p", "again"):  # the second one finds what the first one left
        outcome = host.run(parts.job(few, model, tmp_path / name, compile="default"))
        assert (outcome.status, outcome.failure) == ("failed", "fallback")
        assert "did not take effect: nothing was compiled" in str(outcome.error)
    host.run(parts.job(few, model, tmp_path / "q"))


@pytest.mark.usefixtures("no_compiler_needed")
def test_recorded_device_graphs_of_a_cpu_are_a_fallback(
    host: Any, few: Path, model: Path, tmp_path: Path
) -> None:
    asked = {"compile": "reduce-overhead", "device": "auto"}
    outcome = host.run(parts.job(few, model, tmp_path / "p", **asked))
    assert (outcome.status, outcome.failure) == ("failed", "fallback")
    assert "a CPU has no device graphs" in str(outcome.error)
    host.run(parts.job(few, model, tmp_path / "q"))


def test_device_graphs_that_were_left_out_are_a_fallback() -> None:
    from gpucost_tui.engine.contract import PassFailed

    left_out = compiling.Compilations(3, 1.0, unrecorded=2)
    for mode in ("reduce-overhead", "max-autotune"):
        asked = Execution(max_length=48, compile=mode)
        compiling.check(asked, compiling.Compilations(3, 1.0), "cuda:0")
        with pytest.raises(PassFailed, match="2 device graphs could not be recorded"):
            compiling.check(asked, left_out, "cuda:0")
    compiling.check(Execution(max_length=48, compile="max-autotune"), left_out, "cpu")
    compiling.check(Execution(max_length=48, compile="default"), left_out, "cuda:0")


def test_what_the_compiler_says_is_told_apart() -> None:
    from gpucost_tui.engine.contract import PassFailed
    from gpucost_tui.engine.failures import kind_of
    from gpucost_tui.errors import EnvironmentLacks

    # Earlier releases give every failure of the backend this name.
    backend_failed = type("BackendCompilerFailed", (RuntimeError,), {})
    backend_failed.__module__ = "torch._dynamo.exc"

    def told(text: str) -> Exception:
        with pytest.raises(Exception) as caught, compiling.explained():
            raise backend_failed(text)
        return caught.value

    triton = "backend='inductor' raised:\nTritonMissing: Cannot find a working triton installation."
    for missing in (triton, "InvalidCxxCompiler: No working C++ compiler found in …"):
        assert isinstance(told(missing), EnvironmentLacks)
    broken = told("backend='inductor' raised:\nLoweringException: triton does not know this")
    assert isinstance(broken, PassFailed) and broken.kind == "error"
    assert kind_of(told("OutOfMemoryError: CUDA out of memory. Tried …")) == "out-of-memory"
    with pytest.raises(KeyError), compiling.explained():
        raise KeyError("not the compiler's")


@pytest.mark.usefixtures("no_compiler_needed")
def test_graph_breaks_are_counted_and_said() -> None:
    import torch

    class Broken(torch.nn.Module):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            torch._dynamo.graph_break()
            return values + 1

    asked = Execution(max_length=48, compile="default")
    compiler = compiling.Compiler(torch)
    for part, said in ((Broken(), "Python runs uncompiled"), (torch.nn.ReLU(), "no graph break")):
        compiler.model(torch.nn.Sequential(torch.nn.ReLU(), part), asked)(torch.ones(3))
        so_far = compiler.so_far()
        assert so_far.number
        (note,) = compiling.describe(asked, so_far, so_far)
        assert said in note
    compiler.forget()


def test_a_fresh_cache_is_empty_and_gives_back_what_was_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import os

    import torch

    names = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    for name in names:
        monkeypatch.setenv(name, str(tmp_path / name))
    compiler = compiling.Compiler(torch)
    compiler.model(torch.nn.ReLU(), Execution(max_length=4, compile="default",
                                              compile_cache="fresh"))  # fmt: skip
    inside = [Path(os.environ[name]) for name in names]
    assert not any(folder.is_relative_to(tmp_path) for folder in inside)
    assert list(inside[0].iterdir()) == []
    compiler.forget()
    assert [os.environ[name] for name in names] == [str(tmp_path / name) for name in names]
    assert not inside[0].exists()


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
