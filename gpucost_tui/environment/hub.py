"""State of the Hugging Face cache and offline switches, without a path or a token."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_YES = {"1", "ON", "YES", "TRUE"}


def is_offline(environ: Mapping[str, str] | None = None) -> bool:
    """Tell whether downloads are switched off, by huggingface_hub's own rule."""
    environ = os.environ if environ is None else environ
    value = environ.get("HF_HUB_OFFLINE") or environ.get("TRANSFORMERS_OFFLINE") or ""
    return value.upper() in _YES


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of cached models, by huggingface_hub's own rule."""
    environ = os.environ if environ is None else environ
    if cache := environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(os.path.expandvars(cache)).expanduser()
    default = Path(environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    home = environ.get("HF_HOME")
    return Path(os.path.expandvars(home) if home else default).expanduser() / "hub"


def describe(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return which variables are set (never their values), offline state, number of models.

    ``token`` says only whether one is configured.
    """
    environ = os.environ if environ is None else environ
    folder = cache_folder(environ)
    try:
        names = [entry.name for entry in folder.iterdir()]
        models: int | None = sum(bool(re.match(r"models--", name)) for name in names)
        reason = None
    except FileNotFoundError:
        models, reason = 0, None
    except OSError as error:
        models, reason = None, f"the cache can't be read ({error.strerror})"
    token_file = environ.get("HF_TOKEN_PATH") or str(folder.parent / "token")
    has_token = bool(environ.get("HF_TOKEN")) or _exists(Path(token_file).expanduser())
    return {
        "offline": is_offline(environ),
        "HF_HOME": "set" if environ.get("HF_HOME") else "not set",
        "HF_HUB_CACHE": "set" if environ.get("HF_HUB_CACHE") else "not set",
        "HF_ENDPOINT": "set" if environ.get("HF_ENDPOINT") else "not set",
        "token": "set" if has_token else "not set",
        "cached_models": models,
        "missing": {"cached_models": reason} if reason else {},
    }


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False
