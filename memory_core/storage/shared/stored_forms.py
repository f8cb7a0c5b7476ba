"""The stored form of times and links, which both stores compare and index."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from memory_core.models import Link

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The moment from which stored times count."""
_MICROSECOND: Final = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Microseconds since 1970 UTC, exactly (floats would lose the last digits)."""
    return (moment - EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """The inverse of `micros`."""
    return EPOCH + timedelta(0, 0, value)  # by position: twice as fast


def link_keys(links: Iterable[Link]) -> list[str]:
    """Links as strings, indexed like tags."""
    return [f"{link.relation}:{link.id}" for link in links]


def to_links(keys: Iterable[str]) -> tuple[Link, ...]:
    """The inverse of `link_keys`."""
    parts: list[Any] = [key.split(":", 1) for key in keys]
    return tuple(Link(*part) for part in parts)
