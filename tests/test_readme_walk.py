"""The README's first campaign on own data, typed as it stands there, up to the run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(heading: str) -> list[str]:
    """Return the indented blocks under a heading."""
    section = README.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [
        textwrap.dedent(b).strip() for b in re.findall(r"(?:^    .*\n|^\n(?=    ))+", section, re.M)
    ]


def shell(script: str, folder: Path) -> str:
    """Run lines in a shell that ends with the first one that fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eu", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_campaign_on_own_data(tmp_path: Path) -> None:
    corpus, commands = blocks("A first campaign on your own data")
    shell(corpus, tmp_path)
    entries = [json.loads(line) for line in (tmp_path / "docs.jsonl").open(encoding="utf-8")]
    assert len(entries) >= 250 and len({entry["id"] for entry in entries}) == len(entries)
    model, *words = commands.splitlines()
    assert [word.split()[1] for word in words] == ["new", "check", "seal", "run", "attempts"]
    until_the_run = "\n".join([model, *words[:3], "gpucost plan docs --json"])
    said = shell(until_the_run, tmp_path)
    assert "[note]" not in said and "Nothing blocks the seal" in said
    assert len(json.loads(said[said.index("{") :])["slots"]) == 16
