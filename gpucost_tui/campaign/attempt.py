"""What an attempt is from the start: its job for the engine, and its row's fixed columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.slots import Slot
from gpucost_tui.engine.contract import Job, Outcome


def job_of(
    campaign: Campaign, manifest: Manifest, slot: Slot, number: int, folder: Path, model: Path
) -> Job:
    """Return the job that fills a slot. Paths are absolute: the engine knows no campaign."""
    protocol = manifest.protocol
    return Job(
        attempt=number,
        corpus=str(campaign.corpus_file(slot.deliverable).resolve()),
        entries=manifest.corpus(slot.deliverable)["entries"],
        model=str(model.resolve()),
        model_sha256=manifest.model_sha256,
        task=protocol.task,
        execution=protocol.settings(slot.variant).model_dump(mode="json"),
        warmup=protocol.warmup.model_dump(mode="json"),
        cache=protocol.measurement.cache,
        seed=slot.seed,
        timed=slot.round > 0,
        predictions=str((folder / "predictions.parquet").resolve()),
        allow_remote_code=protocol.model.allow_remote_code,
        allow_pickle=protocol.model.allow_pickle,
    )


def static_row(manifest: Manifest, slot: Slot, host: str) -> dict[str, Any]:
    """Return the raw-table columns that are known before the attempt begins (R19)."""
    protocol = manifest.protocol
    settings = protocol.settings(slot.variant)
    revision = manifest.json["model"].get("revision")
    return {
        "campaign": protocol.name,
        "manifest": manifest.sha256,
        "host": host,
        "series": " | ".join(protocol.series_of(slot.variant)),
        "variant": slot.variant,
        "round": slot.round,
        "position": slot.position,
        "deliverable": slot.deliverable,
        "seed": slot.seed,
        "corpus_sha256": manifest.corpus(slot.deliverable)["sha256"],
        "expected_ids": manifest.corpus(slot.deliverable)["entries"],
        "model": f"{manifest.model_name}@{revision}" if revision else manifest.model_name,
        "model_sha256": manifest.model_sha256,
        "batch_size": settings.batch_size,
        "dtype_requested": settings.dtype,
        "attention_requested": settings.attention,
        "padding": f"{settings.padding}, {settings.padding_side}",
        "max_length": settings.max_length,
        "grouping": settings.grouping,
        "process_policy": protocol.measurement.process,
        "cache_policy": protocol.measurement.cache,
        "quality_metric": protocol.quality.metric,
    }


def complete(
    campaign: Campaign, slot: Slot, number: int, framework: dict[str, Any], outcome: Outcome
) -> None:
    """Add what the engine can't know of an attempt: its GPU, its configuration, R14's first phases.

    Installation happened before any attempt and is a task of the window; a download is the first
    attempt's when `gpucost new` made one.
    """
    row, missing = outcome.row, outcome.missing
    device = row.get("device")
    row["gpu"] = _gpu(device, framework)
    if device is not None:
        row["configuration"] = f"{slot.variant} on {row['gpu'] or 'CPU'}"
    missing.setdefault("gpu", "no GPU was used" if device else "the device is not known")
    missing.setdefault("configuration", "the device is not known")
    missing.setdefault("install_s", "before the campaign: a task of the window, not of an attempt")
    downloaded = campaign.sources().get("model", {}).get("download_s")
    if number == 1 and downloaded is not None:
        row["download_s"] = downloaded
    else:
        missing.setdefault("download_s", "nothing was downloaded for this attempt")


def _gpu(device: str | None, framework: dict[str, Any]) -> str | None:
    kind, _, index = (device or "").partition(":")
    if kind != "cuda":
        return None
    names = {entry["index"]: entry["name"] for entry in framework.get("devices", ())}
    name = names.get(int(index or 0))
    return None if name is None else str(name)
