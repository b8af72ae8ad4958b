"""What a child campaign takes over from its parents: attempts, time and commitments (R21)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from gpucost_tui.analysis.balance_row import amount_text
from gpucost_tui.analysis.configurations import commitment_of
from gpucost_tui.analysis.rental import Commitment, Problem, total
from gpucost_tui.analysis.together import Member, Together, joined, read_member
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.window import need
from gpucost_tui.errors import GpucostError
from gpucost_tui.pricing.window import hours_of
from gpucost_tui.protocol.model import Parent
from gpucost_tui.text import clean, count, money

#: A chain of parents longer than this is a circle.
_LONGEST = 100
_COUNTED = ("completed", "failed", "stopped", "interrupted")


@dataclass(frozen=True)
class Inherited:
    """What one parent campaign brings in: its members (one a host), or why it can't be read."""

    manifest: str
    together: Together | None
    commitments: tuple[Commitment, ...] = ()
    seconds: Fraction = Fraction(0)
    problems: tuple[Problem, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        if self.together is None:
            return []
        return [row for member in self.together.members for row in member.rows()]

    def counts(self) -> dict[str, int]:
        """Return the attempts by their status; an excluded one counts as excluded alone."""
        found = dict.fromkeys((*_COUNTED, "excluded"), 0)
        for row in self.rows():
            if row["excluded"]:
                found["excluded"] += 1
            elif row["status"] in found:
                found[row["status"]] += 1
        return found

    def to_json(self) -> dict[str, Any]:
        counts = self.counts()
        return {
            "manifest": self.manifest,
            "found": self.together is not None,
            "folders": [m.name for m in self.together.members] if self.together else [],
            "attempts": len(self.rows()),
            "failures": counts.pop("failed"),
            **counts,
            "by_variant": self._by_variant(),
            "window_hours": None if self.together is None else hours_of(self.seconds),
            "committed_usd": amount_text(total(self.commitments)) if self.commitments else None,
            "packs": [commitment.pack for commitment in self.commitments],
            "problems": [sentence for _, sentence in self.problems],
        }

    def _by_variant(self) -> list[dict[str, Any]]:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.rows():
            key = (row["variant"], row["configuration"] or row["variant"])
            one = found.setdefault(
                key, {"configuration": key[1], "durations_s": [], "attempts": 0, "failures": []}
            )
            one["attempts"] += 1
            if row["status"] == "failed":
                one["failures"].append(row["failure"])
            elif row["pass_s"] is not None and row["status"] == "completed" and not row["excluded"]:
                one["durations_s"].append(row["pass_s"])
        return list(found.values())

    def sentence(self) -> str:
        """Return what is taken over, in a sentence."""
        short = f"{self.manifest[:16]}…"
        if self.together is None:
            return f"The parent campaign {short} is not counted: {self.problems[0][1]}."
        counts = self.counts()
        named = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
        committed = (
            f"{money(total(self.commitments))} USD committed there"
            if self.commitments
            else "nothing committed there"
        )
        return (
            f"From the parent campaign {short}: {count(len(self.rows()), 'attempt')} "
            f"({named or 'none ended'}), {hours_of(self.seconds):g} h, {committed}. Its time and "
            "its commitment are part of every configuration here (R21)."
        )


def parents_of(together: Together, places: Sequence[str | Path] = ()) -> tuple[Inherited, ...]:
    """Return the parent, its parent, and so on.

    Each is looked for where ``gpucost new --from`` found it, beside the child under the same name,
    and in ``places``; its manifest's hash decides, and its journal holds the line that the child
    was made from.

    Args:
        together: The child.
        places: Folders that may hold parents.

    Raises:
        NotACampaign: One of ``places`` is none.
    """
    given = [Campaign.open(place) for place in places]
    found: list[Inherited] = []
    child: Together | None = together
    while child is not None and child.protocol.parent is not None and len(found) < _LONGEST:
        one = _parent(child, child.protocol.parent, given)
        found.append(one)
        child = one.together
    return tuple(found)


def _parent(child: Together, wanted: Parent, given: Sequence[Campaign]) -> Inherited:
    members: list[Member] = []
    wrong: list[str] = []
    for campaign in _candidates(child, given):
        try:
            member = read_member(campaign)
        except GpucostError as error:
            wrong.append(f"{clean(campaign.folder, limit=120)}: {error.what}")
            continue
        if member.manifest.sha256 != wanted.manifest:
            wrong.append(f"{clean(campaign.folder, limit=120)} holds another campaign")
        else:
            members.append(member)
    if not members:
        tried = "; ".join(wrong) or "it is not where it was, and not beside this one"
        return _missing(wanted, f"the parent campaign is not here ({tried}); name it with --parent")
    heads = {event.hash for member in members for event in member.events}
    if wanted.head is not None and wanted.head not in heads:
        return _missing(wanted, "its journal does not hold the line that this one was made from")
    try:
        return _inherited(wanted, _without_copies(members))
    except GpucostError as error:
        return _missing(wanted, f"it can't be counted: {error.what}")


def _candidates(child: Together, given: Sequence[Campaign]) -> Iterator[Campaign]:
    """Yield the folders that are there, each once."""
    places = [campaign.folder for campaign in given]
    for member in child.members:
        known = member.campaign.sources().get("parent")
        if isinstance(known, str) and known and "\0" not in known:
            places += [Path(known), member.campaign.folder.resolve().parent / Path(known).name]
    seen = {member.campaign.folder.resolve() for member in child.members}
    for place in places:
        try:
            campaign = Campaign.open(place)
        except GpucostError:
            continue
        if campaign.folder.resolve() not in seen:
            seen.add(campaign.folder.resolve())
            yield campaign


def _without_copies(members: Sequence[Member]) -> Together:
    """Leave out folders that are copies, or earlier states, of another one."""
    kept: list[Member] = []
    for member in sorted(members, key=lambda m: -len(m.events)):
        lines = [event.hash for event in member.events]
        if not any([e.hash for e in k.events[: len(lines)]] == lines for k in kept):
            kept.append(member)
    return joined(kept)


def _inherited(wanted: Parent, together: Together) -> Inherited:
    commitments = [
        commitment_of(member, act)
        for member in together.members
        for act in member.state.acts.commitments.values()
    ]
    needs = [need(m.protocol, m.state, over=True) for m in together.members]
    problems: list[Problem] = []
    hours = [n.hours for n in needs if n.hours is not None]
    if len(hours) < len(needs):
        problems.append(("window", "the time that the parent campaign took is not known"))
    # Members on several hosts ran beside each other.
    seconds = max((Fraction(repr(h)) * 3600 for h in hours), default=Fraction(0))
    return Inherited(wanted.manifest, together, tuple(commitments), seconds, tuple(problems))


def _missing(wanted: Parent, why: str) -> Inherited:
    return Inherited(wanted.manifest, None, problems=(("missing", why),))
