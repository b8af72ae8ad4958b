"""What could settle a pair that its durations do not settle (R26).

Two answers: how many more whole rounds, judging by the spread observed so far, and which causes
the data themselves suggest. Every suggestion comes with the figures that it rests on; none is a
reason to leave a pass out by itself (R24).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from statistics import median

import numpy as np

from gpucost_tui.analysis.durations import Durations, measured
from gpucost_tui.analysis.ranksum import tail_at
from gpucost_tui.analysis.settled import ALPHA, INTERVAL_FROM, Rule, Settlement, least_passes
from gpucost_tui.text import clean, count

#: Phases inside the measured pass (R16).
PHASES = ("read_s", "tokenize_s", "transfer_s", "forward_s", "materialize_s")
#: The search for a number of rounds ends here.
_MOST_ROUNDS = 200
_MEMORY_STEP = 256 << 20


def could_settle(
    a: Durations,
    b: Durations,
    verdict: Settlement,
    rule: Rule,
    rounds: int,
    max_rounds: int | None = None,
) -> tuple[str, ...]:
    """Return sentences on what could settle an unsettled pair.

    Args:
        a: Durations of the one variant.
        b: Durations of the other.
        verdict: What they settle so far.
        rule: The sealed rule.
        rounds: Rounds so far, extensions included.
        max_rounds: The sealed maximum; ``None``: not known (a table).
    """
    return (_rounds_sentence(a, b, verdict, rule, rounds, max_rounds), *causes(a, b))


def rounds_to_add(
    a: Durations,
    b: Durations,
    verdict: Settlement,
    rule: Rule,
    rounds: int,
    max_rounds: int | None = None,
) -> int | None:
    """Return how many whole rounds could settle an unsettled pair, judging by the spread so far.

    None where no number is expected to, or the sealed maximum leaves no room for it.
    """
    fewest = min(len(a.durations_s), len(b.durations_s))
    least = least_passes(verdict.pairs) if verdict.rule == "range" else 0
    short = verdict.planned - fewest
    short = short if short > 0 else least - fewest
    if short > 0:
        found: int | None = short
    elif not verdict.gap_s or rule == "range":
        found = None
    else:
        found = more_rounds(a, b, verdict, rounds)
    if found is None or (max_rounds is not None and rounds + found > max_rounds):
        return None
    return found


def causes(*groups: Durations) -> tuple[str, ...]:
    """Return a sentence for every cause of spread that the data of these groups suggest."""
    found: list[str] = []
    for group in groups:
        found.extend(_of_one(group))
    found.extend(_drift(groups))
    return tuple(dict.fromkeys(found))


@functools.lru_cache(maxsize=256)
def _of_one(group: Durations) -> tuple[str, ...]:
    """Return the causes that one group alone suggests; it stands in many pairs of a series."""
    looks = (_first_pass, _incident, _phase, _device_memory)
    name = _named(group)
    found = [f"{name}: {sentence}" for look in looks for sentence in look(group)]
    return (*found, *_noted(group))


def more_rounds(a: Durations, b: Durations, verdict: Settlement, rounds: int) -> int | None:
    """Estimate how many whole rounds more the interval rule needs, at least to its tenth.

    The observed durations stand for the spread: the share of pairs (a_i, b_j) in which the one is
    slower is kept, and the rounds are increased until the exact interval at the strictest of
    Holm's levels would leave out zero. ``None``: not within 200 rounds, or the gap does not exceed
    the interquartile range, which more rounds do not narrow.
    """
    one, other = np.asarray(a.durations_s), np.asarray(b.durations_s)
    quarter = np.percentile(one, [25, 75]), np.percentile(other, [25, 75])
    iqr = max(float(q[1] - q[0]) for q in quarter)
    if abs(float(np.median(one) - np.median(other))) <= iqr:
        return None
    differences = np.subtract.outer(other, one)
    against = min(float((differences <= 0).mean()), float((differences >= 0).mean()))
    for total in range(max(INTERVAL_FROM, rounds + 1), _MOST_ROUNDS + 1):
        u = int(np.ceil(against * total * total))
        if 2 * tail_at(total, total, u) <= ALPHA / max(verdict.pairs, 1):
            return total - rounds
    return None


def _rounds_sentence(
    a: Durations,
    b: Durations,
    verdict: Settlement,
    rule: Rule,
    rounds: int,
    max_rounds: int | None,
) -> str:
    fewest = min(len(a.durations_s), len(b.durations_s))
    short = verdict.planned - fewest
    if short > 0:
        more = count(short, "more whole round")
        return f"{more} would make good the missing durations{_ceiling(rounds, short, max_rounds)}."
    if verdict.rule == "range" and (short := least_passes(verdict.pairs) - fewest) > 0:
        more, limit = count(short, "more whole round"), _ceiling(rounds, short, max_rounds)
        return f"{more} would give the range rule enough durations{limit}."
    if verdict.gap_s is None:
        return "There are no durations to judge by."
    if verdict.gap_s == 0:
        return "The medians are equal: no number of rounds is expected to settle them."
    if rule == "range":
        return (
            "The sealed rule reads ranges, and ranges only grow: more rounds can't settle it, "
            "a smaller spread could."
        )
    more_needed = more_rounds(a, b, verdict, rounds)
    if more_needed is None:
        return (
            "Judging by the spread so far, more rounds alone will not settle it: the gap of "
            f"{verdict.gap_s:.4g} s is small beside the spread. Look for the cause of the spread."
        )
    limit = _ceiling(rounds, more_needed, max_rounds)
    return (
        f"Judging by the spread so far, {count(more_needed, 'more whole round')} "
        f"(to {rounds + more_needed}) could settle it{limit}."
    )


def _ceiling(rounds: int, more: int, max_rounds: int | None) -> str:
    if max_rounds is None or rounds + more <= max_rounds:
        return ""
    return f"; the sealed maximum is {max_rounds}"


def _named(group: Durations) -> str:
    seed = None if group.seed is None else f"seed {group.seed}"
    host = None if group.host is None else f"on {group.host}"
    place = [part for part in (group.deliverable, seed, host) if part is not None]
    return clean(f"{group.variant} ({', '.join(place)})" if place else group.variant, limit=160)


def _first_pass(group: Durations) -> Iterable[str]:
    first, rest = group.durations_s[:1], group.durations_s[1:]
    if len(rest) < 3 or first[0] <= max(rest):
        return
    if first[0] - max(rest) > max(max(rest) - min(rest), 0.02 * median(rest)):
        yield (
            f"the first pass took {first[0]:.4g} s, all later ones {_span(rest)}: "
            "warm-up, page cache or compilation may reach into it."
        )


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return f"{low} s" if low == high else f"{low} to {high} s"


def _incident(group: Durations) -> Iterable[str]:
    """One later pass that stands alone: farther from the others than their whole range."""
    values = group.durations_s
    if len(values) < 4:
        return
    slowest = int(np.argmax(values))
    rest = values[:slowest] + values[slowest + 1 :]
    alone = values[slowest] - max(rest) > max(max(rest) - min(rest), 0.02 * median(rest))
    if slowest == 0 or not alone:
        return
    attempt = group.attempts[slowest]
    which = f"attempt {attempt}" if attempt is not None else f"the pass number {slowest + 1}"
    yield (
        f"{which} took {values[slowest]:.4g} s, the others {_span(rest)}: "
        "look in its notes for what else ran. It stays, unless a sealed cause applies."
    )


def _phase(group: Durations) -> Iterable[str]:
    """The phase whose variation carries at least half of the variance of the passes."""
    rows = measured(group.rows)
    totals = rows["pass_s"].to_numpy()
    if len(totals) < 4 or float(np.var(totals)) == 0:
        return
    shares = {}
    for phase in PHASES:
        if rows[phase].null_count() == 0:
            values = rows[phase].to_numpy()
            shares[phase] = float(np.mean((values - values.mean()) * (totals - totals.mean())))
    if not shares:
        return
    phase = max(shares, key=lambda name: shares[name])
    share = shares[phase] / float(np.var(totals))
    if share >= 0.5:
        low, high = float(rows[phase].min()), float(rows[phase].max())  # type: ignore[arg-type]
        yield (
            f"{phase} carries {100 * min(share, 1):.0f} % of the variance of the passes "
            f"({low:.4g} to {high:.4g} s): look there first."
        )


def _device_memory(group: Durations) -> Iterable[str]:
    """Memory on the device that this process did not reserve, where it changes between passes."""
    rows = measured(group.rows)
    foreign = (rows["peak_device_used_bytes"] - rows["peak_reserved_bytes"]).drop_nulls()
    if len(foreign) < 2:
        return
    low, high = int(foreign.min()), int(foreign.max())  # type: ignore[arg-type]
    if high - low > _MEMORY_STEP:
        yield (
            f"memory on the device outside this process's allocator went from {low >> 20:,} to "
            f"{high >> 20:,} MiB between passes: another process may have used the device."
        )


def _noted(group: Durations) -> Iterable[str]:
    """Notes that speak of other processes, of temperature or of clocks."""
    words = ("other process", "temperature", "clock", "throttl")
    for attempt, note in group.rows.select("attempt", "notes").rows():
        if note and any(word in note.lower() for word in words):
            which = f"attempt {attempt}" if attempt is not None else "a pass"
            yield f"{_named(group)}: {which} has the note '{clean(note, limit=160)}'."


def _drift(groups: Iterable[Durations]) -> Iterable[str]:
    """A trend over the rounds that the groups share: each duration over its group's median."""
    from scipy.stats import kendalltau, theilslopes

    when: list[float] = []
    level: list[float] = []
    for group in groups:
        if len(group.durations_s) < 3:
            continue
        middle = median(group.durations_s)
        for at, (number, value) in enumerate(zip(group.rounds, group.durations_s, strict=True)):
            when.append(float(at + 1 if number is None else number))
            level.append(value / middle)
    if len(level) < 6 or len(set(level)) < 2 or len(set(when)) < 2:
        return
    p = float(kendalltau(when, level).pvalue)
    slope = float(theilslopes(level, when)[0])
    change = slope * (max(when) - min(when))
    if p < 0.01 and abs(change) >= 0.005:
        word = "slower" if change > 0 else "faster"
        yield (
            f"Passes got {word} from round to round, about {100 * abs(change):.2g} % from the "
            f"first to the last (rank correlation with the round, p = {p:.2g}): temperature, "
            "clocks or a filling disk may drift."
        )


def one_host(groups: Iterable[Durations]) -> tuple[str, ...]:
    """Return a sentence for every variant whose spread is much larger on one host than elsewhere.

    The comparison is range over median, among hosts with at least four durations.
    """
    by_work: dict[tuple[str, str | None, int | None], dict[str, float]] = {}
    for group in groups:
        if group.host is None or len(group.durations_s) < 4:
            continue
        spread = (max(group.durations_s) - min(group.durations_s)) / median(group.durations_s)
        key = (group.variant, group.deliverable, group.seed)
        by_work.setdefault(key, {})[group.host] = spread
    found = []
    for (variant, *_), hosts in by_work.items():
        if len(hosts) < 2:
            continue
        worst = max(hosts, key=lambda name: hosts[name])
        others = max(value for name, value in hosts.items() if name != worst)
        if hosts[worst] > 3 * others and hosts[worst] > 0.01:
            found.append(
                f"{clean(variant, limit=60)}: the durations spread over "
                f"{100 * hosts[worst]:.2g} % of the median on {clean(worst, limit=60)}, and over "
                f"{100 * others:.2g} % at most elsewhere: look at that host's temperature, "
                "clocks and other processes."
            )
    return tuple(found)
