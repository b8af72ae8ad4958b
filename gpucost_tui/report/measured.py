"""What was measured: durations, pairs, what is uncertain, failures, exclusions (R23 to R26)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpucost_tui.analysis.compare import Pair
from gpucost_tui.analysis.durations import Durations
from gpucost_tui.analysis.together import Member
from gpucost_tui.campaign.fold import Attempt
from gpucost_tui.report.blocks import (
    Block,
    Bullets,
    Dot,
    Heading,
    Paragraph,
    Plot,
    Strong,
    Table,
    Text,
)
from gpucost_tui.report.gather import Facts
from gpucost_tui.text import clean, count, seconds, size

_NONE = "-"
#: Attempts listed one by one in the table of all; the raw table has every one.
_LISTED = 200


def measured_blocks(facts: Facts) -> Iterator[Block]:
    """Yield durations, comparison, uncertainty, failures and exclusions, attempts."""
    yield Heading(2, "Durations")
    yield Paragraph(
        "All raw durations of completed passes; the bar on a line is the median. A few passes "
        "describe a small series: they do not prove long-term stability."
    )
    groups = facts.comparison.variants
    for place in dict.fromkeys(group.place for group in groups):
        here = [group for group in groups if group.place == place]
        title = _place(here[0])
        yield Plot(f"Pass durations{title}", [_dots(group) for group in here])
        yield _durations(here)
    yield from _pairs(facts)
    yield from _uncertain(facts)
    yield from _failures(facts)
    yield from _attempts(facts)


def _place(group: Durations) -> str:
    parts = [
        f"{word} {value}"
        for word, value in (
            ("deliverable", group.deliverable),
            ("seed", group.seed),
            ("host", group.host),
        )
        if value is not None
    ]
    return f", {', '.join(parts)}" if parts else ""


def _dots(group: Durations) -> tuple[str, float | None, Sequence[Dot]]:
    dots = []
    for row in group.rows.to_dicts():
        if row["pass_s"] is None or row["status"] != "completed":
            continue
        excluded = bool(row["excluded"])
        label = f"attempt {row['attempt']}, round {row['round']}: {row['pass_s']:.6g} s"
        said = f", excluded: {row['exclusion_cause']}" if excluded else ""
        dots.append(Dot(row["pass_s"], label + said, counted=not excluded))
    return group.variant, group.median_s, dots


def _durations(groups: Sequence[Durations]) -> Table:
    rows: list[list[Text]] = [
        [
            group.variant,
            ", ".join(f"{value:.4g}" for value in group.durations_s) or _NONE,
            *(_figure(value) for value in (group.median_s, group.min_s, group.max_s)),
            *(
                str(value)
                for value in (
                    group.succeeded,
                    group.failed,
                    group.stopped,
                    group.interrupted,
                    group.excluded,
                )
            ),
        ]
        for group in groups
    ]
    headers = ["variant", "all durations, s", "median s", "min s", "max s", "succeeded", "failed"]
    headers += ["stopped", "interrupted", "excluded"]
    return Table(headers, rows, right=frozenset(range(2, len(headers))))


def _figure(value: float | None) -> str:
    return _NONE if value is None else f"{value:.4g}"


def _pairs(facts: Facts) -> Iterator[Block]:
    comparison = facts.comparison
    if not comparison.pairs:
        return
    yield Heading(3, "Which differences are settled")
    yield Paragraph(
        f"By the sealed rule ({comparison.rule}, factor {comparison.factor:g}) over "
        f"{count(comparison.rounds, 'round')}."
    )
    yield Bullets([_pair(pair) for pair in comparison.pairs])
    if comparison.before is not None:
        yield Paragraph(f"Before rounds were added, after {count(comparison.planned, 'round')}:")
        yield Bullets([_pair(pair) for pair in comparison.before])


def _pair(pair: Pair) -> Text:
    a, b = pair.names
    settled = pair.settlement
    faster = {"a": a, "b": b}.get(settled.faster or "", "")
    word = f"settled, {faster} is faster" if settled.settled else "not settled"
    where = _place(pair.a)
    return (Strong(f"{a} and {b}{where}: {word}. "), settled.why)


def _uncertain(facts: Facts) -> Iterator[Block]:
    yield Heading(2, "What remains uncertain")
    said: list[str] = []
    for pair in facts.comparison.pairs:
        if pair.settlement.settled and not pair.between_hosts:
            continue
        a, b = pair.names
        # The first sentence is of the pair; the others name what they are of, and may repeat.
        first, *causes = pair.could_settle or ("",)
        if pair.settlement.settled:
            said.append(f"{a} and {b}: {first}")
        else:
            said.append(f"{a} and {b}: which of the two is faster is not settled. {first}")
        said += causes
    for row in facts.balance.decision.rows:
        if row.rental.window_basis != "measured":
            said.append(f"{row.configuration}: its window is assumed, not measured.")
    known = set(facts.balance.decision.notes)
    said += [note for note in facts.comparison.notes if note not in known]
    for number, member in enumerate(facts.together.members, 1):
        state = member.state
        where = f"Folder {number}: " if len(facts.together.members) > 1 else ""
        if left := len(state.open_slots(member.protocol)):
            said.append(f"{where}{count(left, 'slot')} of the schedule not filled yet.")
        if state.unfinished() or state.running:
            said.append(f"{where}the last run has no recorded end.")
        said += [f"{where}the wall clock went backwards, {text}" for text in state.clock]
        said += [
            f"{where}a journal line that was cut off was set aside and kept."
            for _ in state.set_aside
        ]
    told = dict.fromkeys(facts.told(sentence) for sentence in said)
    yield Bullets(list(told) or ["Nothing of what was planned is left open."])


def _failures(facts: Facts) -> Iterator[Block]:
    """Yield every failed, stopped and interrupted attempt, every rejection, every exclusion."""
    yield Heading(2, "Failures and exclusions")
    rows: list[list[Text]] = []
    left_out: list[Text] = []
    for number, member in enumerate(facts.together.members, 1):
        folder = str(number)
        for attempt in member.state.attempts.values():
            row = attempt.row
            ended = row["status"]
            if ended != "completed" or attempt.reasons:
                why = attempt.error or "; ".join(attempt.notes)
                rows.append(
                    [
                        *([folder] if len(facts.together.members) > 1 else []),
                        str(attempt.number),
                        row["variant"],
                        str(row["round"]),
                        _ended(row, attempt.reasons),
                        f"{_number(row['finished_entries'])} of {_number(row['expected_ids'])}",
                        clean(why, limit=300) or _NONE,
                    ]
                )
        left_out += _exclusions(member)
    headers = ["attempt", "variant", "round", "outcome", "finished entries", "why"]
    if len(facts.together.members) > 1:
        headers.insert(0, "folder")
    if rows:
        yield Table(headers, rows)
    else:
        yield Paragraph("No attempt failed, was stopped, interrupted or rejected.")
    if left_out:
        yield Bullets(left_out)
    else:
        yield Paragraph("No attempt was excluded.")


def _ended(row: dict[str, Any], reasons: Sequence[str]) -> str:
    status = row["status"] or "no end recorded"
    failure = f", {row['failure']}" if row["failure"] else ""
    rejected = f", rejected for {', '.join(reasons)}" if status == "completed" else ""
    return f"{status}{failure}{rejected}"


def _number(value: int | None) -> str:
    return "an unknown number" if value is None else f"{value:,}"


def _exclusions(member: Member) -> Iterator[Text]:
    causes = {cause.name: cause for cause in member.protocol.exclusion_causes}
    acts = member.state.acts
    for one in acts.exclusions.values():
        cause = causes.get(one.cause)
        rule = ""
        if cause is not None:
            rule = f" The sealed cause: {cause.description}"
            rule += f" Where {cause.condition}." if cause.condition else ""
        when = (
            f", from {one.since:%Y-%m-%d %H:%M:%S} to {one.until:%Y-%m-%d %H:%M:%S} UTC"
            if (one.since and one.until)
            else ""
        )
        yield (Strong(f"Attempt {one.attempt} is excluded"), f" for {one.cause}{when}.{rule}")
    for one in acts.withdrawn:
        yield f"Attempt {one.attempt}: an exclusion for {one.cause} was withdrawn again."


def _attempts(facts: Facts) -> Iterator[Block]:
    yield Heading(2, "Attempts")
    rows: list[list[Text]] = []
    total = 0
    several = len(facts.together.members) > 1
    for number, member in enumerate(facts.together.members, 1):
        for attempt in member.state.attempts.values():
            total += 1
            if len(rows) < _LISTED:
                rows.append([*([str(number)] if several else []), *_attempt(attempt)])
    headers = ["#", "variant", "round", "status", "verdict", "quality", "pass", "padding"]
    headers += ["truncated", "peak memory"]
    shift = int(several)
    if several:
        headers.insert(0, "folder")
    right = frozenset(column + shift for column in (0, 2, 5, 6, 7, 8, 9))
    yield Table(headers, rows, right=right)
    made_up = facts.together.protocol.corpus.synthetic
    synthetic = "Quality: synthetic demonstration. " if made_up else ""
    left = total - len(rows)
    more = f"{left:,} more attempts stand in raw_results.csv. " if left else ""
    yield Paragraph(
        f"{synthetic}{more}Padding: tokens computed over real tokens. Peak memory: what the "
        "framework's allocator held in tensors, or the process's own memory where no GPU was used."
    )


def _attempt(attempt: Attempt) -> list[str]:
    row, interval = attempt.row, attempt.interval
    quality = _NONE if row["quality"] is None else f"{row['quality']:.4f}"
    if interval is not None:
        quality += f" ({interval['low']:.4f} to {interval['high']:.4f})"
    accepted = {True: "accepted", False: "rejected", None: _NONE}[row["corpus_accepted"]]
    if row["round"] == 0 and row["status"] == "completed":
        accepted = "reference"
    if row["excluded"]:
        accepted += ", excluded"
    peak = row["peak_allocated_bytes"]
    return [
        str(row["attempt"]),
        str(row["variant"]),
        str(row["round"]),
        str(row["status"] or "no end"),
        accepted,
        quality,
        seconds(row["pass_s"]),
        _NONE if row["padding_ratio"] is None else f"{row['padding_ratio']:.2f}",
        _NONE if row["truncated_entries"] is None else f"{row['truncated_entries']:,}",
        size(row["peak_rss_bytes"] if peak is None else peak),
    ]
