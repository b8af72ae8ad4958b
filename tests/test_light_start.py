"""The light path loads nothing heavy: each word in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import runner_parts as parts

HEAVY = ("torch", "transformers", "polars", "textual", "pydantic", "numpy", "sklearn", "rich")
WORDS = {
    "help": ["--help"],
    "price help": ["price", "--help"],
    "price": ["price", "--gpu", "rtx-4090", "--days", "7", "--lots", "2"],
    "price json": ["price", "--gpu", "rtx-4090", "--days", "7", "--json"],
    "unknown gpu": ["price", "--gpu", "rtx4090", "--days", "7"],
    "window": [
        "window",
        "--start",
        "2026-09-28T09:00",
        "--end",
        "2026-10-02T09:00",
        "--timezone",
        "Europe/Paris",
        "--with-hourly",
    ],
    "catalogue": ["catalogue", "list", "--json"],
}
PROBE = """
import sys
from gpucost_tui.cli import main
try:
    main(sys.argv[2:])
except SystemExit as stop:
    print("status", stop.code, file=sys.stderr)
print("loaded", *(name for name in sys.argv[1].split(",") if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("name", WORDS)
def test_nothing_heavy_is_loaded(name: str) -> None:
    probe = [sys.executable, "-c", PROBE, ",".join(HEAVY), *WORDS[name]]
    said = subprocess.run(probe, capture_output=True, text=True, check=True)
    status, loaded = said.stderr.splitlines()[-2:]
    assert status == f"status {2 if name == 'unknown gpu' else 0}", said.stderr
    assert loaded.split() == ["loaded"]


@pytest.mark.parametrize("word", ["status", "stop", "pause"])
def test_words_typed_during_a_run_load_no_library_of_numbers(tmp_path: Path, word: str) -> None:
    made = parts.campaign(tmp_path / "c", measurement__process="thread", measurement__rounds=1)
    parts.run_here(made)
    probe = [sys.executable, "-c", PROBE, ",".join(HEAVY), word, made.folder]
    said = subprocess.run(probe, capture_output=True, text=True, check=True)
    assert set(said.stderr.splitlines()[-1].split()) <= {"loaded", "pydantic"}, said.stderr


def test_the_probe_sees_what_is_loaded() -> None:
    probe = PROBE.replace("import sys\n", "import sys, pydantic\n", 1)
    said = subprocess.run(
        [sys.executable, "-c", probe, ",".join(HEAVY), "--help"], capture_output=True, text=True
    )
    assert "pydantic" in said.stderr.splitlines()[-1].split()
