"""Exclusions: sealed causes, their conditions and intervals, one rule for every variant (R24)."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import runner_parts as parts
from analysis_support import frame
from decide_support import RTX, document, ran, refused, told
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.campaign.conditions import COLUMNS, check_causes, parse
from gpucost_tui.campaign.excluding import applies_to, unequal
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.survey import survey
from gpucost_tui.errors import Differs, Refused, WrongUse

CAUSES = [
    {"name": "other-process", "description": "Another process was at work on the device."},
    {
        "name": "busy-device",
        "description": "The device held memory of another process.",
        "condition": "peak_device_used_bytes - peak_reserved_bytes > 4e9",
    },
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six passes and a failed one; the device was full during the whole campaign."""
    folder = tmp_path_factory.mktemp("finished") / "one"
    lost = {"2": {"fail": {"kind": "out-of-memory", "after": 4}}}
    busy = {"devices": [{"index": 0, "name": RTX, "used_bytes": 20 << 30}], "attempts": lost}
    with pytest.MonkeyPatch.context() as patch:
        ran(folder, patch, exclusion_causes=CAUSES, measurement__rounds=2, script_=busy)
    return folder


@pytest.fixture
def made(finished: Path, tmp_path: Path) -> Campaign:
    shutil.copytree(finished, tmp_path / "one")
    return Campaign(tmp_path / "one")


def interval(made: Campaign, number: int) -> tuple[str, str, str, str]:
    row = parts.state(made).attempts[number].row
    begun, ended = (datetime.fromisoformat(row[key]) for key in ("started_at", "ended_at"))
    # Whole seconds, as a person writes them.
    since = begun.replace(microsecond=0)
    until = ended.replace(microsecond=0) + timedelta(seconds=1)
    form = "%Y-%m-%dT%H:%M:%SZ"
    return "--from", since.strftime(form), "--to", until.strftime(form)


def test_an_exclusion_leaves_its_trace_and_can_be_taken_back(made: Campaign) -> None:
    when = interval(made, 1)
    done = document("exclude", made.folder, "1", "--cause", "other-process", *when)
    (act,) = done
    others = [n for n in range(2, 7) if n in act["also_applies_to"]]
    assert act["also_applies_to"] == others
    row = parts.table(made).row(0, named=True)
    assert (row["excluded"], row["exclusion_cause"]) == ("true", "other-process")
    assert "excluded on" in row["notes"]
    assert row["pass_s"] is not None
    found = document("compare", made.folder)
    by_variant = {one["variant"]: one for one in found["variants"]}
    assert (by_variant["batch-1"]["excluded"], by_variant["batch-1"]["succeeded"]) == (1, 1)
    assert len(by_variant["batch-1"]["durations_s"]) == 1
    assert "excluded" in told("attempts", made.folder)
    assert "already" in str(refused("exclude", made.folder, "1", "--cause", "other-process", *when))
    told("exclude", made.folder, "1", "--withdraw")
    row = parts.table(made).row(0, named=True)
    assert (row["excluded"], row["exclusion_cause"]) == ("false", None)
    assert "withdrawn" in row["notes"]
    events = [event.event for event in parts.events(made)]
    assert events[-2:] == ["excluded", "exclusion_withdrawn"]
    assert "not excluded" in str(refused("exclude", made.folder, "1", "--withdraw"))
    parts.sound(made)


def test_a_condition_holds_for_every_variant_and_the_others_are_named(made: Campaign) -> None:
    protocol = made.manifest.protocol
    assert applies_to(protocol, parts.state(made))["busy-device"] == [1, 2, 3, 4, 5, 6]
    assert len(unequal(protocol, parts.state(made))) == 6
    said = told("exclude", made.folder, "1", "--cause", "busy-device")
    assert "The same cause applies to: 2, 3, 4, 5, 6." in said
    assert f"gpucost exclude {made.folder} 2 3 4 5 6 --cause busy-device" in said
    told("exclude", made.folder, "2", "3", "4", "5", "6", "--cause", "busy-device")
    assert unequal(protocol, parts.state(made)) == []
    found = document("compare", made.folder)
    assert all(one["excluded"] == 2 and one["failed"] == 0 for one in found["variants"])
    assert not any(pair["settled"] for pair in found["pairs"])
    decided = document("decide", made.folder, status=1)
    assert all("missing" in row["reasons"] for row in decided["balance"])
    said = told("exclude", made.folder, "3", "--withdraw")
    assert "One rule" in said
    assert [one.attempt for one in unequal(protocol, parts.state(made))] == [3]


def test_what_is_refused(made: Campaign, tmp_path: Path) -> None:
    folder = made.folder
    before = parts.events(made)
    when = interval(made, 1)
    error = refused("exclude", folder, "1", "--cause", "too slow", *when)
    assert isinstance(error, Refused)
    assert "other-process, busy-device" in str(error)
    assert isinstance(refused("exclude", folder, "1"), WrongUse)
    assert isinstance(refused("exclude", folder, "1", "--cause", "other-process"), WrongUse)
    assert isinstance(refused("exclude", folder, "1", "--cause", "busy-device", *when), WrongUse)
    assert isinstance(refused("exclude", folder, "99", "--cause", "busy-device"), WrongUse)
    assert isinstance(refused("exclude", folder, "0", "--cause", "busy-device"), WrongUse)
    backwards = ("--from", when[3], "--to", when[1])
    assert isinstance(
        refused("exclude", folder, "1", "--cause", "other-process", *backwards), WrongUse
    )
    assert "neither a time zone" in str(
        refused("exclude", folder, "1", "--cause", "other-process", "--from", "2026-09-28T09:00",
                "--to", "2026-09-28T09:10")
    )  # fmt: skip
    elsewhere = ("--from", "2020-01-01T00:00Z", "--to", "2020-01-02T00:00Z")
    error = refused("exclude", folder, "1", "--cause", "other-process", *elsewhere)
    assert "does not apply to attempt 1" in str(error)
    # All or none: a wrong number among good ones changes nothing.
    assert isinstance(refused("exclude", folder, "1", "99", "--cause", "busy-device"), WrongUse)
    assert isinstance(refused("exclude", folder, "1", "--withdraw", "--cause", "x"), WrongUse)
    assert parts.events(made) == before
    fresh = parts.campaign(tmp_path / "fresh")
    assert isinstance(
        refused("exclude", fresh.folder, "1", "--cause", "other-process", *when), WrongUse
    )


