"""Times single operations of one variant in a process of its own, apart from any pass (R17)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.private import Private
from gpucost_tui.campaign.trying import batch_job
from gpucost_tui.campaign.unchanged import ensure_unchanged, model_folder
from gpucost_tui.errors import EnvironmentLacks, WrongUse
from gpucost_tui.text import clean, listed

#: Seconds after which the timing process is taken for hung.
_PATIENCE_S = 900.0


def operate(
    campaign: Campaign,
    *,
    variant: str | None = None,
    deliverable: str | None = None,
    said: Callable[[str], None] = lambda sentence: None,
) -> dict[str, Any]:
    """Time the operations of a variant's longest batch.

    Args:
        campaign: A sealed campaign: no duration is seen before the seal (R1).
        variant: Name; the first of the protocol without it.
        deliverable: Name; the first without it.
        said: Told before the model is loaded, which takes seconds.

    Returns:
        ``variant``, ``deliverable``, ``entries``, ``padded_length``, ``operations``.

    Raises:
        Refused: The campaign is not sealed.
        WrongUse: There is no such variant or deliverable.
        Differs: Something is not what was sealed.
        EnvironmentLacks: The model or the device is not here, or the process failed.
    """
    ensure_unchanged(campaign)
    protocol = campaign.manifest.protocol
    chosen = _named("variant", variant, list(protocol.order()))
    corpus = _named("deliverable", deliverable, [d.name for d in protocol.deliverables])
    lengths = pl.read_parquet(campaign.strata_file(corpus))["tokens"].to_numpy()
    said("loading the model in a process of its own …")
    with tempfile.TemporaryDirectory(prefix="gpucost-op-") as name:
        scratch = Path(name)
        model = model_folder(campaign)
        job, width = batch_job(campaign, protocol, chosen, corpus, lengths, model, scratch)
        answer = _ask(json.dumps(job.to_json()), scratch / "answer.json")
    if "error" in answer:
        hide = Private(campaign.folder).hide
        raise EnvironmentLacks(
            f"the operations could not be timed ({answer['failure']}: {hide(answer['error'])})",
            where=f"variant {chosen}",
            fix="`gpucost check DIR --try` shows whether its batches run here",
        )
    facts = {"variant": chosen, "deliverable": corpus}
    return {**facts, "entries": job.entries, "padded_length": width, **answer}


def _named(what: str, wanted: str | None, there: list[str]) -> str:
    if wanted is None:
        return there[0]
    if wanted not in there:
        raise WrongUse(
            f"there is no {what} '{clean(wanted, limit=60)}'", fix=f"There are: {listed(there)}"
        )
    return wanted


def _ask(job: str, result: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "gpucost_tui.engine.operations", str(result)]
    try:
        done = subprocess.run(
            command,
            input=job,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {_PATIENCE_S:g} s", "failure": "killed"}
    except OSError as error:
        return {"error": str(error.strerror), "failure": "error"}
    try:
        answer: dict[str, Any] = json.loads(result.read_text("utf-8"))
    except (OSError, ValueError):
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"status {done.returncode}: {last[:200]}", "failure": "killed"}
    return answer
