"""The engine's pass against `transformers.pipeline`: interleaved pairs, median ratio.

    python tests/benchmarks/bench_engine_pipeline.py [--pairs 30] [--entries 1000]
        [--corpus docstrings|embedded] [--batch 1 4 8 32] [--model demo|minilm] [--threads 1]

Two comparisons a batch size: the engine without any option, and grouped by length. What grouping
spares is padding, so how much depends on the corpus's lengths: by default the embedded campaign's
(long, medium and short texts mixed, padding 3.1 at batch 32). The pipeline
has the same batch size, length, padding and threads, its texts in the corpus's order, and its
results as labels with scores (or pooled vectors) beside their ids.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import bench_engine as base
import engine_parts as parts
import numpy as np

#: Largest ratio by grouping and batch size.
BOUNDS = {"none": dict.fromkeys((1, 4, 8, 32), 1.03), "length": {8: 0.50, 32: 0.35}}


def pipeline_pass(corpus: Path, folder: Path, batch: int, length: int) -> Any:
    import torch
    from transformers import AutoTokenizer, pipeline

    classifies = base.folder_of("demo")[0] == folder
    kind = "text-classification" if classifies else "feature-extraction"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    called = pipeline(kind, model=str(folder), tokenizer=tokenizer, device="cpu")
    cut = {"truncation": True, "max_length": length}
    how: dict[str, Any] = {"top_k": None, **cut} if classifies else {"tokenize_kwargs": cut}

    def run() -> list[Any]:
        with corpus.open(encoding="utf-8") as stream, torch.inference_mode():
            rows = [json.loads(line) for line in stream]
            found = called([row["text"] for row in rows], batch_size=batch, **how)
            if classifies:
                return [(row["id"], one) for row, one in zip(rows, found, strict=True)]
            return [
                (row["id"], np.asarray(one[0]).mean(axis=0))
                for row, one in zip(rows, found, strict=True)
            ]

    return run


def main() -> None:
    parser = base.options_of(str(__doc__).splitlines()[0], [1, 4, 8, 32])
    parser.set_defaults(corpus="embedded", entries=1000)
    options = parser.parse_args()
    folder, task = base.folder_of(options.model)
    with tempfile.TemporaryDirectory() as scratch:
        corpus = base.corpus_file(Path(scratch), options.entries, options.corpus)
        for batch in options.batch:
            other = pipeline_pass(corpus, folder, batch, 256)
            other()
            for grouping in ("none", "length"):
                job = parts.job(
                    corpus,
                    folder,
                    folder / "unused",
                    task=task,
                    batch_size=batch,
                    grouping=grouping,
                    threads=options.threads,
                    max_length=256,
                )
                engine, measured = base.ready_engine(job)
                pairs = base.interleaved(measured, lambda o=other: base.timed(o), options.pairs)
                what = f"{options.model} batch {batch:>2} {grouping} against pipeline"
                base.told(what, *pairs, BOUNDS[grouping].get(batch))
                engine.release()


if __name__ == "__main__":
    main()
