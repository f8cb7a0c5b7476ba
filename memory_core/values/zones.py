"""Time zones as callers, frameworks and this machine name them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from memory_core.errors import InvalidInputError
from memory_core.values.checks import shown

_EXAMPLE: Final = "a tzinfo, the name of a zone such as 'Europe/Oslo', or an offset such as '+09:00'"


def check_zone(value: object) -> tzinfo:
    """Return `value` as a time zone: a `tzinfo`, the IANA name of a zone, or an offset from UTC.

    Raises:
        InvalidInputError: It is something else; or this system has no table of time zones and the package `tzdata` is
            missing.
    """
    if isinstance(value, tzinfo):
        return value
    if not isinstance(value, str):
        raise InvalidInputError(f"zone must be {_EXAMPLE}, not {shown(value)}")
    if value in ("UTC", "Z"):
        return UTC
    try:
        if value.startswith(("+", "-")):
            offset = datetime.fromisoformat(f"2000-01-01T00:00{value}").tzinfo
            return offset or UTC
        return ZoneInfo(value)
    except (LookupError, ValueError, OSError) as error:  # a name is the path of a file, which may be a folder
        raise InvalidInputError(f"zone must be {_EXAMPLE}, not {shown(value)}") from error


class _MachineZone(tzinfo):
    """The zone that the operating system is set to, with its changes of the clock: `TZ`, or else the system's own."""

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return None if dt is None else _there(dt.replace(tzinfo=None)).utcoffset()

    def dst(self, dt: datetime | None) -> timedelta | None:  # noqa: ARG002  (not known, and asked by nobody)
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        return None if dt is None else _there(dt.replace(tzinfo=None)).tzname()

    def fromutc(self, dt: datetime) -> datetime:
        there = _there(dt.replace(tzinfo=UTC))
        for fold in (0, 1):  # 1 is the second of two equal hours
            ours = there.replace(tzinfo=self, fold=fold)
            if ours.utcoffset() == there.utcoffset():
                return ours
        raise OverflowError(f"the clock of this machine cannot show {dt}")

    def __repr__(self) -> str:
        return "MACHINE_ZONE"


def _there(moment: datetime) -> datetime:
    """A moment in UTC, or a local time without a zone, as the operating system shows it; in UTC where it cannot: at the
    ends of the calendar, and before 1970 on some systems."""
    try:
        return moment.astimezone()
    except (OverflowError, OSError, ValueError):
        return moment.replace(tzinfo=UTC)


MACHINE_ZONE: Final[tzinfo] = _MachineZone()
"""The zone of this machine: what a command line and a server of one person take, since that person sits there."""


def zoned(moment: datetime) -> datetime:
    """The moment; in the zone of this machine if it names none, as programs write the times of where they run."""
    return moment.replace(tzinfo=MACHINE_ZONE) if moment.tzinfo is None else moment


def zoned_text(text: object) -> datetime | None:
    """The moment that a text in ISO 8601 names, in its own zone; `None` without an offset, and for anything else."""
    try:
        moment = datetime.fromisoformat(str(text))
        moment.astimezone(UTC)
    except (ValueError, OverflowError):  # 0001-01-01T00:00:00+14:00 is no time in UTC
        return None
    return moment if moment.tzinfo else None


def machine_zone_name() -> str:
    """The name of the machine's zone and its offset now, for people: `CET (UTC+01:00)`."""
    now = datetime.now(UTC).astimezone()
    return f"{now.tzname()} (UTC{now.isoformat()[-6:]})"
