"""Holds all that was sealed against its fingerprints: manifest, corpora, reference, model (R8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.fingerprints import columns_sha256, strata_sha256, tuning_facts
from gpucost_tui.campaign.fold import State
from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.manifest import same_protocol
from gpucost_tui.corpus.answers import answers_frame, read_answers
from gpucost_tui.corpus.fingerprint import Fingerprint, answers_fingerprint
from gpucost_tui.corpus.read import read_entries
from gpucost_tui.corpus.store import sealed_frame
from gpucost_tui.dossier.findings import Findings, leaf_differences
from gpucost_tui.errors import Differs, GpucostError, InputError
from gpucost_tui.files import canonical_json
from gpucost_tui.models.fingerprint import ModelFile, fingerprint, verify_unchanged
from gpucost_tui.models.hub import parse
from gpucost_tui.models.source import resolve
from gpucost_tui.text import clean

#: Beside a corpus that a dossier refers to instead of holding it.
ELSEWHERE = ".elsewhere.json"


def check_manifest(campaign: Campaign, state: State, findings: Findings) -> Manifest | None:
    """Hold the manifest against the journal's ``sealed`` line; None where none can be read."""
    where = "manifest.json"
    if not campaign.manifest_file.is_file():
        findings.differs(where, f"the manifest {state.manifest or 'that was sealed'}", "no file")
        return None
    data = campaign.manifest_file.read_bytes()
    try:
        manifest = Manifest(data)
    except Differs as error:
        findings.differs(where, f"the manifest {state.manifest}", error.what)
        return None
    findings.checked["inputs"] += 1
    if state.manifest is None:
        findings.differs("journal.jsonl", "a line 'sealed' with the manifest's hash", "none")
    elif state.manifest != manifest.sha256:
        findings.differs(where, state.manifest, manifest.sha256)
    if canonical_json(manifest.json) != data:
        findings.differs(where, "canonical JSON", "another spelling")
    return manifest


def check_inputs(campaign: Campaign, manifest: Manifest, findings: Findings) -> frozenset[str]:
    """Check all that the manifest has a fingerprint of.

    Returns:
        Deliverables whose corpus and strata are at hand, so that verdicts can be recomputed.
    """
    _protocol(campaign, manifest, findings)
    at_hand = set()
    for deliverable in (d.name for d in manifest.protocol.deliverables):
        sealed = manifest.json["corpora"].get(deliverable)
        if sealed is None:
            findings.differs("manifest.json, corpora", f"deliverable {deliverable}", "absent")
            continue
        corpus = _corpus(campaign, deliverable, sealed, findings)
        strata = _strata(campaign, deliverable, sealed, findings)
        _reference(campaign, deliverable, sealed, findings)
        if corpus and strata:
            at_hand.add(deliverable)
    _tuning(campaign, manifest, findings)
    _model(campaign, manifest, findings)
    return frozenset(at_hand)


def _protocol(campaign: Campaign, manifest: Manifest, findings: Findings) -> None:
    if not campaign.protocol_file.exists():
        return  # the manifest has it all; the editable file is for people
    findings.checked["inputs"] += 1
    with _readable(findings, "protocol.toml", "the protocol that was sealed"):
        _, protocol = campaign.draft()
        if not same_protocol(protocol, manifest.json["protocol"]):
            place = _first_difference(protocol.model_dump(mode="json"), manifest.json["protocol"])
            findings.differs(f"protocol.toml{place[0]}", place[1], place[2])


def _first_difference(found: dict[str, Any], sealed: dict[str, Any]) -> tuple[str, Any, Any]:
    for place, expected, there in leaf_differences("", sealed, found):
        if place not in (", model, source",) and not place.startswith(", task"):
            return place, expected, there
    return "", "the protocol that was sealed", "another one"


def _corpus(
    campaign: Campaign, deliverable: str, sealed: dict[str, Any], findings: Findings
) -> bool:
    path = campaign.corpus_file(deliverable)
    where = f"corpus/{path.name}"
    expected = f"{sealed['entries']} entries with SHA-256 {sealed['sha256']}"
    if not path.is_file():
        if path.is_symlink() or path.with_name(path.name + ELSEWHERE).is_file():
            findings.cannot(
                f"{where}: the corpus is referred to and not here (SHA-256 {sealed['sha256']}): "
                "its fingerprint, and identifiers and quality held against it"
            )
        else:
            findings.differs(where, expected, "no file")
        return False
    with _readable(findings, where, expected) as reading:
        print_, entries = Fingerprint(), 0
        for entry in read_entries([path]):
            print_.update(entry.id, entry.text)
            entries += 1
        findings.checked["inputs"] += 1
        if print_.hexdigest() != sealed["sha256"] or entries != sealed["entries"]:
            findings.differs(where, expected, f"{entries} entries with {print_.hexdigest()}")
        names = list(sealed["columns"])
        prints = columns_sha256(sealed_frame(path, columns=["id", *names]), names)
        findings.compare(f"{where}, column", sealed["columns"], prints)
    return reading.whole


