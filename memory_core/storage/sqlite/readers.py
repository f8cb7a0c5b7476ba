"""Reads take turns: one runs after the other, and one that takes long goes on beside the next.

Nothing estimates how long a read will take. All reads run in one thread, one after the other. A read that has run for
`TURN_SECONDS` loses its turn: the next one runs on another connection, in the thread of that, while the first goes on
in its own thread, in slices. It ends at the next slice if its caller is gone or the memory is closed.

A read that would not have to wait may be tried in the thread of the core loop itself (`briefly`): waking another
thread, and being woken by it, is a tenth of the CPU of a search of a thousand records, without the embedding.

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

from memory_core.concurrency.loop import answer, core_loop, settle
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
PATIENCE_SECONDS: Final = 1.0
"""The time that closing leaves to what is being read."""
BRIEF_STEPS: Final = 20_000
"""Steps of SQLite, about a millisecond, after which a statement in the thread of the core loop is given up."""
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
        """The time at which its read began; `None` if it has none."""
        self._is_lent = False
        """True while the thread of the core loop uses it."""
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
        read = _Read(in_turn, _lanes(of, is_search), done)
        note_waiting(1)
        with self._lock:
            self._waiting.append(read)
            current, is_first = self._current, self._began is None and len(self._waiting) == 1
        self._wake(current, 1)
        if not is_first:
            self._watch(TURN_SECONDS)
        self._unanswered.add(read)
        try:
            return await done
        finally:
            self._unanswered.discard(read)

    async def briefly(
        self, work: Callable[[sqlite3.Connection], T | None], *, of: Collection[Scope], is_search: bool = False
    ) -> T | None:
        """Try a read in the thread of the core loop; the arguments are those of `run`.

        Returns:
            `None` if it would have to wait, if a statement takes more than `BRIEF_STEPS`, or if `work` returns that.
        """
        core = core_loop()
        if self._connect is None or asyncio.get_running_loop() is not core.loop:
            return None  # without another connection, this one may be writing
        return await core.between_turns(partial(self._try, partial(_within_steps, work), _lanes(of, is_search)))

    def _try(self, work: Callable[[sqlite3.Connection], T | None], lanes: Collection[_Lane]) -> T | None:
        if self._is_closed:
            raise closed()
        with self._lock:
            if self._began is not None or self._waiting or self._full(lanes) is not None:
                return None
            self._running.update(lanes)
            self._began = time.monotonic()
            self._is_lent = True
            current = self._current
        try:
            return current.do(work)
        finally:
            with self._lock:
                self._is_lent, self._began = False, None
                self._release(lanes)
                waiting = len(self._waiting)
            self._wake(current, waiting)

    async def close(self) -> None:
        """Refuse further reads, end those that take longer than `PATIENCE_SECONDS`, and close what `connect` opened."""
        self._is_closed = True
        if self._unanswered:
            await asyncio.wait([read.done for read in self._unanswered], timeout=PATIENCE_SECONDS)
        self._connect = None
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._timer is not None:
            self._timer.cancel()
        answer([(read.done, None, closed()) for read in self._unanswered])
        with self._lock:
            note_waiting(-len(self._waiting))
            self._waiting.clear()
            self._held.clear()
        while self._more:
            await self._disconnect(self._more.pop())

    def _watch(self, seconds: float) -> None:
        """After that time, see whether the current read has lost its turn."""
        if self._timer is None and self._connect is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._end_turn)

    def _end_turn(self) -> None:
        """Let the next read run on another connection if the current one has had its turn."""
        self._timer = None
        with self._lock:
            if not self._waiting:
                return
            left = TURN_SECONDS if self._began is None else self._began + TURN_SECONDS - time.monotonic()
            fresh, waiting = self._idle.pop() if left <= 0 and self._idle else None, len(self._waiting)
            if fresh is not None:
                self._current, self._began = fresh, None
        if fresh is not None:
            self._wake(fresh, waiting)
        elif left <= 0 and self._connect and self._opening is None and len(self._more) + 1 < MOST_CONNECTIONS:
            self._opening = asyncio.create_task(self._open(self._connect), name="memory-core reader")
        self._watch(left if left > 0 else TURN_SECONDS)

    async def _open(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        """Open another connection; if that fails, the reads wait for those that are running."""
        try:
            fresh = await connect()
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

    def _wake(self, connection: Connection, count: int) -> None:
        """Queue a call for each read that waits. More of them do no harm."""
        for _ in range(count):
            connection.queue(partial(self._run_next, connection))

    def _run_next(self, connection: Connection) -> None:
        """Run the next read, in the thread of a connection, if it is its turn."""
        read = self._take(connection)
        if read is not None:
            settle(partial(connection.do, read.work), read.done)
            self._leave(connection, read)

    def _take(self, connection: Connection) -> _Read[Any] | None:
        """The next read that may run; `None` if no read waits, or if it is another connection's turn."""
        with self._lock:
            if connection is not self._current or self._is_lent:
                return None
            while self._waiting:
                read = self._waiting.popleft()
                note_waiting(-1)
                full = self._full(read.lanes)
                if full is not None:
                    self._held.setdefault(full, deque()).append(read)
                elif not read.done.done():  # else its caller is gone
                    self._running.update(read.lanes)
                    self._began = time.monotonic()
                    return read
            return None

    def _leave(self, connection: Connection, read: _Read[Any]) -> None:
        """End a read, in the thread of its connection, and let go on what is held for that."""
        with self._lock:
            released, current = self._release(read.lanes), self._current
            if connection is current:
                self._began = None  # it has no read whose turn could end
            else:
                self._idle.append(connection)
        self._wake(current, released)

    def _full(self, lanes: Collection[_Lane]) -> _Lane | None:
        """The first of these lanes in which no further read may run; called with the lock."""
        return next((lane for lane in lanes if self._running[lane] >= lane.most), None)

    def _release(self, lanes: Collection[_Lane]) -> int:
        """Leave lanes, and let wait again what was held for them; returns how many. Called with the lock."""
        released = 0
        for lane in lanes:
            self._running[lane] -= 1
            if not self._running[lane]:
                del self._running[lane]
            held = self._held.pop(lane, ())
            self._waiting.extendleft(reversed(held))
            released += len(held)
        note_waiting(released)
        return released


def _lanes(of: Collection[Scope], is_search: bool) -> frozenset[_Lane]:  # noqa: FBT001
    most = 1 if is_search else MOST_OF_OWNER
    return frozenset(_Lane(scope.app, scope.user, most) for scope in of)


def _within_steps(work: Callable[[sqlite3.Connection], T | None], db: sqlite3.Connection) -> T | None:
    is_over = False

    def end() -> bool:
        nonlocal is_over
        is_over = True
        return True

    db.set_progress_handler(end, BRIEF_STEPS)
    try:
        return work(db)
    except sqlite3.OperationalError:
        if not is_over:
            raise
        return None
    finally:
        _let_it_yield(db)


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
