"""What a stranger reads first in a dossier: what it is, its hashes, the command to verify it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpucost_tui.campaign.columns import described
from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.dossier.inputs import ELSEWHERE
from gpucost_tui.files import sha256_file
from gpucost_tui.text import clean, count

README = "README.txt"
SUMS = "SHA256SUMS"
#: History: 1 (2026-11-30) first.
FORMAT = 1
#: A corpus that is linked and larger than this is referred to.
REFERRED_ABOVE = 1 << 30
_WIDTH = 92

_WHAT = (
    "This is the evidence behind one question about GPU configurations: which of them processes "
    "a whole corpus of documents, well enough, before a deadline, for the least committed money. "
    "It holds what was fixed beforehand, what was measured, every prediction, and what was "
    "concluded. It is about an offline corpus: nothing here speaks of interactive serving, of "
    "training, or of other data. It is neither an MLPerf run nor a certification."
)
_PARTS = (
    ("manifest.json", "what was sealed before the first duration was seen"),
    ("corpus/, reference/", "texts in order, their length classes, and the expected answers"),
    ("journal.jsonl, .head", "every event as a chain of hashes; the only source of truth"),
    ("attempts/", "predictions, verdict and failure of every attempted pass"),
    ("raw_results.csv", "one row an attempt, rebuilt from the journal (.parquet: the same)"),
    ("device_memory.csv", "memory peaks, one row an attempt and device"),
    ("hosts/, prices/", "what was found on each machine; the prices that were frozen"),
    ("report/", "decision.md and report.html: the answer, for reading"),
)
_LIMITS = (
    "The hashes tell whether something was changed after they were written down. Whoever rewrites "
    "every file, this one included, is noticed only by a head that was kept elsewhere: give that "
    "one to --head."
)


def readme(
    campaigns: Sequence[Path], names: Sequence[str] | None = None, parents: Sequence[str] = ()
) -> str:
    """Return the text of ``README.txt``. It depends on the campaigns' content and names alone.

    Args:
        campaigns: Their folders.
        names: How they are called in the dossier; default: as their folders are.
        parents: How the parent campaigns in it are called.

    Raises:
        GpucostError: A journal or a manifest can't be read.
    """
    opened = [Campaign.open(folder) for folder in campaigns]
    protocol = opened[0].manifest.protocol
    heads = [campaign.events()[-1].hash for campaign in opened]
    lines = ["Dossier of a GPU cost campaign", "=" * 30, "", *_wrapped(_WHAT), ""]
    if protocol.corpus.synthetic:
        lines += [*_wrapped("The corpus is a synthetic demonstration: made-up texts."), ""]
    lines += ["The question", "------------", *_wrapped(clean(protocol.decision.question)), ""]
    lines += ["Hashes", "------", f"manifest      {opened[0].manifest.sha256}"]
    called = list(names) if names is not None else [folder.name for folder in campaigns]
    lines += [f"journal head  {head}  {name}" for name, head in zip(called, heads, strict=True)]
    lines += ["", "Verify", "------"]
    lines += [f"gpucost verify DOSSIER.zip{''.join(f' --head {head}' for head in heads)}", ""]
    lines += [*_wrapped(_LIMITS), "", "Contents of campaigns/*/", "-" * 24]
    lines += [f"{name:<22}{what}" for name, what in _PARTS]
    for campaign, name in zip(opened, called, strict=True):
        lines += ["", *_facts(campaign, name)]
    lines += described(_WIDTH)
    for name in parents:
        told = "a parent campaign: its attempts, time and commitment count too (R21)"
        lines += ["", *_wrapped(f"parents/{name}: {told}.")]
    lines += ["", f"Dossier format {FORMAT}."]
    return "\n".join(lines) + "\n"


def _facts(campaign: Campaign, name: str) -> Iterator[str]:
    state, protocol = fold(campaign.events()), campaign.manifest.protocol
    done = count(len(state.attempts), "attempt")
    left = len(state.open_slots(protocol))
    still = f", {count(left, 'slot')} still open" if left else ""
    yield f"{name}: {done}{still}."
    for deliverable in (d.name for d in protocol.deliverables):
        path = campaign.corpus_file(deliverable)
        if referred_to(path):
            sealed = campaign.manifest.corpus(deliverable)
            yield from _wrapped(
                f"corpus/{path.name} is referred to and not in here: {sealed['entries']} entries, "
                f"fingerprint {sealed['sha256']}. Put the file there to recompute what depends on "
                "it."
            )


def referred_to(corpus: Path) -> bool:
    """Whether a dossier refers to a corpus by its fingerprint instead of holding it."""
    if corpus.with_name(corpus.name + ELSEWHERE).is_file():
        return True
    linked = corpus.is_symlink()
    return linked and (not corpus.is_file() or corpus.stat().st_size > REFERRED_ABOVE)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file under a dossier's folder but the list itself, by name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in files}
    return {name: sha256_file(path) for name, path in sorted(names.items()) if name != SUMS}
