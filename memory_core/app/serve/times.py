"""A time for people: how long ago it was, with the moment in UTC beside it."""

from __future__ import annotations

from datetime import UTC, datetime

from memory_core.app.showing import moment

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_WEEK = 7 * _DAY


def ago(value: datetime, now: datetime) -> str:
    """The time that has passed since; of what is to come, or is older than a week, the day where it was."""
    seconds = int((now - value).total_seconds())
    if not 0 <= seconds < _WEEK:
        return moment(value)[:10]
    if seconds < _MINUTE:
        return "just now"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min ago"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h ago"
    days = seconds // _DAY
    return "1 day ago" if days == 1 else f"{days} days ago"


def in_utc(value: datetime) -> str:
    """The moment in UTC: `2026-03-11 03:30 UTC`."""
    return moment(value.astimezone(UTC)).replace("Z", " UTC")
