"""The identity of a corpus: what it says in which order, whatever files it came in (R8)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Protocol

from gpucost_tui.files import canonical_json


class Named(Protocol):
    """Anything with an id and a text."""

    @property
    def id(self) -> str: ...

    @property
    def text(self) -> str: ...


class Fingerprint:
    """SHA-256 over (id, text) in order.

    Of each pair, the UTF-8 bytes of the id and then those of the text go in, each after its length
    in bytes as eight bytes, big-endian: no other sequence of pairs gives the same bytes.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def update(self, name: str, text: str) -> None:
        """Add the next pair."""
        first, second = name.encode(), text.encode()
        self._hash.update(
            b"".join((len(first).to_bytes(8), first, len(second).to_bytes(8), second))
        )

    def hexdigest(self) -> str:
        """Return the fingerprint of the pairs so far, 64 hexadecimal digits."""
        return self._hash.hexdigest()


def fingerprint(entries: Iterable[Named]) -> str:
    """Return the fingerprint of a corpus."""
    found = Fingerprint()
    for entry in entries:
        found.update(entry.id, entry.text)
    return found.hexdigest()


def answers_fingerprint(answers: Iterable[tuple[str, str | list[float]]]) -> str:
    """Return the fingerprint of reference answers: pairs of id and label, or id and vector.

    A vector goes in as its canonical JSON.
    """
    found = Fingerprint()
    for name, answer in answers:
        found.update(name, answer_text(answer))
    return found.hexdigest()


def answer_text(answer: str | list[float]) -> str:
    """Return a label as it is, a vector as its canonical JSON."""
    return answer if isinstance(answer, str) else canonical_json(answer).decode()
