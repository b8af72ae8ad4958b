"""`check --try`: the longest batch of each variant, for its memory and never for a duration (R1).

The batch is one that the pass will really have. It runs in a measuring child of its own, over a
scratch corpus of its entries alone; nothing is written into the campaign. What fails here is told
and blocks nothing: a variant that runs out of memory may still be sealed, and keeps its row (R21).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.logs import BoundedLog
from gpucost_tui.campaign.measurer import ChildMeasurer
from gpucost_tui.campaign.private import Private
from gpucost_tui.campaign.survey import Survey
from gpucost_tui.campaign.unchanged import model_folder
from gpucost_tui.engine.batching import Batching
from gpucost_tui.engine.contract import Job, Outcome
from gpucost_tui.engine.reading import selected
from gpucost_tui.engine.warmup import traversal
from gpucost_tui.protocol.execution import Execution
from gpucost_tui.protocol.model import Protocol

MEMORY = (
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "peak_device_used_bytes",
    "peak_rss_bytes",
)


@dataclass(slots=True)
class Tried:
    """What one batch of one variant showed; memory in bytes, None with a reason in ``missing``."""

    variant: str
    deliverable: str
    entries: int
    padded_length: int
    status: str
    failure: str | None
    error: str | None
    device: str | None
    memory: dict[str, int | None]
    missing: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        values = asdict(self)
        return {**values, **values.pop("memory")}


def longest_batch(lengths: np.ndarray, execution: Execution) -> tuple[np.ndarray, int]:
    """Return the batch with the most tokens, padding included: positions of its entries (0-based)
    in the corpus's order, and its padded length.

    Args:
        lengths: Tokens of each entry, in the corpus's order, at least one entry.
        execution: The variant's settings.
    """
    kept = np.minimum(lengths, execution.max_length)
    order = traversal(kept, execution.grouping)
    rule = Batching.of(execution)
    inside = kept[order]
    starts = rule.starts(inside.tolist())
    ends = np.append(starts[1:], len(order))
    widths = np.array([rule.width(int(n)) for n in np.maximum.reduceat(inside, starts)])
    at = int(np.argmax(widths * (ends - starts)))
    return np.sort(order[starts[at] : ends[at]]), int(widths[at])


def try_batches(
    campaign: Campaign,
    found: Survey,
    said: Callable[[str], None] = lambda sentence: None,
) -> Iterator[Tried]:
    """Run the longest batch of every variant and deliverable; yield what each showed.

    Args:
        campaign: A draft or a sealed campaign.
        found: Its survey, without blocking problems.
        said: Told which batch is tried.

    Raises:
        EnvironmentLacks: The measuring process can't start, or the model is not here.
    """
    protocol = found.protocol
    assert protocol is not None  # noqa: S101 - nothing blocks
    model = found.model.folder if found.model is not None else model_folder(campaign)
    with tempfile.TemporaryDirectory(prefix="gpucost-try-") as name:
        scratch = Path(name)
        hide = Private(campaign.folder).hide
        measurer = ChildMeasurer(BoundedLog(scratch / "child.log", hide))
        try:
            for deliverable in protocol.deliverables:
                lengths = _lengths(campaign, found, deliverable.name)
                for variant in protocol.order():
                    said(f"trying the longest batch of {variant} over {deliverable.name}")
                    yield _one(
                        campaign, protocol, variant, deliverable.name, lengths, model, scratch,
                        measurer, hide,
                    )  # fmt: skip
        finally:
            measurer.close()


def _lengths(campaign: Campaign, found: Survey, deliverable: str) -> np.ndarray:
    one = found.corpora.get(deliverable)
    strata = one.strata if one is not None else None
    if strata is None:
        strata = pl.read_parquet(campaign.strata_file(deliverable))
    return strata["tokens"].to_numpy()


def batch_job(
    campaign: Campaign,
    protocol: Protocol,
    variant: str,
    deliverable: str,
    lengths: np.ndarray,
    model: Path,
    scratch: Path,
) -> tuple[Job, int]:
    """Return an untimed job over a variant's longest batch alone, and its padded length.

    The batch's texts are written into ``scratch``.
    """
    execution = protocol.settings(variant)
    chosen, width = longest_batch(lengths, execution)
    corpus = scratch / "batch.jsonl"
    texts = selected(str(campaign.corpus_file(deliverable)), chosen.tolist())
    rows = ({"id": str(position), "text": texts[int(position)]} for position in chosen)
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    job = Job(
        attempt=0,
        corpus=str(corpus),
        entries=len(chosen),
        model=str(model.resolve()),
        model_sha256=str(model),
        task=protocol.task,
        execution=execution.model_dump(mode="json"),
        warmup={"inputs": "first-batch", "passes": 1},
        cache="keep",
        seed=protocol.reproduction.seeds[0],
        timed=False,
        predictions=str(scratch / "predictions.parquet"),
        allow_remote_code=protocol.model.allow_remote_code,
        allow_pickle=protocol.model.allow_pickle,
    )
    return job, width


def _one(
    campaign: Campaign,
    protocol: Protocol,
    variant: str,
    deliverable: str,
    lengths: np.ndarray,
    model: Path,
    scratch: Path,
    measurer: ChildMeasurer,
    hide: Callable[[str], str],
) -> Tried:
    job, width = batch_job(campaign, protocol, variant, deliverable, lengths, model, scratch)
    measurer.start(lambda message: None)
    return _told(variant, deliverable, job.entries, width, measurer.run(job, _no_wish), hide)


def _no_wish(message: dict[str, Any] | None) -> None:
    """Nobody asks a trial to stop but the terminal's own ctrl+c."""


def _told(
    variant: str,
    deliverable: str,
    entries: int,
    width: int,
    outcome: Outcome,
    hide: Callable[[str], str],
) -> Tried:
    memory = {name: outcome.row.get(name) for name in MEMORY}
    otherwise = outcome.missing.get("*", "not measured")
    return Tried(
        variant=variant,
        deliverable=deliverable,
        entries=entries,
        padded_length=width,
        status=outcome.status,
        failure=outcome.failure,
        error=hide(outcome.error) if outcome.error else None,
        device=outcome.row.get("device"),
        memory=memory,
        missing={
            name: outcome.missing.get(name, otherwise)
            for name, value in memory.items()
            if value is None
        },
    )
