"""Gathers what a note tells: campaigns as they stood at a line of their journals, analysed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpucost_tui.analysis.campaigns import Balance, compare_campaigns, decide_campaigns
from gpucost_tui.analysis.compare import Comparison
from gpucost_tui.analysis.predicted import Flips, Quality, qualities, variant_flips
from gpucost_tui.analysis.together import Member, Together, joined, read_member, read_together
from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Event
from gpucost_tui.text import clean

_SHOWN = (80, 120, 200)  # lengths to which the analysis cuts a folder's name


@dataclass(frozen=True)
class Facts:
    """All that a note rests on. ``heads`` are the members' last lines, in their order."""

    together: Together
    balance: Balance
    comparison: Comparison
    heads: tuple[str, ...]
    qualities: tuple[Quality, ...]
    flips: tuple[Flips, ...]

    def told(self, sentence: str) -> str:
        """Return a sentence of the analysis without the places of this machine.

        A note says the same wherever its campaigns lie: folders are called by their number.
        """
        for number, member in enumerate(self.together.members, 1):
            for length in _SHOWN:
                sentence = sentence.replace(clean(member.name, limit=length), f"folder {number}")
        return sentence


def gather(
    folders: Sequence[str | Path],
    *,
    parents: Sequence[str | Path] = (),
    upto: Mapping[int, Sequence[Event]] | None = None,
) -> Facts:
    """Read campaigns with one manifest, compare and decide.

    Args:
        folders: The campaigns' folders.
        parents: Where parent campaigns may lie, beside the places where they were.
        upto: By position, the events of a journal to stop at; by default all of them.

    Raises:
        NotACampaign, WrongUse, Refused, Differs: As :func:`read_together` and
            :func:`decide_campaigns`.
    """
    together = read_together(folders)
    if upto is not None:
        members = [
            _at(member.campaign, upto[at]) if at in upto else member
            for at, member in enumerate(together.members)
        ]
        together = joined(members)
    balance = decide_campaigns(together, parents)
    heads = tuple(member.events[-1].hash for member in together.members)
    comparison = compare_campaigns(together)
    return Facts(
        together,
        balance,
        comparison,
        heads,
        tuple(qualities(together)),
        tuple(variant_flips(together, comparison.pairs)),
    )


def _at(campaign: Campaign, events: Sequence[Event]) -> Member:
    """Return a campaign as it stood after some of its events."""
    whole = read_member(campaign)
    state = fold(events)
    hosts = {name: record for name, record in whole.hosts.items() if name in state.hosts}
    return Member(campaign, whole.manifest, list(events), state, hosts)
