"""Makes the demonstration's corpus and tuning data: the same bytes on every machine.

Draws come from SHA-256 in counter mode, so neither the Python version nor a global random state
has a say. Every entry has a stream of its own, named by data set, position and try.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gpucost_tui.demo import CATEGORIES, STRATA_ENTRIES, wording
from gpucost_tui.errors import EnvironmentLacks
from gpucost_tui.files import canonical_json, replacing

#: SHA-256 of the files that :func:`write_jsonl` makes of :func:`corpus` and :func:`tuning`.
CORPUS_SHA256 = "63d5d976b12f56528d0d3c9bc352c356994e97b8129d9cf4baf25a4497a187b1"
TUNING_SHA256 = "bfac5fce489a540b5e96f0d93b1feb609c46be596b28154c1cb18041a51aafb2"

#: The tuning data are this many times the corpus, with the same strata and classes.
TUNING_TIMES = 12

#: Shares in percent.
AMBIGUOUS_SHARE = 14
LIKELIER_SHARE = 62
TYPO_SHARE = 3

# Units (words and punctuation marks) are a lower bound of tokens: the tokenizer splits them, and
# adds two special tokens. The margins below the strata's bounds are room for the splitting of
# numbers, names and typos; the test counts with the real tokenizer.
_UNITS: Mapping[str, tuple[int, int]] = {"short": (5, 21), "medium": (31, 82), "long": (95, 118)}
_OVERLONG_UNITS = (127, 150)
_OVERLONG_SHARE = 22

_UNIT = re.compile(r"[^\W_]+|[^\w\s]|_")
_WORD = re.compile(r"[^\W\d_]{4,}")
_CHOICE = re.compile(r"<([^<>]*)>")
_SLOT = re.compile(r"\{(\w+)\}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """One ticket. ``family`` and ``stratum`` say how it was made; the files don't hold them."""

    id: str
    text: str
    label: str
    family: str
    stratum: str


