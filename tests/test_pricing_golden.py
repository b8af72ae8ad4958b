"""The right answers of prices, windows and schedules, by library and by command."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pricing_support import Command, golden, shipped

from gpucost_tui.errors import GpucostError
from gpucost_tui.pricing.calculator import price
from gpucost_tui.pricing.schedule import Task, schedule
from gpucost_tui.pricing.window import covering_days, hours_of, window_between
from gpucost_tui.text import money

PRICES, WINDOWS, SCHEDULES = golden("prices"), golden("windows"), golden("schedules")
#: What the sentence must tell, by the golden file's words.
TOLD = {
    "the catalogue has no price for it: the reason in the cell is shown": (
        "no price",
        "not stated by the source",
        "2026-09-24",
        "3 days",
    ),
    "packs last 3, 7 or 30 days": ("packs last 3, 7 or 30 days",),
    "lots is a whole number from 1 to 10,000": ("lots is a whole number from 1 to 10,000",),
    "unknown GPU; rtx-4090 is suggested, not taken": ("knows no GPU 'rtx4090'", "rtx-4090"),
    "accepted results is a whole number from 0 to 1,000,000": (
        "accepted results is a whole number from 0 to 1,000,000",
    ),
    "start does not exist in that zone": ("start does not exist",),
    "end does not exist in that zone": ("end does not exist",),
    "start is ambiguous in that zone: an offset is needed": ("start is ambiguous", "offset"),
    "end is ambiguous in that zone: an offset is needed": ("end is ambiguous", "offset"),
    "end is not after start": ("end is not after start",),
    "unknown time zone": ("unknown time zone",),
    "that offset does not occur there": ("offset that does not occur there", "+02:00 or +01:00"),
}


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch) -> Command:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("GPUCOST_DATA_HOME", str(tmp_path))
    return Command(capsys)


def price_words(args: dict[str, Any]) -> list[str]:
    words = [
        "price",
        "--gpu",
        args["gpu"],
        "--days",
        str(args["days"]),
        "--lots",
        str(args["lots"]),
    ]
    if args.get("accepted_results") is not None:
        words += ["--accepted-results", str(args["accepted_results"])]
    return words


@pytest.mark.parametrize("case", PRICES, ids=lambda c: "-".join(map(str, c["args"].values())))
def test_price(case: dict[str, Any], command: Command) -> None:
    args = case["args"]
    asked = (args["gpu"], args["days"], args["lots"], args.get("accepted_results"))
    if "error" in case:
        with pytest.raises(GpucostError) as refused:
            price(shipped(), *asked)
        assert refused.value.exit_status == case["exit"]
        sentence = command.refused(*price_words(args), "--json", status=case["exit"])
        assert all(word in sentence for word in TOLD[case["error"]]), sentence
        return
    best, others = price(shipped(), *asked)
    assert money(best.committed_usd) == case["committed_usd"]
    assert not others
    said = command(*price_words(args), "--json").json
    for key in ("committed_usd", "gpus", "cost_per_accepted_usd", "note"):
        assert said[key] == case[key], key
    assert said["accepted_results"] == args["accepted_results"]
    assert said["catalogue_date"] == "2026-09-24"
    text = command(*price_words(args))
    assert text.status == 0
    assert f"flat {case['committed_usd']} USD for {case['gpus']} GPU" in text.out
    assert ("as stated by you" in text.out) == (args["accepted_results"] is not None)


def test_an_amount_is_rounded_only_when_shown() -> None:
    best, _ = price(shipped(), "rtx-4090", 7, 2, 3)
    assert best.cost_per_accepted_usd is not None
    assert best.cost_per_accepted_usd * 3 != Decimal("73.33") * 3
    assert abs(best.cost_per_accepted_usd * 3 - 220) < Decimal("1e-25")


@pytest.mark.parametrize("case", WINDOWS, ids=lambda c: f"{c['start']}-{c['timezone']}")
def test_window(case: dict[str, Any], command: Command) -> None:
    asked = (case["start"], case["end"], case["timezone"])
    words = ["window", "--start", asked[0], "--end", asked[1], "--timezone", asked[2], "--json"]
    if "error" in case:
        sentence = command.refused(*words)
        assert all(word in sentence for word in TOLD[case["error"]]), sentence
        return
    window = window_between(*asked)
    assert window.hours == pytest.approx(case["hours"], abs=1e-6)
    assert list(covering_days(window.seconds)) == case["covering_pack_days"]
    said = command(*words).json
    assert (said["start"], said["end"], said["timezone"]) == asked
    assert said["hours"] == pytest.approx(case["hours"], abs=1e-6)
    assert said["covering_pack_days"] == case["covering_pack_days"]
    assert [c["committed_usd"] for c in said["candidates"]] == (
        ["110.00", "2071.00"] if 7 in case["covering_pack_days"] else []
    )


def toml_of(tasks: list[dict[str, Any]]) -> str:
    lines = []
    for task in tasks:
        lines.append("[[tasks]]")
        for key, value in task.items():
            shown = repr(value) if not isinstance(value, str) else f'"{value}"'
            lines.append(f"{key} = {shown}")
    return "\n".join(lines)


@pytest.mark.parametrize("number", range(len(SCHEDULES)))
def test_schedule(number: int, command: Command, tmp_path) -> None:  # type: ignore[no-untyped-def]
    case = SCHEDULES[number]
    tasks = [
        Task(t["name"], Decimal(t["hours"]), tuple(t.get("after", ())), t.get("kind", "work"))
        for t in case["tasks"]
    ]
    path = tmp_path / "tasks.toml"
    path.write_text(toml_of(case["tasks"]), encoding="utf-8")
    if "error" in case:
        with pytest.raises(GpucostError) as refused:
            schedule(tasks)
        assert case["error"] in str(refused.value)
        sentence = command.refused("window", "--tasks", path)
        assert case["error"] in sentence
        assert "tasks.toml" in sentence
        return
    assert hours_of(schedule(tasks).seconds) == case["hours"]
    said = command("window", "--tasks", path, "--json").json
    assert said["hours"] == case["hours"]
    assert [line["task"] for line in said["timeline"]] == [t["name"] for t in case["tasks"]]
    assert all(set(line) == {"task", "start_h", "end_h", "kind"} for line in said["timeline"])
    text = command("window", "--tasks", path).out
    assert "█" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert ("░" in text) == any(t.get("kind") == "wait" for t in case["tasks"])
