"""Sealing: the protocol and the fingerprints of all inputs become the manifest (R1, R8).

The manifest is canonical JSON without path, time or machine, so its SHA-256 is the same wherever
the same protocol, corpora, reference and model are sealed.

Format history:

* 1 (2026-11-30): first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.journal import Journal, trusted
from gpucost_tui.campaign.lock import RunnerLock
from gpucost_tui.campaign.survey import (
    CorpusSurvey,
    Survey,
    answers_sha256,
    strata_sha256,
    survey,
)
from gpucost_tui.corpus.answers import answers_frame, read_answers
from gpucost_tui.corpus.fingerprint import Fingerprint
from gpucost_tui.corpus.read import read_entries, read_tuning
from gpucost_tui.corpus.store import sealed_frame, spelled
from gpucost_tui.errors import Differs, EnvironmentLacks, GpucostError, Refused
from gpucost_tui.files import canonical_json, replacing, write_atomic
from gpucost_tui.models.fingerprint import ModelFile, verify_unchanged
from gpucost_tui.models.source import resolve
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.text import count

FORMAT = 1


def seal(campaign: Campaign) -> tuple[Manifest, Survey]:
    """Freeze a campaign.

    Raises:
        Refused: It is sealed already, or problems block it; the first is named.
    """
    with RunnerLock(campaign.folder):
        if campaign.sealed and any(e.event == "sealed" for e in campaign.events()):
            raise Refused(
                f"the campaign is sealed already ({campaign.manifest.sha256})",
                where=campaign.folder.name,
                fix="A change makes a new campaign: `gpucost new DIR --from "
                f"{campaign.folder.name}` (R1)",
            )
        found = survey(campaign)
        if found.blocking:
            first = found.blocking[0]
            others = len(found.blocking) - 1
            more = f" ({count(others, 'more problem')}: see `gpucost check`)" if others else ""
            raise Refused(first.what + more, where=first.where, fix=first.fix)
        return _freeze(campaign, found), found


def _freeze(campaign: Campaign, found: Survey) -> Manifest:
    data = canonical_json(manifest_of(found))
    try:
        for one in found.corpora.values():
            _write_derived(campaign, one)
        write_atomic(campaign.manifest_file, data)
    except OSError as error:
        raise EnvironmentLacks(
            f"the seal can't be written ({error.strerror})",
            where=campaign.folder.name,
            fix="Make space or correct the permissions; the campaign is not sealed",
        ) from None
    manifest = Manifest(data)
    Journal(campaign.folder).append(
        "sealed", {"manifest": manifest.sha256, "campaign": manifest.protocol.name}
    )
    return manifest


def _write_derived(campaign: Campaign, one: CorpusSurvey) -> None:
    assert one.strata is not None  # noqa: S101 - no blocking problem, so tokens were counted
    with replacing(campaign.strata_file(one.deliverable)) as scratch:
        one.strata.write_parquet(scratch)
    if one.answers is not None:
        campaign.reference_file(one.deliverable).parent.mkdir(exist_ok=True)
        lines = (
            canonical_json({"id": key, "answer": answer}) + b"\n"
            for key, answer in one.answers.select("id", "answer").iter_rows()
        )
        write_atomic(campaign.reference_file(one.deliverable), b"".join(lines))


def manifest_of(found: Survey) -> dict[str, Any]:
    """Return what is sealed, as JSON values: the protocol and every fingerprint."""
    model, facts = found.model, found.model_facts
    assert found.protocol and model and facts  # noqa: S101 - nothing blocks
    return {
        "format": FORMAT,
        "protocol": sealed_protocol(found.protocol),
        "corpora": {name: _corpus_json(one) for name, one in found.corpora.items()},
        "tuning": found.tuning or {"declared": "none"},
        "model": {
            "name": found.protocol.model.name or model.name,
            "revision": model.revision,
            "sha256": model.sha256,
            "tokenizer_sha256": model.tokenizer_sha256,
            "labels": list(facts.labels) if facts.labels else None,
            "files": [{"path": f.path, "bytes": f.bytes, "sha256": f.sha256} for f in model.files],
        },
    }


def _corpus_json(one: CorpusSurvey) -> dict[str, Any]:
    assert one.strata is not None and one.summary is not None  # noqa: S101 - nothing blocks
    return {
        "entries": one.entries,
        "sha256": one.sha256,
        "order": "as in the corpus",
        "columns": one.columns,
        "reference": one.reference,
        "strata_sha256": strata_sha256(one.strata),
        "strata": {row[0] or "all": row[1] for row in one.summary.iter_rows()},
        "truncated": {str(length): entries for length, entries in one.truncated.items()},
    }


def sealed_protocol(protocol: Protocol) -> dict[str, Any]:
    """Return the protocol's values without what differs by machine: where a model's folder lies."""
    value = protocol.model_dump(mode="json")
    source = value["model"]["source"]
    is_hub_id = source.count("/") == 1 and not source.startswith((".", "/", "~"))
    if source != "demo" and not (is_hub_id and "@" in source):
        value["model"]["source"] = ""
    return value


def ensure_unchanged(campaign: Campaign) -> None:
    """Make sure that everything sealed is what it was; every byte is read again.

    Raises:
        Refused: The campaign is not sealed.
        Differs: Names what is not what was sealed.
        EnvironmentLacks: The model is not on this machine.
    """
    manifest = campaign.manifest
    recorded = next((e for e in trusted(campaign.folder).events if e.event == "sealed"), None)
    if recorded is None:
        raise Refused(
            "the seal was not completed", where=campaign.folder.name, fix="`gpucost seal` does it"
        )
    if recorded.data["manifest"] != manifest.sha256:
        raise _differs("manifest.json", "the manifest")
    _protocol_unchanged(campaign, manifest)
    for deliverable in (d.name for d in manifest.protocol.deliverables):
        _corpus_unchanged(campaign, manifest, deliverable)
    _tuning_unchanged(campaign, manifest)
    files = [ModelFile(**entry) for entry in manifest.json["model"]["files"]]
    verify_unchanged(model_folder(campaign), files)


def model_folder(campaign: Campaign) -> Path:
    """Return where the sealed model lies on this machine.

    Raises:
        EnvironmentLacks: It does not.
    """
    known = campaign.sources().get("model", {}).get("folder")
    if known and Path(known).is_dir():
        return Path(known)
    source = campaign.manifest.protocol.model.source
    if source:
        model = campaign.manifest.protocol.model
        return resolve(
            source, allow_remote_code=model.allow_remote_code, allow_pickle=model.allow_pickle
        ).folder
    raise EnvironmentLacks(
        "the sealed model is not where it was"
        + (" on this machine" if known else ": its place is not known here"),
        where="model",
        fix="Say where it is with `gpucost run --model FOLDER`",
    )


def _protocol_unchanged(campaign: Campaign, manifest: Manifest) -> None:
    if not campaign.protocol_file.exists():
        return  # the manifest has it all; the editable file is for people
    try:
        _, protocol = campaign.draft()
        same = canonical_json(sealed_protocol(protocol)) == canonical_json(
            manifest.json["protocol"]
        )
    except GpucostError:
        same = False
    if not same:
        raise _differs("protocol.toml", "the protocol")


def _corpus_unchanged(campaign: Campaign, manifest: Manifest, deliverable: str) -> None:
    sealed = manifest.corpus(deliverable)
    path = campaign.corpus_file(deliverable)
    where = f"corpus/{path.name}"
    print_ = Fingerprint()
    for entry in read_entries([path]):
        print_.update(entry.id, entry.text)
    if print_.hexdigest() != sealed["sha256"]:
        raise _differs(where, "the corpus")
    names = [name for name in sealed["columns"] if name != "id"]
    frame = sealed_frame(path, columns=["id", *names])
    for name, expected in sealed["columns"].items():
        column = Fingerprint()
        for key, value in frame.select("id", name).iter_rows() if name != "id" else ():
            column.update(key, spelled(value) or "")
        if name != "id" and column.hexdigest() != expected:
            raise _differs(where, f"column '{name}' of the corpus")
    strata = pl.read_parquet(campaign.strata_file(deliverable))
    if strata_sha256(strata) != sealed["strata_sha256"]:
        raise _differs(f"corpus/{campaign.strata_file(deliverable).name}", "the strata")
    _reference_unchanged(campaign, sealed, deliverable)


def _reference_unchanged(campaign: Campaign, sealed: dict[str, Any], deliverable: str) -> None:
    expected = sealed["reference"].get("sha256")
    if expected is None:
        return
    path = campaign.reference_file(deliverable)
    if answers_sha256(answers_frame(read_answers([path]))) != expected:
        raise _differs(f"reference/{path.name}", "the reference")


def _tuning_unchanged(campaign: Campaign, manifest: Manifest) -> None:
    expected = manifest.json["tuning"].get("sha256")
    if expected is None or not campaign.tuning_file.exists():
        return  # the overlap was checked at the seal; nothing later reads this file
    print_ = Fingerprint()
    for row in read_tuning([campaign.tuning_file]):
        print_.update(row.id or "", row.text)
    if print_.hexdigest() != expected:
        raise _differs("tuning/tuning.jsonl", "the tuning data")


def _differs(where: str, what: str) -> Differs:
    return Differs(
        f"{what} is not what was sealed (R1)",
        where=where,
        fix="Restore it, or make a new campaign with `gpucost new DIR --from …`",
    )
