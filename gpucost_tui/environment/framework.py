"""What torch and its neighbours say of themselves.

:func:`installed` and :func:`build` read files only. :func:`describe` imports torch: it is for the
measuring child, and for ``python -m gpucost_tui.environment.framework``, which :func:`ask` starts.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

#: Packages whose versions a campaign depends on (R8).
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "polars")
NOT_ASKED = "not asked: torch not loaded"
_MARK = "gpucost-framework:"


def installed() -> dict[str, str | None]:
    """Return the versions of Python and :data:`PACKAGES` by their metadata; None: not there."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def build() -> dict[str, str | None]:
    """Return ``cuda`` and ``hip`` that torch was built with, without importing torch.

    torch writes them into ``torch/version.py``; both are None for a CPU build, a missing torch or
    a file of another form.
    """
    found: dict[str, str | None] = {"cuda": None, "hip": None}
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return found
    try:
        tree = ast.parse(Path(spec.origin).with_name("version.py").read_text("utf-8"))
    except (OSError, ValueError, SyntaxError):
        return found
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            targets: list[ast.expr] = [node.target]
        elif isinstance(node, ast.Assign):
            targets = node.targets
        else:
            continue
        value = node.value.value if isinstance(node.value, ast.Constant) else None
        for target in targets:
            if isinstance(target, ast.Name) and target.id in found and value is not None:
                found[target.id] = str(value)
    return found


def describe() -> dict[str, Any]:
    """Import torch and return what it sees. Only for a process that may hold torch.

    Returns:
        ``cuda``, ``hip``, ``cudnn``, ``available``, ``devices`` (``index``, ``name``, ``uuid``,
        ``capacity_bytes``, ``compute_capability`` or ``gfx_target``) and ``missing``.
    """
    import torch

    missing: dict[str, str] = {}
    available = bool(torch.cuda.is_available())
    cudnn: int | None = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    if cudnn is None:
        missing["cudnn"] = "torch has no cuDNN here"
    if not available:
        missing["devices"] = "torch sees no GPU"
    return {
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": cudnn,
        "available": available,
        "devices": [_device(torch, i) for i in range(torch.cuda.device_count())]
        if available
        else [],
        "missing": missing,
    }


def _device(torch: Any, index: int) -> dict[str, Any]:
    found = torch.cuda.get_device_properties(index)
    amd = torch.version.hip is not None
    uuid = getattr(found, "uuid", None)
    return {
        "index": index,
        "name": found.name,
        "uuid": None if uuid is None else str(uuid),
        "capacity_bytes": int(found.total_memory),
        "compute_capability": None if amd else f"{found.major}.{found.minor}",
        "gfx_target": str(getattr(found, "gcnArchName", "")).split(":")[0] or None if amd else None,
    }


def ask(timeout_s: float = 120.0) -> dict[str, Any]:
    """Run :func:`describe` in a process of its own: seconds, and no torch here.

    Returns:
        The answer; where there is none, only ``missing`` with the reason under ``torch``.
    """
    command = [sys.executable, "-m", "gpucost_tui.environment.framework"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return {"missing": {"torch": f"torch did not answer in {timeout_s:.0f} s"}}
    except OSError as error:
        return {"missing": {"torch": f"no process could be started ({error.strerror})"}}
    # torch and its plug-ins may print on standard output too.
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(_MARK):
            answer: dict[str, Any] = json.loads(line.removeprefix(_MARK))
            return answer
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return {"missing": {"torch": f"torch can't be loaded: {_without_paths(last)[:200]}"}}


def _without_paths(text: str) -> str:
    """Leave out paths: they may name the user."""
    return " ".join("…" if "/" in word else word for word in text.split())


if __name__ == "__main__":
    print(_MARK + json.dumps(describe()))
