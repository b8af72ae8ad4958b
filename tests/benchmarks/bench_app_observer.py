"""What looking costs the passes: with the app open on Run against `gpucost run` without a screen.

    python tests/benchmarks/bench_app_observer.py [--pairs 30] [--entries 1000] [--rounds 2]

A campaign of one variant, the embedded model over the first entries of its corpus, is sealed once
and copied for each side of each pair. One side is run by `gpucost run` with its output thrown
away; the other is started in the app, which stays open on Run, on a pseudo-terminal, until the run
has ended. The sides alternate in who goes first. A pair's ratio is that of the sums of its measured
passes; printed are the median ratio with its 95 % bootstrap interval, and how many times a second
the app wrote to its terminal while it was open. Exit status 1 outside the limits.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench_engine import ratios
from tui_terminal import GPUCOST, Terminal

LOWER, UPPER = 1.02, 1.05
VARIANT = "batch-4"


def sealed(folder: Path, entries: int, rounds: int) -> Path:
    """Make and seal the campaign."""
    from gpucost_tui.campaign.create import Inputs, create
    from gpucost_tui.campaign.seal import seal
    from gpucost_tui.demo.generate import corpus, write_jsonl

    source = folder.parent / "corpus.jsonl"
    write_jsonl(source, islice(corpus(), entries))
    settings = [
        ("name", "observed"),
        ("corpus.right_of_use", "Synthetic."),
        ("quality.threshold", 0.0),
        ("quality.subgroups", []),
        ("measurement.rounds", rounds),
    ]
    inputs = Inputs(
        protocol="classification-batch", corpus=[str(source)], model="demo", settings=settings
    )
    campaign = create(folder, inputs)
    import tomlkit

    document = tomlkit.parse(campaign.protocol_file.read_text("utf-8"))
    for name in set(document["variants"]) - {VARIANT}:
        del document["variants"][name]
    document["series"][0]["variants"] = [VARIANT]
    campaign.protocol_file.write_text(tomlkit.dumps(document), "utf-8")
    seal(campaign)
    return folder


def passes_s(folder: Path, planned: int) -> float:
    """Return the sum of the measured passes, in seconds."""
    from gpucost_tui.campaign.fold import fold
    from gpucost_tui.campaign.folder import Campaign

    rows = [attempt.row for attempt in fold(Campaign(folder).events()).attempts.values()]
    passes = [row["pass_s"] for row in rows if row["status"] == "completed"]
    if len(passes) != planned:
        raise SystemExit(f"{planned} passes were planned, {len(passes)} completed in {folder.name}")
    return float(sum(passes))


def alone(folder: Path) -> None:
    command = [GPUCOST, "run", str(folder)]
    nothing = subprocess.DEVNULL
    subprocess.run(command, stdin=nothing, stdout=nothing, stderr=nothing, check=True)


def observed(folder: Path) -> float:
    """Run in the app, open on Run; return how many times a second it wrote to its terminal."""
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.lock import holder
    from gpucost_tui.campaign.status import status

    opened = Terminal(folder.parent, [folder.name], size=(120, 40))
    try:
        opened.shows("◆ sealed".encode())
        opened.keys(b"4")
        opened.shows(b" open. ")
        opened.keys(b"s")
        opened.until(lambda: holder(folder) is not None, "a runner")
        begun, before = time.monotonic(), opened.reads
        while holder(folder) is not None:
            time.sleep(0.2)
        a_second = (opened.reads - before) / (time.monotonic() - begun)
        assert status(Campaign(folder))["state"] == "finished"
        opened.keys(b"\x11")
        opened.ended()
        return a_second
    finally:
        opened.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with_app: list[float] = []
    without: list[float] = []
    written: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["GPUCOST_STATE_HOME"] = scratch
        made = sealed(Path(scratch) / "made", options.entries, options.rounds)

        def look(number: int) -> None:
            folder = Path(shutil.copytree(made, Path(scratch) / f"app-{number}"))
            written.append(observed(folder))
            with_app.append(passes_s(folder, options.rounds))

        def run(number: int) -> None:
            folder = Path(shutil.copytree(made, Path(scratch) / f"alone-{number}"))
            alone(folder)
            without.append(passes_s(folder, options.rounds))

        for number in range(options.pairs + 1):
            for side in (look, run) if number % 2 else (run, look):
                side(number)
            print(f"pair {number}: {with_app[-1]:.3f} s / {without[-1]:.3f} s", flush=True)
    # The first pair warms caches.
    middle, low, high = ratios(with_app[1:], without[1:])
    print(f"the app wrote {sum(written) / len(written):.1f} times a second")
    print(f"median ratio {middle:.3f} [{low:.3f}, {high:.3f}], {options.pairs} pairs")
    print(f"limits: lower end {LOWER}, upper end {UPPER}")
    return 0 if low <= LOWER and high <= UPPER else 1


if __name__ == "__main__":
    sys.exit(main())
