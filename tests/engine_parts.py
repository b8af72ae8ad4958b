"""Parts for tests of engines: tiny random models, corpora, jobs, and hosts that run a worker."""

from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.engine.contract import Engine, Job, Outcome

TESTS = Path(__file__).parent
LABELS = ["billing", "bug", "question"]
TORCH = "gpucost_tui.engine.torch_engine:TorchEngine"
FAKE = "fake_engine:FakeEngine"

_PROSE = (
    "the printer shows a red light and the invoice of last month was paid twice please look at it "
    "my account can not be opened since monday who may help thanks for a quick answer number one"
)
WORDS = _PROSE.split()


def texts(count: int) -> list[str]:
    """Return texts of very different lengths, some longer than 48 tokens, one of them empty."""
    made = []
    for i in range(count):
        length = 3 + (i * 7) % 23 if i % 5 else 40 + i % 40
        made.append(" ".join(WORDS[(i * 3 + k * (1 + i % 4)) % len(WORDS)] for k in range(length)))
    if count > 7:
        made[7] = ""
    return made


def write_corpus(path: Path, count: int) -> Path:
    rows = [
        {"id": f"{i:03d}", "text": text, "label": LABELS[i % 3]}
        for i, text in enumerate(texts(count))
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(lines, "utf-8")
    return path


def tiny_bert(folder: Path, *, spoil: str | None = None, seed: int = 7) -> Path:
    """Make a random BERT classifier (2 layers, width 32, 64 positions) with its own tokenizer.

    ``spoil``: ``nan`` (weights), ``headless`` (no classifier), ``no-pad``, ``one-label``.
    """
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertModel,
        PreTrainedTokenizerFast,
    )

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    pieces = sorted(set(WORDS)) + sorted({f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"})
    letters = list("abcdefghijklmnopqrstuvwxyz")
    vocabulary = {word: i for i, word in enumerate(dict.fromkeys(special + pieces + letters))}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    pad = {} if spoil == "no-pad" else {"pad_token": "[PAD]"}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **pad,
    )
    torch.manual_seed(seed)
    count = 1 if spoil == "one-label" else 3
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.5,
        num_labels=count,
        id2label=dict(enumerate(LABELS[:count])),
        label2id={label: i for i, label in enumerate(LABELS[:count])},
    )
    headless = spoil == "headless"
    model = BertModel(config) if headless else BertForSequenceClassification(config)
    if spoil == "nan":
        with torch.no_grad():
            model.classifier.weight.fill_(float("nan"))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def execution(**changes: Any) -> dict[str, Any]:
    from gpucost_tui.protocol.execution import Execution

    settings = {"max_length": 48, "threads": 1, "device": "cpu", **changes}
    return Execution(**settings).model_dump(mode="json")


def job(corpus: Path, model: Path, predictions: Path, **changes: Any) -> Job:
    """Return a job over a corpus; ``batch_size`` and other execution settings may be given flat."""
    from gpucost_tui.protocol.execution import Execution

    settings = {k: changes.pop(k) for k in list(changes) if k in Execution.model_fields}
    values = {
        "attempt": 1,
        "corpus": str(corpus),
        "entries": len(corpus.read_bytes().splitlines()),
        "model": str(model),
        "model_sha256": str(model),
        "task": {"name": "text-classification"},
        "execution": execution(**settings),
        "warmup": {"inputs": "every-shape", "passes": 1},
        "cache": "keep",
        "seed": 0,
        "timed": True,
        "predictions": str(predictions),
    }
    return Job(**{**values, **changes})


class ThreadHost:
    """A worker in this process (policy ``thread``)."""

    def __init__(self, engine: str, env: dict[str, str] | None = None) -> None:
        from gpucost_tui.engine.child import builder
        from gpucost_tui.engine.worker import Worker

        os.environ.update(env or {})
        self._env = env or {}
        self.events: list[dict[str, Any]] = []
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue()
        build: Callable[[], Engine] = builder(engine)
        self.worker = Worker(build, self._queue.put)
        self.worker.start()

    def next(self, timeout_s: float = 60) -> dict[str, Any]:
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self.worker.tick()
            try:
                event = self._queue.get(timeout=0.05)
            except queue.Empty:
                continue
            self.events.append(event)
            return event
        raise TimeoutError(f"no event in {timeout_s} s; so far {self.events[-5:]}")

    def until(self, name: str, timeout_s: float = 60) -> dict[str, Any]:
        while True:
            event = self.next(timeout_s)
            if event["event"] == name:
                return event

    def submit(self, what: Job) -> None:
        self.worker.submit(what)

    def stop(self) -> None:
        self.worker.stop()

    def run(self, what: Job) -> Outcome:
        self.submit(what)
        return outcome(self.until("outcome"))

    def close(self) -> None:
        self.worker.quit()
        self.worker.thread.join(30)
        for name in self._env:
            os.environ.pop(name, None)


class ChildHost(ThreadHost):
    """A measuring child over pipes (policy ``child``)."""

    def __init__(
        self,
        engine: str,
        env: dict[str, str] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.events = []
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gpucost_tui.engine.child", "--engine", engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, **(env or {})},
            preexec_fn=before,
        )
        self._rest = b""

    def next(self, timeout_s: float = 60) -> dict[str, Any]:
        assert self.process.stdout is not None
        end = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            wait = max(0.0, end - time.monotonic())
            if not select.select([self.process.stdout], [], [], wait)[0]:
                raise TimeoutError(f"no event in {timeout_s} s; so far {self.events[-5:]}")
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                raise EOFError(self.process.wait(10))
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        event: dict[str, Any] = json.loads(line)
        self.events.append(event)
        return event

    def send(self, order: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def submit(self, what: Job) -> None:
        self.send({"do": "attempt", "job": what.to_json()})

    def stop(self) -> None:
        self.send({"do": "stop", "how": "batch"})

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        self.process.wait(30)


def outcome(event: dict[str, Any]) -> Outcome:
    return Outcome.from_json({k: v for k, v in event.items() if k != "event"})


def read(what: Job) -> pl.DataFrame:
    return pl.read_parquet(what.predictions)
