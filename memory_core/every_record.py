"""Read all records that satisfy conditions, page after page."""

from __future__ import annotations

from typing import Protocol

from memory_core.models import MemoryRecord, Order, Page
from memory_core.values.limits import MAX_LIMIT
from memory_core.where.where import EVERYTHING, Where


class Lists(Protocol):
    """A handle, or several handles that are read together."""

    async def list(
        self, *, where: Where = EVERYTHING, order: Order = "newest", limit: int = 50, cursor: str | None = None
    ) -> Page:
        """See `BoundMemory.list`."""
        ...


async def every_record(handle: Lists, where: Where = EVERYTHING) -> list[MemoryRecord]:
    """The records that satisfy the conditions, oldest first. All of them are in memory at once."""
    records: list[MemoryRecord] = []
    cursor: str | None = None
    while True:
        page = await handle.list(where=where, order="oldest", limit=MAX_LIMIT, cursor=cursor)
        records += page.records
        if (cursor := page.cursor) is None:
            return records
