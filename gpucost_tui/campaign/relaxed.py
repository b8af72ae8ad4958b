"""A child relaxes no quality rule over a corpus that its parents have judged (R6, R27)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.errors import GpucostError
from gpucost_tui.protocol.load import Source
from gpucost_tui.protocol.model import Protocol, Quality
from gpucost_tui.protocol.problem import Problem
from gpucost_tui.text import clean, listed

#: A chain of parents longer than this is a circle.
_LONGEST = 100


def relaxations(
    campaign: Campaign, protocol: Protocol, source: Source, corpora: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield what was relaxed after a parent's verdicts on the same corpus were seen.

    A threshold that is chosen then needs a corpus that nobody has judged yet (R6), and a variant
    beyond tolerance does not rejoin by a lower threshold (R27).

    Args:
        campaign: The child's draft; it knows where its parent lies on this machine.
        corpora: Fingerprint of each deliverable's corpus in the child.
    """
    place = source.where("quality")
    child, links = campaign, protocol.parent
    for _ in range(_LONGEST):
        if links is None:
            return
        folder = child.sources().get("parent")
        try:
            parent = Campaign.open(Path(str(folder or "")))
            manifest, state = parent.manifest, fold(parent.events())
            found = manifest.sha256 == links.manifest
        except GpucostError:
            found = False
        if not found:
            what = "a parent is not here: whether its quality rule was relaxed is not known (R27)"
            fix = "Bring the parent's folder to where it was, to have it looked at"
            yield Problem(place, what, fix, blocking=False)
            return
        seen = {corpus["sha256"]: name for name, corpus in manifest.json["corpora"].items()}
        shared = [name for name, print_ in corpora.items() if print_ in seen]
        judged = any(attempt.judged for attempt in state.attempts.values())
        changes = list(_relaxed(manifest.protocol.quality, protocol.quality))
        if shared and judged and changes:
            yield Problem(
                place,
                f"{'; '.join(changes)}, after '{clean(parent.folder.name)}' judged the same corpus "
                f"({listed(shared)}): what is relaxed after the verdicts needs an independent "
                "corpus (R6, R27)",
                "Keep the parent's quality rule, or give documents that no parent has judged with "
                "`gpucost new --from … --corpus FILE`",
            )
            return
        child, links = parent, manifest.protocol.parent


def _relaxed(before: Quality, after: Quality) -> Iterator[str]:
    """Yield in words what the later rule lets pass and the earlier one would not."""
    if after.metric != before.metric:
        yield f"the metric is {after.metric} and was {before.metric}"
    elif after.threshold < before.threshold:
        yield f"the threshold is {after.threshold:g} and was {before.threshold:g}"
    if before.interval == "lower-bound" and after.interval != "lower-bound":
        yield "the threshold is for the metric, and was for the lower end of its interval"
    if before.tolerance is not None:
        if after.tolerance is None:
            yield f"the tolerance of {before.tolerance:g} is gone"
        elif after.tolerance > before.tolerance:
            yield f"the tolerance is {after.tolerance:g} and was {before.tolerance:g}"
    groups = {group.column: group for group in after.subgroups}
    for group in before.subgroups:
        column, now = clean(group.column, limit=60), groups.get(group.column)
        if now is None:
            yield f"the subgroups of '{column}' are gone"
        elif now.threshold < group.threshold:
            yield (
                f"the threshold of subgroups of '{column}' is {now.threshold:g} and was "
                f"{group.threshold:g}"
            )
        elif now.min_entries > group.min_entries:
            yield (
                f"subgroups of '{column}' are judged from {now.min_entries:,} entries on and were "
                f"from {group.min_entries:,}"
            )
