"""How long the light words take to start, as a ratio to ``python -c "import typer"``.

    python tests/benchmarks/bench_start.py [rounds]

Commands alternate within a round, so that a busy moment meets all of them; the ratio is that of
medians. Exit status 1 where a word takes more than 1.5 times as long.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 1.5
GPUCOST = str(Path(sys.executable).with_name("gpucost"))
BASELINE = 'python -c "import typer"'
COMMANDS = {
    BASELINE: [sys.executable, "-c", "import typer"],
    "gpucost --help": [GPUCOST, "--help"],
    "gpucost price": [GPUCOST, "price", "--gpu", "rtx-4090", "--days", "7", "--lots", "2"],
    "gpucost window": [
        GPUCOST, "window", "--start", "2026-09-28T09:00", "--end", "2026-10-02T09:00",
        "--timezone", "Europe/Paris",
    ],
}  # fmt: skip


def measured(rounds: int) -> dict[str, list[float]]:
    """Return wall times in seconds by command; the first round warms caches and is dropped."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, words in COMMANDS.items():
            begun = time.perf_counter()
            subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
            if number:
                times[name].append(time.perf_counter() - begun)
    return times


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    medians = {name: statistics.median(times) for name, times in measured(rounds).items()}
    ratios = {name: median / medians[BASELINE] for name, median in medians.items()}
    for name, ratio in ratios.items():
        print(f"{name:<26} {medians[name] * 1000:7.1f} ms  {ratio:.2f}")
    slow = [name for name, ratio in ratios.items() if ratio > LIMIT]
    print(f"above {LIMIT}: {', '.join(slow) or 'none'}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
