"""Makes a campaign's folder from a protocol, corpora and a model; whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import trusted
from gpucost_tui.corpus.answers import read_answers
from gpucost_tui.corpus.read import read_entries, read_tuning
from gpucost_tui.corpus.store import write_sealed
from gpucost_tui.errors import EnvironmentLacks, Refused, WrongUse
from gpucost_tui.files import canonical_json
from gpucost_tui.models.source import resolve
from gpucost_tui.protocol.load import find, parse, read_source
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.text import clean, listed


@dataclass(frozen=True)
class Inputs:
    """What `gpucost new` is given. ``settings`` are dotted keys of the protocol with TOML values."""

    protocol: str | None
    corpus: Sequence[str] = ()
    model: str | None = None
    tuning: Sequence[str] = ()
    reference: Sequence[str] = ()
    parent: Path | None = None
    id_column: str = "id"
    text_column: str = "text"
    answer_column: str = "answer"
    link: bool = False
    settings: Sequence[tuple[str, Any]] = field(default=())


def create(folder: Path, inputs: Inputs) -> Campaign:
    """Make a campaign. The folder appears complete, or not at all.

    Raises:
        WrongUse: The folder is in use, or what is given does not fit together.
        InputError: A file has a located mistake.
        EnvironmentLacks: The model can't be had, or the disk refuses.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise WrongUse(
            f"'{clean(folder, limit=200)}' exists and is not empty", fix="Choose another name"
        )
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        scratch.mkdir(parents=True)
        _fill(scratch, inputs)
        if folder.is_dir():
            folder.rmdir()
        scratch.rename(folder)
    except OSError as error:
        raise EnvironmentLacks(
            f"the campaign can't be written ({error.strerror})",
            where=clean(folder, limit=200),
            fix="Make space or choose a folder where you may write",
        ) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Campaign(folder)


def _fill(scratch: Path, inputs: Inputs) -> None:
    campaign = Campaign(scratch)
    parent = Campaign.open(inputs.parent) if inputs.parent else None
    document, protocol = _protocol(inputs, parent)
    sources: dict[str, Any] = {}
    if parent is not None:
        sources["parent"] = str(parent.folder.resolve())
    model = inputs.model or (protocol.model.source.strip() or None)
    if model is not None:
        sources["model"] = _model(document, model, protocol)
    _corpora(campaign, protocol, inputs, parent)
    _tuning(campaign, document, inputs, parent)
    _references(campaign, document, protocol, inputs, parent)
    campaign.protocol_file.write_text(tomlkit.dumps(document), encoding="utf-8")
    parse(read_source(campaign.protocol_file))
    campaign.sources_file.write_text(json.dumps(sources, indent=1) + "\n", encoding="utf-8")


def _protocol(inputs: Inputs, parent: Campaign | None) -> tuple[Any, Protocol]:
    """Return the protocol as an editable document (comments kept) and as a model."""
    if inputs.protocol is None and parent is None:
        raise WrongUse("no protocol is named", fix="Add --protocol with a template or a file")
    path = find(inputs.protocol) if inputs.protocol else parent.protocol_file  # type: ignore[union-attr]
    source = read_source(path)
    parse(source)
    document: Any = tomlkit.parse(source.text)
    for dotted, value in inputs.settings:
        put(document, dotted, value)
    if parent is not None:
        document["parent"] = {
            "manifest": parent.manifest.sha256,
            "head": trusted(parent.folder).head,
        }
    source.text = tomlkit.dumps(document)
    return document, parse(type(source)(source.text, "protocol.toml"))


def put(document: Any, dotted: str, value: Any) -> None:
    """Set a dotted key (``quality.threshold``, ``deliverables.0.name``) in a TOML document.

    Raises:
        WrongUse: There is no such place.
    """
    *path, key = dotted.split(".")
    node = document
    try:
        for part in path:
            if isinstance(node, list):
                node = node[int(part)]
            else:
                if part not in node:
                    node[part] = tomlkit.table()
                node = node[part]
        node[int(key) if isinstance(node, list) else key] = value
    except (KeyError, IndexError, ValueError, TypeError, TOMLKitError):
        raise WrongUse(
            f"'{clean(dotted, limit=100)}' is no place in the protocol",
            fix="Write it as table.key, such as quality.threshold",
        ) from None


def _model(document: Any, model: str, protocol: Protocol) -> dict[str, Any]:
    found = resolve(
        model,
        allow_remote_code=protocol.model.allow_remote_code,
        allow_pickle=protocol.model.allow_pickle,
    )
    pinned = model
    if found.kind == "hub":
        pinned = f"{found.name}@{found.revision}"
    elif found.kind == "folder":
        pinned = str(found.folder.resolve())
    put(document, "model.source", pinned)
    if protocol.model.name is None:
        put(document, "model.name", found.name)
    return {"folder": str(found.folder.resolve()), "download_s": found.download_s}


