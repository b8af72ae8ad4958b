"""Which code of this program runs: version, commit of a checkout, fingerprint of the sources."""

from __future__ import annotations

import functools
import hashlib
import subprocess
from pathlib import Path
from typing import Any

import gpucost_tui

_PACKAGE = Path(gpucost_tui.__file__).resolve().parent


@functools.cache
def source_sha256() -> str:
    """Return a SHA-256 over the program's Python files: the same code, the same value."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def describe() -> dict[str, Any]:
    """Return ``version``, ``source_sha256``, and for a checkout ``commit`` and ``modified``.

    ``missing`` says why there is no commit.
    """
    found: dict[str, Any] = {
        "version": gpucost_tui.__version__,
        "source_sha256": source_sha256(),
        "commit": None,
        "modified": None,
        "missing": {},
    }
    root = _PACKAGE.parent
    if not (root / ".git").exists():
        found["missing"]["commit"] = "installed, not a checkout"
        return found
    commit = _git(root, "rev-parse", "--verify", "HEAD")
    if commit is None:
        found["missing"]["commit"] = "git is not there or can't read the checkout"
        return found
    changes = _git(root, "status", "--porcelain", "--untracked-files=no", "--", "gpucost_tui")
    found["commit"] = commit.strip()
    found["modified"] = None if changes is None else bool(changes.strip())
    return found


def _git(root: Path, *words: str) -> str | None:
    # A checkout that belongs to another user (a mounted image) is "dubious" to git by default.
    command = ["git", "-c", f"safe.directory={root}", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
