"""A campaign's folder: where its files are, and what state it is in."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from gpucost_tui.campaign.journal import Event, trusted
from gpucost_tui.errors import Differs, InputError, NotACampaign, Refused
from gpucost_tui.files import sha256_bytes, write_atomic
from gpucost_tui.protocol.load import Source, parse, read_source
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.text import clean

#: An attempt's traceback, in the attempt's folder.
FAILURE = "failure.txt"


class Campaign:
    """The paths of one campaign. Cheap to make; reads files when asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.protocol_file = folder / "protocol.toml"
        self.manifest_file = folder / "manifest.json"
        self.sources_file = folder / "sources.json"
        self.journal_file = folder / "journal.jsonl"
        self.progress_file = folder / "progress.json"
        self.control_file = folder / "control.json"
        self.table_file = folder / "raw_results.csv"
        self.logs = folder / "logs"

    @classmethod
    def open(cls, folder: str | Path) -> Campaign:
        """Return the campaign in a folder.

        Raises:
            NotACampaign: The folder is missing or holds no protocol.
        """
        path = Path(folder)
        shown = clean(folder, limit=200)
        campaign = cls(path)
        try:
            there = path.is_dir()
            named = campaign.protocol_file.is_file() or campaign.manifest_file.is_file()
        except OSError as error:  # a name too long, a folder that may not be entered
            raise NotACampaign(
                f"'{shown}' can't be read ({error.strerror})", fix="Check its name and permissions"
            ) from None
        if not there:
            raise NotACampaign(
                f"there is no folder '{shown}'", fix="Make a campaign with `gpucost new` or `demo`"
            )
        if not named:
            raise NotACampaign(
                f"'{shown}' is no campaign: it has no protocol.toml",
                fix="Make one with `gpucost new`",
            )
        return campaign

    @property
    def sealed(self) -> bool:
        """Whether there is a manifest; see :meth:`sealed_hash` for what the journal says."""
        return self.manifest_file.exists()

    def sealed_hash(self) -> str | None:
        """Return the manifest's hash that the journal recorded at the seal, or none.

        A seal counts from its line in the journal on: a manifest without it is a seal that was cut
        off.

        Raises:
            Differs: The journal is damaged.
        """
        sealed = next((e for e in self.events() if e.event == "sealed"), None)
        return None if sealed is None else str(sealed.data["manifest"])

    def corpus_file(self, deliverable: str) -> Path:
        return self.folder / "corpus" / f"{deliverable}.jsonl"

    def strata_file(self, deliverable: str) -> Path:
        return self.folder / "corpus" / f"{deliverable}.strata.parquet"

    def reference_file(self, deliverable: str) -> Path:
        return self.folder / "reference" / f"{deliverable}.jsonl"

    @property
    def tuning_file(self) -> Path:
        return self.folder / "tuning" / "tuning.jsonl"

    def attempt_folder(self, number: int, variant: str, round_: int) -> Path:
        return self.folder / "attempts" / f"{number:04d}-{variant}-r{round_}"

    def host_file(self, host: str) -> Path:
        return self.folder / "hosts" / f"{host}.json"

    def draft(self) -> tuple[Source, Protocol]:
        """Read ``protocol.toml`` as it stands now.

        Raises:
            InputError: It can't be read, or is no protocol.
        """
        source = read_source(self.protocol_file)
        return source, parse(source)

    @cached_property
    def manifest(self) -> Manifest:
        """The sealed manifest.

        Raises:
            Refused: The campaign is not sealed yet.
            Differs: The file is gone, or no manifest.
            InputError: It can't be read.
        """
        try:
            return Manifest(self.manifest_file.read_bytes())
        except FileNotFoundError:
            pass
        except OSError as error:
            raise InputError(
                f"the manifest can't be read ({error.strerror})",
                where="manifest.json",
                fix="Check its permissions",
            ) from None
        if self.sealed_hash() is not None:
            raise Differs(
                "the manifest is gone, though the campaign was sealed",
                where="manifest.json",
                fix="Restore the file from a copy of the campaign",
            )
        raise Refused(
            "the campaign is not sealed", where=self.folder.name, fix="`gpucost seal` does it"
        )

    def sources(self) -> dict[str, Any]:
        """Return where model and inputs lie on this machine (no part of the manifest).

        A memo: where it is missing or damaged, what it says is looked for again.
        """
        try:
            value = json.loads(self.sources_file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(value, dict) or not isinstance(value.setdefault("model", {}), dict):
            return {}
        return value

    def remember_model(self, **facts: Any) -> None:
        """Keep facts of the model on this machine (``folder``, ``download_s``, ``seen``, …)."""
        sources = self.sources()
        sources["model"] = {**sources.get("model", {}), **facts}
        write_atomic(self.sources_file, json.dumps(sources, indent=1).encode() + b"\n")

    def events(self) -> list[Event]:
        """Read the journal.

        Raises:
            Differs: It is damaged.
        """
        return trusted(self.folder).events


class Manifest:
    """The sealed protocol with the fingerprints of all inputs. Its SHA-256 is the identity."""

    def __init__(self, data: bytes) -> None:
        self.sha256 = sha256_bytes(data)
        try:
            self.json: dict[str, Any] = json.loads(data)
            self.protocol = Protocol.model_validate(self.json["protocol"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Differs(
                "the manifest is not the one that was sealed",
                where="manifest.json",
                fix="Restore the file from a copy of the campaign",
            ) from None

    @property
    def model_name(self) -> str:
        return str(self.json["model"]["name"])

    @property
    def model_sha256(self) -> str:
        return str(self.json["model"]["sha256"])

    def corpus(self, deliverable: str) -> dict[str, Any]:
        """Return ``sha256``, ``entries`` and more of a deliverable's corpus."""
        corpus = self.json["corpora"][deliverable]
        assert isinstance(corpus, dict)  # noqa: S101 - checked when it was sealed
        return corpus
