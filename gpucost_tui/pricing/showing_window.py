"""Windows and schedules as lines of text: for the command, and for the pricing pane.

No line is wider than 80 columns unless a single word is.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gpucost_tui.pricing.answer import WindowAnswer
from gpucost_tui.pricing.candidates import Candidate, HourlyEstimate, amount_of, ranked
from gpucost_tui.pricing.price_list import PACK_DAYS
from gpucost_tui.pricing.schedule import Schedule
from gpucost_tui.pricing.showing import WIDTH, cells, fitted, padded, wrapped
from gpucost_tui.pricing.window import hours_text
from gpucost_tui.text import clean, count, money

_PER_GPU = 3


def window_lines(answer: WindowAnswer, *, gpu: str | None, with_hourly: bool) -> list[str]:
    """Say how long a window is, what covers it and at what price (R33, R34)."""
    lines = _length_lines(answer)
    lines += _covering_lines(answer)
    if with_hourly:
        lines += ["", "Commitments and pay-as-you-go estimates, ranked together as asked:"]
        items = ranked(answer.candidates, answer.hourly)
        lines += _table(
            [_candidate_cells(i) if isinstance(i, Candidate) else _hourly_cells(i) for i in items]
        )
        return [*lines, *_unpriced_lines(answer), *_caveats(answer)]
    if answer.candidates:
        lots = f"{count(answer.lots, 'lot')} each"
        packs = f", {answer.periods} packs in sequence" if answer.periods > 1 else ""
        lines += ["", f"Candidates by committed price ({lots}{packs}):"]
        lines += candidate_lines(answer.candidates)
    elif answer.covering_in_sequence:
        lines += ["", "No pack that covers it has a price in the catalogue."]
    lines += _unpriced_lines(answer)
    return [*lines, *_hourly_lines(answer, everything=gpu is not None), *_caveats(answer)]


def _length_lines(answer: WindowAnswer) -> list[str]:
    hours = hours_text(answer.seconds)
    if answer.window is None:
        return [f"{hours} h, by the schedule."]
    window = answer.window
    zone = clean(window.timezone) if window.timezone else "as given by offsets"
    return [
        f"{hours} h of elapsed time ({zone})",
        f"  from {window.start.isoformat()}",
        f"  to   {window.end.isoformat()}",
    ]


def _covering_lines(answer: WindowAnswer) -> list[str]:
    if answer.covering:
        said = [f"{days} days ({days * 24} h)" for days in answer.covering]
        return [f"Packs that cover it: {', '.join(said)}."]
    if answer.covering_in_sequence:
        days = " or ".join(str(days) for days in answer.covering_in_sequence)
        lines = [f"No single pack covers it; {answer.periods} in sequence do, of {days} days each."]
        if answer.candidates:
            return lines
    else:
        lines = [f"No single pack covers it: the longest lasts {PACK_DAYS[-1] * 24} h."]
    for way in answer.ways:
        lines += wrapped(way)
    return lines


def candidate_lines(items: Sequence[Candidate]) -> list[str]:
    """Return candidates as lines of a table, in the order given."""
    return _table([_candidate_cells(item) for item in items])


def _unpriced_lines(answer: WindowAnswer) -> list[str]:
    if not answer.unpriced:
        return []
    lines = ["Cover it, and have no price in the catalogue:"]
    for row in answer.unpriced:
        lines += wrapped(
            f"{clean(row.provider)}, {row.gpu}, {row.days} days: {clean(row.missing_reason)} "
            f"({row.catalogue_date})"
        )
    return lines


def _hourly_lines(answer: WindowAnswer, *, everything: bool) -> list[str]:
    if not answer.hourly:
        return []
    shown: list[HourlyEstimate] = []
    per_gpu: dict[str, int] = {}
    for item in answer.hourly:
        per_gpu[item.offer.gpu] = per_gpu.get(item.offer.gpu, 0) + 1
        if everything or per_gpu[item.offer.gpu] <= _PER_GPU:
            shown.append(item)
    lines = [
        "",
        "Pay-as-you-go estimates for the same hours: another billing kind, no commitment,",
        "not ranked with the packs; prices as observed on the day named:",
        *_table([_hourly_cells(item) for item in shown]),
    ]
    rest = len(answer.hourly) - len(shown)
    return [*lines, f"  and {rest} more: --gpu shows all of one GPU"] if rest else lines


def _caveats(answer: WindowAnswer) -> list[str]:
    if not answer.candidates:
        return []
    return ["", "A pack that covers the window does not prove that the work ends in time (R33)."]


def _candidate_cells(item: Candidate) -> tuple[str, ...]:
    row = item.row
    pack = f"{row.days} days" if item.periods == 1 else f"{item.periods} x {row.days} days"
    gpus = count(item.gpus, "GPU")
    source = f"catalogue {row.catalogue_date}"
    return (money(amount_of(item)), "USD", pack, row.gpu, gpus, clean(row.provider), source)


def _hourly_cells(item: HourlyEstimate) -> tuple[str, ...]:
    offer = item.offer
    gpus = f"{item.gpus:f} GPU" + ("" if item.gpus == 1 else "s")
    source = f"observed {offer.observed_on}"
    amount = f"~{money(amount_of(item))}"
    return (amount, "USD", offer.provisioning, offer.gpu, gpus, clean(offer.provider), source)


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    limits = (16, 3, 12, 16, 10, 12, 20)
    cut = [[fitted(cell, limit) for cell, limit in zip(row, limits, strict=True)] for row in rows]
    if not cut:
        return ["  none"]
    widths = [max(map(cells, column)) for column in zip(*cut, strict=True)]
    lines = []
    for row in cut:
        first = " " * (widths[0] - cells(row[0])) + row[0]
        rest = (padded(cell, width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([f" {first}", *rest]).rstrip())
    return lines


def timeline_lines(plan: Schedule, width: int = WIDTH) -> list[str]:
    """Draw a schedule as bars: one line a task, work solid, waits light.

    Args:
        plan: The schedule.
        width: Columns that no line exceeds, at least 40.
    """
    total = max(plan.seconds / 3600, Fraction(1, 10**9))
    names = [fitted(clean(item.task), 24) for item in plan.timeline]
    spans = [f"{_hours(item.start_h)}-{_hours(item.end_h)} h" for item in plan.timeline]
    name_width, span_width = max(map(cells, names)), max(map(len, spans))
    bar_width = width - name_width - span_width - 4
    if bar_width < 8:
        name_width, bar_width = 8, max(width - span_width - 12, 4)
    lines = []
    for name, span, item in zip(names, spans, plan.timeline, strict=True):
        begin = min(int(item.start_h / total * bar_width), bar_width - 1)
        end = max(int(-(-item.end_h * bar_width // total)), begin + 1)
        mark = "░" if item.kind == "wait" else "█"
        bar = " " * begin + mark * (min(end, bar_width) - begin)
        shown = padded(fitted(name, name_width), name_width)
        lines.append(f"{shown}  {padded(bar, bar_width)}  {span}")
    if any(item.kind == "wait" for item in plan.timeline):
        lines.append("█ work  ░ wait, during which the rental is kept")
    return lines


def _hours(hours: Fraction) -> str:
    return hours_text(round(hours, 2) * 3600)
