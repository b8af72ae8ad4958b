"""The first part of a note: the question, the answer, what it covers, and why (R40, R41)."""

from __future__ import annotations

from collections.abc import Iterator

from gpucost_tui.analysis.balance_row import BalanceRow, amount_text
from gpucost_tui.report.blocks import Block, Bullets, Heading, Inline, Paragraph, Strong, Table
from gpucost_tui.report.gather import Facts
from gpucost_tui.text import clean, count, money

SYNTHETIC = (
    "This is a synthetic demonstration: the texts are made up, and their quality figures say "
    "nothing of real documents."
)


def answer_blocks(facts: Facts) -> Iterator[Block]:
    """Yield title, question, answer, chosen setting, load and reasons."""
    protocol = facts.together.protocol
    yield Heading(1, f"Decision note: {clean(protocol.name, limit=120)}")
    if protocol.corpus.synthetic:
        yield Paragraph(SYNTHETIC, mark=True)
    yield Paragraph((Strong("Question: "), protocol.decision.question))
    yield Paragraph((Strong("Answer: "), *_answer(facts)), mark=True)
    yield from _chosen(facts)
    yield from _load(facts)
    yield Heading(2, "Reason")
    yield Paragraph(
        "A configuration is admissible when every deliverable is accepted, its measured window "
        "ends before the deadline within the pack that is paid for, and its commitment is within "
        "the sealed budget. Among these the least committed amount decides; equal amounts are "
        "told apart by failed attempts per planned attempt, then by a settled difference in "
        "duration, and by nothing else."
    )
    notes = [facts.told(note) for note in facts.balance.decision.notes]
    # Reasons against a configuration stand with the balance.
    yield Bullets([note for note in notes if " is not admissible (" not in note])


def _answer(facts: Facts) -> list[Inline]:
    decision = facts.balance.decision
    spent = amount_text(decision.committed_usd)
    stays = "" if spent is None else f" {spent} USD stay committed."
    left = sum(len(m.state.open_slots(m.protocol)) for m in facts.together.members)
    still = f" {count(left, 'slot')} still open: the campaign is not finished." if left else ""
    if decision.outcome == "decided" and decision.configuration is not None:
        cost = amount_text(decision.row(decision.configuration).cost_per_accepted_usd)
        said = f", for {spent} USD committed ({cost} USD per accepted deliverable).{still}"
        return [Strong(decision.configuration), said]
    if decision.outcome == "tied":
        names = ", ".join(clean(name, limit=120) for name in decision.tied)
        said = f" between {names}: nothing measured tells them apart.{stays}{still}"
        return [Strong("tied"), said]
    return [Strong("undecided"), f": no configuration is admissible.{stays}{still}"]


def _chosen(facts: Facts) -> Iterator[Block]:
    """Yield the chosen setting; of a tie, all that are left; nothing where none is."""
    decision = facts.balance.decision
    names = (decision.configuration,) if decision.configuration else decision.tied
    variants = {one.name: one.variant for one in facts.balance.configurations}
    for name in names:
        row = decision.row(name)
        yield Heading(2, "Chosen setting" if decision.configuration else f"Setting: {name}")
        settings = facts.together.protocol.settings(variants[name]).model_dump(mode="json")
        told = [f"{key} {value}" for key, value in settings.items() if value is not None]
        yield Bullets(
            [
                (Strong("Configuration: "), name),
                (Strong("Settings: "), ", ".join(told)),
                (Strong("Rented as: "), pack_words(row)),
                (Strong("Window needed: "), _window(row, facts)),
            ]
        )


def pack_words(row: BalanceRow) -> str:
    """Return the pack that a configuration is rented with, in words."""
    if not row.rental.commitments:
        return "no commitment is recorded"
    pack = row.rental.commitments[0].pack
    return (
        f"{count(int(pack['lots']), 'lot')} of {clean(pack['gpu'], limit=60)} for {pack['days']} "
        f"days from {clean(pack['provider'], limit=60)}, {pack['usd_per_lot']} USD a lot (price "
        f"list of {pack['catalogue_date']})"
    )


def _window(row: BalanceRow, facts: Facts) -> str:
    hours, deadline = row.rental.window_hours, facts.together.protocol.decision.deadline_hours
    if hours is None:
        return f"not known; the deadline is {deadline:g} h"
    return f"{hours:.3g} h ({row.rental.window_basis}); the deadline is {deadline:g} h"


def _load(facts: Facts) -> Iterator[Block]:
    """Yield what the answer covers: corpora, model, the sealed minimum."""
    manifest, protocol = facts.together.manifest, facts.together.protocol
    yield Heading(2, "The load it covers")
    rows = []
    for deliverable in protocol.deliverables:
        sealed = manifest.corpus(deliverable.name)
        strata = ", ".join(f"{entries:,} {name}" for name, entries in sealed["strata"].items())
        cut = ", ".join(f"{n:,} at {length}" for length, n in sealed["truncated"].items())
        about = f"{deliverable.name}: {deliverable.description}" if deliverable.description else ""
        rows.append([about or deliverable.name, f"{sealed['entries']:,}", strata, cut or "none"])
    headers = ["deliverable", "entries", "by length", "truncated (tokens kept)"]
    yield Table(headers, rows, right=frozenset({1}))
    quality, revision = protocol.quality, manifest.json["model"].get("revision")
    tolerance = (
        f", and at most {quality.tolerance:g} below variant {quality.tolerance_variant}"
        if quality.tolerance is not None
        else ""
    )
    by = ", the lower end of its 95 % interval too" if quality.interval == "lower-bound" else ""
    parts = [f"each {group.column} at least {group.threshold:g}" for group in quality.subgroups]
    budget = protocol.decision.budget_usd
    yield Bullets(
        [
            (Strong("Task: "), str(protocol.task.get("name"))),
            (Strong("Model: "), manifest.model_name + (f" at {revision}" if revision else "")),
            (
                Strong("Minimum quality: "),
                f"{quality.metric} at least {quality.threshold:g}{by}{tolerance}"
                f"{', ' + ', '.join(parts) if parts else ''}{_synthetic(facts)}",
            ),
            (
                Strong("Bounds: "),
                f"{protocol.decision.deadline_hours:g} h until the results are collected; "
                + ("no budget is sealed" if budget is None else f"{money(budget)} USD at most"),
            ),
            (Strong("Right of use: "), protocol.corpus.right_of_use),
        ]
    )


def _synthetic(facts: Facts) -> str:
    return " (synthetic demonstration)" if facts.together.protocol.corpus.synthetic else ""
