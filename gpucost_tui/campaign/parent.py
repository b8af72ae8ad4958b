"""What a child campaign takes over from its sealed parent (R1, R21)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import tomlkit

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import trusted
from gpucost_tui.campaign.unchanged import (
    corpus_unchanged,
    model_folder,
    reference_unchanged,
    sealed_manifest,
)
from gpucost_tui.errors import Differs
from gpucost_tui.models.source import ResolvedModel
from gpucost_tui.protocol.load import Source, parse, read_source


class Parent:
    """A sealed campaign that another one is made from. Its inputs are taken over as sealed.

    Raises:
        NotACampaign: The folder holds none.
        Refused: The campaign is not sealed.
        Differs: Its manifest or its journal is not what was written.
    """

    def __init__(self, folder: Path) -> None:
        self.campaign = Campaign.open(folder)
        self.manifest = sealed_manifest(self.campaign)

    def table(self) -> dict[str, Any]:
        """Return the ``[parent]`` table of a child: the manifest, and the journal as it stands."""
        return {
            "manifest": self.manifest.sha256,
            "head": trusted(self.campaign.folder).head,
        }

    def source(self) -> Source:
        """Return the protocol to start from: the file as it stands, else what was sealed.

        A person may have edited the file after the seal: that edit is what the child is for.
        """
        if self.campaign.protocol_file.is_file():
            return read_source(self.campaign.protocol_file)
        return Source(tomlkit.dumps(_filled(self.manifest.json["protocol"])), "protocol.toml")

    def corpus(self, deliverable: str, target: Path) -> bool:
        """Copy a corpus, or the link to one; False where the parent has no such deliverable.

        Raises:
            Differs: It is not what was sealed.
        """
        if deliverable not in self.manifest.json["corpora"]:
            return False
        path = self.campaign.corpus_file(deliverable)
        try:
            corpus_unchanged(path, self.manifest.corpus(deliverable))
        except Differs as error:
            raise _parents(error, "--corpus") from None
        if path.is_symlink():
            target.symlink_to(path.resolve())
        else:
            shutil.copyfile(path, target)
        return True

    def reference(self, deliverable: str, target: Path) -> None:
        """Copy the answers of a deliverable, where the parent has some.

        Raises:
            Differs: They are not what was sealed.
        """
        path = self.campaign.reference_file(deliverable)
        if deliverable not in self.manifest.json["corpora"] or not path.is_file():
            return
        try:
            reference_unchanged(path, self.manifest.corpus(deliverable))
        except Differs as error:
            raise _parents(error, "--reference") from None
        shutil.copyfile(path, target)

    def tuning(self) -> Path | None:
        """Return the file of tuning data, where the parent has some."""
        path = self.campaign.tuning_file
        return path if path.is_file() else None

    def model_source(self) -> str:
        """Return what to resolve for the parent's model: its place here, or its name."""
        return self.manifest.protocol.model.source or str(model_folder(self.campaign))

    def names_model_as(self, source: str) -> bool:
        """Tell whether a model's source in a child is still the parent's own."""
        return source == parse(self.source()).model.source

    def same_model(self, found: ResolvedModel) -> None:
        """Make sure that a model that was taken over is the sealed one.

        Raises:
            Differs: It is not.
        """
        if found.sha256 != self.manifest.model_sha256:
            what = "the model is not the one that the parent was sealed with"
            raise _parents(Differs(what, where=str(found.folder)), "--model")


def _parents(error: Differs, option: str) -> Differs:
    what = f"the parent's inputs can't be taken over: {error.what}"
    return Differs(what, where=error.where, fix=f"Restore it, or name another with {option}")


def _filled(value: Any) -> Any:
    """Leave out what is null, which TOML can't say."""
    if isinstance(value, dict):
        return {key: _filled(item) for key, item in value.items() if item is not None}
    return [_filled(item) for item in value] if isinstance(value, list) else value
