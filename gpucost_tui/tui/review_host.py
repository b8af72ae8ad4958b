"""The review's host section: what this machine really has (R9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textual.content import Content

from gpucost_tui.text import size
from gpucost_tui.tui.review_text import pair, title
from gpucost_tui.tui.safe import filled

if TYPE_CHECKING:
    from gpucost_tui.tui.review_facts import Review


def host(review: Review, width: int) -> Iterator[Content]:
    """Yield GPUs, driver, CUDA or ROCm with their look-up, and versions; gaps with their reason."""
    record = review.host
    yield filled("[b]$x[/b]  [$text-muted]this machine, now[/]", x=review.host_id)
    yield Content("")
    for label, value in (*_devices(record), *_stack(record)):
        yield pair(label, value, width)
    yield title("System")
    for label, value in _system(record):
        yield pair(label, value, width)
    missing = {k: v for k, v in record["missing"].items() if k != "gpus"}
    if missing:
        yield title("Not known here")
        for label, value in missing.items():
            yield pair(label, value, width)


def _devices(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    gpus = record["gpus"]
    if not gpus:
        yield "GPU", f"none: {record['missing'].get('gpus', 'no reason known')}"
    for gpu in gpus:
        kind = gpu["compute_capability"] or gpu["gfx_target"] or "unknown target"
        used = ", used" if gpu["used"] else "" if gpu["visible"] else ", not visible here"
        yield f"GPU {gpu['index']}", f"{gpu['name']}, {size(gpu['capacity_bytes'])}, {kind}{used}"
        yield "  UUID", gpu["uuid"] or "no UUID"


def _stack(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    driver, built = record["driver"], record["torch_build"]
    told = [f"{name} {driver[name]}" for name in ("driver", "cuda", "rocm") if driver.get(name)]
    yield "Driver", ", ".join([driver["vendor"] or "none found", *told])
    kinds = (("CUDA", built["cuda"]), ("ROCm", built["hip"]))
    yield "torch built for", ", ".join(f"{k} {v}" for k, v in kinds if v) or "CPU only"
    cuda = record["cuda"]
    dated = f" ({cuda['source']}, {cuda['table_date']})"
    yield "CUDA", cuda["sentence"] + (dated if cuda["verdict"] else "")
    rocm = record["rocm"]
    if rocm is None:
        yield "ROCm", "not asked: neither an AMD device nor a ROCm build of torch is here"
    else:
        word = {"listed": "✓ listed", "not listed": "✗ not listed"}.get(rocm["status"], "? unknown")
        yield "ROCm matrix", f"{word}: {rocm['reason']} (snapshot {rocm['snapshot']})"


def _system(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    system, cpu, memory = record["os"], record["cpu"], record["memory"]
    yield "System", f"{system['name']}, kernel {system['kernel']}, {system['arch']}"
    yield "Processor", f"{cpu['model'] or 'unknown'}, {cpu['usable_cores']} usable cores"
    yield "Memory", size(memory["total_bytes"])
    yield "Container", record["container"] or "none seen"
    program = record["program"]
    changed = ", changed since" if program["modified"] else ""
    yield "gpucost", f"{program['version']} ({(program['commit'] or 'no commit')[:12]}{changed})"
    for name, version in record["software"].items():
        yield name, version or "not installed"
    for name, value in record["settings"].items():
        yield name, value
