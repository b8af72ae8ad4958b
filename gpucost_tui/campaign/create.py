"""Makes a campaign's folder from a protocol, corpora and a model; whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.parent import Parent
from gpucost_tui.campaign.place import new_folder
from gpucost_tui.campaign.settings import Document, parse_setting
from gpucost_tui.campaign.survey import default_name
from gpucost_tui.corpus.answers import read_answers
from gpucost_tui.corpus.read import read_entries, read_tuning
from gpucost_tui.corpus.sources import find_sources
from gpucost_tui.corpus.store import read_sealed, write_sealed
from gpucost_tui.errors import EnvironmentLacks, InputError, WrongUse
from gpucost_tui.files import canonical_json
from gpucost_tui.models import facts as model_facts
from gpucost_tui.models.source import ResolvedModel, resolve
from gpucost_tui.protocol.load import Source, find, parse, read_source
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.text import clean, listed

__all__ = ["Inputs", "create", "parse_setting"]


@dataclass(frozen=True)
class Inputs:
    """What `gpucost new` is given; ``settings`` are dotted keys of the protocol and TOML values."""

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
        Refused, Differs: The parent is not sealed, or not what was sealed.
        EnvironmentLacks: The model can't be had, or the disk refuses.
    """
    try:
        with new_folder(folder, last="protocol.toml") as scratch, _named(scratch, folder):
            _Filling(Campaign(scratch), inputs).fill()
    except OSError as error:
        raise EnvironmentLacks(
            f"the campaign can't be made ({error.strerror or error})",
            where=clean(folder, limit=200),
            fix="Make space, or choose a folder where you may write",
        ) from None
    return Campaign(folder)


@contextmanager
def _named(scratch: Path, folder: Path) -> Iterator[None]:
    """Let errors name the files as they will be called, not where they are made."""
    try:
        yield
    except EnvironmentLacks as error:
        if error.where is not None:
            error.where = error.where.replace(clean(scratch), clean(folder))
        raise


