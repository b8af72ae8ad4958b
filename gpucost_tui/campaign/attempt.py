"""What an attempt is from the start: its job for the engine, and its row's fixed columns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.slots import Slot
from gpucost_tui.engine.contract import Job, Outcome
from gpucost_tui.errors import EnvironmentLacks, Refused, WrongUse
from gpucost_tui.protocol.execution import DEVICE, requested_columns
from gpucost_tui.text import clean, listed


def job_of(
    campaign: Campaign,
    manifest: Manifest,
    slot: Slot,
    number: int,
    folder: Path,
    model: Path,
    device: str | None = None,
) -> Job:
    """Return the job that fills a slot. Paths are absolute: the engine knows no campaign.

    ``device`` says which one of this machine's is meant where the seal leaves it open (auto).
    """
    protocol = manifest.protocol
    execution = protocol.settings(slot.variant).model_dump(mode="json")
    if device is not None:
        execution["device"] = device
    return Job(
        attempt=number,
        corpus=str(campaign.corpus_file(slot.deliverable).resolve()),
        entries=manifest.corpus(slot.deliverable)["entries"],
        model=str(model.resolve()),
        model_sha256=manifest.model_sha256,
        task=protocol.task,
        execution=execution,
        warmup=protocol.warmup.model_dump(mode="json"),
        cache=protocol.measurement.cache,
        seed=slot.seed,
        timed=slot.round > 0,
        predictions=str((folder / "predictions.parquet").resolve()),
        allow_remote_code=protocol.model.allow_remote_code,
        allow_pickle=protocol.model.allow_pickle,
    )


def static_row(
    manifest: Manifest,
    slot: Slot,
    host: str,
    framework: dict[str, Any],
    device: str | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the raw-table columns that are known before the attempt begins (R19).

    GPU and configuration are the planned ones, so that an attempt whose process dies belongs to a
    configuration too; :func:`complete` puts the used ones in their place. The second part says why
    some columns are empty.
    """
    protocol = manifest.protocol
    settings = protocol.settings(slot.variant)
    revision = manifest.json["model"].get("revision")
    series = " | ".join(protocol.series_of(slot.variant))
    gpu = _gpu(_planned(device or settings.device, framework), framework)
    row = {
        "campaign": protocol.name,
        "configuration": _configuration(slot, gpu),
        "gpu": gpu,
        "manifest": manifest.sha256,
        "host": host,
        "series": series or None,
        "variant": slot.variant,
        "round": slot.round,
        "position": slot.position,
        "deliverable": slot.deliverable,
        "seed": slot.seed,
        "corpus_sha256": manifest.corpus(slot.deliverable)["sha256"],
        "expected_ids": manifest.corpus(slot.deliverable)["entries"],
        "model": f"{manifest.model_name}@{revision}" if revision else manifest.model_name,
        "model_sha256": manifest.model_sha256,
        **requested_columns(settings),
        "process_policy": protocol.measurement.process,
        "cache_policy": protocol.measurement.cache,
        "quality_metric": protocol.quality.metric,
    }
    missing = {
        "install_s": "before the campaign: a task of the window, not of an attempt",
        "download_s": "no download is recorded for this attempt",
    }
    if not series:
        missing["series"] = "the variant stands in no series"
    if settings.token_budget:
        missing["batch_size"] = f"batches by a token budget of {settings.token_budget:,}"
    if gpu is None:
        missing["gpu"] = "no GPU was used"
    return row, missing


def check_device(manifest: Manifest, device: str | None) -> None:
    """Refuse a device that is none, or where the seal says another.

    Raises:
        WrongUse: It is no name of a device.
        Refused: A variant is sealed for another one.
    """
    if device is None:
        return
    if not re.fullmatch(DEVICE, device) or device == "auto":
        raise WrongUse(f"'{clean(device, limit=40)}' is no device", fix="Write cpu, cuda or cuda:N")
    for variant in manifest.protocol.order():
        sealed = manifest.protocol.settings(variant).device
        if sealed not in ("auto", device):
            raise Refused(
                f"variant '{variant}' is sealed for {sealed}, {device} is asked for (R1)",
                fix="Leave --device out; it chooses where the seal says auto",
            )


def ensure_device(
    manifest: Manifest, slot: Slot, framework: dict[str, Any], device: str | None
) -> None:
    """Make sure that a device is there before a slot is used up on it.

    Raises:
        EnvironmentLacks: The measuring process sees no such device.
    """
    wanted = device or manifest.protocol.settings(slot.variant).device
    there = framework.get("devices")
    if not wanted.startswith("cuda") or there is None:
        return
    index = int(wanted.partition(":")[2] or 0)
    if index >= len(there):
        seen = listed([f"cuda:{i} {d.get('name', '')}".strip() for i, d in enumerate(there)])
        raise EnvironmentLacks(
            f"variant '{slot.variant}' needs {wanted}; torch sees {seen or 'no GPU'} here",
            fix="Run on the machine that has it; `gpucost env` shows what is installed",
        )


def complete(
    campaign: Campaign, slot: Slot, number: int, framework: dict[str, Any], outcome: Outcome
) -> None:
    """Add what the engine can't know of an attempt: its GPU, its configuration, R14's first phases.

    Installation happened before any attempt and is a task of the window; a download is the first
    attempt's when `gpucost new` made one.
    """
    row, missing = outcome.row, outcome.missing
    if (device := row.get("device")) is not None:
        row["gpu"] = _gpu(device, framework)
        row["configuration"] = _configuration(slot, row["gpu"])
        if row["gpu"] is None:
            missing.setdefault("gpu", "no GPU was used")
    downloaded = campaign.sources().get("model", {}).get("download_s")
    if number == 1 and downloaded is not None:
        row["download_s"] = downloaded


def _configuration(slot: Slot, gpu: str | None) -> str:
    return f"{slot.variant} on {gpu or 'CPU'}"


def _planned(requested: str, framework: dict[str, Any]) -> str:
    if requested == "auto":
        return "cuda:0" if framework.get("devices") else "cpu"
    return requested


def _gpu(device: str, framework: dict[str, Any]) -> str | None:
    kind, _, index = device.partition(":")
    if kind != "cuda":
        return None
    devices = enumerate(framework.get("devices") or ())
    names = {entry.get("index", place): entry["name"] for place, entry in devices}
    name = names.get(int(index or 0))
    return None if name is None else str(name)
