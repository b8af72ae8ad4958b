"""The progress file: what it keeps of memory, and how little room that takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.campaign.history import KEPT, SPAN_S, History
from gpucost_tui.campaign.progress import ProgressFile, read_progress

GIB = 1 << 30


def device(index: int, used: int | None) -> dict[str, Any]:
    values = {"allocated_bytes": 3 * GIB, "reserved_bytes": 4 * GIB, "used_bytes": used}
    return {"index": index, "name": "NVIDIA H200", "capacity_bytes": 141 * GIB, **values}


def test_eight_devices_for_hours_take_little_room(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    file = ProgressFile(path, 1, "now")
    history = History()
    for sample in range(20_000):
        history.add([device(n, 130 * GIB + sample) for n in range(8)], 99 * GIB, sample * 0.5)
    file.now.history = history.to_json()
    file.now.devices = [device(n, 130 * GIB) for n in range(8)]
    file.write(force=True)
    assert path.stat().st_size < 16_000
    kept = (read_progress(path) or {})["history"]
    assert kept["every_s"] == SPAN_S and kept["rss_mib"] == [99 * 1024] * KEPT
    assert [one["index"] for one in kept["devices"]] == list(range(8))
    assert all(len(one["used_mib"]) == KEPT for one in kept["devices"])


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(0, 3), st.one_of(st.none(), st.integers(0, 200 * GIB))), min_size=1
    )
)
def test_each_span_keeps_its_highest(samples: list[tuple[float, int | None]]) -> None:
    history, now = History(), 0.0
    spans: list[list[int]] = []
    began = None
    for wait, used in samples:
        now += wait
        if began is None or now - began >= SPAN_S:
            began = now
            spans.append([])
        if used is not None:
            spans[-1].append(round(used / (1 << 20)))
        history.add([device(0, used)], None, now)
    found = history.to_json()
    assert (
        found["devices"][0].get("used_mib", [None] * len(spans))[-KEPT:]
        == [max(span, default=None) for span in spans][-KEPT:]
    )
    assert found["rss_mib"] == [None] * min(len(spans), KEPT)
    assert json.loads(json.dumps(found)) == found


def test_devices_that_come_and_go_keep_their_places() -> None:
    history = History()
    history.add([device(0, GIB)], None, 0.0)
    history.add([device(1, 2 * GIB)], 5 * GIB, 2.0)
    history.add([], 6 * GIB, 4.0)
    found = history.to_json()
    assert [one["used_mib"] for one in found["devices"]] == [
        [1024, None, None],
        [None, 2048, None],
    ]
    assert found["rss_mib"] == [None, 5120, 6144]


def test_a_sample_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    file = ProgressFile(path, 1, "now")
    file.write(force=True)
    assert (read_progress(path) or {})["history"] == {}
    file.memory([device(0, GIB)], 2 * GIB, None)
    file.write(force=True)
    now = read_progress(path) or {}
    assert now["history"]["rss_mib"] == [2048] and now["devices"][0]["used_bytes"] == GIB
    assert now["failures"] == [] and now["state"] == "running"
