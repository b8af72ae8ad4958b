"""What people record about a campaign beside its attempts, folded from the journal.

Exclusions and their withdrawals (R24), commitments with the real rental (R35, R41), other spending
(R37), and the time that an export took. Nothing is ever taken out of the journal: what is withdrawn
or corrected stays there as an act of its own.

=====================  =========================================================================
event                  data
=====================  =========================================================================
excluded               attempt, cause, from, to (null where the cause has a condition)
exclusion_withdrawn    attempt, cause
committed              gpu, host_gpu, hosts, provider, days, lots, gpus, usd, prices, rental
                       (null, or from, to, paid_usd, reference)
spent                  configuration, usd, reason
spending_withdrawn     of (the ``seq`` of what is taken back)
exported               seconds
=====================  =========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gpucost_tui.pricing.amounts import exact
from gpucost_tui.text import clean, count, money

if TYPE_CHECKING:
    from gpucost_tui.campaign.fold import State
    from gpucost_tui.campaign.journal import Event

#: An amount as it is written: the greatest price × the most lots has 13 digits.
_DECIMAL = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,20})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An attempt left out for a sealed cause. ``since`` and ``until``: the cause's interval."""

    attempt: int
    cause: str
    since: datetime | None
    until: datetime | None
    seq: int


@dataclass(frozen=True, slots=True)
class RealRental:
    """The user's own record of the rental (R41); what is not stated is None."""

    since: datetime | None
    until: datetime | None
    paid_usd: Decimal | None
    reference: str | None

    def to_json(self) -> dict[str, Any]:
        return {
            "from": _iso(self.since),
            "to": _iso(self.until),
            "paid_usd": None if self.paid_usd is None else money(self.paid_usd),
            "reference": self.reference,
        }


@dataclass(frozen=True, slots=True)
class Committed:
    """A pack that the hosts of this campaign are rented with, at the price that was frozen.

    ``usd`` is exact; ``prices`` names the file in ``prices/``; ``gpus`` is for information (R35).
    """

    gpu: str
    host_gpu: str
    hosts: tuple[str, ...]
    provider: str
    days: int
    lots: int
    gpus: int
    usd: Decimal
    prices: str
    rental: RealRental | None
    seq: int

    @property
    def pack(self) -> tuple[str, str, int, int, str]:
        """What a repeated act must have in common to tell of the same rental."""
        return self.gpu, self.provider, self.days, self.lots, self.prices

    @property
    def words(self) -> str:
        """Return ``1 lot of rtx-4090 for 7 days``."""
        return f"{count(self.lots, 'lot')} of {clean(self.gpu, limit=60)} for {self.days} days"


@dataclass(frozen=True, slots=True)
class Spent:
    """Another real expense, with its reason (R37)."""

    configuration: str
    usd: Decimal
    reason: str
    seq: int


@dataclass(slots=True)
class Acts:
    """What is in force by now, and what was withdrawn or corrected on the way."""

    exclusions: dict[int, Exclusion] = field(default_factory=dict)  # by attempt
    withdrawn: list[Exclusion] = field(default_factory=list)
    commitments: dict[str, Committed] = field(default_factory=dict)  # by GPU
    corrected: list[Committed] = field(default_factory=list)
    spending: dict[int, Spent] = field(default_factory=dict)  # by line of the journal
    export_s: float | None = None


def committed_so_far(state: State) -> dict[str, Any]:
    """Return what a campaign costs by now: the commitments whole, other spending apart.

    ``committed_usd`` and ``spent_usd`` are text with two decimals, None where nothing is recorded.
    """
    acts = state.acts
    with exact():
        committed = sum((c.usd for c in acts.commitments.values()), Decimal(0))
        spent = sum((s.usd for s in acts.spending.values()), Decimal(0))
    return {
        "committed_usd": money(committed) if acts.commitments else None,
        "spent_usd": money(spent) if acts.spending else None,
        "packs": [commitment.words for commitment in acts.commitments.values()],
    }


def _excluded(state: State, event: Event) -> None:
    data = event.data
    attempt = state.attempts[data["attempt"]]
    if attempt.row["excluded"]:
        raise ValueError("it is excluded already")
    one = Exclusion(
        attempt.number, str(data["cause"]), _moment(data["from"]), _moment(data["to"]), event.seq
    )
    state.acts.exclusions[attempt.number] = one
    attempt.row.update(excluded=True, exclusion_cause=one.cause)
    when = f", {_iso(one.since)} to {_iso(one.until)}" if one.since else ""
    attempt.notes.append(f"excluded on {event.time} for '{one.cause}'{when}")


def _exclusion_withdrawn(state: State, event: Event) -> None:
    attempt = state.attempts[event.data["attempt"]]
    one = state.acts.exclusions.pop(attempt.number)
    state.acts.withdrawn.append(one)
    attempt.row.update(excluded=False, exclusion_cause=None)
    attempt.notes.append(f"exclusion for '{one.cause}' withdrawn on {event.time}")


def _committed(state: State, event: Event) -> None:
    data = event.data
    rental = data["rental"]
    one = Committed(
        gpu=str(data["gpu"]),
        host_gpu=str(data["host_gpu"]),
        hosts=tuple(map(str, data["hosts"])),
        provider=str(data["provider"]),
        days=_whole(data["days"]),
        lots=_whole(data["lots"]),
        gpus=_whole(data["gpus"]),
        usd=_amount(data["usd"]),
        prices=str(data["prices"]),
        rental=None if rental is None else _rental(rental),
        seq=event.seq,
    )
    before = state.acts.commitments.get(one.gpu)
    if before is not None and before.pack != one.pack:
        state.acts.corrected.append(before)
    state.acts.commitments[one.gpu] = one


def _rental(data: dict[str, Any]) -> RealRental:
    paid = data["paid_usd"]
    reference = data["reference"]
    return RealRental(
        _moment(data["from"]),
        _moment(data["to"]),
        None if paid is None else _amount(paid),
        None if reference is None else str(reference),
    )


def _spent(state: State, event: Event) -> None:
    data = event.data
    state.acts.spending[event.seq] = Spent(
        str(data["configuration"]), _amount(data["usd"]), str(data["reason"]), event.seq
    )


def _spending_withdrawn(state: State, event: Event) -> None:
    del state.acts.spending[event.data["of"]]


def _exported(state: State, event: Event) -> None:
    seconds = float(event.data["seconds"])
    if not 0 <= seconds < float("inf"):
        raise ValueError("no duration")
    # A later export repeats the first: the window of a finished campaign moves no more (R32).
    if state.acts.export_s is None:
        state.acts.export_s = seconds


def _moment(text: Any) -> datetime | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a moment without its offset")
    return moment


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("no whole number")
    return value


def _amount(text: Any) -> Decimal:
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise ValueError("no amount")
    return Decimal(text)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


#: For :mod:`gpucost_tui.campaign.fold`.
STEPS: dict[str, Callable[[State, Event], None]] = {
    "excluded": _excluded,
    "exclusion_withdrawn": _exclusion_withdrawn,
    "committed": _committed,
    "spent": _spent,
    "spending_withdrawn": _spending_withdrawn,
    "exported": _exported,
}
