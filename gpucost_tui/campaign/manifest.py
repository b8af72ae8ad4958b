"""What a seal freezes, as JSON values: the protocol and every fingerprint (R1, R8).

No path, no time, nothing of the machine: the same protocol, corpora, reference and model give the
same bytes wherever they are sealed, so their SHA-256 is the campaign's identity.

Format history:

* 1 (2026-11-30): first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gpucost_tui.campaign.fingerprints import strata_sha256
from gpucost_tui.campaign.survey import CorpusSurvey, Survey
from gpucost_tui.errors import GpucostError
from gpucost_tui.files import canonical_json
from gpucost_tui.models.source import ResolvedModel
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.tasks.registry import create

FORMAT = 1

_PINNED = re.compile(r"[^/@\s]+/[^/@\s]+@[0-9a-f]{40}")


def manifest_of(found: Survey) -> dict[str, Any]:
    """Return the manifest's values of a survey without blocking problems."""
    model, facts, protocol = found.model, found.model_facts, found.protocol
    assert protocol and model and facts  # noqa: S101 - nothing blocks
    sealed = protocol_json(protocol)
    sealed["model"]["source"] = sealed_source(model)
    return {
        "format": FORMAT,
        "protocol": sealed,
        "corpora": {name: _corpus_json(one) for name, one in found.corpora.items()},
        "tuning": found.tuning or {"declared": "none"},
        "model": {
            "name": found.model_name,
            "revision": model.revision,
            "sha256": model.sha256,
            "tokenizer_sha256": model.tokenizer_sha256,
            "labels": list(facts.labels) if facts.labels else None,
            "files": [{"path": f.path, "bytes": f.bytes, "sha256": f.sha256} for f in model.files],
        },
    }


def _corpus_json(one: CorpusSurvey) -> dict[str, Any]:
    assert one.strata is not None and one.summary is not None  # noqa: S101 - nothing blocks
    strata = one.summary.select("stratum", "entries").iter_rows()
    return {
        "entries": one.entries,
        "sha256": one.sha256,
        "order": "as in the corpus",
        "columns": one.columns,
        "reference": one.reference,
        "strata_sha256": strata_sha256(one.strata),
        "strata": {name or "all": entries for name, entries in strata},
        "truncated": {str(length): entries for length, entries in one.truncated.items()},
    }


def sealed_source(model: ResolvedModel) -> str:
    """Return a model's source without what differs by machine: where a folder lies."""
    if model.kind == "hub":
        return f"{model.name}@{model.revision}"
    return "demo" if model.kind == "demo" else ""


def protocol_json(protocol: Protocol) -> dict[str, Any]:
    """Return a protocol's values as JSON; a task's options stand there with their defaults."""
    value = protocol.model_dump(mode="json")
    try:
        task = create(protocol.task)
    except GpucostError:
        return value  # an edited protocol: it differs from any that was sealed
    value["task"] = {"name": task.name, **task.options.model_dump(mode="json")}
    return value


def same_protocol(protocol: Protocol, sealed: dict[str, Any]) -> bool:
    """Tell whether an editable protocol still says what was sealed."""
    value = protocol_json(protocol)
    source = value["model"]["source"]
    elsewhere = source == "demo" or (_PINNED.fullmatch(source) and not Path(source).exists())
    if not sealed["model"]["source"] and not elsewhere:
        # Where a folder lies is the machine's affair; the fingerprints of its files decide.
        value["model"]["source"] = ""
    return canonical_json(value) == canonical_json(sealed)
