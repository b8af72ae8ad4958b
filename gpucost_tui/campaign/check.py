"""`check`: everything that stands in the way of sealing, or of running what is sealed."""

from __future__ import annotations

from gpucost_tui.campaign.fold import State, fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.survey import Survey, survey
from gpucost_tui.campaign.survey_corpus import sealed_corpus
from gpucost_tui.campaign.unchanged import differences, model_folder
from gpucost_tui.environment.disk import free_bytes, is_writable
from gpucost_tui.environment.drivers import find_driver
from gpucost_tui.errors import GpucostError
from gpucost_tui.models import facts as model_facts
from gpucost_tui.protocol.load import Source
from gpucost_tui.protocol.problem import Problem
from gpucost_tui.tasks.registry import create
from gpucost_tui.text import clean, size
from gpucost_tui.watch import NOBODY, Watch

#: Room for journal, tables and logs beside the predictions.
_BASE_BYTES = 20_000_000


def check(campaign: Campaign, watch: Watch = NOBODY) -> Survey:
    """Look at protocol, corpora, model, environment and disk; problems are gathered, not raised.

    Of a sealed campaign every byte is read again and held against the manifest.

    Args:
        campaign: A draft, or a sealed campaign.
        watch: Is told of each stage and the entries or bytes done, and may end the look there.
    """
    found = _sealed(campaign, watch) or survey(campaign, watch)
    watch.stage("Looking at disk and devices")
    _disk(found, campaign)
    _device(found)
    return found


def _sealed(campaign: Campaign, watch: Watch) -> Survey | None:
    """Return what stands in the way of running a sealed campaign; None while it is a draft."""
    found = Survey(source=Source("", "the sealed protocol"))
    try:
        if campaign.sealed_hash() is None:
            return None  # a seal that was cut off is none: the draft decides
        found.manifest = campaign.manifest
    except GpucostError as error:
        found.add("seal", error)
        return found
    found.protocol = found.manifest.protocol
    for difference in differences(campaign, watch):
        found.add("seal", difference)
    for name in found.manifest.json["corpora"]:
        found.corpora[name] = sealed_corpus(campaign, found.manifest, name, watch)
    tuning = found.manifest.json["tuning"]
    found.tuning = tuning if tuning.get("sha256") else None
    try:
        found.task = create(found.protocol.task)
        found.model_facts = model_facts.read(model_folder(campaign))
    except GpucostError:
        return found  # among the differences
    return found


def _disk(found: Survey, campaign: Campaign) -> None:
    writable, why = is_writable(campaign.folder)
    if writable:
        look_at_room(found, campaign)
    else:
        problem = Problem("disk", clean(why), "Choose a folder where you may write")
        found.problems.append(problem)


def look_at_room(found: Survey, campaign: Campaign) -> None:
    """Add a problem where the disk has no room for the predictions of all open slots."""
    free, why = free_bytes(campaign.folder)
    if free is None:
        found.problems.append(Problem("disk", clean(why), "Check the disk", blocking=False))
        return
    needed = needed_bytes(found, campaign)
    if free < needed:
        found.problems.append(
            Problem(
                "disk",
                "predictions of all open slots, journal, tables and logs need about "
                f"{size(needed)}, {size(free)} are free",
                "Make space, or move the campaign to a larger disk",
            )
        )


def needed_bytes(found: Survey, campaign: Campaign) -> int:
    """Return about how many bytes the predictions of all open slots, and what stands beside them,
    will take."""
    facts = found.model_facts
    if found.protocol is None or found.task is None or facts is None:
        return _BASE_BYTES
    state = State() if found.manifest is None else fold(campaign.events())
    each = found.task.prediction_bytes(labels=len(facts.labels or ()), width=facts.hidden_size or 0)
    entries = {name: one.entries for name, one in found.corpora.items()}
    if found.manifest is not None:
        entries = {name: one["entries"] for name, one in found.manifest.json["corpora"].items()}
    slots = state.open_slots(found.protocol)
    return _BASE_BYTES + each * sum(entries.get(slot.deliverable, 0) for slot in slots)


def _device(found: Survey) -> None:
    if found.protocol is None or found.source is None:
        return
    asked: list[tuple[tuple[str, ...], str]] = [(("execution",), found.protocol.execution.device)]
    for name, changes in found.protocol.variants.items():
        asked.append((("variants", name), str(changes.get("device", ""))))
    gpus = [table for table, device in asked if device.startswith("cuda")]
    if not gpus:
        return
    driver = find_driver()
    try:
        if driver.devices():
            return
    finally:
        driver.close()
    found.problems.append(
        Problem(
            found.source.where(*gpus[0], "device"),
            "a GPU is asked for, and this machine shows none",
            "Sealing works here; run on the machine that has it",
            blocking=False,
        )
    )
