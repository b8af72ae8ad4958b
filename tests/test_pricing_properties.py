"""Properties: hours of windows, cost per accepted corpus, covering packs, any CSV bytes."""

from __future__ import annotations

import csv
import io
import zoneinfo
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pricing_support import HOURLY_HEADER, PACK_HEADER, packs

from gpucost_tui.errors import InputError, WrongUse
from gpucost_tui.pricing.calculator import price
from gpucost_tui.pricing.candidates import candidates, ranked
from gpucost_tui.pricing.price_list import PACK_DAYS, parse
from gpucost_tui.pricing.schedule import Task, schedule
from gpucost_tui.pricing.sheets import read_sheet
from gpucost_tui.pricing.skypilot import offers_csv, read_skypilot
from gpucost_tui.pricing.spending import lacking, require_all_or_none, spending
from gpucost_tui.pricing.window import covering_days, window_between
from gpucost_tui.text import money

ZONES = sorted(z for z in zoneinfo.available_timezones() if z != "localtime")
MINUTES = st.integers(min_value=0, max_value=100 * 365 * 24 * 60)
HOURS = st.decimals(min_value=0, max_value=900, places=3)


class Local(NamedTuple):
    """An instant as a person in a zone writes it, without and with its offset."""

    bare: str
    full: str
    unambiguous: bool


def local(instant: datetime, zone: zoneinfo.ZoneInfo) -> Local:
    there = instant.astimezone(zone)
    other = there.replace(fold=1 - there.fold)
    bare = there.replace(tzinfo=None).isoformat(timespec="minutes")
    full = bare + there.isoformat()[19:]
    return Local(bare, full, there.utcoffset() == other.utcoffset())


@settings(max_examples=300, deadline=None)
@given(zone=st.sampled_from(ZONES), first=MINUTES, length=st.integers(1, 100_000))
def test_window_hours_are_the_difference_of_instants(zone: str, first: int, length: int) -> None:
    # From 1973 on, every offset is in whole minutes, so that it can be written as one.
    start = datetime(1973, 1, 1, tzinfo=UTC) + timedelta(minutes=first)
    end = start + timedelta(minutes=length)
    info = zoneinfo.ZoneInfo(zone)
    one, other = local(start, info), local(end, info)
    window = window_between(one.full, other.full, zone)
    assert window.seconds == length * 60
    # In UTC: a local time that happens twice equals nothing of another zone.
    assert (window.start.astimezone(UTC), window.end.astimezone(UTC)) == (start, end)
    for moment in (one, other):
        written = (moment.bare, other.full) if moment is one else (one.full, moment.bare)
        if moment.unambiguous:
            assert window_between(*written, zone).seconds == length * 60
        else:
            with pytest.raises(WrongUse, match="ambiguous"):
                window_between(*written, zone)


@settings(max_examples=200, deadline=None)
@given(
    cents=st.integers(0, 10**11 - 1),
    lots=st.integers(1, 10_000),
    accepted=st.integers(1, 1_000_000),
)
def test_cost_times_accepted_is_the_committed_amount(cents: int, lots: int, accepted: int) -> None:
    usd = f"{cents // 100}.{cents % 100:02d}"
    best, _ = price(packs(f"a,b200,2,7,{usd},2026-10-01,"), "b200", 7, lots, accepted)
    assert best.committed_usd * 100 == cents * lots
    assert best.gpus == 2 * lots
    assert best.cost_per_accepted_usd is not None
    shown = Decimal(money(best.cost_per_accepted_usd))
    assert abs(shown * accepted - best.committed_usd) <= Decimal("0.005") * accepted
    # Half up, from the exact quotient and not from an already rounded one.
    exact = Fraction(cents * lots, accepted)
    assert shown * 100 == (exact + Fraction(1, 2)).__floor__()


