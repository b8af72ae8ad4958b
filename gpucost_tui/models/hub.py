"""Gets a model from the Hugging Face hub or its cache: resolved to a commit, only what is needed.

``huggingface_hub`` reads HF_HOME, HF_ENDPOINT and HF_HUB_OFFLINE once, when it is imported.
"""

from __future__ import annotations

import glob
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucost_tui.errors import EnvironmentLacks, GpucostError, InputError
from gpucost_tui.models import layout
from gpucost_tui.text import clean
from gpucost_tui.watch import NOBODY, Cancelled, Watch

_OFFLINE = "downloads are switched off"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SOURCE = re.compile(r"(?P<id>[\w.-]{1,96}/[\w.-]{1,96})(@(?P<revision>[^\s@]{1,200}))?")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A model in the cache. ``download_s`` is None when every file was there already."""

    folder: Path
    commit: str
    download_s: float | None
    notes: tuple[str, ...]


def parse(source: str) -> tuple[str, str | None] | None:
    """Split ``org/name@revision``; None where it has another form."""
    found = _SOURCE.fullmatch(source)
    if found is None or ".." in found["id"] or "--" in found["id"]:
        return None
    return found["id"], found["revision"]


def fetch(
    name: str,
    revision: str | None,
    *,
    pickle: bool,
    code: bool,
    offline: bool | None,
    watch: Watch = NOBODY,
) -> Snapshot:
    """Download the files that matter, or find them in the cache.

    Args:
        name: ``org/name``.
        revision: A branch, tag or commit; None: the default branch.
        pickle: Take pickled weights where there are no others.
        code: Take Python files too.
        offline: True uses the cache alone; None follows HF_HUB_OFFLINE.
        watch: Is told of the bytes that come.

    Raises:
        EnvironmentLacks: No access, no network, not in the cache, no room on the disk.
        InputError: No such model or revision.
    """
    from huggingface_hub import constants

    where = f"{name}@{revision}" if revision else name
    try:
        if offline or constants.HF_HUB_OFFLINE:
            return _cached(name, revision, where, _OFFLINE)
        return _online(name, revision, where, watch, pickle=pickle, code=code)
    except (GpucostError, Cancelled):
        raise
    except Exception as error:
        # The boundary to the library and to its HTTP client, whose errors differ by release.
        raise _sentence(error, where) from error


def _online(
    name: str, revision: str | None, where: str, watch: Watch, *, pickle: bool, code: bool
) -> Snapshot:
    from huggingface_hub import HfApi, constants, snapshot_download

    watch.stage(f"Asking the hub for '{clean(where)}'")
    try:
        info = HfApi().model_info(name, revision=revision)
    except Exception as error:
        if not _unreachable(error):
            raise
        reason = f"the hub can't be reached ({_first_line(error)})"
        return _cached(name, revision, where, reason)
    commit = str(info.sha)
    present = [file.rfilename for file in info.siblings or []]
    # A pickle that is not allowed is no reason to download it: the check of the folder refuses.
    pickled = pickle and layout.uses_pickle(present)
    wanted = list(layout.relevant(present, pickle=pickled, code=code))
    if not wanted:
        raise InputError("the revision has no file of a model", where=where)
    store = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}"
    absent = [n for n in wanted if not (store / "snapshots" / commit / n).exists()]
    if absent:
        watch.stage(f"Downloading '{clean(where)}'", unit="bytes")
    begun = time.perf_counter()
    # By the revision's own name, so that the cache knows it offline; the folder is the commit.
    patterns = [glob.escape(n) for n in wanted]
    folder = Path(
        snapshot_download(
            name, revision=revision, allow_patterns=patterns, tqdm_class=_bar_past(watch)
        )
    )
    took = time.perf_counter() - begun if absent else None
    return Snapshot(folder, folder.name, took, ())


def _bar_past(watch: Watch) -> type[Any]:
    """Return the library's progress bar, whose bytes go past a watch.

    The library feeds bars for transferred and for written bytes; the one that leads is shown. Where
    its downloader is native code, a cancel is heard when it has ended.
    """
    from huggingface_hub import utils

    library_bar: Any = utils.tqdm  # type: ignore[attr-defined]

    class Bar(library_bar):  # type: ignore[misc]
        leading = 0

        def __init__(self, *args: Any, **options: Any) -> None:
            self._in_bytes, self._so_far = options.get("unit") == "B", 0
            super().__init__(*args, **options)

        def update(self, n: float | None = 1) -> Any:
            if self._in_bytes:
                self._so_far += int(n or 0)
                Bar.leading = max(Bar.leading, self._so_far)
                watch.reach(Bar.leading, int(self.total) if self.total else None)
            return super().update(n)

    return Bar


def _cached(name: str, revision: str | None, where: str, why: str) -> Snapshot:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        # Weights are checked in the folder, by their own index; what else is missing only the
        # listing that the cache keeps can tell.
        found = snapshot_download(
            name, revision=revision, local_files_only=True, allow_patterns=list(layout.SMALL_FILES)
        )
    except LocalEntryNotFoundError as error:
        partly = getattr(error, "snapshot_path", None) is not None
        held = "only partly in" if partly else "not in"
        fix = "Mend the network, or name a folder that holds the model"
        if why == _OFFLINE:
            fix = "Switch HF_HUB_OFFLINE off, or copy the model and name its folder"
        raise EnvironmentLacks(
            f"the model is {held} the Hugging Face cache, and {why}", where=where, fix=fix
        ) from error
    folder = Path(found)
    commit = folder.name
    if not _COMMIT.fullmatch(commit):
        raise EnvironmentLacks("the cache does not tell the commit", where=where)
    return Snapshot(folder, commit, None, (f"taken from the cache: {why}",))


def _unreachable(error: BaseException) -> bool:
    """Tell errors of the way to the hub from answers of the hub."""
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(error, HfHubHTTPError):
        return error.response.status_code >= 500
    return isinstance(error, ConnectionError | TimeoutError) or _is_transport(error)


def _is_transport(error: BaseException) -> bool:
    # httpx under huggingface_hub 1, httpx2 under 2: the classes have the same names.
    names = {kind.__name__ for kind in type(error).__mro__}
    return type(error).__module__.startswith("httpx") and "TransportError" in names


def _sentence(error: Exception, where: str) -> GpucostError:
    """Return one sentence for an error of huggingface_hub."""
    from huggingface_hub import errors

    token = _has_token()
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.GatedRepoError):
        what = "the model is gated, and " + (
            "your token has no access to it" if token else "no token is set"
        )
        fix = "Ask for access on the model's page, then set HF_TOKEN (or run 'hf auth login')"
        return EnvironmentLacks(what, where=where, fix=fix)
    if isinstance(error, errors.RepositoryNotFoundError):
        what = "the hub knows no such model, or it is private"
        fix = "Check the name" + ("" if token else "; for a private model set HF_TOKEN")
        return InputError(what, where=where, fix=fix)
    if isinstance(error, errors.RevisionNotFoundError):
        fix = "Name a branch, a tag or a whole commit"
        return InputError("the model has no such revision", where=where, fix=fix)
    if status in (401, 403):
        what = f"the hub refuses the {'token that is set' if token else 'request'} ({status})"
        return EnvironmentLacks(what, where=where, fix="Set a valid HF_TOKEN, or unset it")
    if isinstance(error, errors.HFValidationError):
        return InputError(f"is no name of a model ({_first_line(error)})", where=where)
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        what = f"the cache can't be written ({error.strerror})"
        fix = "Make room or set HF_HOME to another folder"
        return EnvironmentLacks(what, where=where, fix=fix)
    what = f"the model can't be downloaded ({type(error).__name__}: {_first_line(error)})"
    return EnvironmentLacks(what, where=where, fix="Try again: what is complete is kept")


def _has_token() -> bool:
    from huggingface_hub import get_token

    try:
        return get_token() is not None
    except OSError:  # the place of the token file can't be read either
        return False


def _first_line(error: Any) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".")[:200] if lines else type(error).__name__
