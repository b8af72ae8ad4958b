"""What the corpus shares with the data that a configuration was tuned on (R6)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from gpucost_tui.corpus.fingerprint import Named
from gpucost_tui.corpus.read import TuningRow
from gpucost_tui.errors import Refused
from gpucost_tui.text import clean, count

_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Overlap:
    """Entries of the corpus whose id, or whose exact text, stands in the tuning data too.

    ``id_examples`` are the first five such ids; ``text_examples`` pairs of the corpus's id and the
    tuning row's id (or its place, where it has none).
    """

    ids: int
    texts: int
    id_examples: tuple[str, ...]
    text_examples: tuple[tuple[str, str], ...]

    def __bool__(self) -> bool:
        return bool(self.ids or self.texts)

    def refuse(self, *, where: str | None = None) -> None:
        """Refuse a corpus that overlaps with its tuning data.

        Raises:
            Refused: It does; both kinds are counted and named.
        """
        if not self:
            return
        parts = []
        if self.ids:
            names = ", ".join(f"'{clean(name, limit=80)}'" for name in self.id_examples)
            parts.append(f"{count(self.ids, 'id')} (such as {names})")
        if self.texts:
            pairs = ", ".join(
                f"'{clean(one, limit=80)}' = '{clean(other, limit=160)}'"
                for one, other in self.text_examples
            )
            parts.append(f"{count(self.texts, 'text')} (such as {pairs})")
        raise Refused(
            f"the corpus shares {' and '.join(parts)} with the tuning data (R6)",
            where=where,
            fix="Take these entries out of the corpus or out of the tuning data, "
            "and give different documents different ids",
        )


def overlap(corpus_entries: Iterable[Named], tuning_entries: Iterable[TuningRow]) -> Overlap:
    """Compare a corpus with tuning data, by id and by exact text.

    The tuning data are kept as ids and 128-bit digests (about 300 bytes a row); the corpus streams
    past them.
    """
    ids: set[str] = set()
    texts: dict[bytes, str] = {}
    for row in tuning_entries:
        if row.id is not None:
            ids.add(row.id)
        texts.setdefault(_digest(row.text), row.name)
    shared_ids = shared_texts = 0
    id_examples: list[str] = []
    text_examples: list[tuple[str, str]] = []
    for entry in corpus_entries:
        if entry.id in ids:
            shared_ids += 1
            if len(id_examples) < _EXAMPLES:
                id_examples.append(entry.id)
        name = texts.get(_digest(entry.text))
        if name is not None:
            shared_texts += 1
            if len(text_examples) < _EXAMPLES:
                text_examples.append((entry.id, name))
    return Overlap(shared_ids, shared_texts, tuple(id_examples), tuple(text_examples))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