@settings(max_examples=200, deadline=None)
@given(one=HOURS, more=HOURS, periods=st.integers(1, 20))
def test_covering_packs_are_monotone(one: Decimal, more: Decimal, periods: int) -> None:
    short, long = Fraction(one) * 3600, (Fraction(one) + Fraction(more)) * 3600
    assert set(covering_days(long, periods)) <= set(covering_days(short, periods))
    assert set(covering_days(long, periods)) <= set(covering_days(long, periods + 1))
    days = covering_days(short)
    assert days == PACK_DAYS[len(PACK_DAYS) - len(days) :]


@settings(max_examples=100, deadline=None)
@given(
    hours=st.decimals(min_value=0, max_value=800, places=2),
    prices=st.lists(st.integers(0, 10**6), min_size=3, max_size=3),
    lots=st.integers(1, 50),
)
def test_candidates_are_what_covers_cheapest_first(
    hours: Decimal, prices: list[int], lots: int
) -> None:
    rows = [f"a,b200,1,{d},{p},2026-10-01," for d, p in zip(PACK_DAYS, prices, strict=True)]
    seconds = Fraction(hours) * 3600
    found = candidates(packs(*rows), seconds, lots=lots)
    assert {c.row.days for c in found} == {d for d in PACK_DAYS if hours <= d * 24}
    amounts = [c.committed_usd for c in found]
    assert amounts == sorted(amounts)
    assert ranked(found, ()) == found


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_schedule_starts_a_task_when_the_last_of_its_needs_ends(data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 12))
    tasks = []
    for i in range(number):
        after = data.draw(st.sets(st.sampled_from(range(i)), max_size=3)) if i else set()
        tasks.append(Task(f"t{i}", data.draw(HOURS), tuple(f"t{n}" for n in after)))
    shuffled = data.draw(st.permutations(tasks))
    plan = schedule(shuffled)
    placed = {item.task: item for item in plan.timeline}
    for task in tasks:
        ends = [placed[name].end_h for name in task.after]
        assert placed[task.name].start_h == max(ends, default=0)
        assert placed[task.name].end_h - placed[task.name].start_h == Fraction(task.hours)
    assert plan.seconds / 3600 == max(item.end_h for item in plan.timeline)
    assert plan.seconds / 3600 == sum(item.end_h - item.start_h for item in plan.chain)
    assert plan.seconds <= sum(Fraction(task.hours) for task in tasks) * 3600


CELL = st.text(
    st.sampled_from([*'0123456789.,;"\r\n\t -eEnaN+', "\x00", "٧", "é", "\ufeff"]),
    max_size=12,
)
SKY_HEADER = "InstanceType,AcceleratorName,AcceleratorCount,Price,Region,SpotPrice\n"
NUMBERS = st.sampled_from(["", "1", "1.0", "0.5", "8.0", "2.99", "0", "1e-3", "-1", "nan", "1e99"])
SKY_ROW = st.tuples(
    st.sampled_from(["", "gpu_1x", 'a "b"', "x,y", "a\rb"]),
    st.sampled_from(["", "A100", "H100-SXM", "RTX4090", "tpu-v3", "Gaudi HL-205", "é", "\x1b"]),
    NUMBERS,
    NUMBERS,
    st.sampled_from(["", "us", "Czechia, CZ", "\n"]),
    NUMBERS,
)
GOOD = st.sampled_from(["1", "1.0", "0.5", "8.0", "2.99", "31.92", "1e-3", "3"])
SKY_GOOD_ROW = st.tuples(
    st.text(min_size=1, max_size=8).filter(str.strip),
    st.sampled_from(["", "A100", "H100-SXM", "RTX4090", "tpu-v3"]),
    GOOD,
    GOOD,
    st.text(max_size=8),
    st.one_of(GOOD, st.sampled_from(["", "0.00", "99999999"])),
)


def csv_text(rows: list[tuple[str, ...]]) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(rows)
    return stream.getvalue()


