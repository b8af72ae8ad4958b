"""The blank kit: the folder that the method began as, usable without this program.

Everything under ``data/kit/``, the empty raw table and the notebook on memory, as one zip whose
bytes are the same every time: files by name, fixed times and permissions, stored uncompressed.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from gpucost_tui import resources
from gpucost_tui.errors import EnvironmentLacks, WrongUse
from gpucost_tui.files import write_atomic
from gpucost_tui.text import clean

FOLDER = "gpucost-kit"
TEMPLATE = "raw_results_template.csv"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def kit_files() -> dict[str, Path]:
    """Return the kit's files by their name in it; a file put into ``data/kit/`` joins.

    Raises:
        EnvironmentLacks: The installation has no kit.
    """
    folder = resources.file("data", "kit")
    if not folder.is_dir():
        raise EnvironmentLacks(
            "the kit is missing from this installation",
            where=clean(folder),
            fix="Install gpucost-tui again",
        )
    found = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_file() and not _generated(path.relative_to(folder))
    }
    found[TEMPLATE] = resources.file("data", TEMPLATE)
    memory = resources.file("protocols", "memory")
    names = sorted(path for path in memory.glob("*") if path.suffix in (".py", ".ipynb"))
    found.update({f"memory/{path.name}": path for path in names})
    return dict(sorted(found.items()))


def _generated(path: Path) -> bool:
    return any(part.startswith((".", "__pycache__")) for part in path.parts)


def kit_bytes() -> bytes:
    """Return the zip's bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, path in kit_files().items():
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}", _EPOCH)
            entry.create_system = 3
            mode = 0o755 if path.suffix == ".py" else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, path.read_bytes())
    return stream.getvalue()


def write_kit(target: Path, *, force: bool = False) -> list[str]:
    """Write the kit, whole or not at all, and return the names of its files.

    Raises:
        WrongUse: The target is another file that is there already, a folder, or no ``.zip``.
        EnvironmentLacks: It can't be written.
    """
    where = clean(target)
    if target.suffix.lower() != ".zip":
        raise WrongUse("the kit is a zip", where=where, fix="Name a file that ends in .zip")
    data = kit_bytes()
    try:
        if target.is_dir():
            raise WrongUse("there is a folder of that name", where=where, fix="Name a file")
        if target.exists() and not force and target.read_bytes() != data:
            raise WrongUse(
                "there is another file of that name", where=where, fix="Add --force to replace it"
            )
        write_atomic(target, data)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise EnvironmentLacks(
            f"the kit can't be written: {clean(reason)}", where=where, fix="Name another place"
        ) from None
    return list(kit_files())
