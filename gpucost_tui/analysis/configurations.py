"""Configurations of campaigns: variant × hardware × pack, and how each is rented (R35, R36)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gpucost_tui.analysis.rental import Basis, Commitment, Problem, Rental, cover_problem
from gpucost_tui.analysis.together import Member, Together
from gpucost_tui.campaign.acts import Committed
from gpucost_tui.campaign.committing import priced_row, used_sentence
from gpucost_tui.campaign.gpu_names import devices_of, is_called
from gpucost_tui.campaign.window import need
from gpucost_tui.errors import Differs
from gpucost_tui.pricing.calculator import quote
from gpucost_tui.pricing.window import covering_days, hours_of
from gpucost_tui.text import clean, count, listed, money

UNKNOWN = "hardware not known yet"
_CPU = "CPU"
_UNMEASURED = (
    ": a phase that a task takes as measured was not measured (`gpucost export` measures its own)"
)


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a variant ran on: the commitment that covers it, or the device alone."""

    device: str
    commitment: Committed | None = None


@dataclass(frozen=True)
class Configuration:
    """A variant on its hardware, in the members where it ran; ``planned`` attempts in all."""

    name: str
    variant: str
    hardware: Hardware
    members: tuple[Member, ...]
    planned: int


def configurations(together: Together) -> tuple[Configuration, ...]:
    """Return the configurations in the protocol's order; the ones that never ran are among them."""
    labels = _labels(together.members)
    found: dict[str, Configuration] = {}
    for variant in together.protocol.order():
        for member in together.members:
            for hardware in _hardware_of(member, variant):
                name = f"{variant} on {_label(hardware, labels)}"
                before = found.get(name)
                planned = _planned(member, variant) + (before.planned if before else 0)
                members = (*(before.members if before else ()), member)
                first = before.hardware if before else hardware
                found[name] = Configuration(name, variant, first, members, planned)
    return tuple(found.values())


def names_by_attempt(together: Together, member: Member) -> dict[int, str]:
    """Return the configuration of every attempt of a member."""
    labels = _labels(together.members)
    return {
        row["attempt"]: f"{row['variant']} on {_label(_hardware(member, row), labels)}"
        for row in member.rows()
    }


def renamed(together: Together, member: Member) -> dict[str, str]:
    """Return how the configurations of a member are called among all: earlier name -> that one.

    Earlier names are those before other campaigns stood beside it, before the commitment was
    recorded, and before it was corrected.
    """
    own, among = _labels((member,)), _labels(together.members)
    names: dict[str, str] = {}
    for variant in member.protocol.order():
        for hardware in _hardware_of(member, variant):
            now = f"{variant} on {_label(hardware, among)}"
            earlier = [hardware.device]
            if hardware.commitment is not None:
                gpu = hardware.commitment.gpu
                corrected = [act for act in member.state.acts.corrected if act.gpu == gpu]
                earlier += [f"{count(act.lots, 'lot')} of {gpu}" for act in corrected]
            for label in (*earlier, _label(hardware, own)):
                names[f"{variant} on {label}"] = now
    return names


def local_names(member: Member) -> tuple[str, ...]:
    """Return the names of one member's configurations, as `decide` shows them for it alone."""
    return tuple(one.name for one in configurations(Together((member,))))


def commitment_of(member: Member, act: Committed) -> Commitment:
    """Return a commitment at its frozen price.

    Raises:
        Differs: The frozen price, or the amount in the journal, is not what was written.
    """
    row = priced_row(member.campaign.folder, act)
    priced = quote(row, act.lots)
    if priced.committed_usd != act.usd:
        raise Differs(
            f"{act.words} is recorded at {money(act.usd)} USD, its frozen price says "
            f"{money(priced.committed_usd)}",
            where=f"journal.jsonl, line {act.seq}",
            fix="Restore journal and prices/ from a copy of the campaign",
        )
    pack: dict[str, Any] = {
        "provider": row.provider,
        "gpu": row.gpu,
        "days": row.days,
        "lots": priced.lots,
        "gpus": priced.gpus,
        "usd_per_lot": money(row.usd_per_lot or Decimal(0)),
        "catalogue": row.catalogue,
        "catalogue_date": row.catalogue_date.isoformat(),
        "prices_sha256": act.prices,
        "rental": act.rental.to_json() if act.rental else None,
    }
    reference = act.rental.reference if act.rental else None
    return Commitment(row.gpu, priced.lots, row.days, priced.committed_usd, pack, reference)


