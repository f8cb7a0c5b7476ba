"""How much an owner may hold."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.checks import shown
from memory_core.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What each owner of a memory may hold; `None` means any amount. Counted as in `Stats`."""

    records: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("records", "bytes"):
            value: object = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise InvalidInputError(f"a quota of {name} is a whole number from 0 on, or None, not {shown(value)}")
