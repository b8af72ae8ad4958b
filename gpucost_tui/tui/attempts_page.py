"""One attempt's details as content for the screen, as wide as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from textual.content import Content

from gpucost_tui.campaign.peaks import reached
from gpucost_tui.text import clean, seconds, size
from gpucost_tui.tui.attempts_columns import shown_value
from gpucost_tui.tui.attempts_details import Details
from gpucost_tui.tui.safe import filled, fit, plain, state_word

_BEFORE = ("install_s", "download_s", "load_s", "compile_s", "warmup_s")
_INSIDE = ("read_s", "tokenize_s", "transfer_s", "forward_s", "materialize_s")
_AFTER = ("evaluate_s", "write_s")
_PHASES = (*_BEFORE, "pass_s", *_INSIDE, *_AFTER)
_MEMORY = {
    "peak_allocated_bytes": "allocated: tensors of this process",
    "peak_reserved_bytes": "reserved: its allocator",
    "peak_device_used_bytes": "device used: every process, sampled at 10 Hz",
    "peak_rss_bytes": "host memory of the measuring process",
}
#: field of one device's memory -> its word
_BY_DEVICE = {
    "allocated_bytes": "allocated",
    "reserved_bytes": "reserved",
    "used_bytes": "used by all",
    "own_bytes": "used by this process",
    "capacity_bytes": "capacity",
}
_ELSEWHERE = {*_PHASES, *_MEMORY, "notes", "missing"}
_NAME, _VALUE = 22, 12


def page(details: Details, width: int) -> Content:
    """Return everything about an attempt, in at most ``width`` cells a line where words allow."""
    parts = [
        _head(details),
        *_verdict_lines(details),
        *_phases(details, width),
        *_memory(details),
        *_parameters(details),
        *_listed("Notes", details.notes, "No note was made."),
        *_missing(details),
        *_trace(details),
    ]
    return Content("\n").join(parts)


def _section(title: str) -> Content:
    return filled("\n[b $text-accent]$x[/]", x=title)


def _head(details: Details) -> Content:
    row = details.row
    status = state_word(row["status"] or "running")
    number = row["attempt"] if row["attempt"] is not None else f"of line {details.line}"
    where = f"{_or_dash(row['variant'])}, round {_or_dash(row['round'])}"
    lines = [
        filled("[b]Attempt $n[/b]  $where  [b]$s[/b]", n=number, where=where, s=status),
        filled("[$text-muted]$c[/]", c=_or_dash(row["campaign"])),
    ]
    lines += [filled("[$text-warning]! $x[/]", x=problem) for problem in details.problems]
    return Content("\n").join(lines)


def _or_dash(value: Any) -> str:
    return "-" if value is None else clean(value, limit=120)


# The verdict


def _verdict_lines(details: Details) -> Iterator[Content]:
    row = details.row
    yield _section("Verdict")
    accepted = row["corpus_accepted"]
    if row["excluded"]:
        cause = _or_dash(row["exclusion_cause"])
        yield plain(f"{state_word('excluded')}, cause: {cause}; its row stays and it counts as one")
    if accepted is None:
        why = dict(details.missing).get("corpus_accepted", "no verdict is recorded")
        yield plain(f"none: {why}")
    else:
        yield plain(state_word("accepted" if accepted else "rejected"))
    for reason in details.reasons:
        yield filled("  [$text-error]✗[/] [b]$x[/b]", x=reason)
    if details.verdict is not None:
        yield from _identifiers(details.verdict.get("identifiers"))
        yield from _format(details.verdict.get("format"))
        yield from _quality(details.verdict.get("quality"), details.verdict.get("interval"))
        yield from _subgroups(details.verdict.get("subgroups"))
    elif row["quality"] is not None:
        said = f"{row['quality_metric'] or 'quality'} {row['quality']:.6g}"
        yield plain(f"  {said} (ok: {shown_value('quality_ok', row['quality_ok'])})")


def _identifiers(found: Any) -> Iterator[Content]:
    if not isinstance(found, dict):
        return
    expected, observed = found.get("expected_ids"), found.get("observed_ids")
    mark = "✓" if found.get("ids_match") else "✗"
    yield plain(f"  {mark} identifiers: {observed} predictions for {expected} entries")
    for name in ("missing", "extra", "duplicates"):
        ids, number = found.get(name), found.get(f"{name}_count")
        if number and isinstance(ids, list):
            shown = ", ".join(clean(one, limit=40) for one in ids[:8])
            yield plain(f"      {number} {name}: {shown}{' …' if number > 8 else ''}")


def _format(found: Any) -> Iterator[Content]:
    if not isinstance(found, list):
        return
    yield plain(f"  {'✗' if found else '✓'} format")
    for problem in found[:20]:
        yield plain(f"      {clean(problem, limit=400)}")


def _quality(found: Any, interval: Any) -> Iterator[Content]:
    if not isinstance(found, dict):
        return
    parts = [f"{found.get('metric')} {_figure(found.get('value'))}"]
    if isinstance(interval, dict):
        level, bounds = interval.get("level"), (interval.get("low"), interval.get("high"))
        said = f"{100 * level:g} % " if isinstance(level, float) else ""
        parts.append(f"{said}interval {' to '.join(_figure(bound) for bound in bounds)}")
    parts.append(f"threshold {_figure(found.get('threshold'))}")
    if "reference_value" in found:
        parts.append(f"reference variant {_figure(found.get('reference_value'))}")
        parts.append(f"tolerance {_figure(found.get('tolerance'))}")
    yield plain(f"  quality: {', '.join(parts)}")


def _subgroups(found: Any) -> Iterator[Content]:
    if not isinstance(found, list) or not found:
        return
    yield plain("  subgroups, each against the same reference:")
    for one in found[:200]:
        if not isinstance(one, dict):
            continue
        ok = one.get("ok")
        mark = "✓" if ok is True else "✗" if ok is False else "·"
        name = f"{clean(one.get('column'), limit=24)} = {clean(one.get('value'), limit=40)}"
        note = f" ({clean(one['note'], limit=60)})" if one.get("note") else ""
        yield plain(
            f"    {mark} {name}: {_figure(one.get('quality'))} of at least "
            f"{_figure(one.get('threshold'))}, {one.get('entries')} entries{note}"
        )


def _figure(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else "undefined"


# Phases and memory


def _phases(details: Details, width: int) -> Iterator[Content]:
    row, why = details.row, dict(details.missing)
    yield _section("Phases, in seconds of the host's clock; before, in and after the pass")
    longest = max((row[name] for name in _PHASES if row[name] is not None), default=0.0)
    room = max(width - _NAME - _VALUE - 3, 4)
    for name in _PHASES:
        value = row[name]
        label = f"{'   ' if name in _INSIDE else ' '}{name.removesuffix('_s')}"
        if value is None:
            rest = fit(why.get(name, "not measured"), room)
            yield filled("$a [$text-muted]$b  $c[/]", a=label.ljust(_NAME), b="-".rjust(12), c=rest)
            continue
        share = value / longest if longest else 0.0
        bar = "█" * round(share * room) or "▏"
        style = "$text-accent" if name == "pass_s" else "$text-secondary"
        yield filled(
            f"$a $b  [{style}]$c[/]", a=label.ljust(_NAME), b=seconds(value).rjust(12), c=bar
        )


def _memory(details: Details) -> Iterator[Content]:
    row, why = details.row, dict(details.missing)
    yield _section("Peak memory; scopes differ, and peaks fall at different moments: never added")
    for name, scope in _MEMORY.items():
        value = row[name]
        shown = size(value) if value is not None else f"unavailable: {why.get(name, 'no reason')}"
        yield plain(f" {shown:>12}  {scope}" if value is not None else f" {scope}: {shown}")
    if details.devices:
        yield plain(" By device:")
        for memory in details.devices:
            yield _device(memory)


def _device(memory: dict[str, Any]) -> Content:
    name = clean(memory.get("name") or "device", limit=40)
    parts = []
    for field, word in _BY_DEVICE.items():
        if isinstance(value := memory.get(field), int):
            when = reached(memory, field)
            said = f" ({clean(when[0], limit=20)}, by {when[1]:.1f} s)" if when else ""
            parts.append(f"{word} {size(value)}{said}")
    return plain(f"  {memory.get('index')}: {name}: {', '.join(parts) or 'nothing measured'}")


# The rest


def _parameters(details: Details) -> Iterator[Content]:
    yield _section("Parameters and results")
    for name, value in details.row.items():
        if name.startswith("_") or name in _ELSEWHERE or value is None:
            continue
        shown = clean(shown_value(name, value), limit=1000)
        yield filled("[$text-muted]$a[/] $b", a=f" {name}".ljust(_NAME), b=shown)


def _listed(title: str, lines: Sequence[str], none: str) -> Iterator[Content]:
    yield _section(title)
    if not lines:
        yield filled("[$text-muted] $x[/]", x=none)
    for line in lines:
        yield plain(f" {clean(line, one_line=False, limit=2000)}")


def _missing(details: Details) -> Iterator[Content]:
    yield _section("Missing values, each with its reason")
    if not details.missing:
        yield filled("[$text-muted] $x[/]", x="Nothing is missing.")
    widest = max((cell_len(name) for name, _ in details.missing), default=0)
    for name, reason in details.missing:
        yield filled("[$text-muted] $a[/]  $b", a=name.ljust(widest), b=reason)


def _trace(details: Details) -> Iterator[Content]:
    if details.trace:
        yield _section("Traceback (failure.txt)")
        yield plain(details.trace, limit=70_000)