def rental_of(
    one: Configuration,
    earlier_s: Fraction = Fraction(0),
    inherited: Sequence[Commitment] = (),
    problems: Sequence[Problem] = (),
) -> Rental:
    """Return how a configuration is rented, with the window of its campaign (R32, R40).

    Args:
        one: The configuration. Where it ran on several hosts, they ran beside each other: the
            longest window counts.
        earlier_s: Seconds that parent campaigns took before it.
        inherited: The parents' commitments (R21).
        problems: What else stands in its way.
    """
    found = list(problems)
    needs = [need(m.protocol, m.state, variant=one.variant) for m in one.members]
    known = [Fraction(repr(n.hours)) * 3600 for n in needs if n.hours is not None]
    own_s = max(known) if known and len(known) == len(needs) else None
    basis: Basis = "measured" if all(n.basis == "measured" for n in needs) else "assumed"
    if own_s is None:
        tasks = list(dict.fromkeys(task for n in needs for task in n.unknown))
        told = listed(tasks) or "no task of it is sealed"
        found.append(("window", f"the window is not known ({told}){_open(one)}"))
    elif basis == "assumed":
        found.append(("window", f"the window is only assumed{_open(one) or _UNMEASURED}"))
    window_s = None if own_s is None else own_s + earlier_s
    act = one.hardware.commitment
    if act is None:
        what = f"no commitment is recorded for {clean(one.hardware.device, limit=80)}"
        found.append(("price", f"{what} (`gpucost commit`)"))
        return Rental((), window_s, basis, tuple(found), tuple(inherited))
    own = commitment_of(one.members[0], act)
    if window_s is not None and own_s is not None:
        # A parent's time needs this pack only where it was spent within the same rental.
        shared = any(own.key == other.key for other in inherited)
        seconds = window_s if shared else own_s
        found += cover_problem(seconds, own.days, covering_days(seconds))
    return Rental((own,), window_s, basis, tuple(found), tuple(inherited))


def _open(one: Configuration) -> str:
    slots = sum(len(m.state.open_slots(m.protocol)) for m in one.members)
    return f": {count(slots, 'slot is', 'slots are')} still open" if slots else ""


def rental_notes(member: Member) -> Iterator[str]:
    """Yield sentences on what was rented and used, and on the real rental (R35, R41)."""
    for act in member.state.acts.commitments.values():
        said = used_sentence(member.state, act)
        if said:
            yield f"{act.words}: {said}"
        real = act.rental
        if real is None:
            continue
        if real.paid_usd is not None and real.paid_usd != act.usd:
            yield (
                f"{act.words}: {money(real.paid_usd)} USD were paid, {money(act.usd)} USD are "
                "committed by the frozen price; the decision is by the commitment."
            )
        if real.since and real.until:
            yield from _real_time(member, act, real.since, real.until)
    for act in member.state.acts.corrected:
        yield (
            f"An earlier commitment of {act.words}, {money(act.usd)} USD, was corrected: it stays "
            "in the journal and is not counted."
        )


def _real_time(member: Member, act: Committed, since: datetime, until: datetime) -> Iterator[str]:
    seconds = Fraction(str((until - since).total_seconds()))
    yield f"{act.words}: rented for {hours_of(seconds):g} h by your own record."
    outside = []
    for row in member.rows():
        begun = datetime.fromisoformat(row["started_at"])
        ended = datetime.fromisoformat(row["ended_at"] or row["started_at"])
        if (begun < since or ended > until) and _hardware(member, row).commitment == act:
            outside.append(str(row["attempt"]))
    if outside:
        yield (
            f"{act.words}: {count(len(outside), 'attempt')} ran outside of the rental that you "
            f"recorded ({listed(outside, limit=10)})."
        )


