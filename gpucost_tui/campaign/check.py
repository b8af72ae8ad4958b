"""`check`: everything that stands in the way of sealing, or of running what is sealed."""

from __future__ import annotations

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.fold import State, fold
from gpucost_tui.campaign.seal import ensure_unchanged
from gpucost_tui.campaign.survey import Survey, survey
from gpucost_tui.environment.disk import free_bytes, is_writable
from gpucost_tui.environment.drivers import find_driver
from gpucost_tui.errors import GpucostError
from gpucost_tui.protocol.problem import Problem
from gpucost_tui.text import clean, size

#: Room for journal, tables and logs beside the predictions.
_BASE_BYTES = 20_000_000


def check(campaign: Campaign) -> Survey:
    """Look at protocol, corpora, model, environment and disk; problems are gathered, not raised."""
    found = survey(campaign)
    if campaign.sealed:
        try:
            ensure_unchanged(campaign)
        except GpucostError as error:
            found.add("seal", error)
    _disk(found, campaign)
    _device(found)
    return found


def _disk(found: Survey, campaign: Campaign) -> None:
    writable, why = is_writable(campaign.folder)
    if not writable:
        problem = Problem("disk", clean(why), "Choose a folder where you may write")
        found.problems.append(problem)
        return
    free, why = free_bytes(campaign.folder)
    if free is None:
        found.problems.append(Problem("disk", clean(why), "Check the disk", blocking=False))
        return
    needed = needed_bytes(found, campaign)
    if free < needed:
        found.problems.append(
            Problem(
                "disk",
                f"the predictions of all open slots need about {size(needed)}, {size(free)} are free",
                "Make space, or move the campaign to a larger disk",
            )
        )


def needed_bytes(found: Survey, campaign: Campaign) -> int:
    """Return about how many bytes the predictions of all open slots will take."""
    facts = found.model_facts
    if found.protocol is None or found.task is None or facts is None:
        return _BASE_BYTES
    state = fold(campaign.events()) if campaign.sealed else State()
    each = found.task.prediction_bytes(labels=len(facts.labels or ()), width=facts.hidden_size or 0)
    entries = sum(
        found.corpora[slot.deliverable].entries
        for slot in state.open_slots(found.protocol)
        if slot.deliverable in found.corpora
    )
    return _BASE_BYTES + entries * each


def _device(found: Survey) -> None:
    if found.protocol is None or found.source is None:
        return
    wanted = {found.protocol.execution.device}
    wanted |= {str(c["device"]) for c in found.protocol.variants.values() if "device" in c}
    if not any(device.startswith("cuda") for device in wanted):
        return
    driver = find_driver()
    try:
        if driver.devices():
            return
    finally:
        driver.close()
    found.problems.append(
        Problem(
            found.source.where("execution", "device"),
            "a GPU is asked for, and this machine shows none",
            "Sealing works here; run on the machine that has it",
            blocking=False,
        )
    )