def sky_bytes(rows: list[tuple[str, ...]]) -> bytes:
    return (SKY_HEADER + csv_text(rows)).encode("utf-8", "surrogatepass")


HEADERS = st.sampled_from(["", PACK_HEADER, HOURLY_HEADER, SKY_HEADER])
BYTES = st.one_of(
    st.binary(max_size=300),
    st.builds(lambda head, tail: (head + tail).encode(), HEADERS, st.text(max_size=200)),
    st.builds(lambda head, tail: head.encode() + tail, HEADERS, st.binary(max_size=100)),
    # Cells that nobody quoted: marks stand where they like, quotes never close.
    st.builds(
        lambda head, cells: (head + ",".join(cells)).encode(),
        HEADERS,
        st.lists(CELL, max_size=12),
    ),
    st.builds(
        lambda head, rows: (head + csv_text(rows)).encode(),
        HEADERS,
        st.lists(st.lists(CELL, min_size=6, max_size=9).map(tuple), max_size=4),
    ),
    st.builds(sky_bytes, st.lists(SKY_ROW, max_size=6)),
    st.builds(sky_bytes, st.lists(SKY_GOOD_ROW, max_size=6)),
)


@settings(max_examples=500, deadline=None)
@given(BYTES)
def test_any_bytes_end_in_rows_or_located_sentences(data: bytes) -> None:
    sheet = read_sheet(data)
    assert sheet.columns or sheet.problems
    lines = 1 + data.count(b"\n") + data.count(b"\r")
    file = parse(data, "any.csv")
    assert file.rows or file.problems
    for problem in (*sheet.problems, *file.problems):
        assert 1 <= problem.line <= lines + 1
        assert problem.what and problem.fix
    try:
        found = read_skypilot(
            data, name="any.csv", provider="p", observed_on=date(2026, 10, 1), source="s"
        )
    except InputError as error:
        assert "any.csv, line " in str(error)
        assert error.fix
        return
    assert found.offers
    for offer in found.offers:
        assert offer.gpus > 0
        assert offer.usd_per_gpu_hour >= 0
        assert offer.notes
    again = parse(offers_csv(found.offers), "again.csv")
    assert not again.problems
    assert [o.cell for o in again.offers] == [o.cell for o in found.offers]
    assert [o.usd_per_gpu_hour for o in again.offers] == [o.usd_per_gpu_hour for o in found.offers]


@settings(max_examples=100, deadline=None)
@given(price_=st.integers(1, 10**7), count=st.sampled_from(["0.25", "0.5", "1", "2.0", "3", "8.0"]))
def test_an_instance_price_is_never_a_gpu_price(price_: int, count: str) -> None:
    usd = f"{price_ / 100:.2f}"
    data = (SKY_HEADER + f"inst,H100-SXM,{count},{usd},us,\n").encode()
    (offer,) = read_skypilot(
        data, name="x.csv", provider="p", observed_on=date(2026, 10, 1), source="s"
    ).offers
    whole = offer.usd_per_gpu_hour * offer.gpus
    assert abs(whole - Decimal(usd)) <= Decimal("1e-9") * 8
    assert offer.gpus == Decimal(count)
    assert f"{Decimal(usd).normalize():f} USD an hour for the whole instance" in offer.notes


@settings(max_examples=100, deadline=None)
@given(names=st.sets(st.sampled_from("abcdef"), min_size=1), own=st.sets(st.sampled_from("abcdef")))
def test_spending_is_for_every_configuration_or_none(names: set[str], own: set[str]) -> None:
    rows = [spending(name, "1.00", "disk") for name in sorted(own & names)]
    configurations = sorted(names)
    without = lacking(configurations, rows)
    assert set(without) == (names - own if own & names else set())
    if without:
        with pytest.raises(Exception, match=", ".join(without)):
            require_all_or_none(configurations, rows)
    else:
        require_all_or_none(configurations, rows)
