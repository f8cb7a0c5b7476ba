"""Values as other programs write them, read as times, names, objects and lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from memory_core.values.zones import zoned

_SECONDS: Final = 1e11
"""Larger numbers are milliseconds: as seconds they would be after the year 5138."""


TIMES: Final = (
    "at",
    "timestamp",
    "created_at",
    "createdAt",
    "created",
    "occurred_at",
    "date",
    "datetime",
    "time",
    "ts",
    "updated_at",
    "updatedAt",
    "updated",
)
"""The names under which programs keep the time of a memory, the most telling first."""


def first_time(fields: Mapping[str, object], names: Sequence[str] = TIMES) -> tuple[str, datetime] | None:
    """The first of these fields that has a time, and the time; `None` without one."""
    found = ((name, moment) for name in names if (moment := time_of(fields.get(name))) is not None)
    return next(found, None)


def time_of(value: object) -> datetime | None:
    """A time as others write it: seconds or milliseconds since 1970, or ISO 8601, in the zone of this machine if it has
    no offset; else `None`."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1_000 if abs(value) > _SECONDS else value, UTC)
        if isinstance(value, str):
            return zoned(datetime.fromisoformat(value))
    except (ValueError, OverflowError, OSError):
        return None
    return None


def text_of(value: object) -> str | None:
    """The value if it can be a name: a text that is not blank."""
    return value if isinstance(value, str) and value.strip() else None


def name_of(value: object) -> str | None:
    """The value as the name of a user: a text that is not blank, or a whole number; else `None`."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_of(value)


def fields_of(value: object) -> dict[str, Any]:
    """The value if it is a JSON object; otherwise an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """The value if it is a JSON list; otherwise an empty one."""
    return list(cast("Iterable[Any]", value)) if isinstance(value, list) else []
