"""The table `hidden`: keys of records that no reader sees, although their rows are still there.

A write transaction is short. So if much was made of the words of a record that is deleted, changed, left or resumed,
its transaction hides all of that, and the rows are deleted, or follow their sources, in parts, each in a transaction of
its own, before the caller is answered (a single add, soon after). Readers of `record` leave hidden rows out
(`Owner.hides`); the rules of a write leave out those that are deleted, and see the others. If a process dies in
between, the next one that opens the file does the rest.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from memory_core.errors import reason_for_log
from memory_core.models import Scope
from memory_core.storage.rules.deleting import take_away
from memory_core.storage.rules.deriving import follow_sources
from memory_core.storage.rules.rows import Row
from memory_core.storage.shared.stored_forms import moment
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.owners import find, owner_names
from memory_core.storage.sqlite.rows import SqliteRows
from memory_core.storage.sqlite.schema import OWNER_BITS

SLICE_SECONDS: Final = 0.005
"""The time for which one transaction works on hidden rows."""
_PART: Final = 32
"""So many are dealt with between two looks at the clock, ..."""
_MOST_SOURCES: Final = 256
"""... and so many links to their sources, unless one record has more."""

logger = logging.getLogger(__name__)


class Hidden:
    """The worker that deals with the hidden rows of a file. It is used on the core loop only."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._task: asyncio.Task[None] | None = None
        self._are_more = False
        self._is_closed = False

    def wake(self) -> None:
        """Deal with all hidden rows, in the background; called after a commit that leaves some."""
        self._are_more = True
        if not self._is_closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._work(), name="memory-core hidden")
            self._task.add_done_callback(_say_if_it_failed)

    async def done(self) -> None:
        """Deal with all hidden rows, also if the caller is cancelled."""
        self.wake()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def close(self) -> None:
        """Finish what was begun."""
        self._is_closed = True
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        while self._are_more:
            self._are_more = False
            await work_off(self._writer)


def is_due(db: sqlite3.Connection) -> bool:
    """True if hidden rows have to be deleted."""
    return db.execute("SELECT 1 FROM hidden LIMIT 1").fetchone() is not None


def _say_if_it_failed(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        logger.warning("hidden records stay for now, and the next write deals with them: %s", reason_for_log(error))


async def work_off(writer: Writer) -> None:
    """Deal with all hidden rows; other writes go in between."""
    while await writer.write(_slice):
        pass


def delete_all(db: sqlite3.Connection) -> None:
    """Delete all hidden rows that go, within the present transaction."""
    while _delete_part(db):
        pass


def _slice(db: sqlite3.Connection) -> bool:
    """Deal with hidden rows for `SLICE_SECONDS`; returns whether more follow."""
    end = time.perf_counter() + SLICE_SECONDS
    while _delete_part(db) or _follow_part(db):
        if time.perf_counter() > end:
            return is_due(db)
    return False


def _delete_part(db: sqlite3.Connection) -> bool:
    """Delete some hidden rows of one owner; `False` if no hidden row is to be deleted."""
    found = db.execute("SELECT key, at FROM hidden WHERE NOT stays LIMIT 1").fetchone()
    if found is None:
        return False
    rows = _rows_with(db, found[0])
    take_away(rows, rows.hidden(_PART), moment(found[1]))
    return True


def _follow_part(db: sqlite3.Connection) -> bool:
    """Let some hidden rows of one owner follow their sources; `False` if no hidden row is to follow."""
    found = db.execute("SELECT key, at FROM hidden WHERE stays ORDER BY key LIMIT 1").fetchone()
    if found is None:
        return False
    rows, now = _rows_with(db, found[0]), moment(found[1])
    made = _some(rows.next_to_follow(_PART))
    rows.show(made)  # before they follow: what was made of their words may be hidden again, and so may they
    follow_sources(rows, made, now)
    return True


def _some(made: Sequence[Row]) -> Sequence[Row]:
    """The first of these, with no more sources than one transaction can read."""
    links = list(accumulate(len(row.record.links) for row in made))
    return made[: max(1, bisect_right(links, _MOST_SOURCES))]


def _rows_with(db: sqlite3.Connection, key: int) -> SqliteRows:
    scope = Scope(*owner_names(db, key >> OWNER_BITS))
    owner = find(db, scope)
    assert owner is not None  # noqa: S101  (an owner is removed after its hidden rows)
    return SqliteRows(db, scope, owner)
