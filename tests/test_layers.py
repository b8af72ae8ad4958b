"""The layers of the package hold (pyproject.toml, [tool.importlinter])."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_each_layer_imports_only_what_stands_below_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()"],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_parent_never_imports_torch() -> None:
    """Importing every module of the package loads neither torch nor transformers (R16)."""
    code = (
        "import pkgutil, importlib, sys, gpucost_tui\n"
        "for m in pkgutil.walk_packages(gpucost_tui.__path__, 'gpucost_tui.'):\n"
        "    if not m.name.endswith('__main__'): importlib.import_module(m.name)\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
