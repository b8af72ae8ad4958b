"""Host records: what differs by machine; beside the manifest, named by every attempt (R8)."""

from __future__ import annotations

import json
from typing import Any

from gpucost_tui.campaign.fold import State
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.environment.host import host_id, host_record
from gpucost_tui.errors import Differs
from gpucost_tui.files import canonical_json, sha256_bytes, write_atomic


def record_host(
    campaign: Campaign, journal: Journal, framework: dict[str, Any], state: State
) -> str:
    """Write this machine's host record unless it is known, and return its name.

    A changed stack (driver, torch) is another record: attempts made with it are told apart (R9).
    """
    device = campaign.manifest.protocol.execution.device
    record = host_record(framework=framework, device=device)
    name = host_id(record)
    path = campaign.host_file(name)
    if name not in state.hosts or not path.is_file():
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, json.dumps(record, indent=1, sort_keys=True).encode() + b"\n")
        sha256 = sha256_bytes(canonical_json(record))
        journal.append("host_seen", {"host": name, "record_sha256": sha256}, host=name)
        state.hosts.append(name)
    return name


def read_hosts(campaign: Campaign) -> dict[str, dict[str, Any] | None]:
    """Return the host records that the journal names, each held against its recorded checksum.

    A record whose file is not here is None.

    Raises:
        Differs: A record is not the one that was written.
    """
    found: dict[str, dict[str, Any] | None] = {}
    for event in campaign.events():
        if event.event != "host_seen":
            continue
        name = str(event.data["host"])
        path = campaign.host_file(name)
        try:
            record = json.loads(path.read_bytes())
            same = sha256_bytes(canonical_json(record)) == event.data["record_sha256"]
        except FileNotFoundError:
            found[name] = None
            continue
        except (OSError, ValueError, RecursionError, KeyError):
            same = False
        if not same or not isinstance(record, dict):
            raise Differs(
                "the host record is not the one that was written",
                where=f"hosts/{path.name}",
                fix="Restore the file from a copy of the campaign",
            )
        found[name] = record
    return found
