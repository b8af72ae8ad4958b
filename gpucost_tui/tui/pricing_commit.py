"""Recording the pack that a campaign is rented with: the question, and the act (R35)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpucost_tui.text import clean, count

if TYPE_CHECKING:
    from gpucost_tui.pricing.catalogue import Catalogue, PackPrice
    from gpucost_tui.tui.context import Snapshot


@dataclass(frozen=True, slots=True)
class Wish:
    """A pack to record for the campaign of a snapshot. ``before``: what is recorded for its GPU."""

    snapshot: Snapshot
    row: PackPrice
    lots: int
    amount: str
    before: str | None

    def question(self) -> str:
        """Say what would be recorded, and what stays."""
        row = self.row
        words = (
            f"{self.snapshot.name}: {count(self.lots, 'lot')} of {row.gpu} for {row.days} days, "
            f"{clean(row.provider, limit=40)}, {self.amount} USD. The whole amount counts, however "
            "short the run; the price is frozen in the campaign, and the act stays in its journal."
        )
        if self.before is None:
            return words
        return (
            f"{words}\n\nRecorded already: {self.before}. This replaces it as recorded by mistake; "
            "both acts stay in the journal."
        )


def record(wish: Wish, catalogue: Catalogue | None) -> str:
    """Record a commitment; return it in words.

    Raises:
        GpucostError: The campaign refuses it; nothing was recorded.
    """
    from gpucost_tui.campaign.committing import Pack, commit
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.pricing.catalogue import load

    row, folder = wish.row, wish.snapshot.folder
    assert folder is not None  # noqa: S101 - it was looked at
    pack = Pack(row.gpu, row.days, wish.lots, row.provider, row.gpus_per_lot)
    campaign = Campaign.open(folder)
    return commit(campaign, pack, catalogue or load(), correct=wish.before is not None).words
