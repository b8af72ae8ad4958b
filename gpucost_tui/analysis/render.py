"""Durations and balance as lines of text for a terminal, cleaned, at most ``width`` cells wide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

from gpucost_tui.analysis.balance import Decision
from gpucost_tui.analysis.balance_row import BalanceRow
from gpucost_tui.analysis.compare import Comparison, Pair
from gpucost_tui.analysis.durations import Durations
from gpucost_tui.analysis.predicted import Flips, Quality
from gpucost_tui.text import clean, money

WIDTH = 80
_FIGURE = 9
_LABEL = 18
_TALLEST = 10
_NAMED = 8  # flipped entries named in the terminal


def compare_lines(comparison: Comparison, *, width: int = WIDTH, unicode: bool = True) -> list[str]:
    """Return the durations of each place as dots, and its pairs with what they settle and why.

    Pairs between hosts, and what stood before more rounds, follow the last place.

    Args:
        comparison: Durations and pairs.
        width: Cells of a line, at least 60.
        unicode: Draw round dots; else plain ``o``.
    """
    lines: list[str] = []
    for place in dict.fromkeys(group.place for group in comparison.variants):
        groups = [group for group in comparison.variants if group.place == place]
        lines += [*dot_lines(groups, width=width, unicode=unicode), ""]
        within = [p for p in comparison.pairs if not p.between_hosts and p.a.place == place]
        for pair in within:
            lines += pair_lines(pair, width=width, where=False)
        lines += [""] if within else []
    for pair in comparison.pairs:
        if pair.between_hosts:
            lines += pair_lines(pair, width=width)
    while lines and not lines[-1]:
        lines.pop()
    # A cause belongs to a variant, and would be told again with each of its pairs.
    causes = dict.fromkeys(c for pair in comparison.pairs for c in pair.could_settle[1:])
    if causes:
        lines += ["", "Causes of the spread that the data suggest:"]
    for sentence in causes:
        lines += _wrapped(sentence, width, indent="    ")
    if comparison.before is not None:
        lines += ["", *_wrapped(f"Before more rounds (after {comparison.planned}):", width)]
        for pair in comparison.before:
            lines += pair_lines(pair, width=width, advice=False)
    lines += [""] if comparison.notes else []
    for note in comparison.notes:
        lines += _wrapped(note, width)
    return lines


def dot_lines(
    groups: Sequence[Durations], *, width: int = WIDTH, unicode: bool = True
) -> list[str]:
    """Return a dot plot: one dot a pass, all variants on one axis.

    Passes that fall on one cell are stacked upwards. Median, minimum and maximum stand beside it,
    in seconds; other outcomes and long names on lines of their own.
    """
    width = max(width, 60)
    axis = width - _LABEL - 3 * _FIGURE - 2
    values = [value for group in groups for value in group.durations_s]
    place = _place(groups[0]) if groups else ""
    head = _cut(place, _LABEL + axis + 2)
    lines = [head + "".join(f"{word:>{_FIGURE}}" for word in ("median s", "min s", "max s"))]
    low, high = min(values, default=0.0), max(values, default=0.0)
    for group in groups:
        *above, base = _dots(group.durations_s, low, high, axis, "●" if unicode else "o")
        name = clean(group.variant)
        if cell_len(name) > _LABEL:
            lines += _wrapped(name, width)
            name = ""
        lines += [f"{' ' * (_LABEL + 1)}{dots}".rstrip() for dots in above]
        figures = "".join(
            f"{_figure(value):>{_FIGURE}}" for value in (group.median_s, group.min_s, group.max_s)
        )
        lines.append(f"{_cut(name, _LABEL)} {base} {figures}")
        others = _other_outcomes(group)
        if others:
            lines += _wrapped(others, width, indent=" " * (_LABEL + 1))
    return lines


def pair_lines(
    pair: Pair, *, width: int = WIDTH, advice: bool = True, where: bool = True
) -> list[str]:
    """Return one pair: what is settled and why, with ``advice`` how many more rounds could."""
    a, b = (clean(name, limit=60) for name in pair.names)
    verdict = pair.settlement
    if verdict.settled:
        word = f"settled, {a if verdict.faster == 'a' else b} is faster"
    else:
        word = "not settled"
    place = _place(pair.a, host=not pair.between_hosts) if where else ""
    beside = f" ({place})" if place else ""
    lines = _wrapped(f"{a} and {b}{beside}: {word}. {verdict.why}", width)
    if advice and pair.could_settle:
        lines += _wrapped(pair.could_settle[0], width, indent="    ")
    return lines


def predicted_lines(
    quality: Sequence[Quality], flips: Sequence[Flips], *, width: int = WIDTH
) -> list[str]:
    """Return each variant's lowest quality with its interval, then the flips of each pair.

    Deliverable, seed and host are named once, above those that share them.
    """
    lines = ["", "Quality, the lowest of the passes:"] if quality else []
    lines += _by_place(((_where(*one.key[1:]), _quality(one)) for one in quality), width)
    lines += ["", "Entries predicted differently, by the first sound attempts:"] if flips else []
    told = ((_place(f.pair.a, host=not f.pair.between_hosts), _flips(f)) for f in flips)
    return lines + _by_place(told, width)


def _by_place(told: Iterable[tuple[str, str]], width: int) -> list[str]:
    places: dict[str, list[str]] = {}
    for place, said in told:
        places.setdefault(place, []).append(said)
    lines = []
    for place, sentences in places.items():
        lines += _wrapped(f"{place}:", width, indent="  ") if place else []
        for said in sentences:
            lines += _wrapped(said, width, indent="    " if place else "  ")
    return lines


def _quality(one: Quality) -> str:
    bounds = ""
    if one.interval is not None:
        low, high, level = (one.interval[name] for name in ("low", "high", "level"))
        bounds = f", {100 * level:g} % interval {low:.4f} to {high:.4f}"
    name = clean(one.key[0], limit=60)
    return f"{name}: {clean(one.metric or 'quality')} {one.low:.4f}{bounds}"


def _flips(found: Flips) -> str:
    a, b = (clean(name, limit=60) for name in found.pair.names)
    if found.flips is None:
        return f"{a} and {b}: not compared, {clean(found.why, limit=200)}"
    named = ", ".join(clean(one, limit=60) for one in found.ids[:_NAMED])
    more = f" and {found.flips - _NAMED:,} more" if found.flips > _NAMED else ""
    ids = f": {named}{more}" if named else ""
    return f"{a} and {b}: {found.flips:,} of {found.entries:,}{ids}"


def decision_lines(decision: Decision, *, width: int = WIDTH) -> list[str]:
    """Return the balance as a table with one row a configuration, the answer, and the notes.

    The first cell marks the chosen one (``*``), the tied ones (``=``) and those that are not
    admissible (``x``), whose reasons follow on a line of their own.
    """
    width = max(width, 60)
    heads = ("committed", "accepted", "failed", "median s", "window h")
    label = width - 2 - sum(len(head) + 2 for head in heads)
    lines = ["  " + _cut("configuration", label) + "".join(f"  {head}" for head in heads)]
    for row in decision.rows:
        cells = zip(_cells(row), heads, strict=True)
        figures = "".join(f"  {cell:>{len(head)}}" for cell, head in cells)
        name = _cut(clean(row.configuration), label)
        lines.append(f"{_mark(row, decision)} {name}{figures}")
        if cell_len(clean(row.configuration)) > label:
            lines += _wrapped(clean(row.configuration), width, indent="    ")
        if row.reasons:
            lines += _wrapped(f"not admissible: {', '.join(row.reasons)}", width, indent="    ")
    lines += ["", *_wrapped(answer(decision), width)]
    for note in decision.notes:
        lines += _wrapped(note, width)
    return lines


def answer(decision: Decision) -> str:
    """Return the answer as one sentence."""
    spent = decision.committed_usd
    stays = "" if spent is None else f" {money(spent)} USD stay committed."
    if decision.outcome == "decided":
        return f"Decided: {clean(decision.configuration, limit=120)}."
    if decision.outcome == "tied":
        names = ", ".join(clean(name, limit=80) for name in decision.tied)
        return f"Tied: {names}.{stays}"
    return f"Undecided: no configuration is admissible.{stays}"


def _cells(row: BalanceRow) -> tuple[str, ...]:
    committed = row.rental.committed_usd
    medians = [group.median_s for group in row.groups]
    return (
        "-" if committed is None else money(committed),
        f"{row.accepted_deliverables} of {len(row.verdicts)}",
        f"{row.failures}/{row.planned_attempts}",
        # Medians of several deliverables, seeds or hosts are never pooled (R28).
        _figure(medians[0]) if len(medians) == 1 else "apart" if medians else "-",
        "-" if row.rental.window_hours is None else f"{row.rental.window_hours:g}",
    )


def _mark(row: BalanceRow, decision: Decision) -> str:
    if row.configuration == decision.configuration:
        return "*"
    if row.configuration in decision.tied:
        return "="
    return " " if row.admissible else "x"


def _dots(values: Iterable[float], low: float, high: float, axis: int, dot: str) -> list[str]:
    """Return the rows of a dot plot, the base last; a stack above the tallest shown ends in +."""
    counts = [0] * axis
    for value in values:
        share = (value - low) / (high - low) if high > low else 0.0
        counts[round(share * (axis - 1))] += 1
    height = min(max(counts, default=0), _TALLEST)
    rows = []
    for level in range(max(height, 1), 0, -1):
        more = ["+" if n > _TALLEST and level == _TALLEST else dot for n in counts]
        rows.append("".join(m if n >= level else " " for m, n in zip(more, counts, strict=True)))
    return rows


def _other_outcomes(group: Durations) -> str:
    parts = [
        f"{getattr(group, word)} {word}"
        for word in ("failed", "stopped", "interrupted", "excluded")
        if getattr(group, word)
    ]
    return ", ".join(parts)


def _place(group: Durations, *, host: bool = True) -> str:
    return _where(group.deliverable, group.seed, group.host if host else None)


def _where(deliverable: str | None, seed: int | None, host: str | None) -> str:
    parts = []
    if deliverable is not None:
        parts.append(deliverable)
    if seed is not None:
        parts.append(f"seed {seed}")
    if host is not None:
        parts.append(f"on {host}")
    return clean(", ".join(parts), limit=120)


def _figure(value: float | None) -> str:
    """Return seconds with four significant digits, within eight characters."""
    if value is None:
        return "-"
    if 1000 <= value < 10_000_000:
        return f"{value:.0f}"
    if value >= 1000:
        return f"{value:.1e}"
    whole = f"{value:.4g}"
    return whole if len(whole) <= _FIGURE - 1 else f"{value:.3g}"


def _cut(text: str, cells: int) -> str:
    """Return a text of exactly so many cells, shortened with an ellipsis where it is longer."""
    if cell_len(text) > cells:
        return set_cell_size(text, cells - 3) + "..."
    return set_cell_size(text, cells)


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Break a paragraph at spaces, and words longer than a line anywhere; counts cells."""
    room = max(width - len(indent), 20)
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        rest = word
        if line and cell_len(f"{line} {rest}") <= room:
            line = f"{line} {rest}"
            continue
        if line:
            lines.append(line)
        while cell_len(rest) > room:
            part = set_cell_size(rest, room)
            # A wide character that does not fit was replaced by a space: it goes to the next line.
            kept = part if rest.startswith(part) else part[:-1]
            lines.append(kept)
            rest = rest[len(kept) :]
        line = rest
    return [indent + part for part in [*lines, line]]
