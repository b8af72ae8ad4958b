"""The answer to a window: what covers it, at what price, and what else there is (R32 to R35)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from gpucost_tui.pricing.calculator import whole_lots
from gpucost_tui.pricing.candidates import (
    Candidate,
    HourlyEstimate,
    candidate_json,
    candidates,
    hourly_estimates,
    hourly_json,
    ranked,
    unpriced,
    ways_to_cover,
    whole_periods,
)
from gpucost_tui.pricing.catalogue import Catalogue, PackPrice
from gpucost_tui.pricing.schedule import Schedule, timeline_json
from gpucost_tui.pricing.window import Window, covering_days, hours_of


class WindowAnswer(NamedTuple):
    """Everything that is said of one window.

    ``ways`` is empty where a single pack covers it; ``covering_in_sequence`` is what covers it
    with ``periods`` packs of one length, and the same as ``covering`` unless the user asked.
    """

    seconds: Fraction
    window: Window | None
    plan: Schedule | None
    lots: int
    periods: int
    covering: tuple[int, ...]
    covering_in_sequence: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    unpriced: tuple[PackPrice, ...]
    hourly: tuple[HourlyEstimate, ...]
    ways: tuple[str, ...]


def answer_window(
    catalogue: Catalogue,
    source: Window | Schedule,
    *,
    gpu: str | None = None,
    lots: int | str = 1,
    periods: int | str = 1,
) -> WindowAnswer:
    """Answer a window, given by two moments or as a schedule.

    Args:
        catalogue: The price lists in force.
        source: The window, or the schedule whose length it is.
        gpu: Only this GPU.
        lots: Lots of each pack, 1 to 10,000.
        periods: Packs in sequence, 1 to 100; extra periods are priced only where asked (R34).

    Raises:
        WrongUse: An unknown GPU or an impossible number.
    """
    number, count, seconds = whole_lots(lots), whole_periods(periods), source.seconds
    plan = source if isinstance(source, Schedule) else None
    covering = covering_days(seconds)
    priced = {
        row.days
        for row in catalogue.packs
        if row.usd_per_lot is not None and gpu in (None, row.gpu)
    }
    return WindowAnswer(
        seconds=seconds,
        window=source if isinstance(source, Window) else None,
        plan=plan,
        lots=number,
        periods=count,
        covering=covering,
        covering_in_sequence=covering_days(seconds, count),
        candidates=candidates(catalogue, seconds, lots=number, gpu=gpu, periods=count),
        unpriced=unpriced(catalogue, seconds, gpu=gpu, periods=count),
        hourly=hourly_estimates(catalogue, seconds, lots=number, gpu=gpu),
        ways=() if covering else tuple(ways_to_cover(seconds, sorted(priced), plan)),
    )


def answer_json(
    answer: WindowAnswer, asked: Mapping[str, str | None], *, with_hourly: bool = False
) -> dict[str, object]:
    """Return the keys of ``gpucost window --json``.

    Args:
        answer: The answer.
        asked: ``start``, ``end`` and ``timezone`` as the user wrote them.
        with_hourly: Add ``ranking``, commitments and estimates together.
    """
    document: dict[str, object] = {
        "start": asked.get("start"),
        "end": asked.get("end"),
        "timezone": asked.get("timezone"),
        "hours": hours_of(answer.seconds),
        "covering_pack_days": list(answer.covering),
        "lots": answer.lots,
        "periods": answer.periods,
        "candidates": [candidate_json(item) for item in answer.candidates],
        "covering_without_price": [
            {
                "provider": row.provider,
                "gpu": row.gpu,
                "days": row.days,
                "reason": row.missing_reason,
                "catalogue_date": row.catalogue_date.isoformat(),
            }
            for row in answer.unpriced
        ],
        "hourly_offers": [hourly_json(item) for item in answer.hourly],
        "ways": list(answer.ways),
    }
    if answer.plan is not None:
        document["timeline"] = timeline_json(answer.plan)
    if with_hourly:
        document["ranking"] = [
            {"kind": "commitment", **candidate_json(item)}
            if isinstance(item, Candidate)
            else hourly_json(item)
            for item in ranked(answer.candidates, answer.hourly)
        ]
    return document
