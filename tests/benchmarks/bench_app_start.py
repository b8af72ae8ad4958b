"""How long the app takes to its first paint, as a ratio to a minimal Textual app.

    python tests/benchmarks/bench_app_start.py [rounds]

Both start on a pseudo-terminal of their own and are timed from the start of the process to the
first frame with their words on it. They alternate within a round, so that a busy moment meets
both; the ratio is that of medians. Exit status 1 above the limit.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tui_terminal import GPUCOST, Terminal

LIMIT = 1.6
MINIMAL = """
from textual.app import App
from textual.widgets import Static
class Minimal(App):
    def compose(self):
        yield Static("The first paint of a minimal app")
Minimal().run()
"""
#: Name -> (command, words of the first frame).
APPS = {
    "minimal Textual app": ([sys.executable, "-c", MINIMAL], b"The first paint"),
    "gpucost": ([GPUCOST], b"Home"),
}


def first_paint_s(command: list[str], words: bytes, folder: Path) -> float:
    """Return seconds from the start of the process to its first frame."""
    begun = time.perf_counter()
    opened = Terminal(folder, command=command)
    try:
        while words not in opened.seen:
            if opened.process.poll() is not None:
                raise SystemExit(f"{command[0]} ended: {bytes(opened.seen[-500:])!r}")
            time.sleep(0.001)
        return time.perf_counter() - begun
    finally:
        opened.close()


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    times: dict[str, list[float]] = {name: [] for name in APPS}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GPUCOST_STATE_HOME"] = folder
        (Path(folder) / "empty").mkdir()
        for number in range(rounds + 1):
            for name, (command, words) in APPS.items():
                took = first_paint_s(command, words, Path(folder) / "empty")
                if number:  # the first round warms caches
                    times[name].append(took)
    base, app = (statistics.median(values) for values in times.values())
    for name, values in times.items():
        print(f"{name:<20} {statistics.median(values) * 1000:7.1f} ms, {len(values)} starts")
    print(f"ratio {app / base:.2f}, at most {LIMIT}")
    return 1 if app / base > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
