"""Reads take turns: one runs after the other, and one that takes long goes on beside the next.

Nothing estimates how long a read will take. All reads run in one thread, one after the other. A read that has run for
`TURN_SECONDS` loses its turn: the next one runs on another connection, in the thread of that, while the first goes on
in its own thread, in slices. It ends at the next slice if its caller is gone or the memory is closed.

Of one owner, one search at a time uses the index, and `MOST_OF_OWNER` other reads run at a time; more of them wait
until one has ended, so that nobody takes all the connections.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from memory_core.concurrency.loop import answer, settle
from memory_core.concurrency.threads import AbandonedError, note_waiting, sliced, yield_now
from memory_core.errors import StorageError
from memory_core.models import Scope
from memory_core.storage.sqlite.connection import Connection, closed

T = TypeVar("T")

TURN_SECONDS: Final = 0.005
"""The time after which a read loses its turn if another one waits."""
MOST_CONNECTIONS: Final = 8
"""Most reads that run at a time."""
MOST_OF_OWNER: Final = 2
"""Most reads of one owner that run at a time, apart from a search."""
_STEPS: Final = 100_000
"""Steps of SQLite, some milliseconds, after which a statement yields to other work."""


class _Lane(NamedTuple):
    """Reads of an owner of which `most` run at a time."""

    app: str
    user: str | None
    most: int


@dataclass(slots=True, eq=False)
class _Read(Generic[T]):
    work: Callable[[sqlite3.Connection], T]
    lanes: Collection[_Lane]
    done: asyncio.Future[T]


class Readers:
    """The connections that read. Used on the core loop; methods that say so run in the thread of a connection.

    Args:
        first: The connection of the first reads.
        connect: Opens another one when a read has lost its turn; `None` if there can be only one.
        disconnect: Closes what `connect` has opened.
    """

    def __init__(
        self,
        first: Connection,
        connect: Callable[[], Awaitable[Connection]] | None,
        disconnect: Callable[[Connection], Awaitable[None]],
    ) -> None:
        self._connect = connect
        self._disconnect = disconnect
        self._more: list[Connection] = []
        """The connections that `connect` has opened."""
        self._unanswered: set[_Read[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[None] | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        """Locked while one of the following is read or changed."""
        self._current = first
        """The connection whose turn it is."""
        self._began: float | None = None
        """When its read began; `None` if it has none."""
        self._idle: list[Connection] = []
        self._waiting: deque[_Read[Any]] = deque()
        self._running: Counter[_Lane] = Counter()
        self._held: dict[_Lane, deque[_Read[Any]]] = {}
        """Reads that wait until another one of their lane has ended."""
        first.hand_over(_let_it_yield)

    async def run(
        self, work: Callable[[sqlite3.Connection], T], *, of: Collection[Scope] = (), is_search: bool = False
    ) -> T:
        """Run a read when it is its turn.

        Args:
            work: Runs in the thread of a connection.
            of: Scopes of the owners whose records it reads.
            is_search: True if it uses the indexes of these owners.
        """
        if self._is_closed:
            raise closed()
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        in_turn = sliced(work, first=TURN_SECONDS, is_abandoned=done.done)
        most = 1 if is_search else MOST_OF_OWNER
        read = _Read(in_turn, {_Lane(scope.app, scope.user, most) for scope in of}, done)
        note_waiting(1)
        with self._lock:
            self._waiting.append(read)
            current = self._current
        current.queue(partial(self._work_off, current))
        if self._unanswered:
            self._watch(TURN_SECONDS)
        self._unanswered.add(read)
        try:
            return await done
        finally:
            self._unanswered.discard(read)

    async def close(self) -> None:
        """End the reads that are running, refuse those that wait, and close the connections opened meanwhile."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._opening is not None:
            await asyncio.wait([self._opening])
        answer([(read.done, None, closed()) for read in self._unanswered])
        while self._more:
            await self._disconnect(self._more.pop())

    def _watch(self, seconds: float) -> None:
        """After that time, see whether the current read has lost its turn."""
        if self._timer is None and self._connect is not None and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._end_turn)

    def _end_turn(self) -> None:
        """Let the next read run on another connection if the current one has had its turn."""
        self._timer = None
        with self._lock:
            if not self._waiting:
                return
            left = TURN_SECONDS if self._began is None else self._began + TURN_SECONDS - time.monotonic()
            fresh = self._idle.pop() if left <= 0 and self._idle else None
            if fresh is not None:
                self._current, self._began = fresh, None
        if fresh is not None:
            fresh.queue(partial(self._work_off, fresh))
        elif left <= 0 and self._opening is None and len(self._more) + 1 < MOST_CONNECTIONS:
            self._opening = asyncio.create_task(self._open(), name="memory-core reader")
        self._watch(left if left > 0 else TURN_SECONDS)

    async def _open(self) -> None:
        """Open another connection; if that fails, the reads wait for those that are running."""
        assert self._connect is not None  # noqa: S101  (for type checkers: `_watch` has seen to it)
        try:
            fresh = await self._connect()
        except StorageError:
            return
        finally:
            self._opening = None
        self._more.append(fresh)
        fresh.hand_over(_let_it_yield)
        with self._lock:
            self._idle.append(fresh)
        if self._timer is not None:
            self._timer.cancel()
        self._end_turn()

    def _work_off(self, connection: Connection) -> None:
        """Run reads, in the thread of a connection, as long as it is its turn."""
        while (read := self._take(connection)) is not None:
            settle(partial(connection.do, read.work), read.done)
            self._leave(connection, read)

    def _take(self, connection: Connection) -> _Read[Any] | None:
        """The next read that may run; `None` if there is none or it is another connection's turn."""
        with self._lock:
            if connection is not self._current:
                return None
            self._began = None
            while self._waiting:
                read = self._waiting.popleft()
                note_waiting(-1)
                full = next((lane for lane in read.lanes if self._running[lane] >= lane.most), None)
                if full is not None:
                    self._held.setdefault(full, deque()).append(read)
                elif not read.done.done():  # else its caller is gone
                    self._running.update(read.lanes)
                    self._began = time.monotonic()
                    return read
            return None

    def _leave(self, connection: Connection, read: _Read[Any]) -> None:
        """End a read, in the thread of its connection, and let go on what waits for that."""
        with self._lock:
            for lane in read.lanes:
                self._running[lane] -= 1
                if not self._running[lane]:
                    del self._running[lane]
                held = self._held.pop(lane, ())
                self._waiting.extendleft(reversed(held))
                note_waiting(len(held))
            current, waits = self._current, bool(self._waiting)
            if connection is not current:
                self._idle.append(connection)
        if connection is not current and waits:
            current.queue(partial(self._work_off, current))


def _let_it_yield(db: sqlite3.Connection) -> None:
    """Let statements yield to other work, and end when nobody waits for them any more."""
    db.set_progress_handler(_is_to_end, _STEPS)


def _is_to_end() -> bool:
    """True if SQLite is to end the statement."""
    try:
        yield_now()
    except AbandonedError:
        return True
    return False
