"""Every test runs apart from the user's settings, caches and terminal, and offline."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

# The hub's client reads this once, at its import, which a fixture of a whole module may cause
# before any test begins.
os.environ["HF_HUB_OFFLINE"] = "1"

# A worker holds half a million objects of libraries, which the collector need not go through every
# few hundred new ones.
gc.set_threshold(100_000, 20, 50)

_UNSET = (
    "GPUCOST_DEBUG",
    "GPUCOST_ENGINE",
    "HF_ENDPOINT",
    "HF_HOME",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "NO_COLOR",
    "FORCE_COLOR",
    "SSH_CONNECTION",
    "TMUX",
    "STY",
    "CUDA_VISIBLE_DEVICES",
)


@pytest.fixture(autouse=True)
def hermetic(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in _UNSET:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path_factory.mktemp("home")
    for name in ("GPUCOST_DATA_HOME", "GPUCOST_STATE_HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "100")
    # Tests share two cores with the processes that they start.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def golden() -> Path:
    """Folder of the right answers, worked out by hand from the rules."""
    return Path(__file__).parent / "golden"
