"""Records of an answer that is limited in bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

from memory_core.every_record import Lists
from memory_core.models import MemoryRecord, Order, Page
from memory_core.records.size import bytes_of
from memory_core.values.limits import MAX_LIMIT, PAGE_BYTES
from memory_core.where.where import Where

_FIRST_STEP: Final = 8
_MOST_A_STEP: Final = 64
"""Long records may follow any number of short ones."""


async def short_page(
    owner: Lists, *, where: Where, order: Order, limit: int, cursor: str | None, most_bytes: int
) -> Page:
    """A page that ends when its records have `most_bytes` together.

    Nobody knows how long records are before they are read: so a few are read first, and each time at most twice as
    many.
    """
    found, size, step = list[MemoryRecord](), 0, _FIRST_STEP
    while True:
        page = await owner.list(where=where, order=order, limit=min(step, limit - len(found)), cursor=cursor)
        found += page.records
        size += sum(map(bytes_of, page.records))
        cursor = page.cursor
        if cursor is None or len(found) == limit or size >= most_bytes:
            return Page(tuple(found), cursor)
        step = max(min(2 * step, _MOST_A_STEP, (most_bytes - size) * len(found) // max(size, 1)), 1)


async def each_record(
    owner: Lists, where: Where, *, order: Order = "oldest", limit: int | None = None
) -> AsyncIterator[MemoryRecord]:
    """The records that satisfy the conditions, up to a limit, of which a few are in memory at a time."""
    left, cursor = limit, None
    while left is None or left > 0:
        most = MAX_LIMIT if left is None else min(left, MAX_LIMIT)
        page = await short_page(owner, where=where, order=order, limit=most, cursor=cursor, most_bytes=PAGE_BYTES)
        for record in page.records:
            yield record
        if (cursor := page.cursor) is None:
            return
        left = None if left is None else left - len(page.records)


def count_within(records: Iterable[MemoryRecord], most_bytes: int) -> int:
    """The number of first records until they have `most_bytes` together."""
    size = count = 0
    for record in records:
        if size >= most_bytes:
            break
        size += bytes_of(record)
        count += 1
    return count
