"""The writer: one connection, and one commit for all waiting writes (group commit).

With `synchronous=FULL` a commit waits for the disk. Writers that arrive during a commit share the next one, so
throughput grows with the number of writers, and every write is durable when it returns. Processes take turns
(`process_queue.py`).
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, TypeVar

from memory_core.concurrency.loop import answer
from memory_core.errors import ClosedError, reason_for_log
from memory_core.storage.sqlite.adds import Adds
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.owners import Unfinished, unfinished
from memory_core.storage.sqlite.problems import file_problems_explained
from memory_core.storage.sqlite.transactions import transaction

logger = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Sequence[Any]]
"""The work of a write in its transaction; returns one result per caller."""
Outcome = tuple[Any, BaseException | None]

MAX_GROUP: Final = 256
"""Most writes of one commit; limits how long the first of them waits."""
IDLE_SECONDS: Final = 10.0
"""The time for which writes must pause before the writer tidies up."""
GATHERING_SHARE: Final = 0.5
MOST_SECONDS_GATHERED: Final = 0.005
"""The time for which a commit is delayed for expected writers: a share of the last commit's time, and an upper
limit. Tasks of one loop arrive together anyway; 8 threads need 42 commits instead of 71 to 76 for 320 adds."""


class _Waiting(NamedTuple):
    work: Work
    done: Sequence[asyncio.Future[Any]]


class Writer:
    """Runs writes in order of arrival. Used on the core loop only, without a task there.

    The end of a commit wakes that loop only if writes are waiting; otherwise it would compete for the interpreter lock
    with the callers that just got their results.

    Args:
        when_pending: Called after a commit if the file lacks vectors.
        when_hidden: Called after a commit if the file has hidden rows.
        when_idle: Run on the connection when no write came for `IDLE_SECONDS` after a write.
        around: Entered before each commit and left after it, in the connection's thread; the callers of that commit
            get the errors that it raises.
    """

    def __init__(
        self,
        connection: Connection,
        when_pending: Callable[[], None],
        when_hidden: Callable[[], None],
        when_idle: Callable[[sqlite3.Connection], None],
        around: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._connection = connection
        self._when_pending = when_pending
        self._when_hidden = when_hidden
        self._when_idle = when_idle
        self._around = around
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Waiting] = deque()
        self._size = 0
        """Number of callers in the queue."""
        self._room = asyncio.Event()
        self._committing = False
        self._ended = 0.0
        self._expected = 0
        """Number of writers that seem to write in sequence; 0 if there was none since the last pause."""
        self._patience = 0.0
        self._gathering: asyncio.TimerHandle | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._closed = False

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction and return when it is durable.

        If `work` raises, it is rolled back alone and the error is raised here; other writes of the same commit are not
        affected. Cancelling the caller does not stop the write.
        """
        done: asyncio.Future[T] = self._loop.create_future()
        self.enqueue(lambda db: (work(db),), (done,))
        return await done

    def enqueue(self, work: Work, done: Sequence[asyncio.Future[Any]]) -> None:
        """`write` on behalf of one or several callers: each future gets its result or the error."""
        if self._closed:
            raise ClosedError("this memory was closed; make a new Memory to open it again")
        self._queue.append(_Waiting(work, done))
        self._size += len(done)
        self._gather()
        if self._resting is None:
            self._resting = self._loop.call_later(IDLE_SECONDS, self._rest)

    async def has_room(self) -> None:
        """Wait until fewer callers wait than one commit answers, so that those who come later can take their turn."""
        while self._size >= MAX_GROUP:
            self._room.clear()
            await self._room.wait()

    async def close(self) -> None:
        """Finish everything that was accepted."""
        self._closed = True
        while self._committing or self._queue:
            self._gather()
            await self._connection.run(lambda _: None)  # runs after that commit
        if self._resting is not None:
            self._resting.cancel()

    def _gather(self) -> None:
        """Wait briefly for the expected writers; a single writer does not wait."""
        if self._committing or not self._queue:
            return
        if self._size >= self._expected or self._closed:
            self._commit()
        elif self._gathering is None:
            self._gathering = self._loop.call_later(self._patience, self._commit)

    def _commit(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        self._committing = True
        group = self._next_group()
        self._connection.hand_over(lambda db: self._serve(db, group))

    def _next_group(self) -> list[_Waiting]:
        group = [self._queue.popleft()]
        size = len(group[0].done)
        while self._queue and size + len(self._queue[0].done) <= MAX_GROUP:
            group.append(self._queue.popleft())
            size += len(group[-1].done)
        self._size -= size
        self._room.set()
        return group

    def _serve(self, db: sqlite3.Connection, group: Sequence[_Waiting]) -> None:
        """Write a group, in the writer's thread."""
        began = time.perf_counter()
        left = self._carry_out(db, group)
        if left.lacks_vectors:
            self._loop.call_soon_threadsafe(self._when_pending)
        if left.hides and not self._closed:
            self._loop.call_soon_threadsafe(self._when_hidden)
        self._ended = time.perf_counter()
        self._patience = min(GATHERING_SHARE * (self._ended - began), MOST_SECONDS_GATHERED)
        self._committing = False  # set before reading the queue: a caller that arrives in between checks it
        if self._queue:
            self._loop.call_soon_threadsafe(self._gather)

    def _carry_out(self, db: sqlite3.Connection, group: Sequence[_Waiting]) -> Unfinished:
        """Commit a group and settle its callers' futures directly from the writer's thread.

        Returns what is left to do in the file; this is read after the callers have their results.
        """
        promises = [promise for waiting in group for promise in waiting.done]
        try:
            with file_problems_explained("the store"), self._around():
                outcomes = commit(db, group)
        except BaseException as error:  # noqa: BLE001  (whatever it was, every caller of this group must hear of it)
            outcomes = [(None, error)] * len(promises)
        # Callers that get their results now may write again, and can then share a commit with those already waiting.
        self._expected = min(len(promises) + self._size, MAX_GROUP)
        answer((promise, *outcome) for promise, outcome in zip(promises, outcomes, strict=True))
        try:
            return unfinished(db)
        except (sqlite3.Error, MemoryError) as error:  # no caller depends on it, and the next commit checks again
            logger.info("could not check for pending vectors: %s", reason_for_log(error))
            return Unfinished()

    def _rest(self) -> None:
        """Use a long pause after a write to tidy up."""
        self._resting = None
        if self._closed:
            return
        left = IDLE_SECONDS if self._committing or self._queue else self._ended + IDLE_SECONDS - time.perf_counter()
        if left > 0:
            self._resting = self._loop.call_later(left, self._rest)
            return
        self._expected = 0
        self._connection.submit(self._when_idle).add_done_callback(_say_if_it_failed)


def _say_if_it_failed(tidied: asyncio.Future[None]) -> None:
    error = tidied.exception()
    if error is not None:  # for example because another process writes; nothing depends on it
        logger.info("the store was not tidied: %s", reason_for_log(error))


def commit(db: sqlite3.Connection, group: Sequence[_Waiting]) -> list[Outcome]:
    """Run the works in one transaction, in order, and return their outcomes; one that raises is rolled back alone."""
    if len(group) == 1:  # a single work needs no savepoint, which would copy every changed page
        try:
            with transaction(db):
                return [(result, None) for result in group[0].work(db)]
        except Exception as error:  # any error; several adds are retried one by one
            if len(group[0].done) == 1 or isinstance(error, sqlite3.OperationalError):
                raise
    with transaction(db):
        return [outcome for waiting in group for outcome in _outcomes(db, waiting.work, len(waiting.done))]


def _outcomes(db: sqlite3.Connection, work: Work, count: int) -> list[Outcome]:
    db.execute("SAVEPOINT work")
    try:
        outcomes: list[Outcome] = [(result, None) for result in work(db)]
    except Exception as error:  # any error is passed to the callers of this work only
        if not db.in_transaction:  # SQLite rolled back the whole transaction, for example on a full disk
            raise
        db.execute("ROLLBACK TO work")
        db.execute("RELEASE work")
        if count == 1 or not isinstance(work, Adds):
            return [(None, error)] * count
        return [outcome for single in work.apart() for outcome in _outcomes(db, single, 1)]
    db.execute("RELEASE work")
    return outcomes
