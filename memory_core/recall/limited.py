"""The searches of a recall, limited in bytes: it asks for up to ten thousand hits and shows little of each."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Final, Protocol, TypeGuard

from memory_core.agent_memory import Searching
from memory_core.models import Hit, Mode
from memory_core.values.attributes import has
from memory_core.where.where import Where

MOST_BYTES: Final = 32_000_000
"""Bytes of the records that a search reads: more than thirty hits with a text of a megabyte each have."""


class Search(Protocol):
    """The search of a handle."""

    def __call__(
        self, query: str, *, limit: int, where: Where, mode: Mode, floor: bool, explain: bool
    ) -> Awaitable[list[Hit]]:
        """See `BoundMemory.search`."""
        ...


class _Limiting(Protocol):
    """A handle that can end a search after so many bytes."""

    async def search(
        self, query: str, *, limit: int, where: Where, mode: Mode, floor: bool, explain: bool, most_bytes: int
    ) -> list[Hit]: ...


def limited(handle: Searching) -> Search:
    """The search of a handle, which ends after `MOST_BYTES` if it can."""
    return partial(handle.search, most_bytes=MOST_BYTES) if _is_limiting(handle) else handle.search


def _is_limiting(handle: object) -> TypeGuard[_Limiting]:
    return has(handle, "memory") and has(handle, "scope")
