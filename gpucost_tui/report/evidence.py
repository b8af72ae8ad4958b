"""The last part of a note: machines, what it does not show, hashes (R2, R4, R9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpucost_tui import __version__
from gpucost_tui.analysis.stack import WHOLE, stack_differences
from gpucost_tui.report.blocks import Block, Bullets, Code, Heading, Paragraph, Strong, Table, Text
from gpucost_tui.report.gather import Facts
from gpucost_tui.text import clean, size

_NOT_SHOWN = (
    "Interactive serving: arrivals, concurrency and latency of requests are another question.",
    "Training, or fine-tuning to convergence.",
    "Other data, other models, another length of text, another month: what was accepted is the "
    "corpus named above and nothing beyond it.",
    "It is no MLPerf run and no certification, though data, quality target and scenario are kept "
    "apart in the same spirit.",
    "Durations are of one machine of each kind: another of the same model may differ.",
)
_NONE = "-"


def evidence_blocks(facts: Facts, form: int) -> Iterator[Block]:
    """Yield hosts with differing stacks, limits, hashes."""
    yield from _hosts(facts)
    yield Heading(2, "What this does not show")
    yield Bullets(_NOT_SHOWN)
    yield Heading(2, "Evidence")
    yield Bullets(list(_hashes(facts)))
    heads = "".join(f" --head {head}" for head in facts.heads)
    yield Paragraph(
        (
            "Everything above is recomputed from the files by ",
            Code("gpucost verify DIR"),
            ". Keep the hashes elsewhere: only ",
            Code(f"gpucost verify DIR{heads}"),
            " shows that nobody rewrote all the files, this note included.",
        )
    )
    yield Paragraph(f"Note format {form}, written by gpucost-tui {__version__}.")


def _hashes(facts: Facts) -> Iterator[Text]:
    yield (Strong("Manifest "), Code(facts.together.manifest.sha256))
    members = zip(facts.together.members, facts.heads, strict=True)
    for number, (member, head) in enumerate(members, 1):
        which = f" of folder {number}" if len(facts.heads) > 1 else ""
        yield (
            Strong(f"Journal head{which} "),
            Code(head),
            f" (line {member.events[-1].seq})",
        )
    sealed = facts.together.manifest
    for deliverable in (d.name for d in sealed.protocol.deliverables):
        yield (Strong(f"Corpus of {deliverable} "), Code(str(sealed.corpus(deliverable)["sha256"])))
    yield (Strong("Model "), Code(sealed.model_sha256))


def _hosts(facts: Facts) -> Iterator[Block]:
    yield Heading(2, "Machines")
    hosts = facts.together.hosts()
    rows: list[list[Text]] = [[name, *_host(record)] for name, record in hosts.items()]
    headers = ["host", "GPU", "driver", "framework", "CPU", "memory", "system"]
    if rows:
        yield Table(headers, rows)
    else:
        yield Paragraph("No machine is recorded yet.")
    there = {name: record for name, record in hosts.items() if record is not None}
    differing = stack_differences(there)
    if differing:
        yield Paragraph(WHOLE, mark=True)
        names = list(there)
        entries: list[list[Text]] = [
            [one.entry, *(clean(one.values[name], limit=120) for name in names)]
            for one in differing
        ]
        yield Table(["entry", *names], entries)


def _host(record: Mapping[str, Any] | None) -> list[str]:
    if record is None:
        return ["the record is not here", *[_NONE] * 5]
    gpus = record.get("gpus") or _of(record, "framework").get("devices") or []
    driver, software = _of(record, "driver"), _of(record, "software")
    build, cpu = _of(record, "torch_build"), _of(record, "cpu")
    backend = build.get("cuda") or build.get("hip") or "CPU"
    memory = _of(record, "memory").get("total_bytes")
    system = _of(record, "os")
    return [
        ", ".join(str(gpu.get("name")) for gpu in gpus if isinstance(gpu, Mapping)) or "none",
        _words(driver, ("vendor", "driver", "version")),
        f"torch {software.get('torch') or 'not known'} ({backend}), "
        f"transformers {software.get('transformers') or 'not known'}",
        str(cpu.get("model") or _NONE),
        size(memory if isinstance(memory, int) else None),
        _words(system, ("name", "pretty", "version", "kernel")),
    ]


def _of(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = record.get(key)
    return value if isinstance(value, Mapping) else {}


def _words(table: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return " ".join(str(table[key]) for key in keys if table.get(key)) or _NONE
