"""A window as elapsed time: time zones and clock changes included (R33, R34)."""

from __future__ import annotations

import difflib
import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from datetime import timezone as fixed_zone
from fractions import Fraction
from typing import NamedTuple

from gpucost_tui.errors import WrongUse
from gpucost_tui.pricing.price_list import PACK_DAYS
from gpucost_tui.text import clean

_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_DAY_S = 86_400


class Window(NamedTuple):
    """Two instants. ``timezone`` is None where both were given by their offset alone."""

    start: datetime
    end: datetime
    timezone: str | None

    @property
    def seconds(self) -> Fraction:
        """Elapsed seconds, exact."""
        elapsed = self.end.astimezone(UTC) - self.start.astimezone(UTC)
        return Fraction(elapsed // timedelta(microseconds=1), 1_000_000)

    @property
    def hours(self) -> float:
        """Elapsed hours, to a millionth."""
        return hours_of(self.seconds)


def hours_of(seconds: Fraction) -> float:
    """Return seconds as hours for JSON and people, rounded to a millionth."""
    return float(round(seconds / 3600, 6))


def hours_text(seconds: Fraction) -> str:
    """Return seconds as hours for people, to a millionth at most: ``96``, ``72.016667``."""
    return f"{hours_of(seconds):,.6f}".rstrip("0").rstrip(".")


def window_between(start: str, end: str, timezone: str | None = None) -> Window:
    """Return the window from ``start`` to ``end``.

    Args:
        start: Local time, ``2026-09-28T09:00`` (seconds may follow), with or without an offset.
        end: Likewise.
        timezone: An IANA name; needed where a moment has no offset.

    Raises:
        WrongUse: A moment that is none, does not exist or happens twice in that zone; an unknown
            zone; an end that is not after the start.
    """
    zone = None if timezone is None else zone_named(timezone)
    first, last = moment(start, zone, "start"), moment(end, zone, "end")
    if last.astimezone(UTC) <= first.astimezone(UTC):
        raise WrongUse(
            "end is not after start", where=f"--end {end}", fix=f"Start is {first.isoformat()}"
        )
    return Window(first, last, timezone)


def moment(text: str, zone: zoneinfo.ZoneInfo | None, name: str) -> datetime:
    """Return an aware moment of a zone, where the written local time names exactly one.

    Raises:
        WrongUse: See :func:`window_between`.
    """
    where = f"--{name} '{clean(text, limit=60)}'"
    match = _MOMENT.fullmatch(text)
    try:
        local = datetime.fromisoformat(match[1]) if match else None
    except ValueError:
        local = None
    if match is None or local is None or not 1900 <= local.year <= 2999:
        raise WrongUse(
            f"{name} is no moment between the years 1900 and 2999",
            where=where,
            fix="Write it like 2026-09-28T09:00, or 2026-09-28T09:00+02:00 with its offset",
        )
    offset = _offset(match[2], where, name)
    if zone is None:
        if offset is None:
            raise WrongUse(
                f"{name} has neither a time zone nor an offset",
                where=where,
                fix="Add --timezone, such as --timezone Europe/Paris",
            )
        return local.replace(tzinfo=fixed_zone(offset))
    return _in_zone(local, offset, zone, where, name)


def _offset(text: str | None, where: str, name: str) -> timedelta | None:
    if text is None:
        return None
    if text == "Z":
        return timedelta(0)
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        raise WrongUse(f"{name} has an impossible offset", where=where, fix="Write +02:00")
    size = timedelta(hours=hours, minutes=minutes)
    return -size if text[0] == "-" else size


def _in_zone(
    local: datetime, offset: timedelta | None, zone: zoneinfo.ZoneInfo, where: str, name: str
) -> datetime:
    readings = [local.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    real = [r for r in readings if r.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local]
    shown = clean(zone.key)
    if not real:
        raise WrongUse(
            f"{name} does not exist in {shown}: the clocks skip it",
            where=where,
            fix="Name a moment before or after the change",
        )
    by_offset: dict[timedelta | None, datetime] = {}
    for reading in real:
        by_offset.setdefault(reading.utcoffset(), reading)
    occurring = " or ".join(_written(reading) for reading in by_offset.values())
    if offset is not None:
        if offset not in by_offset:
            raise WrongUse(
                f"{name} has an offset that does not occur there in {shown}",
                where=where,
                fix=f"The offset there is {occurring}",
            )
        return by_offset[offset]
    if len(by_offset) > 1:
        raise WrongUse(
            f"{name} is ambiguous in {shown}: it happens twice, and an offset is needed",
            where=where,
            fix=f"Add the offset that is meant: {occurring}",
        )
    return real[0]


def _written(moment_: datetime) -> str:
    return moment_.isoformat()[len("2026-09-28T09:00:00") :]


def zone_named(name: str) -> zoneinfo.ZoneInfo:
    """Return the time zone of an IANA name.

    Raises:
        WrongUse: There is none of that name.
    """
    try:
        # right/... counts leap seconds, posix/... repeats the others: neither is an IANA name.
        if name.startswith(("right/", "posix/")):
            raise KeyError(name)
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        names = zoneinfo.available_timezones()
        near = difflib.get_close_matches(name[:60], names, n=3)
        fix = f"Did you mean {' or '.join(near)}?" if near else "Write it like Europe/Paris"
        raise WrongUse(
            f"unknown time zone '{clean(name, limit=60)}'", where="--timezone", fix=fix.rstrip("?")
        ) from None


def covering_days(seconds: Fraction, periods: int = 1) -> tuple[int, ...]:
    """Return the days of the packs that cover a duration, decided on exact seconds (R34).

    Args:
        seconds: The duration needed.
        periods: Packs of one length rented in sequence; more than one is priced only where asked.
    """
    return tuple(days for days in PACK_DAYS if seconds <= days * _DAY_S * periods)
