"""Estimated memory of each variant beside what its attempts showed, never one for the other."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from gpucost_tui.campaign.fold import State, fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.survey import survey
from gpucost_tui.campaign.trying import MEMORY, longest_batch
from gpucost_tui.campaign.unchanged import model_folder
from gpucost_tui.errors import GpucostError, InputError
from gpucost_tui.models import facts as model_facts
from gpucost_tui.models.facts import ModelFacts
from gpucost_tui.models.memory import Estimate, estimate
from gpucost_tui.protocol.model import Protocol


@dataclass(slots=True)
class VariantMemory:
    """One variant over one deliverable. Bytes; ``None`` with its reason in ``missing``.

    ``observed`` has the greatest peak of each counter over the attempts: separate counters, whose
    peaks can fall at different moments, and which are never added (R30).
    """

    variant: str
    deliverable: str
    entries: int | None
    padded_length: int | None
    estimated: dict[str, int | None]
    observed: dict[str, int | None]
    attempts: int
    missing: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def memory(campaign: Campaign) -> list[VariantMemory]:
    """Return every variant's memory, in the protocol's order.

    Raises:
        InputError: The draft is not one that could be estimated; `gpucost check` says why.
        Differs: The journal is damaged.
    """
    if campaign.sealed_hash() is None:
        found = survey(campaign)
        lengths = {n: c.strata["tokens"].to_numpy() for n, c in found.corpora.items()
                   if c.strata is not None}  # fmt: skip
        if found.protocol is None or not lengths:
            raise InputError(
                "the draft has no corpus or model to estimate from",
                where=campaign.folder.name,
                fix="`gpucost check` names what is wrong",
            )
        return _all(found.protocol, lengths, found.model_facts, "the model is not known", State())
    protocol = campaign.manifest.protocol
    lengths = {
        d.name: pl.read_parquet(campaign.strata_file(d.name))["tokens"].to_numpy()
        for d in protocol.deliverables
    }
    facts, why = None, ""
    try:
        facts = model_facts.read(model_folder(campaign))
    except GpucostError as error:
        why = error.what
    return _all(protocol, lengths, facts, why, fold(campaign.events()))


def _all(
    protocol: Protocol,
    lengths: dict[str, np.ndarray],
    facts: ModelFacts | None,
    why: str,
    state: State,
) -> list[VariantMemory]:
    return [
        _one(protocol, variant, name, lengths[name], facts, why, state)
        for name in (d.name for d in protocol.deliverables)
        if name in lengths
        for variant in protocol.order()
    ]


def _one(
    protocol: Protocol,
    variant: str,
    deliverable: str,
    lengths: np.ndarray,
    facts: ModelFacts | None,
    why: str,
    state: State,
) -> VariantMemory:
    execution = protocol.settings(variant)
    chosen, width = longest_batch(lengths, execution)
    if facts is None:
        guess = Estimate(None, None, why)
    else:
        guess = estimate(facts, execution, len(chosen), width)
    rows = [
        a.row
        for a in state.attempts.values()
        if (a.row["variant"], a.row["deliverable"]) == (variant, deliverable) and a.finished
    ]
    observed = {
        name: max((row[name] for row in rows if row[name] is not None), default=None)
        for name in MEMORY
    }
    last = max(
        (a for a in state.attempts.values() if a.row["variant"] == variant and a.finished),
        key=lambda a: a.number,
        default=None,
    )
    missing = {}
    for name in [name for name, value in observed.items() if value is None]:
        reasons = last.missing if last is not None else {}
        otherwise = reasons.get("*", "not measured") if rows else "no attempt yet"
        missing[name] = reasons.get(name, otherwise) if rows else otherwise
    estimated = {
        "weights_bytes": guess.weights_bytes,
        "activations_bytes": guess.activations_bytes,
        "total_bytes": guess.total_bytes,
    }
    missing |= {name: guess.reason or "" for name, value in estimated.items() if value is None}
    return VariantMemory(
        variant=variant,
        deliverable=deliverable,
        entries=len(chosen),
        padded_length=width,
        estimated=estimated,
        observed=observed,
        attempts=len(rows),
        missing=missing,
    )
