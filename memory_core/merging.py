"""List the records of several handles as one listing, page by page."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, cast

from memory_core.errors import InvalidInputError
from memory_core.handle import BoundMemory
from memory_core.models import MemoryRecord, Order, Page
from memory_core.where.value import Where

_MAX_CURSOR_CHARS: Final = 8_192
"""Longer than any valid cursor."""
_PLACES: Final[Mapping[Order, tuple[Callable[[MemoryRecord], datetime | float], bool]]] = {
    "newest": (lambda record: record.occurred_at, True),
    "oldest": (lambda record: record.occurred_at, False),
    "importance": (lambda record: record.importance, True),
    "accessed": (lambda record: record.accessed_at or record.created_at, True),
}
"""The value that an order sorts by, and whether the greatest comes first."""

_Start = str | None
"""Where the listing of a handle continues: at a cursor, or at its beginning (`None`)."""
_NOWHERE: Final = ""
"""The handle has no more records."""


async def merged_page(
    handles: Sequence[BoundMemory], *, where: Where, order: Order, limit: int, cursor: str | None
) -> Page:
    """One page of the records of all handles in one order; equals come in the order of the handles.

    Args:
        handles: Of different owners, the same ones for every page.
        limit: Maximum number of records, 1 to 10,000.
        cursor: `Page.cursor` of the previous page.

    Raises:
        InvalidInputError: The cursor is not of such a page.
    """

    async def part(handle: BoundMemory, start: _Start, size: int) -> Page:
        if start == _NOWHERE:
            return Page((), None)
        return await handle.list(where=where, order=order, limit=size, cursor=start)

    starts = [None] * len(handles) if cursor is None else _read(cursor, len(handles))
    pages = await asyncio.gather(*(part(handle, start, limit) for handle, start in zip(handles, starts, strict=True)))
    place, descends = _PLACES[order]
    every = [(record, number) for number, page in enumerate(pages) for record in page.records]
    shown = sorted(every, key=lambda one: place(one[0]), reverse=descends)[:limit]

    async def after(number: int) -> _Start:
        """Where the handle's listing continues after the records that are shown."""
        page, start = pages[number], starts[number]
        taken = sum(of == number for _, of in shown)
        if not taken and page.records:
            return start
        if taken < len(page.records):  # the cursor after a part of the page comes from reading that part
            page = await part(handles[number], start, taken)
        return page.cursor or _NOWHERE

    following = [await after(number) for number in range(len(handles))]
    is_last = not any(start != _NOWHERE for start in following)
    return Page(tuple(record for record, _ in shown), None if is_last else _written(following))


def _written(starts: Sequence[_Start]) -> str:
    return base64.urlsafe_b64encode(json.dumps(starts).encode()).decode()


def _read(cursor: object, count: int) -> list[_Start]:
    found: object = None
    if isinstance(cursor, str) and len(cursor) <= _MAX_CURSOR_CHARS:
        with suppress(ValueError, RecursionError):  # not a cursor
            found = json.loads(base64.urlsafe_b64decode(cursor))
    given = cast("list[object]", found) if isinstance(found, list) else []
    starts = [start for start in given if start is None or isinstance(start, str)]
    if len(given) != count or len(starts) != count:
        raise InvalidInputError(f"cursor {cursor!r:.80} is not from a page of these spaces; pass `Page.cursor`")
    return starts
