"""Two connections that read: a long read has one of its own, so that nobody's search waits for it.

How long a read takes is guessed from what it asks for and how many records there are. A guess that is too high costs
little: the read is carried out in the other thread. What Python has to look at is read in small parts (`Sieve`), which
is brief, whoever reads.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from memory_core.errors import ClosedError
from memory_core.protocols import ListRequest
from memory_core.slices import in_slices, sliced
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.owners import Owner
from memory_core.storage.sqlite.sieve import Sieve
from memory_core.storage.sqlite.where import touches_data
from memory_core.where.value import Where

T = TypeVar("T")

LONG_ROWS: Final = 2_000
"""Records that are looked at in some milliseconds, if SQLite alone decides on them."""
LONG_PAGE: Final = 200
"""Records of a page that are read in some milliseconds."""
FEW_VALUES: Final = 50
"""Values and conditions of a `Where` that are made into SQL in a tenth of a millisecond."""


class Readers:
    """The connections that read. Lives on the core loop.

    Args:
        brief: For searches and whatever else is done in some milliseconds.
        connect: Opens another one, for the first long read; `None` where there can only be one.
    """

    def __init__(self, brief: Connection, connect: Callable[[], Awaitable[Connection]] | None) -> None:
        self.brief = brief
        self._connect = connect
        self._long: Connection | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False

    async def close(self) -> None:
        """Open no connection from now on."""
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
        """Carry out a read: a brief one, unless a first look says that it is long."""
        if self._connect is None:
            return await self.brief.run(work)

        def look(db: sqlite3.Connection) -> tuple[T] | None:
            return None if unless(db) else (work(db),)

        done = await self.brief.run(look)
        return await (await self.long()).run(sliced(work)) if done is None else done[0]

    async def sift(self, sieve: Sieve) -> None:
        """Find out what the sieve keeps, while brief work goes first."""
        while rows := await self.brief.run(sieve.read):
            await in_slices(sieve.look_at, rows)


def asks_python(where: Where) -> bool:
    """Whether there are conditions that SQLite cannot decide."""
    return bool(where.keywords or where.data) or any(map(touches_data, where.matching))


def has_few_values(where: Where) -> bool:
    """Whether making SQL of the conditions takes no time to speak of."""
    listed = (where.kinds, where.tags_any, where.tags_all, where.links, where.ids or (), where.source_keys or ())
    return sum(map(len, listed)) + 10 * len(where.matching) <= FEW_VALUES


def looks_long(owner: Owner | None, where: Where) -> bool:
    """Whether finding all records that satisfy the conditions takes longer than somebody else's search may wait."""
    if owner is None or (_names_records(where) and has_few_values(where)):
        return False
    return owner.next > LONG_ROWS


def is_brief_page(request: ListRequest) -> bool:
    """Whether a page is read in no time, whoever the owner is."""
    where = request.where
    is_narrow = _names_records(where) or where.session is not None or _is_in_order(request)
    return is_narrow and request.limit <= LONG_PAGE and has_few_values(where) and not asks_python(where)


def is_long_page(owner: Owner | None, request: ListRequest) -> bool:
    """Whether reading a page takes longer than somebody else's search may wait."""
    return request.limit > LONG_PAGE or (not _is_in_order(request) and looks_long(owner, request.where))


def _is_in_order(request: ListRequest) -> bool:
    """Whether an index has the records in their order, and all of them count."""
    return request.where == Where() and request.order in {"newest", "oldest"}


def _names_records(where: Where) -> bool:
    return where.ids is not None or where.source_keys is not None