def _by_deliverable(given: Sequence[str], protocol: Protocol, word: str) -> dict[str, list[str]]:
    """Sort ``FILE`` and ``DELIVERABLE=FILE`` by deliverable."""
    names = [d.name for d in protocol.deliverables]
    sorted_: dict[str, list[str]] = {}
    for item in given:
        name, equals, path = item.partition("=")
        if equals and name in names:
            sorted_.setdefault(name, []).append(path)
        elif len(names) == 1:
            sorted_.setdefault(names[0], []).append(item)
        else:
            raise WrongUse(
                f"--{word} '{clean(item, limit=100)}' does not say for which deliverable",
                fix=f"Write --{word} NAME=FILE with a name among: {listed(names)}",
            )
    return sorted_


def _corpora(
    campaign: Campaign, protocol: Protocol, inputs: Inputs, parent: Campaign | None
) -> None:
    given = _by_deliverable(inputs.corpus, protocol, "corpus")
    (campaign.folder / "corpus").mkdir()
    for deliverable in (d.name for d in protocol.deliverables):
        target = campaign.corpus_file(deliverable)
        if deliverable in given:
            _corpus(target, given[deliverable], inputs)
        elif parent is not None and parent.corpus_file(deliverable).is_file():
            shutil.copyfile(parent.corpus_file(deliverable), target)
        else:
            raise WrongUse(
                f"deliverable '{deliverable}' has no corpus", fix="Add --corpus with its file"
            )


def _corpus(target: Path, files: list[str], inputs: Inputs) -> None:
    entries = read_entries(files, id_column=inputs.id_column, text_column=inputs.text_column)
    if not inputs.link:
        write_sealed(entries, target)
        return
    # A corpus too large to copy: its fingerprint decides, the file itself stays where it is.
    if len(files) != 1 or not files[0].endswith(".jsonl") or inputs.text_column != "text":
        raise WrongUse(
            "--link takes one uncompressed .jsonl file with the keys id and text",
            fix="Leave --link out to copy, or write the corpus in that form",
        )
    for _ in entries:
        pass  # every entry is read once, so that a mistake shows now
    target.symlink_to(Path(files[0]).resolve())


def _tuning(campaign: Campaign, document: Any, inputs: Inputs, parent: Campaign | None) -> None:
    if not inputs.tuning and parent is not None and parent.tuning_file.is_file():
        campaign.tuning_file.parent.mkdir()
        shutil.copyfile(parent.tuning_file, campaign.tuning_file)
        return
    if not inputs.tuning:
        return
    campaign.tuning_file.parent.mkdir()
    rows = read_tuning(inputs.tuning, id_column=inputs.id_column, text_column=inputs.text_column)
    with campaign.tuning_file.open("wb") as stream:
        for row in rows:
            named = {} if row.id is None else {"id": row.id}
            stream.write(canonical_json({**named, "text": row.text}) + b"\n")
    put(document, "tuning.declared", "files")
    document["tuning"].pop("statement", None)


def _references(
    campaign: Campaign,
    document: Any,
    protocol: Protocol,
    inputs: Inputs,
    parent: Campaign | None,
) -> None:
    given = _by_deliverable(inputs.reference, protocol, "reference")
    if given and protocol.reference.kind == "variant":
        raise Refused(
            "the protocol's reference is a variant, and --reference gives answers",
            fix="Leave --reference out, or set reference.kind to 'answers'",
        )
    (campaign.folder / "reference").mkdir()
    for deliverable in (d.name for d in protocol.deliverables):
        target = campaign.reference_file(deliverable)
        if deliverable in given:
            _answers(target, given[deliverable], inputs)
        elif parent is not None and parent.reference_file(deliverable).is_file():
            shutil.copyfile(parent.reference_file(deliverable), target)
    if given:
        document["reference"].pop("column", None)


def _answers(target: Path, files: list[str], inputs: Inputs) -> None:
    pairs = read_answers(files, id_column=inputs.id_column, answer_column=inputs.answer_column)
    with target.open("wb") as stream:
        for key, answer in pairs:
            stream.write(canonical_json({"id": key, "answer": answer}) + b"\n")


def parse_setting(text: str) -> tuple[str, Any]:
    """Turn ``quality.threshold=0.8`` into a dotted key and a TOML value; bare words are text.

    Raises:
        WrongUse: There is no ``=``.
    """
    key, equals, raw = text.partition("=")
    if not equals or not key.strip():
        raise WrongUse(f"'{clean(text, limit=100)}' is no setting", fix="Write TABLE.KEY=VALUE")
    try:
        return key.strip(), tomlkit.value(raw.strip())
    except (TOMLKitError, ValueError):
        return key.strip(), raw.strip()
