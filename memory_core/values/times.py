"""Moments: the present one, and arithmetic within the years that can be stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_MICROSECOND: Final = timedelta(microseconds=1)


def utc_now() -> datetime:
    """The default clock."""
    return datetime.now(UTC)


def shifted(moment: datetime, by: timedelta) -> datetime:
    """The moment so much later or earlier; beyond the first or the last moment that can be stored, that one."""
    try:
        return moment + by
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if by > timedelta() else datetime.min.replace(tzinfo=UTC)


def until_after(moment: datetime) -> datetime | None:
    """The `Where.until` that still admits this moment."""
    later = shifted(moment, _MICROSECOND)
    return later if later > moment else None
