"""Fifteen attempts with one kept child against fifteen with a fresh child each: interleaved pairs.

    python tests/benchmarks/bench_engine_child.py [--pairs 3] [--attempts 15] [--entries 250]
        [--batch 8] [--model demo|minilm] [--threads 1]

Wall time from the first child's start to the last outcome, loading included: what the policies
`child` and `child-per-attempt` cost a rental. The passes' own durations are shown beside it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import bench_engine as base
import engine_parts as parts
import numpy as np


def series(job_of: object, attempts: int, *, kept: bool) -> tuple[float, list[float]]:
    """Run attempts; return the wall time in seconds and the durations of the passes."""
    begun, passes, host = time.perf_counter(), [], None
    for number in range(attempts):
        if host is None:
            host = parts.ChildHost(parts.TORCH)
            host.until("ready")
        outcome = host.run(job_of(number))  # type: ignore[operator]
        if outcome.status != "completed":
            raise SystemExit(f"an attempt ended as {outcome.status}: {outcome.error}")
        passes.append(outcome.row["pass_s"])
        if not kept:
            host.close()
            host = None
    if host is not None:
        host.close()
    return time.perf_counter() - begun, passes


def main() -> None:
    parser = base.options_of(str(__doc__).splitlines()[0], [8])
    parser.set_defaults(pairs=3)
    parser.add_argument("--attempts", type=int, default=15)
    options = parser.parse_args()
    folder, task = base.folder_of(options.model)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        corpus = base.corpus_file(scratch, options.entries, options.corpus)

        def job_of(number: int) -> object:
            return parts.job(
                corpus,
                folder,
                scratch / f"{number}.parquet",
                attempt=number + 1,
                task=task,
                batch_size=options.batch[0],
                threads=options.threads,
                max_length=256,
            )

        passes: dict[bool, list[float]] = {True: [], False: []}

        def run(kept: bool) -> float:
            took, each = series(job_of, options.attempts, kept=kept)
            passes[kept] += each
            return took

        ours, theirs = base.interleaved(lambda: run(True), lambda: run(False), options.pairs)
        base.told(f"{options.attempts} attempts, kept child against fresh ones", ours, theirs)
        for kept, words in ((True, "kept"), (False, "fresh")):
            low, middle, high = np.quantile(passes[kept], [0.0, 0.5, 1.0])
            print(f"passes of {words} children: {middle:.3f} s ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
