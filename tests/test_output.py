"""Standard output that goes away, is full or was closed ends in a status, never in a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

PRICE = f"{sys.executable} -m gpucost_tui price --gpu rtx-4090 --days 7"


@pytest.mark.parametrize(
    ("shell", "status", "said"),
    [
        (f"{PRICE} >&-", 0, ""),
        (f"{PRICE} > /dev/full", 3, "gpucost: the output can't be written"),
        (f"set -o pipefail; {PRICE} | true", 0, ""),
        (f"set -o pipefail; {sys.executable} -m gpucost_tui --help | true", 0, ""),
    ],
)
def test_an_output_that_refuses(shell: str, status: int, said: str) -> None:
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[: len(said)]) == (status, said), done.stderr
    assert "Traceback" not in done.stderr
    assert "program itself" not in done.stderr
