"""Which files of a model's folder matter, and what each is for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from gpucost_tui.errors import InputError

Role = Literal["weights", "config", "tokenizer", "code"]

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLE = "pytorch_model.bin"
PICKLE_INDEX = "pytorch_model.bin.index.json"

_TOKENIZER = {
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
}
_CONFIG = {
    "config.json",
    "generation_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
}
#: Folders of sentence-transformers' further modules: 1_Pooling, 2_Dense, 2_Normalize.
_MODULE = re.compile(r"\d+_[A-Za-z]+/(config\.json|model\.safetensors)")
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_PICKLE_SHARD = re.compile(r"pytorch_model-\d+-of-\d+\.bin")


#: The same as patterns for a listing of a repository, weights left out.
SMALL_FILES = (
    *sorted(_TOKENIZER | _CONFIG),
    "[0-9]*_*/config.json",
    "[0-9]*_*/model.safetensors",
)


def role(path: str, *, pickle: bool = False, code: bool = False) -> Role | None:
    """Return what a file (its path relative to the model, with ``/``) is for, or None.

    Args:
        path: Such as ``1_Pooling/config.json``.
        pickle: The weights are pickles: those count, safetensors do not.
        code: Python files count.
    """
    if path in _TOKENIZER or re.fullmatch(r"[^/]+\.(model|jinja)", path):
        return "tokenizer"
    if path in _CONFIG:
        return "config"
    if _MODULE.fullmatch(path):
        return "weights" if path.endswith(".safetensors") else "config"
    if code and re.fullmatch(r"[^/]+\.py", path):
        return "code"
    if pickle:
        whole = path in (PICKLE, PICKLE_INDEX) or _PICKLE_SHARD.fullmatch(path)
    else:
        whole = path in (WEIGHTS, INDEX) or _SHARD.fullmatch(path)
    return "weights" if whole else None


def relevant(names: Iterable[str], *, pickle: bool = False, code: bool = False) -> dict[str, Role]:
    """Return the files that decide what the model computes, with their roles.

    Where a single weights file and shards are both there, the single one is loaded and the
    shards do not count.
    """
    roles = {name: role(name, pickle=pickle, code=code) for name in names}
    single = PICKLE if pickle else WEIGHTS
    spare = single in roles
    return {
        name: found
        for name, found in roles.items()
        if found and not (spare and found == "weights" and "/" not in name and name != single)
    }


def uses_pickle(names: Iterable[str]) -> bool:
    """Tell whether the weights among these files are pickles only."""
    present = set(names)
    return not present & {WEIGHTS, INDEX} and bool(present & {PICKLE, PICKLE_INDEX})


def names(folder: Path) -> list[str]:
    """Return the files of a model's folder, two levels deep, as relative paths, sorted.

    Raises:
        InputError: The folder can't be read.
    """
    found = []
    try:
        for entry in folder.iterdir():
            if entry.is_dir():
                if re.fullmatch(r"\d+_[A-Za-z]+", entry.name):
                    found += [f"{entry.name}/{file.name}" for file in entry.iterdir()]
            else:
                found.append(entry.name)
    except OSError as error:
        raise InputError(
            f"the model's folder can't be read ({error.strerror})", where=str(folder)
        ) from error
    return sorted(found)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of a model.

    Raises:
        InputError: The file can't be read, is no JSON, or holds something else.
    """
    try:
        value = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", where=str(path)) from error
    except json.JSONDecodeError as error:
        place = f"{path}, line {error.lineno}"
        raise InputError(f"is not JSON ({error.msg})", where=place) from error
    except RecursionError as error:
        raise InputError("is nested too deeply", where=str(path)) from error
    if not isinstance(value, dict):
        raise InputError("holds no JSON object", where=str(path))
    return value
