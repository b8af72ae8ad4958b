"""From the word after ``--model`` to a folder with checked, fingerprinted files (R8)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gpucost_tui
from gpucost_tui.errors import EnvironmentLacks, InputError
from gpucost_tui.models import hub, layout, weights
from gpucost_tui.models.fingerprint import ModelFile, fingerprint, hash_files
from gpucost_tui.watch import NOBODY, Watch

_ALLOW_CODE = "Set allow_remote_code = true under [model] in the protocol if you trust it"
_ALLOW_PICKLE = (
    "Save it as safetensors, or set allow_pickle = true under [model] in the protocol if you "
    "trust it: loading a pickle runs code"
)


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model as it will be sealed.

    ``sha256`` covers every file that matters (weights, configuration, tokenizer, pooling; code
    where it is allowed), ``tokenizer_sha256`` those of the tokenizer. ``revision`` is the commit
    of a hub model. ``download_s`` is None where nothing was downloaded (R14).
    """

    folder: Path
    kind: Literal["folder", "hub", "demo"]
    name: str
    revision: str | None
    files: tuple[ModelFile, ...]
    sha256: str
    tokenizer_sha256: str
    download_s: float | None
    notes: tuple[str, ...]


def resolve(
    source: str,
    *,
    allow_remote_code: bool = False,
    allow_pickle: bool = False,
    offline: bool | None = None,
    watch: Watch = NOBODY,
) -> ResolvedModel:
    """Find a model, check its files and fingerprint them. No tensor is loaded, no code is run.

    Args:
        source: A folder, ``demo``, or ``org/name[@revision]``. A folder of that name wins.
        allow_remote_code: Accept a model whose configuration names Python code of its own.
        allow_pickle: Accept pickled weights where there are no safetensors.
        offline: True looks only in the cache; None follows HF_HUB_OFFLINE.
        watch: Is told of the bytes downloaded and read.

    Raises:
        InputError: No such model, or its files are incomplete, corrupt or not allowed.
        EnvironmentLacks: No access, no network, not cached, no room.
    """
    kind, folder, name, snapshot = _locate(source, allow_remote_code, allow_pickle, offline, watch)
    pickle = check_folder(folder, allow_remote_code=allow_remote_code, allow_pickle=allow_pickle)
    weights.check(folder, pickle=pickle)
    roles = layout.relevant(layout.names(folder), pickle=pickle, code=allow_remote_code)
    files = hash_files(folder, roles, watch)
    notes = list(snapshot.notes) if snapshot else []
    if pickle:
        notes.append("the weights are a pickle, which runs code when it is loaded (allowed)")
    if any(role == "code" for role in roles.values()):
        notes.append("the model brings Python code of its own (allowed)")
    return ResolvedModel(
        folder=folder,
        kind=kind,
        name=name,
        revision=snapshot.commit if snapshot else None,
        files=files,
        sha256=fingerprint(files),
        tokenizer_sha256=fingerprint(f for f in files if roles[f.path] == "tokenizer"),
        download_s=snapshot.download_s if snapshot else None,
        notes=tuple(notes),
    )


def _locate(
    source: str, code: bool, pickle: bool, offline: bool | None, watch: Watch
) -> tuple[Literal["folder", "hub", "demo"], Path, str, hub.Snapshot | None]:
    if source == "demo":
        folder = Path(gpucost_tui.__file__).resolve().parent / "demo" / "model"
        if not folder.is_dir():
            raise EnvironmentLacks(
                "the embedded model is missing from this installation",
                fix="Install gpucost-tui again",
            )
        return "demo", folder, "demo", None
    if not source.strip() or "\0" in source:
        raise InputError("no model is named", fix="Name a folder, 'demo' or org/name@revision")
    path = Path(source).expanduser()
    try:
        exists, is_folder = path.exists(), path.is_dir()
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", where=source) from error
    if is_folder:
        return "folder", path.resolve(), path.resolve().name, None
    if exists:
        raise InputError(
            "is a file, not the folder of a model",
            where=source,
            fix="Name the folder that holds it",
        )
    named = None if source.startswith((".", "/", "~")) else hub.parse(source)
    if named is None:
        raise InputError(
            "there is no such folder",
            where=source,
            fix="Name a folder, 'demo', or a Hugging Face model as org/name@revision",
        )
    snapshot = hub.fetch(*named, pickle=pickle, code=code, offline=offline, watch=watch)
    return "hub", snapshot.folder, named[0], snapshot


def check_folder(folder: Path, *, allow_remote_code: bool, allow_pickle: bool) -> bool:
    """Check that a folder holds what a model needs, and nothing that is not allowed.

    Returns:
        True where the weights are pickles.

    Raises:
        InputError: One sentence about the first file that is missing or not allowed.
    """
    present = layout.names(folder)
    if not present:
        raise InputError("the folder is empty", where=str(folder), fix="Name a model's folder")
    if "config.json" not in present:
        raise _missing(folder, "config.json", "Name the folder that save_pretrained wrote")
    _check_code(folder, present, allow_remote_code)
    if "tokenizer.json" not in present:
        fix = "Save a fast tokenizer: AutoTokenizer.from_pretrained(…).save_pretrained(folder)"
        raise _missing(folder, "tokenizer.json", fix)
    layout.read_json(folder / "tokenizer.json")
    if layout.uses_pickle(present):
        if not allow_pickle:
            raise InputError("the weights are a pickle", where=str(folder), fix=_ALLOW_PICKLE)
        return True
    if not {layout.WEIGHTS, layout.INDEX} & set(present):
        other = [name for name in present if name.endswith((".safetensors", ".bin", ".h5"))]
        beside = f" ('{other[0]}' is there)" if other else ""
        raise _missing(folder, f"{layout.WEIGHTS}{beside}", "Name a whole model's folder")
    return False


def _check_code(folder: Path, present: list[str], allowed: bool) -> None:
    for name in ("config.json", "tokenizer_config.json"):
        table: dict[str, Any] = layout.read_json(folder / name) if name in present else {}
        if not table.get("auto_map"):
            continue
        if not allowed:
            raise InputError(
                "the model brings Python code of its own ('auto_map')",
                where=str(folder / name),
                fix=_ALLOW_CODE,
            )
        if "--" in str(table["auto_map"]):
            raise InputError(
                "the model's code stands in another repository, which no fingerprint would cover",
                where=str(folder / name),
                fix="Copy the code into the model's folder and name it there",
            )


def _missing(folder: Path, name: str, fix: str) -> InputError:
    return InputError(f"{name} is missing", where=str(folder), fix=fix)
