"""Names of GPUs: a name that is not an id leads to a suggestion, never silently to a GPU.

An A100 with 40 GB is no A100 with 80 GB, an H100 PCIe no H100 SXM: nothing here turns one name
into another on its own.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable

from gpucost_tui.errors import WrongUse
from gpucost_tui.text import clean

_ID = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
_MAKERS = ("nvidia", "geforce", "tesla")


def is_id(name: str) -> bool:
    """Return whether a name has the form of an id: ``rtx-4090``, ``a100-sxm-80gb``."""
    return len(name) <= 40 and _ID.fullmatch(name) is not None


def squashed(name: str) -> str:
    """Return a name without case, spaces, marks and maker, to compare spellings."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    for maker in _MAKERS:
        folded = folded.replace(maker, "")
    return re.sub(r"[^a-z0-9]", "", folded)


def spelled_otherwise(name: str, known: Iterable[str]) -> str | None:
    """Return the known id that differs from ``name`` only in spelling, if there is one."""
    key = squashed(name)
    return next((gpu for gpu in known if gpu != name and squashed(gpu) == key), None)


def more_specific(name: str, known: Iterable[str]) -> list[str]:
    """Return the known ids that say all that ``name`` says, and more: ``h100`` → ``h100-sxm``."""
    said = set(name.split("-"))
    return [gpu for gpu in known if gpu != name and said < set(gpu.split("-"))]


def suggestions(name: str, known: Iterable[str]) -> list[str]:
    """Return at most four known ids that may be meant, the likeliest first."""
    ids = sorted(set(known))
    same = spelled_otherwise(name, ids)
    if same:
        return [same]
    lowered = re.sub(r"[\s_]+", "-", name.strip().casefold())
    lowered = re.sub(r"(?<![a-z0-9])([0-9]+)-?gi?b?(?![a-z0-9])", r"\1gb", lowered)
    ids = [gpu for gpu in ids if not _contradicts(gpu, lowered)]
    words = set(lowered.split("-"))
    reordered = [gpu for gpu in ids if set(gpu.split("-")) == words]
    if reordered:
        return reordered[:4]
    narrower = more_specific(lowered, ids)
    if narrower:
        return narrower[:4]
    by_key = {squashed(gpu): gpu for gpu in ids}
    near = difflib.get_close_matches(squashed(name)[:60], by_key, n=4, cutoff=0.7)
    return [by_key[key] for key in near]


def _contradicts(gpu: str, name: str) -> bool:
    """Return whether an id says another amount of memory, or another form, than a name does."""
    return any(
        bool(one and other) and not one & other
        for one, other in (
            (set(re.findall(pattern, gpu)), set(re.findall(pattern, name)))
            for pattern in (r"[0-9]+gb", r"sxm|pcie|nvl")
        )
    )


def known_gpu(name: str, known: Iterable[str]) -> str:
    """Return ``name`` if it is one of the known ids.

    Raises:
        WrongUse: It is not; the sentence suggests, and takes nothing.
    """
    ids = sorted(set(known))
    if name in ids:
        return name
    near = suggestions(name, ids)
    if near:
        fix = f"Did you mean {' or '.join(near)}? A suggestion is never taken by itself"
    else:
        fix = "'gpucost catalogue list' shows the GPUs there are"
    raise WrongUse(f"the catalogue knows no GPU '{clean(name, limit=60)}'", where="--gpu", fix=fix)
