"""Is everything that was sealed still what it was? (R1)"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from gpucost_tui.campaign.fingerprints import columns_sha256, strata_sha256, tuning_facts
from gpucost_tui.campaign.folder import Campaign, Manifest
from gpucost_tui.campaign.manifest import same_protocol
from gpucost_tui.corpus.answers import answers_frame, read_answers
from gpucost_tui.corpus.fingerprint import Fingerprint, answers_fingerprint
from gpucost_tui.corpus.read import read_entries
from gpucost_tui.corpus.store import sealed_frame
from gpucost_tui.errors import Differs, EnvironmentLacks, GpucostError, InputError, Refused
from gpucost_tui.models.fingerprint import ModelFile, Seen, verify_unchanged
from gpucost_tui.models.source import resolve
from gpucost_tui.text import clean
from gpucost_tui.watch import NOBODY, Watch

_FIX = "Restore it, or make a new campaign with `gpucost new DIR --from …`"


def ensure_unchanged(campaign: Campaign, *, every_byte: bool = False) -> None:
    """Make sure that everything sealed is what it was.

    Args:
        campaign: A campaign.
        every_byte: Read the model's files whole. Otherwise a file that an earlier call on this
            machine found unchanged is taken for unchanged while its size and modification time
            are the same: gigabytes of weights are not read again at every run.

    Raises:
        Refused: The campaign is not sealed.
        Differs: Names what is not what was sealed.
        EnvironmentLacks: The model is not on this machine.
    """
    manifest = sealed_manifest(campaign)
    for step in _steps(campaign, manifest, every_byte, NOBODY):
        step()


def differences(campaign: Campaign, watch: Watch = NOBODY) -> list[GpucostError]:
    """Return everything that is not what was sealed, each an error; every byte is read."""
    try:
        manifest = sealed_manifest(campaign)
    except GpucostError as error:
        return [error]
    found: list[GpucostError] = []
    for step in _steps(campaign, manifest, every_byte=True, watch=watch):
        try:
            step()
        except GpucostError as error:
            found.append(error)
    return found


def sealed_manifest(campaign: Campaign) -> Manifest:
    """Return the manifest that the journal recorded at the seal.

    Raises:
        Refused: The campaign is not sealed, or the seal was cut off.
        Differs: The manifest or the journal is not what was written.
    """
    manifest = campaign.manifest
    recorded = campaign.sealed_hash()
    if recorded is None:
        raise Refused(
            "the seal was cut off before it was complete",
            where=campaign.folder.name,
            fix="`gpucost seal` does it again",
        )
    if recorded != manifest.sha256:
        raise _differs("manifest.json", "the manifest")
    return manifest


def _steps(
    campaign: Campaign, manifest: Manifest, every_byte: bool, watch: Watch
) -> Iterator[Callable[[], None]]:
    yield lambda: _protocol_unchanged(campaign, manifest)
    for deliverable in (d.name for d in manifest.protocol.deliverables):
        for one in (_corpus_unchanged, _strata_unchanged, _reference_unchanged):
            yield partial(one, campaign, manifest, deliverable, watch)
    yield lambda: _tuning_unchanged(campaign, manifest, watch)
    yield lambda: _model_unchanged(campaign, manifest, every_byte, watch)


# -- protocol, corpora, reference, tuning data -------------------------------------------------


def _protocol_unchanged(campaign: Campaign, manifest: Manifest) -> None:
    if not campaign.protocol_file.exists():
        return  # the manifest has it all; the editable file is for people
    with _as_difference(Path("protocol.toml"), "protocol.toml", "the protocol"):
        _, protocol = campaign.draft()
        if not same_protocol(protocol, manifest.json["protocol"]):
            raise _differs("protocol.toml", "the protocol")


def _corpus_unchanged(
    campaign: Campaign, manifest: Manifest, deliverable: str, watch: Watch
) -> None:
    corpus_unchanged(campaign.corpus_file(deliverable), manifest.corpus(deliverable), watch)


def corpus_unchanged(path: Path, sealed: dict[str, Any], watch: Watch = NOBODY) -> None:
    """Hold a corpus file against its entry in the manifest: ids, texts, order, the used columns.

    Raises:
        Differs: Names what differs.
    """
    where = f"corpus/{path.name}"
    entries = sealed["entries"]
    with _as_difference(path, where, "the corpus"):
        print_ = Fingerprint()
        watch.stage(f"Reading corpus '{clean(path.stem)}'", entries)
        for entry in watch.each(read_entries([path])):
            print_.update(entry.id, entry.text)
        if print_.hexdigest() != sealed["sha256"]:
            raise _differs(where, "the corpus")
        names = list(sealed["columns"])
        watch.stage(f"Reading the columns of corpus '{clean(path.stem)}'", entries)
        frame = sealed_frame(path, columns=["id", *names], watch=watch)
        prints = columns_sha256(frame, names, watch)
    for name, expected in sealed["columns"].items():
        if prints[name] != expected:
            raise _differs(where, f"column '{clean(name, limit=60)}' of the corpus")


def _strata_unchanged(
    campaign: Campaign, manifest: Manifest, deliverable: str, watch: Watch
) -> None:
    path = campaign.strata_file(deliverable)
    where = f"corpus/{path.name}"
    entries = manifest.corpus(deliverable)["entries"]
    watch.stage(f"Reading the strata of corpus '{clean(deliverable)}'", entries)
    try:
        found = strata_sha256(pl.read_parquet(path), watch)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = clean(next(iter(str(error).splitlines()), type(error).__name__), limit=120)
        raise _differs(where, "the strata", f"it can't be read ({reason})") from None
    if found != manifest.corpus(deliverable)["strata_sha256"]:
        raise _differs(where, "the strata")


def _reference_unchanged(
    campaign: Campaign, manifest: Manifest, deliverable: str, watch: Watch
) -> None:
    reference_unchanged(campaign.reference_file(deliverable), manifest.corpus(deliverable), watch)


def reference_unchanged(path: Path, sealed: dict[str, Any], watch: Watch = NOBODY) -> None:
    """Hold a file of answers against its corpus's entry in the manifest.

    Raises:
        Differs: It is not what was sealed.
    """
    expected = sealed["reference"].get("sha256")
    if expected is None:
        return  # the reference is a variant
    where = f"reference/{path.name}"
    about = f"the answers for corpus '{clean(path.stem)}'"
    watch.stage(f"Reading {about}", sealed["entries"])
    with _as_difference(path, where, "the reference"):
        answers = answers_frame(watch.each(read_answers([path])))
    watch.stage(f"Comparing {about}", answers.height)
    if answers_fingerprint(watch.each(answers.select("id", "answer").iter_rows())) != expected:
        raise _differs(where, "the reference")


def _tuning_unchanged(campaign: Campaign, manifest: Manifest, watch: Watch) -> None:
    expected = manifest.json["tuning"].get("sha256")
    if expected is None or not campaign.tuning_file.exists():
        return  # the overlap was checked at the seal; nothing later reads this file
    with _as_difference(campaign.tuning_file, "tuning/tuning.jsonl", "the tuning data"):
        if tuning_facts(campaign.tuning_file, watch)["sha256"] != expected:
            raise _differs("tuning/tuning.jsonl", "the tuning data")


# -- the model ---------------------------------------------------------------------------------


def model_folder(campaign: Campaign) -> Path:
    """Return where the sealed model lies on this machine, as far as is known.

    Raises:
        EnvironmentLacks: It does not.
    """
    known = campaign.sources().get("model", {}).get("folder")
    if isinstance(known, str) and Path(known).is_dir():
        return Path(known)
    model = campaign.manifest.protocol.model
    if model.source:
        found = resolve(
            model.source,
            allow_remote_code=model.allow_remote_code,
            allow_pickle=model.allow_pickle,
        )
        return found.folder
    raise EnvironmentLacks(
        "the sealed model is not where it was" if known else "the model's place is not known here",
        where=clean(known, limit=200) if known else "model",
        fix="Say where it is with `gpucost run DIR --model FOLDER`",
    )


def place_model(campaign: Campaign, folder: str | Path) -> None:
    """Take ``folder`` as the place of the sealed model on this machine, once it is found to be it.

    Raises:
        Refused: The campaign is not sealed.
        EnvironmentLacks: There is no such folder.
        Differs: It holds another model; the place known before stays.
    """
    manifest = sealed_manifest(campaign)
    place = Path(folder)
    try:
        there = place.is_dir()
    except OSError:
        there = False
    if not there:
        raise EnvironmentLacks(
            f"there is no folder '{clean(folder, limit=200)}'",
            fix="Name the folder that holds the sealed model",
        )
    _model_in(campaign, manifest, place.resolve(), seen=None)


def _model_unchanged(
    campaign: Campaign, manifest: Manifest, every_byte: bool, watch: Watch
) -> None:
    folder = model_folder(campaign)
    seen = None if every_byte else _seen(campaign, manifest, folder)
    _model_in(campaign, manifest, folder, seen, watch)


def _model_in(
    campaign: Campaign,
    manifest: Manifest,
    folder: Path,
    seen: Seen | None,
    watch: Watch = NOBODY,
) -> None:
    files = [ModelFile(**entry) for entry in manifest.json["model"]["files"]]
    now = verify_unchanged(folder, files, seen, watch)
    if seen == now:
        return
    known = campaign.sources().get("model", {})
    # What a download took belongs to the place that it filled (R14).
    took = known.get("download_s") if known.get("folder") == str(folder) else None
    with contextlib.suppress(OSError):  # a memo: without it the files are read again
        campaign.remember_model(
            folder=str(folder), download_s=took, seen=now, seen_as=manifest.model_sha256
        )


def _seen(campaign: Campaign, manifest: Manifest, folder: Path) -> Seen | None:
    """Return what an earlier call remembered of this folder, for this very model."""
    known = campaign.sources().get("model", {})
    if known.get("folder") != str(folder) or known.get("seen_as") != manifest.model_sha256:
        return None
    try:
        return {str(path): (int(size), int(time)) for path, (size, time) in known["seen"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


# -- sentences ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _as_difference(path: Path, where: str, what: str) -> Iterator[None]:
    """A sealed file that can't be read as one any more differs from what was sealed."""
    try:
        yield
    except InputError as error:
        # The line, without the path of this machine before it.
        within = (error.where or "").partition(clean(path))[2]
        raise _differs(where + within, what, error.what) from None


def _differs(where: str, what: str, why: str | None = None) -> Differs:
    more = f": {why}" if why else ""
    return Differs(f"{what} is not what was sealed (R1){more}", where=where, fix=_FIX)
