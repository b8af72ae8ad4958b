"""What the form of a variant starts with; run in a thread, because it reads the protocol."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gpucost_tui.tui.schedule_dialog import VariantForm

if TYPE_CHECKING:
    from gpucost_tui.campaign.edit import Draft


def read_draft_of(folder: Path | None) -> Draft:
    """Read the draft of the campaign in a folder.

    Raises:
        GpucostError: It is sealed, or can't be read.
    """
    from gpucost_tui.campaign.edit import read_draft
    from gpucost_tui.campaign.folder import Campaign

    return read_draft(Campaign.open(folder or Path()))


def form_of(draft: Draft, how: str, chosen: str | None) -> VariantForm:
    """Return the form for ``how``: add, copy or change; ``chosen`` is under the cursor."""
    from gpucost_tui.campaign.edit import changes_text
    from gpucost_tui.errors import WrongUse
    from gpucost_tui.protocol.execution import Execution

    settings = tuple(Execution.model_fields)
    protocol = draft.protocol
    if how == "add" or chosen is None:
        of = protocol.series_of(chosen)[:1] if chosen in protocol.variants else ()
        series = of or (protocol.series[0].name,)
        return VariantForm("Add a variant", "", "", series, settings=settings)
    if chosen not in protocol.variants:
        raise WrongUse(
            f"there is no table for the variant '{chosen}'", fix="Add it, or correct the series"
        )
    changes, series = changes_text(protocol.variants[chosen]), protocol.series_of(chosen)
    if how == "copy":
        name = _free_name(chosen, set(protocol.variants))
        return VariantForm(f"Copy {chosen}", name, changes, series, settings=settings)
    return VariantForm(f"Change {chosen}", chosen, changes, series, chosen, settings)


def _free_name(name: str, taken: set[str]) -> str:
    """Return ``name-2`` or the next number that is free, at most 64 characters long."""
    stem = re.sub(r"-copy(-\d+)?$", "", name)[:50]
    number, free = 1, f"{stem}-copy"
    while free in taken:
        number += 1
        free = f"{stem}-copy-{number}"
    return free
