"""Two read connections: long reads have their own, so that searches do not wait for them.

How long a read takes is estimated from its conditions and the number of records. An estimate that is too high costs
little: the read runs in the other thread. Rows that Python has to test are read in small parts (`RowFilter`), each of
which is short.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from memory_core.concurrency.threads import in_slices, sliced
from memory_core.errors import ClosedError
from memory_core.models import Scope
from memory_core.requests import ListRequest
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.owners import Owner, find
from memory_core.storage.sqlite.row_filter import RowFilter, matching_keys
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import conditions, has_few_values, needs_python
from memory_core.where.where import Where

T = TypeVar("T")

LONG_ROWS: Final = 2_000
"""Records that SQLite tests in a few milliseconds."""
LONG_PAGE: Final = 200
"""Records of a page that are read in a few milliseconds."""


class Readers:
    """The read connections. Used on the core loop only.

    Args:
        brief: For searches and other reads of a few milliseconds.
        connect: Opens the second connection at the first long read; `None` if there can be only one.
    """

    def __init__(self, brief: Connection, connect: Callable[[], Awaitable[Connection]] | None) -> None:
        self.brief = brief
        self._connect = connect
        self._long: Connection | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False

    async def close(self) -> None:
        """Open no more connections."""
        async with self._opening:
            self._is_closed = True

    async def long(self) -> Connection:
        """The connection for long reads."""
        if self._connect is None:
            return self.brief
        async with self._opening:
            if self._is_closed:
                raise ClosedError("this memory was closed; make a new Memory to open it again")
            if self._long is None:
                self._long = await self._connect()
            return self._long

    async def run(self, work: Callable[[sqlite3.Connection], T], *, unless: Callable[[sqlite3.Connection], bool]) -> T:
        """Run a read on the connection for short reads, or on the other one if `unless` returns true."""
        if self._connect is None:
            return await self.brief.run(work)

        def look(db: sqlite3.Connection) -> tuple[T] | None:
            return None if unless(db) else (work(db),)

        done = await self.brief.run(look)
        return await (await self.long()).run(sliced(work)) if done is None else done[0]

    async def run_filter(self, row_filter: RowFilter) -> None:
        """Run a filter to its end, while short work goes first."""
        while rows := await self.brief.run(row_filter.read):
            await in_slices(row_filter.check, rows)


async def rows_for_python(readers: Readers, scope: Scope, where: Where, now: int) -> RowFilter | None:
    """Run the conditions that Python decides on the records that satisfy the others.

    Returns:
        The filter after its run; `None` if SQLite decides all conditions or the owner has no records.
    """
    if not needs_python(where):
        return None

    def begin(db: sqlite3.Connection) -> RowFilter | None:
        with snapshot(db):
            owner = find(db, scope)
            if owner is None:
                return None
            found = conditions(owner.id, scope, where, now, hides=owner.hides)
            return RowFilter.for_conditions(found, matching_keys(db, found))

    row_filter = await readers.run(begin, unless=lambda db: looks_long(find(db, scope), where))
    if row_filter is not None:
        await readers.run_filter(row_filter)
    return row_filter


def looks_long(owner: Owner | None, where: Where) -> bool:
    """True if finding all records that satisfy the conditions takes longer than other searches may wait."""
    if owner is None or (_names_records(where) and has_few_values(where)):
        return False
    return owner.next > LONG_ROWS


def is_long_page(owner: Owner | None, request: ListRequest) -> bool:
    """True if reading a page takes longer than other searches may wait."""
    is_narrow = _is_in_order(request) or (request.where.session is not None and has_few_values(request.where))
    return request.limit > LONG_PAGE or (not is_narrow and looks_long(owner, request.where))


def _is_in_order(request: ListRequest) -> bool:
    """True if an index provides the order, and no condition excludes a record."""
    return request.where == Where() and request.order in {"newest", "oldest"}


def _names_records(where: Where) -> bool:
    return where.ids is not None or where.source_keys is not None
