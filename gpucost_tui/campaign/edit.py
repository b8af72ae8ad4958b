"""Changes variants of a draft: written back to ``protocol.toml`` with its comments kept (R1, R10).

Nobody's edit is lost: what is written rests on the bytes that were read, and is refused when the
file has other bytes by then. Two programs of ours that write at once wait for each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpucost_tui.campaign import edit_text
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.swapping import replaced
from gpucost_tui.errors import Differs, EnvironmentLacks, InputError, Refused, WrongUse
from gpucost_tui.files import sha256_bytes
from gpucost_tui.protocol.load import Source, parse, read_source
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.protocol.problem import Problem
from gpucost_tui.protocol.rules import problems
from gpucost_tui.text import clean, listed

_BOM = b"\xef\xbb\xbf"
_FILE = "protocol.toml"


@dataclass(frozen=True)
class Edit:
    """A protocol as it would read; nothing is written before :meth:`Draft.write`."""

    text: str
    protocol: Protocol
    problems: tuple[Problem, ...]  # all that the rules refuse in it
    fresh: tuple[Problem, ...]  # those that the draft did not have


@dataclass(frozen=True)
class Draft:
    """A protocol as it was read, to be changed. Make one with :func:`read_draft`.

    ``text`` has ``\\n`` at the ends of lines and no byte order mark; both are written back.
    """

    campaign: Campaign
    sha256: str
    text: str
    protocol: Protocol
    bom: bool = False
    crlf: bool = False
    _known: frozenset[str] = field(default=frozenset())

    def add(self, name: str, changes: Mapping[str, Any], series: Sequence[str]) -> Edit:
        """Put in a variant: the baseline with ``changes``, in each of ``series`` the last.

        Raises:
            WrongUse: The name is taken, or a series is unknown.
            InputError: The result is no protocol, or the file's form is not understood.
        """
        self._must_be_free(name)
        self._must_know(series)
        return self._edit(edit_text.add(self.text, name, changes, series))

    def change(
        self, name: str, new_name: str, changes: Mapping[str, Any], series: Sequence[str]
    ) -> Edit:
        """Give a variant another name, other changes, other series, or none of these.

        Raises:
            WrongUse: It is unknown, the new name is taken, or a series would be left empty.
            InputError: See :meth:`add`.
        """
        self._must_have(name)
        self._must_know(series)
        self._must_leave(name, [s.name for s in self.protocol.series if s.name not in series])
        text = edit_text.change(self.text, name, changes)
        if set(series) != set(self.protocol.series_of(name)):
            text = edit_text.set_series(text, name, series)
        if new_name != name:
            self._must_be_free(new_name)
            text = edit_text.rename(text, name, new_name)
        return self._edit(text)

    def remove(self, name: str) -> Edit:
        """Take a variant out, and out of every series.

        Raises:
            WrongUse: It is unknown, or the last of a series.
            InputError: See :meth:`add`.
        """
        self._must_have(name)
        self._must_leave(name, [s.name for s in self.protocol.series])
        return self._edit(edit_text.remove(self.text, name))

    def write(self, edit: Edit) -> None:
        """Put an edit in the place of the file, whole.

        Raises:
            Refused: The campaign has been sealed.
            Differs: The file was changed by somebody else since it was read.
            EnvironmentLacks: It can't be written.
        """
        text = edit.text.replace("\n", "\r\n") if self.crlf else edit.text
        data = (_BOM if self.bom else b"") + text.encode("utf-8")
        path = self.campaign.protocol_file.resolve()
        try:
            with alone(self.campaign):
                _must_be_draft(self.campaign)
                if not replaced(path, data, self.sha256):
                    raise Differs(
                        "the file was changed outside since it was read, and is left as it is",
                        where=_FILE,
                        fix="Look at it again, then repeat the change",
                    )
        except OSError as error:
            raise EnvironmentLacks(
                f"the protocol can't be written ({error.strerror})",
                where=_FILE,
                fix="Make space or correct the permissions of file and folder",
            ) from None

    def _edit(self, text: str) -> Edit:
        source = Source(text, _FILE)
        protocol = parse(source)
        found = tuple(problems(protocol, source))
        # Lines move with an edit, so a problem is known by what it says.
        return Edit(text, protocol, found, tuple(p for p in found if p.what not in self._known))

    def _must_be_free(self, name: str) -> None:
        if name in self.protocol.variants:
            raise WrongUse(
                f"there is a variant '{clean(name, limit=80)}' already", fix="Choose another name"
            )

    def _must_have(self, name: str) -> None:
        if name not in self.protocol.variants:
            raise WrongUse(
                f"there is no variant '{clean(name, limit=80)}'",
                fix=f"There are: {listed(list(self.protocol.variants))}",
            )

    def _must_know(self, series: Sequence[str]) -> None:
        names = [one.name for one in self.protocol.series]
        for name in series:
            if name not in names:
                raise WrongUse(
                    f"there is no series '{clean(name, limit=80)}'",
                    fix=f"There are: {listed(names)}",
                )

    def _must_leave(self, name: str, without: Sequence[str]) -> None:
        for one in self.protocol.series:
            if one.name in without and one.variants == (name,):
                raise WrongUse(
                    f"'{clean(name, limit=80)}' is the only variant of series "
                    f"'{clean(one.name, limit=80)}', and a series has at least one",
                    fix=f"Put another in first, or take the series out of {_FILE}",
                )


def read_draft(campaign: Campaign) -> Draft:
    """Read a campaign's protocol to change it.

    Raises:
        Refused: The campaign is sealed.
        InputError: The file can't be read, or is no protocol.
    """
    _must_be_draft(campaign)
    source = read_source(campaign.protocol_file)
    try:
        data = campaign.protocol_file.read_bytes()
    except OSError as error:
        raise InputError(
            f"the protocol can't be read ({error.strerror})", where=_FILE, fix="Correct that"
        ) from None
    plain = data.removeprefix(_BOM)
    if plain.decode("utf-8", "replace").replace("\r\n", "\n") != source.text:
        raise Differs("the file is being changed", where=_FILE, fix="Try again")
    protocol = parse(source)
    known = frozenset(problem.what for problem in problems(protocol, source))
    crlf = b"\r\n" in plain
    return Draft(campaign, sha256_bytes(data), source.text, protocol, plain != data, crlf, known)


def changes_from(text: str) -> dict[str, Any]:
    """Read the changes of a variant as a person types them: ``setting = value``, one a line.

    Raises:
        InputError: A line is not TOML, or a value is no text, number or true or false.
    """
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"this is no setting: {clean(error, limit=120)}",
            fix='Write a line like batch_size = 16 or dtype = "bfloat16"',
        ) from None
    for key, value in found.items():
        if not isinstance(value, bool | int | float | str):
            raise InputError(
                f"'{clean(key, limit=60)}' is no single value",
                fix='Write a line like batch_size = 16 or dtype = "bfloat16"',
            )
    return found


def changes_text(changes: Mapping[str, Any]) -> str:
    """Return changes as :func:`changes_from` reads them."""
    import tomlkit

    return tomlkit.dumps(dict(changes)).rstrip("\n")


def _must_be_draft(campaign: Campaign) -> None:
    # A manifest without its line in the journal is a seal that was cut off: still a draft.
    if campaign.sealed_hash() is not None:
        raise Refused(
            "the campaign is sealed: its variants can't change any more (R1)",
            where=_FILE,
            fix="A changed plan is a new campaign: `gpucost new DIR --from` this one",
        )


@contextlib.contextmanager
def alone(campaign: Campaign) -> Iterator[None]:
    """Hold the protocol's folder against other writers of ours, editors and seals; the kernel lets
    go when the process ends."""
    handle = os.open(campaign.protocol_file.resolve().parent, os.O_RDONLY)
    try:
        # Some network file systems lock no folder; that the bytes are held against those that were
        # read remains.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
