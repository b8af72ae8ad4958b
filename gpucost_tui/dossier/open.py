"""Opens what somebody wants verified: campaigns' folders, or an exported dossier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpucost_tui.dossier.verify import Verification, verify
from gpucost_tui.errors import WrongUse
from gpucost_tui.text import clean


def verify_places(
    places: Sequence[str | Path],
    *,
    heads: Sequence[str] = (),
    parents: Sequence[str | Path] = (),
) -> Verification:
    """Verify folders, or one ZIP file.

    Raises:
        WrongUse: A ZIP beside others.
        NotACampaign: A folder is missing or holds no campaign.
        InputError: The ZIP is damaged, unsafe or no dossier.
    """
    zips = [place for place in places if Path(place).is_file()]
    if not zips:
        earlier = [Path(place) for place in parents]
        return verify([Path(place) for place in places], heads=heads, parents=earlier)
    if len(places) > 1:
        raise WrongUse(
            f"'{clean(zips[0], limit=200)}' is a file, and more places are named",
            fix="Verify an exported dossier by itself",
        )
    from gpucost_tui.dossier.archive import verify_archive

    return verify_archive(Path(zips[0]), heads=heads)
