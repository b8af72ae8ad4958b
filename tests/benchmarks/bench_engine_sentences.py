"""The engine's grouped pass against sentence-transformers' `encode`: interleaved pairs.

    python tests/benchmarks/bench_engine_sentences.py [--pairs 30] [--entries 250]
        [--batch 4 8 32] [--threads 1]

Needs the Python package sentence-transformers. Both sides have the 22-million-parameter encoder,
the same batch size and length, mean pooling and normalized vectors; both group by length (`encode`
always does).
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
from pathlib import Path

import bench_engine as base
import engine_parts as parts

#: Largest ratio.
BOUND = 1.05


def main() -> None:
    options = base.options_of(str(__doc__).splitlines()[0], [4, 8, 32]).parse_args()
    if importlib.util.find_spec("sentence_transformers") is None:
        raise SystemExit("sentence-transformers is not installed: nothing to compare with.")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer

    folder, task = base.folder_of("minilm")
    words = Transformer(str(folder), max_seq_length=256)
    width = getattr(words, "get_embedding_dimension", None) or words.get_word_embedding_dimension
    pooled = Pooling(width(), pooling_mode="mean")
    model = SentenceTransformer(modules=[words, pooled, Normalize()], device="cpu")
    with tempfile.TemporaryDirectory() as scratch:
        corpus = base.corpus_file(Path(scratch), options.entries, options.corpus)

        def encode(batch: int) -> object:
            with corpus.open(encoding="utf-8") as stream:
                rows = [json.loads(line) for line in stream]
            texts = [row["text"] for row in rows]
            found = model.encode(texts, batch_size=batch, show_progress_bar=False)
            return list(zip((row["id"] for row in rows), found, strict=True))

        for batch in options.batch:
            job = parts.job(
                corpus,
                folder,
                folder / "unused",
                task=task,
                batch_size=batch,
                grouping="length",
                threads=options.threads,
                max_length=256,
            )
            engine, measured = base.ready_engine(job)
            encode(batch)
            pairs = base.interleaved(
                measured, lambda b=batch: base.timed(lambda: encode(b)), options.pairs
            )
            base.told(f"minilm batch {batch:>2} grouped against encode", *pairs, BOUND)
            engine.release()


if __name__ == "__main__":
    main()
