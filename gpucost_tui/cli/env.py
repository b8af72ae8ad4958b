"""``gpucost env``: what is installed on this machine (R8, R9)."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from gpucost_tui.text import clean, size

_WIDTH = 80
_LABEL = 15


@click.command(short_help="Show what is installed on this machine.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.option(
    "--torch/--no-torch",
    "with_torch",
    default=True,
    help="Ask torch too, in a process of its own (some seconds). [default: --torch]",
)
@click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda|cuda:N",
    help="The device that a run would be given: it is marked.",
)
def env(as_json: bool, with_torch: bool, device: str) -> None:
    """Show what is installed on this machine: system, devices, driver, software.

    This is the host record that every attempt refers to. It holds no host name, user name, home
    folder or token.
    """
    from gpucost_tui.environment import framework
    from gpucost_tui.environment.host import host_id, host_record

    if not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,4})?", device):
        raise click.BadParameter(
            f"'{clean(device, limit=40)}' is none of: auto, cpu, cuda, cuda:N.",
            param_hint="--device",
        )
    told = None
    if with_torch:
        click.echo("Asking torch (some seconds; --no-torch leaves it out) …", err=True)
        told = framework.ask()
    record = host_record(framework=told, device=device)
    if as_json:
        click.echo(json.dumps({"host": host_id(record), **record}, indent=2, ensure_ascii=False))
        return
    for line in table(host_id(record), record):
        click.echo(line)


def table(host: str, record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a host record, at most 80 columns wide."""
    yield from _line("host", host)
    for label, text in (*_system(record), *_software(record)):
        yield from _line(label, text)
    yield from _devices(record)
    yield from _framework(record)


def _line(label: str, text: object) -> Iterator[str]:
    wrapped = textwrap.wrap(
        clean(text), _WIDTH - _LABEL, break_on_hyphens=False, break_long_words=True
    )
    for number, part in enumerate(wrapped or ["-"]):
        yield f"{label if number == 0 else '':<{_LABEL}}{part}"


def _system(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    system, cpu, memory = record["os"], record["cpu"], record["memory"]
    yield "system", f"{system['name']}, kernel {system['kernel']}, {system['arch']}"
    if record["product"]:
        yield "machine", record["product"]
    cores = f"{cpu['physical_cores'] or '?'} cores, {cpu['logical_cores']} threads"
    usable = f"{cpu['usable_cores']} usable"
    quota = f", quota {cpu['quota_cores']:g}" if cpu["quota_cores"] else ""
    yield "processor", f"{cpu['model'] or 'unknown'}: {cores}, {usable}{quota}"
    limit = f", limited to {size(memory['limit_bytes'])}" if memory["limit_bytes"] else ""
    yield "memory", f"{size(memory['total_bytes'])}{limit}"
    yield "container", record["container"] or "none seen"


def _software(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    program = record["program"]
    commit = program["commit"] or program["missing"].get("commit", "no commit")
    changed = ", changed since" if program["modified"] else ""
    yield "gpucost", f"{program['version']} ({commit[:40]}{changed})"
    versions = record["software"]
    yield "software", ", ".join(f"{n} {v or 'not installed'}" for n, v in versions.items())
    hub = record["huggingface"]
    state = "offline" if hub["offline"] else "online"
    models = hub["cached_models"]
    cached = hub["missing"].get("cached_models") if models is None else f"{models} cached models"
    yield "Hugging Face", f"{state}, {cached}, HF_HOME {hub['HF_HOME']}, token {hub['token']}"
    for name, value in record["settings"].items():
        yield "setting", f"{name}={value}"


def _devices(record: dict[str, Any]) -> Iterator[str]:
    driver, gpus = record["driver"], record["gpus"]
    if not gpus:
        yield from _line("GPUs", f"none: {record['missing'].get('gpus', 'no reason known')}")
        return
    parts = [f"{name} {driver[name]}" for name in ("driver", "cuda", "rocm") if name in driver]
    yield from _line("driver", f"{driver['vendor']}: {', '.join(parts) or 'no version told'}")
    used = [gpu for gpu in gpus if gpu["used"]]
    reason = gpus[0]["missing"].get("used")
    marked = f"{len(used)} used (marked *)" if used else f"none marked: {reason}"
    yield from _line("GPUs", f"{len(gpus)} listed, {marked}")
    for gpu in gpus:
        yield from _device(gpu)


def _device(gpu: dict[str, Any]) -> Iterator[str]:
    mark = "*" if gpu["used"] else " "
    hidden = "" if gpu["visible"] else ", not visible to this program"
    kind = gpu["compute_capability"] or gpu["gfx_target"]
    title = f"{gpu['name']}, {size(gpu['capacity_bytes'])}, {kind or 'unknown target'}{hidden}"
    yield from _line(f"  {mark} {gpu['index']}", title)
    modes = [f"ECC {_switch(gpu['ecc'])}"]
    if gpu["vendor"] == "nvidia":
        modes.append(f"MIG {gpu['mig_mode'] or 'not supported'}")
        modes.append(f"persistence {_switch(gpu['persistence'])}")
    elif gpu["compute_partition"]:
        modes.append(f"partition {gpu['compute_partition']}")
    if gpu["power_limit_w"] is not None:
        modes.append(f"limit {gpu['power_limit_w']:.0f} W")
    yield from _line("", f"{gpu['uuid'] or 'no UUID'}; {', '.join(modes)}")
    for part in gpu["partitions"]:
        sign = "*" if part["uuid"] == gpu["used_partition"] else " "
        yield from _line(f"    {sign} MIG", f"{part['uuid']}, {size(part['capacity_bytes'])}")


def _switch(value: bool | None) -> str:
    return "unknown" if value is None else "on" if value else "off"


def _framework(record: dict[str, Any]) -> Iterator[str]:
    built, told = record["torch_build"], record["framework"]
    kinds = [("CUDA", built["cuda"]), ("ROCm", built["hip"])]
    build = ", ".join(f"{kind} {version}" for kind, version in kinds if version) or "CPU only"
    if told["available"] is None:
        seen = told["missing"].get("available", "")
    else:
        seen = f"sees {len(told['devices'] or [])} devices" if told["available"] else "sees no GPU"
    cudnn = f", cuDNN {told['cudnn']}" if told["cudnn"] else ""
    yield from _line("torch build", f"{build}{cudnn}; {seen}")
    if built["cuda"]:
        answer = record["cuda"]
        dated = f"({answer['source']}, {answer['table_date']})"
        yield from _line("CUDA", f"{answer['sentence']} {dated}")
    if record["rocm"]:
        rocm = record["rocm"]
        yield from _line(
            "ROCm matrix", f"{rocm['status']}: {rocm['reason']} (snapshot {rocm['snapshot']})"
        )