def test_exclusions_made_by_hand_are_unequal_or_no_line(made: Campaign) -> None:
    protocol = made.manifest.protocol
    journal = Journal(made.folder)
    journal.append("excluded", {"attempt": 1, "cause": "slow", "from": None, "to": None})
    journal.append("excluded", {"attempt": 3, "cause": "other-process", "from": None, "to": None})
    found = {(one.attempt, one.cause): one.what for one in unequal(protocol, parts.state(made))}
    assert found[1, "slow"] == "the seal allows no such cause"
    assert "without the interval" in found[3, "other-process"]
    journal.append("excluded", {"attempt": 1, "cause": "busy-device", "from": None, "to": None})
    assert isinstance(refused("compare", made.folder), Differs)


def test_a_condition_that_is_none_is_no_seal(tmp_path: Path) -> None:
    from gpucost_tui.campaign.create import Inputs, create

    corpus = parts.write_corpus(tmp_path / "c.jsonl", parts.corpus_rows())
    causes = [
        {"name": "slow", "description": "It was slow.", "condition": "pass_s > 100"},
        {"name": "fine", "description": "Memory.", "condition": "peak_rss_bytes > 1e9"},
    ]
    values = {**parts.SETTINGS, "exclusion_causes": causes}
    inputs = Inputs("classification-batch", [str(corpus)], model="demo", settings=[*values.items()])
    draft = create(tmp_path / "draft", inputs)
    problems = [p for p in survey(draft).problems if "condition" in p.where]
    assert len(problems) == 1
    assert "what a pass achieved" in problems[0].what
    assert "peak_rss_bytes" in problems[0].fix
    source, protocol = draft.draft()
    assert [*check_causes(protocol, source)] == problems
    assert isinstance(refused("seal", draft.folder), Refused)


ROWS = frame(
    [
        {"attempt": 1, "host": "a", "notes": "throttled; hot", "peak_rss_bytes": 10, "load_s": 2.0},
        {"attempt": 2, "host": "b", "notes": "x", "peak_rss_bytes": 20, "round": 3},
        {"attempt": 3, "host": "c"},
    ]
)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("peak_rss_bytes > 1e1", [2]),
        ("peak_rss_bytes >= 10 and host != 'b'", [1]),
        ("not peak_rss_bytes > 10", [1]),  # an empty cell meets nothing, and its opposite neither
        ("5 < peak_rss_bytes <= 10", [1]),
        ("'throttled' in notes", [1]),
        ("'throttled' not in notes", [2]),
        ("'.' in notes", []),
        ("host in ('a', 'c')", [1, 3]),
        ("load_s is None", [2, 3]),
        ("load_s is not None or round == 3", [1, 2]),
        ("peak_rss_bytes - 5 * 2 > -1 and peak_rss_bytes / 2 < 10", [1]),
        ("  host == 'a'  ", [1]),
    ],
)
def test_conditions(text: str, met: list[int]) -> None:
    condition = parse(text)
    assert condition.met(ROWS) == met
    assert set(condition.columns) <= set(COLUMNS)


@pytest.mark.parametrize(
    "text",
    [
        "", "(", "1 < 2", "peak_rss_bytes", "peak_rss_bytes > 'a'", "host > 'a'", "host == 1",
        "pass_s > 1", "quality < 0.9", "variant == 'batch-1'", "status == 'failed'", "nothing > 1",
        "__import__('os').system('true')", "peak_rss_bytes.real > 1", "[host for host in host]",
        "peak_rss_bytes / 0 > 1", "peak_rss_bytes / load_s > 1", "peak_rss_bytes ** 2 > 1",
        "host is 'a'", "host in []", "host in notes", "'' in notes", "peak_rss_bytes > 1e999",
        "lambda: host", "host if host else notes", "peak_rss_bytes > True", "f'{host}' == 'a'",
        "host == b'a'", "a := host", "load_s is None is None", "not host", "host and notes",
        "'x' in 'xyz'", "\x00", "(" * 200, "-" * 190 + "1 < round", "~round > 1", "...",
    ],
)  # fmt: skip
def test_what_is_no_condition(text: str) -> None:
    try:
        condition = parse(text)
    except ValueError as error:
        assert str(error)
        assert not str(error).endswith(".")
    else:
        # Odd and harmless: it parses, and then it can be applied.
        assert text in ("-" * 190 + "1 < round", "load_s is None is None")
        condition.met(ROWS)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="()<>=! andortis'\"x1e9.,+-*/[]{}:\\\n", max_size=60))
def test_any_text_is_a_condition_or_a_sentence(noise: str) -> None:
    for text in (noise, f"peak_rss_bytes {noise}", f"host {noise} 'a'"):
        try:
            condition = parse(text)
        except ValueError as error:
            assert str(error)
        else:
            condition.met(ROWS)
