"""Compares and decides again, and writes the note again, from the files alone (R40, R41)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpucost_tui import __version__
from gpucost_tui.analysis.balance_row import amount_text
from gpucost_tui.campaign.journal import Event
from gpucost_tui.dossier.chain import Chain
from gpucost_tui.dossier.findings import Findings
from gpucost_tui.errors import Differs, GpucostError
from gpucost_tui.report.gather import Facts, gather
from gpucost_tui.report.html import escaped as escaped_html
from gpucost_tui.report.markdown import escaped
from gpucost_tui.report.note import FORMAT, rendered
from gpucost_tui.text import clean

_FORM = re.compile(r"Note format (\d+), written by gpucost-tui ([\w.+-]+)\.")
_HEAD = re.compile(r"Journal head[^`<]{0,60}(?:\*\*|</strong>) ?(?:`|<code>)([0-9a-f]{64})")
_FILES = ("decision.md", "report.html")


@dataclass(frozen=True, slots=True)
class Place:
    """A verified campaign: its folder, its journal, where its findings go."""

    folder: Path
    chain: Chain
    findings: Findings


def check_conclusion(
    places: Sequence[Place], findings: Findings, parents: Sequence[Path] = ()
) -> Facts | None:
    """Recompute comparison and decision, and hold every note against them.

    Args:
        places: The campaigns, at least one, in the order in which they were named.
        findings: Where differences go that belong to no single campaign.
        parents: Where parent campaigns may lie.

    Returns:
        The facts by now, or None where they can't be recomputed (which is recorded).
    """
    facts = _facts(places, findings, parents)
    for place in places:
        for name in _FILES:
            _note(place, name, places, facts, parents)
    return facts


def _facts(places: Sequence[Place], findings: Findings, parents: Sequence[Path]) -> Facts | None:
    try:
        facts = gather([place.folder for place in places], parents=parents)
    except GpucostError as error:
        named = any(place.findings.differences for place in places)
        if named or not isinstance(error, Differs):
            findings.cannot(f"comparison and decision: {error}")
        else:
            where = "comparison and decision"
            findings.differs(where, "files to recompute them from", str(error))
        return None
    findings.checked["decisions"] += 1
    for one in facts.balance.parents:
        if one.together is None:
            findings.cannot(
                f"decision: the parent campaign {one.manifest} is not here (name it with --parent)"
            )
    return facts


def _note(
    place: Place,
    name: str,
    places: Sequence[Place],
    facts: Facts | None,
    parents: Sequence[Path],
) -> None:
    path, where = place.folder / "report" / name, f"report/{name}"
    findings = place.findings
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return  # a note is written when somebody asks for it
    except OSError as error:
        findings.differs(where, "the note", clean(error.strerror))
        return
    text = data.decode("utf-8", "replace")
    form = _FORM.search(text)
    named = list(dict.fromkeys(_HEAD.findall(text)))
    if form is None or not named:
        findings.differs(where, "a note that names its form and its journal heads", "neither")
        return
    chosen = _chosen(named, places)
    if chosen is None:
        _unknown_head(named, places, findings, where)
        return
    if facts is None or any(one.together is None for one in facts.balance.parents):
        findings.cannot(f"{where}: what it rests on can't be recomputed here")
        return
    if form.groups() != (str(FORMAT), __version__):
        _of_another_version(where, text, form, chosen, parents, findings)
    else:
        _compare(name, data, chosen, facts, parents, findings)


def _of_another_version(
    where: str,
    text: str,
    form: re.Match[str],
    chosen: Sequence[tuple[Place, list[Event]]],
    parents: Sequence[Path],
    findings: Findings,
) -> None:
    """Hold the answer of a note against the decision; its words are another version's own."""
    upto = {number: events for number, (_, events) in enumerate(chosen)}
    facts = gather([place.folder for place, _ in chosen], parents=parents, upto=upto)
    decision = facts.balance.decision
    answer = decision.configuration or decision.outcome
    spent = amount_text(decision.committed_usd)
    known = escaped_html(answer) if where.endswith(".html") else escaped(answer)
    told = next((line for line in _paragraphs(text) if "Answer:" in line), "no answer")
    if known not in told or (spent is not None and spent not in told):
        findings.differs(f"{where}, answer", f"{answer}, {spent} USD", clean(told, limit=200))
    findings.cannot(
        f"{where}: it was written by gpucost-tui {form.group(2)} (form {form.group(1)}): of its "
        "words only the answer was compared; `gpucost report` writes it again"
    )