def _planned(member: Member, variant: str) -> int:
    slots = member.state.slots(member.protocol)
    planned = sum(slot.variant == variant and slot.round > 0 for slot in slots)
    rows = [member.state.attempts[number].row for number in member.shared]
    return planned - sum(bool(row["variant"] == variant and row["round"]) for row in rows)


def _hardware_of(member: Member, variant: str) -> list[Hardware]:
    """Return what a variant ran on; what others ran on where it did not run yet."""
    rows = member.rows()
    own = [_hardware(member, row) for row in rows if row["variant"] == variant]
    there = own or [_hardware(member, row) for row in rows]
    if not there:
        there = [Hardware(c.host_gpu, c) for c in member.state.acts.commitments.values()]
    return list(dict.fromkeys(there or [Hardware(UNKNOWN)]))


def _hardware(member: Member, row: Mapping[str, Any]) -> Hardware:
    """Return what an attempt ran on.

    A commitment covers the attempts on its device, and those of its hosts that used no GPU or
    ended before their device was known: the rental was kept for them too.
    """
    gpu = row["gpu"]
    for act in member.state.acts.commitments.values():
        spared = gpu is None and _has(member, row["host"], act)
        if spared or is_called(act.gpu, act.host_gpu, gpu):
            return Hardware(act.host_gpu, act)
    if gpu is not None:
        return Hardware(str(gpu))
    if row["device"] is not None:
        return Hardware(_CPU)
    # It ended before its device was known: the nearest attempt that knew it speaks for it.
    ended = [r for r in member.rows() if r["device"] is not None]
    near = [r for r in ended if r["host"] == row["host"]] or ended
    same = [r for r in near if r["variant"] == row["variant"]] or near
    return Hardware(str(same[0]["gpu"] or _CPU)) if same else Hardware(UNKNOWN)


def _has(member: Member, host: str, act: Committed) -> bool:
    record = member.hosts.get(host)
    if record is None:
        return host in act.hosts
    try:
        return act.host_gpu in devices_of(record)
    except (TypeError, AttributeError, KeyError):
        return False


def _labels(members: Sequence[Member]) -> dict[int, str]:
    """Name every commitment; what the short name leaves open (days, provider, rental) is added.

    The keys are the acts' identities: the acts live as long as the members do.
    """
    acts = [act for member in members for act in member.state.acts.commitments.values()]
    rentals = {id(act): _rental_key(act, acts) for act in acts}
    labels = {}
    for act in acts:
        parts = [
            f"{count(act.lots, 'lot')} of {act.gpu}",
            f" for {act.days} days",
            f" by {act.provider}",
            f" at {money(act.usd)} USD",
            f", {rentals[id(act)][-1] or 'no reference'}",
        ]
        alike = {rentals[id(o)] for o in acts if (o.lots, o.gpu) == (act.lots, act.gpu)}
        shown = 1
        # As many of the parts as tell this rental from the others of that GPU and number of lots.
        while len({key for key in alike if key[:shown] == rentals[id(act)][:shown]}) > 1:
            shown += 1
        labels[id(act)] = "".join(parts[:shown])
    return labels


def _rental_key(act: Committed, acts: Sequence[Committed]) -> tuple[Any, ...]:
    """Return what makes two acts one rental, as :class:`Commitment` has it."""
    own = ((act.gpu, act.lots), act.days, act.provider, act.usd)
    references = {
        _reference(other)
        for other in acts
        if ((other.gpu, other.lots), other.days, other.provider, other.usd) == own
    } - {None}
    return (*own, _reference(act) if len(references) > 1 else None)


def _reference(act: Committed) -> str | None:
    return act.rental.reference if act.rental else None


def _label(hardware: Hardware, labels: Mapping[int, str]) -> str:
    act = hardware.commitment
    return hardware.device if act is None else labels[id(act)]
