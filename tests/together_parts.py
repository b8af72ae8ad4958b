"""Acts on campaigns by real processes that begin at given moments; see ``together_zygote.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import runner_parts as parts


class Forge:
    """Lets processes act at once and tells what each said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def at_once(self, *steps: dict[str, Any]) -> list[dict[str, Any]]:
        """Let every step act in a process of its own; none may end in a traceback."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(steps, default=str), file=self._process.stdin, flush=True)
        said: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        for one in said:
            assert "crash" not in one, one["crash"]
        return said


@contextmanager
def forge(script: dict[str, Any] | None = None) -> Iterator[Forge]:
    process = subprocess.Popen(
        [sys.executable, str(parts.TESTS / "together_zygote.py")],
        env=parts.environment(script),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Forge(process)
    finally:
        process.communicate()


def done(said: dict[str, Any]) -> bool:
    return "ok" in said
