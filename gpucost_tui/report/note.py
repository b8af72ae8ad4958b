"""The decision note: the answer for whoever pays, and everything that stands behind it (R40, R41).

The same journal gives the same bytes, so `gpucost verify` writes a note again and compares.

Format history:

* 1 (2026-11-30): first.
* 2 (2026-11-30): quality with its interval, and entries that variants predicted differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpucost_tui.campaign.record import on_disk
from gpucost_tui.files import write_atomic
from gpucost_tui.report.answer import answer_blocks
from gpucost_tui.report.blocks import Document
from gpucost_tui.report.evidence import evidence_blocks
from gpucost_tui.report.gather import Facts, gather
from gpucost_tui.report.html import page
from gpucost_tui.report.markdown import markdown
from gpucost_tui.report.measured import measured_blocks
from gpucost_tui.report.money import money_blocks
from gpucost_tui.report.predicted import predicted_blocks
from gpucost_tui.text import clean

#: Number of the note's form; `verify` recomputes notes of its own form.
FORMAT = 2


@dataclass(frozen=True, slots=True)
class Written:
    """What `gpucost report` wrote, and the facts behind it."""

    note: Path
    page: Path
    facts: Facts


def write_report(folders: Sequence[str | Path], *, parents: Sequence[str | Path] = ()) -> Written:
    """Write ``report/decision.md`` and ``report/report.html`` into the first campaign.

    Args:
        folders: Campaigns with one manifest.
        parents: Where parent campaigns may lie.

    Raises:
        NotACampaign, WrongUse, Refused, Differs: As :func:`gather`.
        EnvironmentLacks: The files can't be written.
    """
    facts = gather(folders, parents=parents)
    place = facts.together.members[0].campaign.folder / "report"
    note, html = rendered(facts)
    with on_disk("report"):
        place.mkdir(exist_ok=True)
        write_atomic(place / "decision.md", note)
        write_atomic(place / "report.html", html)
    return Written(place / "decision.md", place / "report.html", facts)


def rendered(facts: Facts) -> tuple[bytes, bytes]:
    """Return the bytes of ``decision.md`` and ``report.html``."""
    document = note(facts)
    return markdown(document).encode("utf-8", "replace"), page(document).encode("utf-8", "replace")


def note(facts: Facts) -> Document:
    """Return the note as a document."""
    document = Document(f"Decision note: {clean(facts.together.protocol.name, limit=80)}")
    document.add(*answer_blocks(facts))
    document.add(*money_blocks(facts))
    document.add(*measured_blocks(facts))
    document.add(*predicted_blocks(facts))
    document.add(*evidence_blocks(facts, FORMAT))
    return document
