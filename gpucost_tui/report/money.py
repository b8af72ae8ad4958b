"""The balance of every configuration, and what was really rented and spent (R35 to R41)."""

from __future__ import annotations

from collections.abc import Iterator

from gpucost_tui.analysis.balance_row import BalanceRow, amount_text
from gpucost_tui.analysis.durations import Durations
from gpucost_tui.report.blocks import Block, Bullets, Heading, Paragraph, Table, Text
from gpucost_tui.report.gather import Facts
from gpucost_tui.text import clean, money, seconds

_NONE = "-"


def money_blocks(facts: Facts) -> Iterator[Block]:
    """Yield the balance, the reasons against what is not admissible, and the real spending."""
    decision = facts.balance.decision
    yield Heading(2, "Balance")
    headers = ["configuration", "admissible", "accepted", "quality", "median (min … max)"]
    headers += ["window h", "committed USD", "per accepted", "failed / planned"]
    rows = [_row(row, facts) for row in decision.rows]
    yield Table(headers, rows, right=frozenset(range(3, len(headers))))
    if facts.together.protocol.corpus.synthetic:
        yield Paragraph("Quality: synthetic demonstration.")
    refused = [row for row in decision.rows if not row.admissible]
    if refused:
        yield Heading(3, "Not admissible, with every reason")
        yield Bullets([_refused(row, facts) for row in refused])
    yield from _rentals(facts)
    yield from _other(facts)
    yield from _parents(facts)


def _row(row: BalanceRow, facts: Facts) -> list[Text]:
    groups = row.groups
    one = groups[0] if len(groups) == 1 else None
    lows = [v.quality_min for v in row.verdicts if v.quality_min is not None]
    highs = [v.quality_max for v in row.verdicts if v.quality_max is not None]
    hours = row.rental.window_hours
    basis = "" if row.rental.window_basis == "measured" else " (assumed)"
    chosen = row.configuration == facts.balance.decision.configuration
    return [
        row.configuration + (" (chosen)" if chosen else ""),
        "yes" if row.admissible else ", ".join(row.reasons),
        f"{row.accepted_deliverables} of {len(row.verdicts)}",
        _span(min(lows), max(highs)) if lows else _NONE,
        # Durations of several deliverables, seeds or hosts are never pooled (R28).
        _durations(one) if one else "apart" if groups else _NONE,
        _NONE if hours is None else f"{hours:.3g}{basis}",
        amount_text(row.rental.committed_usd) or _NONE,
        amount_text(row.cost_per_accepted_usd) or _NONE,
        f"{row.failures} / {row.planned_attempts}",
    ]


def _durations(group: Durations) -> str:
    if group.median_s is None:
        return _NONE
    low, high = seconds(group.min_s), seconds(group.max_s)
    return f"{seconds(group.median_s)} ({low} … {high})"


def _span(low: float, high: float) -> str:
    one, other = f"{low:.4g}", f"{high:.4g}"
    return one if one == other else f"{one} … {other}"


def _refused(row: BalanceRow, facts: Facts) -> str:
    why = "; ".join(facts.told(sentence) for sentence in row.why)
    return f"{clean(row.configuration, limit=120)} ({', '.join(row.reasons)}): {why}."


def _rentals(facts: Facts) -> Iterator[Block]:
    """Yield the commitments beside the user's own record of the rental."""
    rows: list[list[Text]] = []
    corrected = []
    for member in facts.together.members:
        acts = member.state.acts
        for act in acts.commitments.values():
            real = act.rental.to_json() if act.rental else {}
            rows.append(
                [
                    act.words,
                    act.provider,
                    str(act.gpus),
                    money(act.usd),
                    str(real.get("from") or _NONE),
                    str(real.get("to") or _NONE),
                    str(real.get("paid_usd") or _NONE),
                    str(real.get("reference") or _NONE),
                ]
            )
        corrected += [f"{act.words}, {money(act.usd)} USD: corrected" for act in acts.corrected]
    yield Heading(3, "Commitments, and the real rental")
    if not rows:
        yield Paragraph("No commitment is recorded.")
        return
    headers = ["pack", "provider", "GPUs", "committed USD", "rented from", "to", "paid USD"]
    yield Table([*headers, "reference"], rows, right=frozenset({2, 3, 6}))
    if corrected:
        yield Bullets(corrected)


def _other(facts: Facts) -> Iterator[Block]:
    rows: list[list[Text]] = [
        [spent.configuration, money(spent.usd), spent.reason]
        for member in facts.together.members
        for spent in member.state.acts.spending.values()
    ]
    if rows:
        yield Heading(3, "Other spending, apart from the packs")
        yield Table(["configuration", "USD", "reason"], rows, right=frozenset({1}))


def _parents(facts: Facts) -> Iterator[Block]:
    parents = facts.balance.parents
    if not parents:
        return
    yield Heading(3, "Parent campaigns")
    rows: list[list[Text]] = []
    for one in parents:
        counts = one.counts()
        told = one.to_json()
        rows.append(
            [
                one.manifest[:16] + "…",
                "yes" if one.together is not None else "not here",
                str(len(one.rows())),
                str(counts["failed"]),
                str(told["committed_usd"] or _NONE),
            ]
        )
    headers = ["manifest", "counted", "attempts", "failed", "committed USD"]
    yield Table(headers, rows, right=frozenset({2, 3, 4}))
