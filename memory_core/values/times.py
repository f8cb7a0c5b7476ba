"""Moments: the present one, arithmetic within the years that can be stored, and offsets from UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final

_MICROSECOND: Final = timedelta(microseconds=1)
_MINUTE: Final = timedelta(minutes=1)


def utc_now() -> datetime:
    """The default clock."""
    return datetime.now(UTC)


def shifted(moment: datetime, by: timedelta) -> datetime:
    """The moment so much later or earlier, with the same zone; beyond the first or the last moment that can be stored,
    that one."""
    try:
        return in_zone(moment.astimezone(UTC) + by, moment.tzinfo or UTC)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if by > timedelta() else datetime.min.replace(tzinfo=UTC)


def day_of(moment: datetime) -> date:
    """Its day in its own zone: what "today" is at a present moment."""
    return moment.date()


def start_of_day(moment: datetime) -> datetime:
    """The first moment of its day in its zone."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def until_after(moment: datetime) -> datetime | None:
    """The `Where.until` that still admits this moment."""
    later = shifted(moment, _MICROSECOND)
    return later if later > moment else None


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """The same moment on the clocks of a zone; unchanged if the year there would not be from 1 to 9999."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def at_offset(moment: datetime, minutes: int) -> datetime:
    """The same moment, so many minutes before or after UTC."""
    return in_zone(moment, _fixed(minutes)) if minutes else moment


def offset_of(moment: datetime) -> int:
    """The number of whole minutes by which its clock is ahead of UTC (negative: behind); seconds, which some zones
    had before 1972, are dropped."""
    offset = moment.utcoffset()
    return int(offset / _MINUTE) if offset else 0


def names_place(moment: datetime) -> bool:
    """True if its zone says where it was. UTC does not: it is how programs write a moment of any place."""
    return moment.tzname() != "UTC"


@lru_cache(maxsize=2_048)
def _fixed(minutes: int) -> timezone:
    return timezone(timedelta(minutes=minutes))
