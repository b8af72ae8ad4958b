"""Checks weights without loading them: whole files, every shard, every tensor that is named."""

from __future__ import annotations

import math
import zipfile
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from gpucost_tui.errors import InputError
from gpucost_tui.models import layout

_AGAIN = "Download or copy the file again"


@dataclass(frozen=True, slots=True)
class Weights:
    """What the headers say. ``parameters`` and ``dtypes`` are None for pickles."""

    files: tuple[str, ...]
    bytes: int
    parameters: int | None
    dtypes: dict[str, int] | None  # as safetensors spells them ("F32") -> parameters


def check(folder: Path, *, pickle: bool) -> Weights:
    """Check the weights of a folder against their own headers.

    Raises:
        InputError: A file is missing, truncated, corrupt, or an index names what is not there.
    """
    return _check_pickle(folder) if pickle else _check_safetensors(folder)


def _check_safetensors(folder: Path) -> Weights:
    # transformers takes the single file where both are there.
    single = (folder / layout.WEIGHTS).is_file()
    shards = (layout.WEIGHTS,) if single else _shards(folder, layout.INDEX)
    dtypes: dict[str, int] = {}
    tensors: set[str] = set()
    for name in shards:
        for tensor, dtype, parameters in _header(folder / name):
            tensors.add(tensor)
            if not tensor.endswith("position_ids"):  # a stored 0, 1, 2 …, no parameter
                dtypes[dtype] = dtypes.get(dtype, 0) + parameters
    if not single:
        named = layout.read_json(folder / layout.INDEX)["weight_map"]
        absent = sorted(set(named) - tensors)
        if absent:
            raise InputError(
                f"tensor '{absent[0]}' is in no shard", where=str(folder / layout.INDEX), fix=_AGAIN
            )
    total = sum((folder / name).stat().st_size for name in shards)
    return Weights(tuple(shards), total, sum(dtypes.values()), dtypes)


def _header(path: Path) -> list[tuple[str, str, int]]:
    """Return (tensor, dtype, parameters); safetensors holds the header against the file's size."""
    try:
        with path.open("rb") as stream:
            start = stream.read(40)
        if start.startswith(b"version https://git-lfs"):
            raise InputError(
                "is a pointer of Git LFS, not the weights themselves",
                where=str(path),
                fix="Run 'git lfs pull' in the model's repository",
            )
        with safe_open(path, framework="numpy") as opened:
            return [_tensor(opened, name) for name in opened.keys()]  # noqa: SIM118 - no mapping
    except SafetensorError as error:
        size = path.stat().st_size
        raise InputError(
            f"is truncated or corrupt: its header does not fit its {size:,} bytes ({error})",
            where=str(path),
            fix=_AGAIN,
        ) from error
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror or error})", where=str(path)) from error


def _tensor(opened: safe_open, name: str) -> tuple[str, str, int]:
    part = opened.get_slice(name)  # type: ignore[no-untyped-call]
    return name, str(part.get_dtype()), math.prod(part.get_shape())


def _shards(folder: Path, index: str) -> tuple[str, ...]:
    """Return the shards that an index names, each of them present in the folder itself."""
    path = folder / index
    mapping = layout.read_json(path).get("weight_map")
    if not isinstance(mapping, dict) or not mapping:
        raise InputError("has no 'weight_map' of tensors to shards", where=str(path), fix=_AGAIN)
    shards = tuple(dict.fromkeys(str(name) for name in mapping.values()))
    for name in shards:
        if "/" in name or "\\" in name or name.startswith("."):
            raise InputError(f"names the shard '{name}' outside the folder", where=str(path))
        if layout.role(name, pickle=index == layout.PICKLE_INDEX) != "weights":
            raise InputError(
                f"names the shard '{name}', which is no model-N-of-M file", where=str(path)
            )
        if not (folder / name).is_file():
            raise InputError(
                f"the shard '{name}' that the index names is missing", where=str(path), fix=_AGAIN
            )
    return tuple(sorted(shards))


def _check_pickle(folder: Path) -> Weights:
    single = (folder / layout.PICKLE).is_file()
    shards = (layout.PICKLE,) if single else _shards(folder, layout.PICKLE_INDEX)
    for name in shards:
        path = folder / name
        try:
            with path.open("rb") as stream:
                start = stream.read(2)
        except OSError as error:
            raise InputError(f"can't be read ({error.strerror})", where=str(path)) from error
        # torch has written zip files since 1.6, whose directory stands at the end.
        if not start or (start == b"PK" and not zipfile.is_zipfile(path)):
            raise InputError("is truncated or empty", where=str(path), fix=_AGAIN)
    total = sum((folder / name).stat().st_size for name in shards)
    return Weights(tuple(shards), total, None, None)
