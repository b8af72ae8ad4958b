"""Holds exclusions and commitments against what was sealed, frozen and seen (R24, R35, R37)."""

from __future__ import annotations

from typing import Any

from gpucost_tui.campaign.acts import Committed
from gpucost_tui.campaign.committing import priced_row
from gpucost_tui.campaign.excluding import unequal
from gpucost_tui.campaign.fold import State
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.gpu_names import HOST_NAMES, devices_of
from gpucost_tui.campaign.journal import Event
from gpucost_tui.dossier.findings import Findings
from gpucost_tui.errors import Differs, GpucostError, Refused
from gpucost_tui.pricing.amounts import exact
from gpucost_tui.pricing.frozen import FrozenPrices, read_frozen
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.text import clean, money


def check_exclusions(protocol: Protocol, state: State, findings: Findings) -> None:
    """Every cause applies alike: who meets its condition is out, and nobody else (R24)."""
    findings.checked["exclusions"] += len(state.acts.exclusions)
    try:
        found = unequal(protocol, state)
    except Refused as error:
        findings.cannot(f"exclusions: {error.what}")
        return
    for one in found:
        findings.differs(
            f"journal.jsonl, attempt {one.attempt}, exclusion",
            f"the cause '{one.cause}' applied alike to every attempt (R24)",
            one.what,
        )


def check_commitments(
    campaign: Campaign,
    events: list[Event],
    state: State,
    records: dict[str, dict[str, Any]],
    findings: Findings,
) -> None:
    """Hold every commitment, corrected ones included, against its frozen price and its hosts."""
    known: dict[str, FrozenPrices | None] = {}
    acts = [*state.acts.commitments.values(), *state.acts.corrected]
    for one in sorted(acts, key=lambda act: act.seq):
        findings.checked["commitments"] += 1
        where = f"journal.jsonl, line {one.seq} (committed {clean(one.words, limit=80)})"
        if one.prices not in known:
            known[one.prices] = _frozen(campaign, one.prices, findings)
        frozen = known[one.prices]
        if frozen is not None:
            _price(campaign, one, where, findings)
        _hosts(one, records, where, findings)
    _strangers(campaign, events, findings)


def _frozen(campaign: Campaign, sha256: str, findings: Findings) -> FrozenPrices | None:
    where = f"prices/{sha256}.json"
    if "/" in sha256 or sha256.startswith("."):
        findings.differs("journal.jsonl", "the name of a frozen price", sha256)
        return None
    try:
        found = read_frozen(campaign.folder / "prices", sha256)
    except Differs as error:
        findings.differs(where, f"the price that was frozen, SHA-256 {sha256}", error.what)
        return None
    findings.checked["prices"] += 1
    return found


def _price(campaign: Campaign, one: Committed, where: str, findings: Findings) -> None:
    try:
        row = priced_row(campaign.folder, one)
    except Differs as error:
        findings.differs(where, "the frozen cell that it was priced by", error.what)
        return
    if row.usd_per_lot is None:
        findings.differs(where, "a frozen price", "an empty cell")
        return
    with exact():
        expected = row.usd_per_lot * one.lots
    if one.usd != expected:
        said = f"{money(expected)} ({row.usd_per_lot} a lot)"
        findings.differs(f"{where}, usd", said, money(one.usd))


def _hosts(
    one: Committed, records: dict[str, dict[str, Any]], where: str, findings: Findings
) -> None:
    """The rented model is one that the hosts have."""
    if one.gpu in HOST_NAMES and one.host_gpu not in HOST_NAMES[one.gpu]:
        findings.differs(f"{where}, host_gpu", f"one of {HOST_NAMES[one.gpu]}", one.host_gpu)
    if not one.hosts:
        findings.differs(f"{where}, hosts", "the hosts that are rented", "none")
    for name in one.hosts:
        record = records.get(name)
        if record is None:
            findings.differs(f"{where}, hosts", "a host record of this campaign", name)
            continue
        names = gpu_names(record)
        if one.host_gpu not in names:
            findings.differs(f"{where}, host_gpu", f"a GPU of host {name}: {names}", one.host_gpu)


def gpu_names(record: dict[str, Any]) -> list[str]:
    """Return the GPU models of a host record: as the driver and as the framework call them."""
    names: list[str] = []
    for part in (record, {"framework": record.get("framework")}):
        try:
            names += devices_of(part)
        except (TypeError, AttributeError, KeyError):
            continue
    return list(dict.fromkeys(names))


def _strangers(campaign: Campaign, events: list[Event], findings: Findings) -> None:
    """Name frozen prices that no commitment of the journal names."""
    used = {str(e.data.get("prices")) for e in events if e.event == "committed"}
    for path in sorted((campaign.folder / "prices").glob("*.json")):
        if path.stem not in used:
            _stranger(path.stem, campaign, findings)


def _stranger(name: str, campaign: Campaign, findings: Findings) -> None:
    # A commitment that was cut off after its price was frozen leaves a sound file behind.
    try:
        read_frozen(campaign.folder / "prices", name)
    except GpucostError as error:
        findings.differs(f"prices/{name}.json", "a frozen price", error.what)
    else:
        findings.note(f"prices/{name}.json belongs to no commitment of the journal.")
