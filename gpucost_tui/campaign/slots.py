"""Slots: the places of the schedule that attempts fill, in rotated order (R18)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from gpucost_tui.protocol.model import Protocol


@dataclass(frozen=True, slots=True)
class Slot:
    """One place. ``round`` 0 is the untimed reference pass; ``repeats`` the attempt it repeats."""

    slot: int
    round: int
    position: int
    variant: str
    deliverable: str
    seed: int
    repeats: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the keys that ``plan --json`` promises (more may stand beside them)."""
        return asdict(self)


def rotated(variants: Sequence[str], round_: int) -> list[str]:
    """Return the order of variants in a round (from 1): each round starts with the next variant.

    Over as many rounds as there are variants, every variant stands once in every position.
    """
    shift = (round_ - 1) % len(variants)
    return [*variants[shift:], *variants[:shift]]


def schedule(protocol: Protocol, additions: Iterable[dict[str, Any]] = ()) -> list[Slot]:
    """Return all slots in the planned order, numbered from 1.

    Args:
        protocol: The sealed protocol.
        additions: ``rounds_added`` (``{"rounds": n}``) and ``slot_added`` (``{"repeats": attempt,
            "slot": …}``) events' data in the order of the journal; numbers given once never change.
    """
    slots: list[Slot] = []
    reference = protocol.reference_variant()
    if reference is not None:
        for position, deliverable in enumerate(protocol.deliverables, 1):
            seed = protocol.reproduction.seeds[0]
            slots.append(Slot(len(slots) + 1, 0, position, reference, deliverable.name, seed))
    for round_ in range(1, protocol.measurement.rounds + 1):
        _add_round(slots, protocol, round_)
    last = protocol.measurement.rounds
    for addition in additions:
        if "rounds" in addition:
            for _ in range(addition["rounds"]):
                last += 1
                _add_round(slots, protocol, last)
        else:
            again = next(slot for slot in slots if slot.slot == addition["of_slot"])
            slots.append(replace(again, slot=len(slots) + 1, repeats=addition["repeats"]))
    return slots


def _add_round(slots: list[Slot], protocol: Protocol, round_: int) -> None:
    position = 0
    for variant in rotated(protocol.order(), round_):
        for deliverable in protocol.deliverables:
            for seed in protocol.reproduction.seeds:
                position += 1
                slots.append(
                    Slot(len(slots) + 1, round_, position, variant, deliverable.name, seed)
                )