def _strata(
    campaign: Campaign, deliverable: str, sealed: dict[str, Any], findings: Findings
) -> bool:
    path = campaign.strata_file(deliverable)
    where = f"corpus/{path.name}"
    with _readable(findings, where, f"the strata {sealed['strata_sha256']}") as reading:
        found = strata_sha256(pl.read_parquet(path))
        findings.checked["inputs"] += 1
        if found != sealed["strata_sha256"]:
            findings.differs(where, sealed["strata_sha256"], found)
    return reading.whole


def _reference(
    campaign: Campaign, deliverable: str, sealed: dict[str, Any], findings: Findings
) -> None:
    expected = sealed["reference"].get("sha256")
    if expected is None:
        return  # a variant's own pass is the reference: checked with the attempts
    path = campaign.reference_file(deliverable)
    where = f"reference/{path.name}"
    with _readable(findings, where, f"answers with SHA-256 {expected}"):
        answers = answers_frame(read_answers([path]))
        found = answers_fingerprint(answers.select("id", "answer").iter_rows())
        findings.checked["inputs"] += 1
        if found != expected:
            findings.differs(where, f"answers with SHA-256 {expected}", found)


def _tuning(campaign: Campaign, manifest: Manifest, findings: Findings) -> None:
    expected = manifest.json["tuning"].get("sha256")
    if expected is None:
        return
    where = "tuning/tuning.jsonl"
    if not campaign.tuning_file.is_file():
        findings.cannot(f"{where}: the tuning data are not here (SHA-256 {expected})")
        return
    with _readable(findings, where, expected):
        found = tuning_facts(campaign.tuning_file)["sha256"]
        findings.checked["inputs"] += 1
        if found != expected:
            findings.differs(where, expected, found)


def _model(campaign: Campaign, manifest: Manifest, findings: Findings) -> None:
    """Hold the model's files against the manifest, where they are on this machine."""
    sha256 = manifest.model_sha256
    files = [ModelFile(**entry) for entry in manifest.json["model"]["files"]]
    if fingerprint(files) != sha256:
        findings.differs("manifest.json, model", sha256, fingerprint(files))
    folder = _model_here(campaign, manifest)
    if folder is None:
        findings.cannot(f"model: its files are not on this machine (SHA-256 {sha256})")
        return
    try:
        verify_unchanged(folder, files)
    except GpucostError as error:
        # Another model in that place is a matter of this machine, not of what was recorded.
        findings.cannot(f"model: what lies in its place here is not it (SHA-256 {sha256}): {error}")
    else:
        findings.checked["model_files"] += len(files)


def _model_here(campaign: Campaign, manifest: Manifest) -> Path | None:
    """Return where the model lies on this machine; nothing is downloaded for it."""
    known = campaign.sources().get("model", {}).get("folder")
    if isinstance(known, str) and Path(known).is_dir():
        return Path(known)
    model = manifest.protocol.model
    if model.source != "demo" and (parse(model.source) is None or Path(model.source).exists()):
        return None
    try:
        return resolve(
            model.source,
            allow_remote_code=model.allow_remote_code,
            allow_pickle=model.allow_pickle,
            offline=True,
        ).folder
    except GpucostError:
        return None


@dataclass(slots=True)
class _Reading:
    whole: bool = False


@contextmanager
def _readable(findings: Findings, where: str, expected: object) -> Iterator[_Reading]:
    """Name a sealed file that can't be read as one any more."""
    reading = _Reading()
    try:
        yield reading
        reading.whole = True
    except (InputError, Differs) as error:
        place = f" ({clean(error.where)})" if error.where else ""
        findings.differs(where, expected, f"{error.what}{place}")
    except OSError as error:
        findings.differs(where, expected, clean(error.strerror or error, limit=120))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        found = clean(next(iter(str(error).splitlines()), type(error).__name__), limit=120)
        findings.differs(where, expected, f"it can't be read: {found}")


def read_json(path: Path, where: str, expected: str, findings: Findings) -> Any:
    """Return a file's JSON value, or None after naming what is wrong with it."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        findings.differs(where, expected, "no file")
    except (OSError, ValueError, RecursionError) as error:
        findings.differs(where, expected, f"unreadable ({clean(error, limit=80)})")
    return None
