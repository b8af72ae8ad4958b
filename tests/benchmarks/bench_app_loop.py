"""How long the app's event loop is held up, while a real pass is measured and while nothing runs.

    python tests/benchmarks/bench_app_loop.py [--seconds 20] [--rounds 3]

The app is open on Run, on a pseudo-terminal; in its event loop a task asks to be woken every 5 ms,
and how much later it is woken is the delay. Each round looks at a campaign at rest, then at the
embedded campaign's passes by the real model. Prints median, 99th percentile and maximum of both,
and the ratio of the percentiles.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np
from tui_terminal import Terminal, end_runner

STEP_S = 0.005


def inside(folder: Path, seconds: float, out: Path) -> None:
    """Run the app on Run with the probe in its event loop; write the delays in seconds."""
    from gpucost_tui.tui import app

    class Probed(app.GpucostApp):
        CSS_PATH = Path(app.__file__).with_name("app.tcss")

        def on_mount(self) -> None:
            self.run_worker(self._probe(), exit_on_error=True)

        async def _probe(self) -> None:
            while self.snapshot.status is None:
                await asyncio.sleep(0.05)
            self.action_place("run")
            await asyncio.sleep(2.0)
            delays, end = [], time.perf_counter() + seconds
            while (now := time.perf_counter()) < end:
                await asyncio.sleep(STEP_S)
                delays.append(time.perf_counter() - now - STEP_S)
            progress = self.snapshot.progress or {}
            out.write_text(json.dumps({"delays": delays, "attempt": progress.get("attempt")}))
            self.exit(0)

    Probed(folder).run()


def measured(folder: Path, seconds: float, out: Path) -> tuple[np.ndarray, int | None]:
    """Return the delays of one look at a campaign, and the attempt that went on at its end."""
    command = [sys.executable, __file__, "--inside", str(folder), str(seconds), str(out)]
    opened = Terminal(folder.parent, command=command)
    try:
        if opened.process.wait(seconds + 120) or not out.exists():
            raise SystemExit(f"the app ended early: {bytes(opened.seen[-1500:])!r}")
    finally:
        opened.close()
    found = json.loads(out.read_text())
    return np.array(found["delays"]), found["attempt"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inside", nargs=3)
    options = parser.parse_args()
    if options.inside:
        folder, seconds, out = options.inside
        inside(Path(folder), float(seconds), Path(out))
        return
    from gpucost_tui.campaign.demo import make_demo
    from gpucost_tui.campaign.detach import detach
    from gpucost_tui.campaign.seal import seal

    found: dict[str, list[np.ndarray]] = {"at rest": [], "a pass runs": []}
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["GPUCOST_STATE_HOME"] = scratch
        for number in range(options.rounds):
            campaign = make_demo(Path(scratch) / f"c{number}")
            seal(campaign)
            out = Path(scratch) / "delays.json"
            found["at rest"].append(measured(campaign.folder, options.seconds, out)[0])
            detach(campaign, [])
            delays, attempt = measured(campaign.folder, options.seconds, out)
            found["a pass runs"].append(delays)
            if attempt is None:
                print("the run ended before the look: choose fewer seconds")
            end_runner(campaign.folder)
    percentiles = []
    for name, parts in found.items():
        delays = np.concatenate(parts) * 1000
        percentiles.append(np.percentile(delays, 99))
        print(
            f"{name:<12} median {np.median(delays):6.2f} ms, 99th percentile "
            f"{percentiles[-1]:7.2f} ms, maximum {delays.max():7.1f} ms, {len(delays):,} wakes"
        )
    print(f"99th percentile, a pass to rest: {percentiles[1] / percentiles[0]:.2f}")


if __name__ == "__main__":
    main()
