"""Text that nobody here wrote and that a machine has anyway."""

from __future__ import annotations

import ast
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield (id, text) of the standard library's docstrings, each text once, in a fixed order."""
    root = Path(sysconfig.get_path("stdlib"))
    seen: set[str] = set()
    for path in sorted(root.rglob("*.py")):
        if {"site-packages", "test", "tests", "lib2to3", "idlelib"} & set(path.parts):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node)
                if text and text not in seen:
                    seen.add(text)
                    yield f"{path.relative_to(root)}:{getattr(node, 'lineno', 0)}", text


def package_descriptions() -> Iterator[tuple[str, str]]:
    """Yield (id, text) of the descriptions in the system's package list; nothing where none is."""
    status = Path("/var/lib/dpkg/status")
    if not status.is_file():
        return
    for record in status.read_text(encoding="utf-8", errors="replace").split("\n\n"):
        name = re.search(r"^Package: (.+)$", record, re.MULTILINE)
        text = re.search(r"^Description: (.+(?:\n .+)*)", record, re.MULTILINE)
        arch = re.search(r"^Architecture: (.+)$", record, re.MULTILINE)
        if name and text:
            yield f"deb:{name[1]}:{arch[1] if arch else ''}", re.sub(r"\n \.?", "\n", text[1])