class _Filling:
    """One campaign being made. ``document`` is the protocol with its comments, ``protocol`` what
    it says."""

    def __init__(self, campaign: Campaign, inputs: Inputs) -> None:
        self.campaign = campaign
        self.inputs = inputs
        self.parent = Parent(inputs.parent) if inputs.parent else None
        source = self._source()
        parse(source)  # a mistake in the file is located in the file
        self.document = Document(source)
        self.protocol: Protocol = self._changed()

    def fill(self) -> None:
        sources: dict[str, Any] = {}
        if self.parent is not None:
            sources["parent"] = str(self.parent.campaign.folder.resolve())
        if model := self._model():
            took = model.download_s
            sources["model"] = {"folder": str(model.folder.resolve()), "download_s": took}
        self._corpora()
        self._tuning()
        self._references()
        self._write()
        self.campaign.sources_file.write_text(json.dumps(sources, indent=1) + "\n", "ascii")

    def _source(self) -> Source:
        if self.inputs.protocol is not None:
            return read_source(find(self.inputs.protocol))
        if self.parent is not None:
            return self.parent.source()
        raise WrongUse(
            "no protocol is named",
            fix="Add --protocol with a template's name or a TOML file, or make a child with --from",
        )

    def _changed(self) -> Protocol:
        if self.parent is not None:
            self.document.put("parent", self.parent.table())
        for dotted, value in self.inputs.settings:
            self.document.put(dotted, value)
        # Nobody has a file with these lines: the campaign is not made yet.
        return parse(Source(self.document.text(), "the protocol with --set", lines=False))

    def _write(self) -> None:
        try:
            self.campaign.protocol_file.write_text(self.document.text(), "utf-8")
        except UnicodeEncodeError:
            raise InputError(
                "a name in the protocol is not UTF-8",
                where=clean(self.document.values["model"]["source"], limit=200),
                fix="Rename the model's folder",
            ) from None
        parse(read_source(self.campaign.protocol_file))

    # -- the model ---------------------------------------------------------------------------

    def _model(self) -> ResolvedModel | None:
        """Find the model and write into the protocol what it is; None where none is named yet."""
        table = self.protocol.model
        named = self.inputs.model or table.source.strip()
        taken_over = (
            self.inputs.model is None
            and self.parent is not None
            and self.parent.names_model_as(table.source)
        )
        if taken_over and self.parent is not None:
            named = self.parent.model_source()
        if not named:
            return None
        found = resolve(
            named,
            allow_remote_code=table.allow_remote_code,
            allow_pickle=table.allow_pickle,
        )
        if taken_over and self.parent is not None:
            self.parent.same_model(found)
        pinned = {
            "hub": f"{found.name}@{found.revision}",
            "folder": str(found.folder.resolve()),
            "demo": "demo",
        }[found.kind]
        self.document.put("model.source", pinned)
        if table.name is None or self._name_is_stale(taken_over):
            name = default_name(found, model_facts.read(found.folder))
            self.document.put("model.name", name)
        return found

    def _name_is_stale(self, taken_over: bool) -> bool:
        """Tell whether the model's name is the parent's, and the model is another."""
        if self.parent is None or taken_over:
            return False
        chosen = any(dotted == "model.name" for dotted, _ in self.inputs.settings)
        return not chosen and self.protocol.model.name == self.parent.manifest.model_name

    # -- files -------------------------------------------------------------------------------

    def _by_deliverable(self, given: Sequence[str], option: str) -> dict[str, list[str]]:
        """Sort ``FILE`` and ``DELIVERABLE=FILE`` by deliverable."""
        names = [d.name for d in self.protocol.deliverables]
        by_name: dict[str, list[str]] = {}
        for item in given:
            name, equals, path = item.partition("=")
            if equals and name in names:
                by_name.setdefault(name, []).append(path)
            elif len(names) == 1 and (not equals or "/" in name or Path(item).exists()):
                by_name.setdefault(names[0], []).append(item)
            else:
                raise WrongUse(
                    f"--{option} '{clean(item, limit=100)}' does not say for which deliverable",
                    fix=f"Write --{option} NAME=FILE with a name among: {listed(names, limit=12)}",
                )
        return by_name

    def _corpora(self) -> None:
        given = self._by_deliverable(self.inputs.corpus, "corpus")
        (self.campaign.folder / "corpus").mkdir()
        for name in (d.name for d in self.protocol.deliverables):
            target = self.campaign.corpus_file(name)
            if name in given:
                self._corpus(target, given[name])
            elif self.parent is None or not self.parent.corpus(name, target):
                raise WrongUse(
                    f"deliverable '{name}' has no corpus",
                    fix=f"Add --corpus {name}=FILE",
                )

    def _corpus(self, target: Path, files: list[str]) -> None:
        id_column, text_column = self.inputs.id_column, self.inputs.text_column
        entries = read_entries(files, id_column=id_column, text_column=text_column)
        if not self.inputs.link:
            write_sealed(entries, target)
            return
        for _ in entries:
            pass  # so that a mistake of form, or an id that repeats, shows now
        # Too large to copy: the fingerprint decides, the file itself stays where it is.
        found = find_sources(files)
        try:
            if len(found) != 1 or found[0].kind != "jsonl" or found[0].gzipped:
                raise InputError("it is more than one file, or not plain .jsonl")
            for _ in read_sealed(found[0].path):
                pass
        except InputError as error:
            raise WrongUse(
                f"the corpus can't be referred to as it is ({error.what})",
                where=error.where or listed(files),
                fix="--link takes one .jsonl file whose every line has id and text, both text; "
                "leave --link out to copy any other",
            ) from None
        target.symlink_to(found[0].path.resolve())

    def _tuning(self) -> None:
        target = self.campaign.tuning_file
        if not self.inputs.tuning:
            if self.parent is not None and (path := self.parent.tuning()):
                target.parent.mkdir()
                shutil.copyfile(path, target)
            return
        target.parent.mkdir()
        rows = read_tuning(
            self.inputs.tuning,
            id_column=self.inputs.id_column,
            text_column=self.inputs.text_column,
        )
        with target.open("wb") as stream:
            for row in rows:
                named = {} if row.id is None else {"id": row.id}
                stream.write(canonical_json({**named, "text": row.text}) + b"\n")
        self.document.put("tuning.declared", "files")
        self.document.drop("tuning", "statement")

    def _references(self) -> None:
        given = self._by_deliverable(self.inputs.reference, "reference")
        reference = self.protocol.reference
        if given and reference.kind == "variant":
            raise WrongUse(
                "the protocol's reference is a variant, and --reference gives answers",
                fix="Leave --reference out, or set reference.kind to 'answers'",
            )
        (self.campaign.folder / "reference").mkdir()
        for name in (d.name for d in self.protocol.deliverables):
            target = self.campaign.reference_file(name)
            if name in given:
                self._answers(target, given[name])
            elif self.parent is not None and reference.column is None:
                self.parent.reference(name, target)
        if given:
            self.document.drop("reference", "column")

    def _answers(self, target: Path, files: list[str]) -> None:
        pairs = read_answers(
            files, id_column=self.inputs.id_column, answer_column=self.inputs.answer_column
        )
        with target.open("wb") as stream:
            for key, answer in pairs:
                stream.write(canonical_json({"id": key, "answer": answer}) + b"\n")