class Draws:
    """A stream of random draws that a name decides: SHA-256 in counter mode."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._blocks = 0
        self._left = b""

    def below(self, bound: int) -> int:
        """Return an integer from 0 to ``bound`` - 1 (32 bits: fine for small bounds)."""
        if not self._left:
            self._left = hashlib.sha256(f"{self._name}/{self._blocks}".encode()).digest()
            self._blocks += 1
        value = int.from_bytes(self._left[:4], "big")
        self._left = self._left[4:]
        return value % bound

    def between(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """Return the items in a drawn order (Fisher-Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.below(last + 1)
            result[last], result[other] = result[other], result[last]
        return result


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an entry is going to be: decided for the whole data set before any text is made."""

    stratum: str
    label: str
    ambiguous: bool


def corpus() -> Iterator[Entry]:
    """Yield the 1000 entries of the comparison corpus in their order, mixed by length and class."""
    yield from _entries("ticket-{:04d}", "corpus", 1, held_out=True, taken=set())


def tuning() -> Iterator[Entry]:
    """Yield the 12,000 tuning entries (R6).

    No id and no text is shared with the corpus, and no entry is of a family of
    :data:`wording.HELD_OUT`.
    """
    taken = {_normal(entry.text) for entry in corpus()}
    yield from _entries("tuning-{:05d}", "tuning", TUNING_TIMES, held_out=False, taken=taken)


def write_jsonl(path: Path, entries: Iterable[Entry]) -> None:
    """Write entries as canonical JSON lines (UTF-8; keys id, label, text), whole or not at all.

    Raises:
        EnvironmentLacks: The folder is missing or the disk refuses.
    """
    try:
        with replacing(path) as scratch, scratch.open("wb") as stream:
            for entry in entries:
                row = {"id": entry.id, "text": entry.text, "label": entry.label}
                stream.write(canonical_json(row) + b"\n")
    except OSError as error:
        raise EnvironmentLacks(
            f"the file can't be written: {error.strerror}",
            where=str(path),
            fix="Name a file in a folder that exists and can be written",
        ) from error


def _entries(
    id_form: str, data_set: str, times: int, *, held_out: bool, taken: set[str]
) -> Iterator[Entry]:
    for number, plan in enumerate(_plans(data_set, times), start=1):
        stream = f"gpucost-demo/{data_set}/{number}"
        family, template = _family(plan, Draws(stream), held_out=held_out)
        attempt = 0
        while True:
            text = _ticket(template, plan, Draws(f"{stream}/{attempt}"))
            if text is not None and _normal(text) not in taken:
                break
            attempt += 1
        taken.add(_normal(text))
        yield Entry(id_form.format(number), text, plan.label, family, plan.stratum)


def _plans(data_set: str, times: int) -> list[_Plan]:
    """Return the plans of a data set, mixed; classes are equal in each stratum to within one."""
    plans = []
    turn = 0
    for stratum, entries in STRATA_ENTRIES.items():
        total = entries * times
        unclear = round(total * AMBIGUOUS_SHARE / 100)
        for index in range(total):
            label = CATEGORIES[(turn + index) % len(CATEGORIES)]
            plans.append(_Plan(stratum, label, ambiguous=index < unclear))
        turn += total
    return Draws(f"gpucost-demo/{data_set}/order").shuffled(plans)


def _family(plan: _Plan, draws: Draws, *, held_out: bool) -> tuple[str, str]:
    """Return a family and its template.

    An ambiguous label is drawn backwards: each category is the likelier of two families and the
    other of two, and classes are equal, so that every family's labels come out at
    :data:`LIKELIER_SHARE` to the rest.
    """
    if plan.ambiguous:
        place = 0 if draws.chance(LIKELIER_SHARE) else 1
        pair = draws.pick([pair for pair in wording.AMBIGUOUS if pair[place] == plan.label])
        return f"{pair[0]}-or-{pair[1]}", wording.AMBIGUOUS[pair]
    families = wording.CLEAR[plan.label]
    name = draws.pick([name for name in families if held_out or name not in wording.HELD_OUT])
    return name, families[name]


def _ticket(template: str, plan: _Plan, draws: Draws) -> str | None:
    """Return a text, or nothing where this try missed the bounds of its stratum."""
    low, high = _UNITS[plan.stratum]
    if plan.stratum == "long" and draws.chance(_OVERLONG_SHARE):
        low, high = _OVERLONG_UNITS
    core = _expand(template, draws)
    if plan.stratum == "short":
        text = _short(core, draws)
    else:
        text = _longer(core, plan, draws.between(low, high), draws)
    text = _with_typos(_with_manner(text, draws), draws)
    return text if low <= units(text) <= high else None


def _short(core: str, draws: Draws) -> str:
    parts = [core]
    if draws.chance(25):
        parts.insert(0, _expand(draws.pick(wording.GREETINGS), draws))
    if draws.chance(20):
        parts.append(_expand(draws.pick(wording.CLOSINGS), draws))
    return " ".join(parts)


def _longer(core: str, plan: _Plan, wanted: int, draws: Draws) -> str:
    """Return the core among remarks about other matters and sentences about nothing."""
    others = [category for category in CATEGORIES if category != plan.label]
    remarks = 0 if plan.stratum == "medium" and draws.chance(50) else 1
    remarks += int(plan.stratum == "long")
    body = [core]
    for category in draws.shuffled(others)[:remarks]:
        body.append(_expand(draws.pick(wording.REMARKS[category]), draws))
    head = _expand(draws.pick(wording.GREETINGS), draws) if draws.chance(60) else ""
    tail = _expand(draws.pick(wording.CLOSINGS), draws) if draws.chance(60) else ""
    size = units(" ".join((head, *body, tail)))
    for filler in draws.shuffled(wording.FILLERS):
        if size >= wanted:
            break
        sentence = _expand(filler, draws)
        body.append(sentence)
        size += units(sentence)
    gap = "\n" if draws.chance(30) else " "
    return gap.join(part for part in (head, " ".join(draws.shuffled(body)), tail) if part)


def units(text: str) -> int:
    """Return the number of words and punctuation marks: tokens before any word is split."""
    return len(_UNIT.findall(text))


def _expand(template: str, draws: Draws) -> str:
    text = _CHOICE.sub(lambda match: draws.pick(match.group(1).split("|")), template)
    text = _SLOT.sub(lambda match: _slot(match.group(1), draws), text)
    return text[:1].upper() + text[1:]


def _slot(name: str, draws: Draws) -> str:
    made = _MADE.get(name)
    return made(draws) if made else draws.pick(wording.SLOTS[name])


def _amount(draws: Draws) -> str:
    whole, cents = draws.between(2, 480), draws.pick(("00", "50", "90", "95", "99"))
    form = draws.pick(("{0}.{1} euros", "€{0}.{1}", "{0} euros", "{0}.{1} EUR"))
    return form.format(whole, cents)


def _order(draws: Draws) -> str:
    form = draws.pick(("order {}", "order no. {}", "my order {}", "order {}-K", "order #{}"))
    return form.format(draws.between(1000, 99999))


def _user(draws: Draws) -> str:
    word = draws.pick(wording.SLOTS["colour"] + wording.SLOTS["relative"])
    return f"{word}{draws.pick(('', '.', '_'))}{draws.between(10, 99)}"


_MADE: Mapping[str, Callable[[Draws], str]] = {
    "amount": _amount,
    "order": _order,
    "user": _user,
    "number": lambda draws: str(draws.between(2, 60)),
}


def _with_manner(text: str, draws: Draws) -> str:
    """Write a few tickets in small letters, with an emoji, or without the last stop."""
    if draws.chance(6):
        text = text.lower()
    if draws.chance(5):
        text = text.rstrip(".")
    if draws.chance(5):
        text = f"{text} {draws.pick(wording.EMOJI)}"
    return text


def _with_typos(text: str, draws: Draws) -> str:
    """Misspell :data:`TYPO_SHARE` percent of the words of four letters and more."""
    return _WORD.sub(
        lambda match: (
            _misspelt(match.group(), draws) if draws.chance(TYPO_SHARE) else match.group()
        ),
        text,
    )


def _misspelt(word: str, draws: Draws) -> str:
    at = draws.between(1, len(word) - 2)
    kind = draws.below(3)
    if kind == 0:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if kind == 1:
        return word[:at] + word[at + 1 :]
    return word[:at] + word[at] + word[at:]


def _normal(text: str) -> str:
    """Return the text without what a reader would not call a difference."""
    return " ".join(text.casefold().split())