def _paragraphs(text: str) -> list[str]:
    """Return a note's paragraphs, each as one line."""
    return [
        " ".join(part.replace("\n>", "\n").split())
        for chunk in text.split("\n\n")
        for part in chunk.split("</p>")
    ]


def _chosen(
    heads: Sequence[str], places: Sequence[Place]
) -> list[tuple[Place, list[Event]]] | None:
    """Return for every head the campaign that holds it, with the events up to it."""
    chosen: list[tuple[Place, list[Event]]] = []
    for head in heads:
        for place in places:
            events = place.chain.upto(head)
            if events and all(place is not other for other, _ in chosen):
                chosen.append((place, events))
                break
        else:
            return None
    return chosen


def _unknown_head(
    heads: Sequence[str], places: Sequence[Place], findings: Findings, where: str
) -> None:
    lacking = [head for head in heads if not any(place.chain.upto(head) for place in places)]
    if len(heads) > len(places):
        findings.cannot(
            f"{where}: it covers {len(heads)} campaign folders; verify them together "
            "(`gpucost verify DIR DIR`)"
        )
    else:
        ends = ", ".join(place.chain.head or "no line" for place in places)
        findings.differs(f"{where}, journal head", ", ".join(lacking), f"no such line; head {ends}")


def _compare(
    name: str,
    data: bytes,
    chosen: Sequence[tuple[Place, list[Event]]],
    facts: Facts,
    parents: Sequence[Path],
    findings: Findings,
) -> None:
    where = f"report/{name}"
    at = _FILES.index(name)
    folders = [place.folder for place, _ in chosen]
    upto = {number: events for number, (_, events) in enumerate(chosen)}
    then = rendered(gather(folders, parents=parents, upto=upto))[at]
    findings.checked["notes"] += 1
    if data != then:
        for line, expected, found in _lines(then, data):
            findings.differs(f"{where}, line {line}", expected, found)
        return
    now = rendered(facts)[at]
    if len(chosen) == len(facts.heads) and _unhashed(now) != _unhashed(then):
        line = max(events[-1].seq for _, events in chosen)
        changed = next(iter(_lines(_unhashed(now), _unhashed(then))))
        findings.differs(
            f"{where}, line {changed[0]}",
            changed[1],
            f"{changed[2]} (stale: written at line {line} of the journal; `gpucost report` "
            "writes it again)",
        )


def _unhashed(note: bytes) -> bytes:
    """Return a note without the heads that it names and their lines: they move with any event."""
    text = _HEAD.sub("head", note.decode())
    text = re.sub(r"--head [0-9a-f]{64}", "--head", text)
    return re.sub(r"(head(?:`|</code>)) \(line \d+\)", r"\1", text).encode()


def _lines(expected: bytes, found: bytes) -> list[tuple[int, str, str]]:
    """Return the first lines that differ, cut to a readable length around the difference."""
    wanted, there = expected.decode().splitlines(), found.decode("utf-8", "replace").splitlines()
    differing = []
    for number in range(max(len(wanted), len(there))):
        one = wanted[number] if number < len(wanted) else "(its end)"
        other = there[number] if number < len(there) else "(its end)"
        if one != other:
            start = max(_common(one, other) - 30, 0)
            cut = (one[start : start + 120], other[start : start + 120])
            differing.append((number + 1, *cut))
        if len(differing) == 5:
            break
    return differing or [(len(wanted), "the same bytes", "another end of lines")]


def _common(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
