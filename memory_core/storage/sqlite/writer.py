"""The writer: one task, one connection, and one commit for everything that is waiting (group commit).

With `synchronous=FULL` a commit waits for the disk. Writers that arrive while one commit is under way share the next,
so throughput grows with the number of writers and every write is durable when it returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from memory_core.errors import ClosedError, StorageError
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.writing import Insertion

logger = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]
Outcome = tuple[Any, Exception | None]

MAX_GROUP: Final = 256
"""Most writes of one commit; bounds how long the first of them waits."""
OUTBOX_KEPT: Final = 50_000
"""Changes kept for followers; one that fell further behind reads its owner anew."""


IDLE_SECONDS: Final = 10.0
"""How long a pause has to be to be used for tidying."""
GATHERING_SHARE: Final = 0.5
MOST_SECONDS_GATHERED: Final = 0.005
"""How long a commit may be put off for writers that are expected, as a share of the last commit's time, and at most."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    work: Work
    done: asyncio.Future[Any]


class Writer:
    """Carries out writes in the order they came. Lives on the core loop.

    Args:
        when_owed: Called after a commit if the file lacks vectors.
        when_idle: Run on the connection once nothing was written for `IDLE_SECONDS` after a write.
    """

    def __init__(
        self, connection: Connection, when_owed: Callable[[], None], when_idle: Callable[[sqlite3.Connection], None]
    ) -> None:
        self._connection = connection
        self._when_owed = when_owed
        self._when_idle = when_idle
        self._queue: deque[_Waiting] = deque()
        self._arrival = asyncio.Event()
        """Set when something is waiting, or the end has come."""
        self._expected = 0
        """How many writers seem to be writing one thing after the other; 0 if none did since the last pause."""
        self._all_there = asyncio.Event()
        """Set when as many writes as expected are waiting, or the end has come."""
        self._patience = 0.0
        self._closed = False
        self._task = asyncio.create_task(self._serve(), name="memory-core writer")

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction and return once that is durable.

        If `work` raises, nothing of it happened and the error is raised here; others of the same commit are not
        affected. A caller that is cancelled meanwhile does not stop the write.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.enqueue(work, done)
        return await done

    def enqueue(self, work: Callable[[sqlite3.Connection], T], done: asyncio.Future[T]) -> None:
        """`write` for somebody else: `done` gets the result or the error."""
        if self._closed:
            raise ClosedError("this memory was closed; make a new Memory to open it again")
        self._queue.append(_Waiting(work, done))
        self._arrival.set()
        if len(self._queue) >= self._expected:
            self._all_there.set()

    async def close(self) -> None:
        """Finish everything that was accepted."""
        self._closed = True
        self._arrival.set()
        self._all_there.set()
        await self._task

    async def _serve(self) -> None:
        while True:
            await self._next_write()
            if not self._queue:
                return
            await self._gather()
            group = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_GROUP))]
            start = time.perf_counter()
            await self._commit(group)
            self._patience = min(GATHERING_SHARE * (time.perf_counter() - start), MOST_SECONDS_GATHERED)
            # Whoever was just served may come again, and then they and those who wait now can share one commit.
            self._expected = min(len(group) + len(self._queue), MAX_GROUP)
            if not self._queue and not self._closed:
                self._arrival.clear()

    async def _next_write(self) -> None:
        """Wait for something to write or for the end, and use a long pause after a write to tidy up."""
        if self._expected:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._arrival.wait()
            if not self._arrival.is_set():
                self._expected = 0
                try:
                    await self._connection.run(self._when_idle)
                except StorageError as error:  # such as another process that writes: nothing depends on it
                    logger.info("the store was not tidied: %s", error)
        await self._arrival.wait()

    async def _gather(self) -> None:
        """Wait a little for the writers that are expected; a lone one waits for nobody."""
        if len(self._queue) < self._expected and not self._closed:
            self._all_there.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience):
                    await self._all_there.wait()

    async def _commit(self, group: Sequence[_Waiting]) -> None:
        works = [waiting.work for waiting in group]
        try:
            outcomes, owed = await self._connection.run(lambda db: commit(db, works))
        except Exception as error:  # noqa: BLE001  (whatever it was, every caller of this group must hear of it)
            outcomes, owed = [(None, error)] * len(group), False
        if owed:
            self._when_owed()
        for waiting, (result, failure) in zip(group, outcomes, strict=True):
            if waiting.done.done():  # its caller was cancelled
                continue
            if failure is None:
                waiting.done.set_result(result)
            else:
                waiting.done.set_exception(failure)


def commit(db: sqlite3.Connection, works: Sequence[Work]) -> tuple[list[Outcome], bool]:
    """Run the works in one transaction, in order; one that raises is undone alone.

    Returns how each ended, and whether the file lacks vectors.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        outcomes: list[Outcome] = []
        for together in _runs(works):
            outcomes += _insert_as_one(db, together) or [_run(db, work) for work in together]
        _trim_outbox(db)
        owed = db.execute("SELECT 1 FROM chunk WHERE vector IS NULL LIMIT 1").fetchone() is not None
        db.execute("COMMIT")
    except BaseException:  # whatever it was, the next group needs a connection without a transaction
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return outcomes, owed


def _runs(works: Sequence[Work]) -> list[list[Work]]:
    """Neighbouring insertions of one owner together, everything else alone."""
    runs: list[list[Work]] = []
    for work in works:
        last = runs[-1][-1] if runs else None
        if isinstance(work, Insertion) and isinstance(last, Insertion) and work.scope == last.scope:
            runs[-1].append(work)
        else:
            runs.append([work])
    return runs


def _insert_as_one(db: sqlite3.Connection, works: Sequence[Work]) -> list[Outcome]:
    """Several insertions for the price of one; empty if that failed, and then each has to be run by itself."""
    insertions = [work for work in works if isinstance(work, Insertion)]
    if len(insertions) < 2:
        return []
    whole = Insertion(insertions[0].scope, [item for work in insertions for item in work.batch])
    records, error = _run(db, whole)
    if error is not None:
        return []
    rest = iter(records)
    return [([next(rest) for _ in work.batch], None) for work in insertions]


def _run(db: sqlite3.Connection, work: Work) -> Outcome:
    db.execute("SAVEPOINT work")
    try:
        result = work(db)
    except Exception as error:  # whatever it was, it is this caller's alone
        if not db.in_transaction:  # SQLite gave up the whole transaction, such as on a full disk
            raise
        db.execute("ROLLBACK TO work")
        db.execute("RELEASE work")
        return None, error
    db.execute("RELEASE work")
    return result, None


def _trim_outbox(db: sqlite3.Connection) -> None:
    first, last = db.execute("SELECT (SELECT min(seq) FROM outbox), (SELECT max(seq) FROM outbox)").fetchone()
    if last is not None and last - first > 2 * OUTBOX_KEPT:
        db.execute("DELETE FROM outbox WHERE seq <= ?", (last - OUTBOX_KEPT,))
