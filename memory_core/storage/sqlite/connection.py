"""One connection to a store file: open it, set it up and run work on it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from memory_core.concurrency.loop import settle
from memory_core.concurrency.threads import keep_for_ever, mark_own_thread
from memory_core.errors import ClosedError
from memory_core.storage.sqlite.file_identity import Identity, insist_on_opened
from memory_core.storage.sqlite.fork_gate import inside_sqlite
from memory_core.storage.sqlite.problems import Reading, file_problems_explained, reading
from memory_core.storage.sqlite.raw_connection import RawConnection
from memory_core.storage.sqlite.schema import migrate

T = TypeVar("T")

BUSY_MS: Final = 30_000
"""The time for which a writer waits for another process's transaction."""
BUSY_PAUSE_SECONDS: Final = 0.01
"""Pause between two attempts where SQLite itself does not wait."""

IN_MEMORY: Final = ":memory:"


class Connection(RawConnection):
    """An aiosqlite connection that runs a whole unit of work in one call to its thread."""

    def __init__(self, connector: Callable[[], sqlite3.Connection], reading: Reading = reading) -> None:
        super().__init__(connector)
        self._reading = reading
        """Runs work that reads."""
        self._is_closing = False

    async def open(self) -> None:
        """Connect. If the caller is cancelled meanwhile, the connection is closed before that is reported.

        aiosqlite alone would leave it, and the file that it is creating, to a thread that nobody waits for.
        """
        opening = asyncio.create_task(self._connected(), name="memory-core open")
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.create_task(self._closed_after(opening), name="memory-core close"))
            raise

    async def _connected(self) -> None:
        await self

    async def _closed_after(self, opening: asyncio.Task[None]) -> None:
        await asyncio.wait([opening])
        if not opening.cancelled() and opening.exception() is None:
            await self.close()

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in the connection's thread and translate SQLite's errors."""
        return await self.submit(work)

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Like `run`, for callers on the loop that have no task to wait in."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.queue(partial(settle, partial(self._do, work, self._open()), done))
        return done

    def hand_over(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Run `work`, which must not raise, without reporting its end."""
        self.queue(partial(self._do, work, self._open()))

    def _open(self) -> sqlite3.Connection:
        if self._is_closing or not self.is_running or self.raw is None:  # what is queued now would find it closed
            raise closed()
        return self.raw

    async def close(self, then: Callable[[], None] | None = None) -> None:
        """Finish the queued work and close the file; then call `then` in the same thread."""
        self._is_closing = True
        db = self.raw

        def finish() -> None:
            if db is not None:
                with inside_sqlite.work():
                    db.close()
            if then is not None:
                then()

        if db is not None:
            await self.call(finish)
        await super().close()

    def drop(self) -> None:
        """Release the connection in a forked child, which does not have its thread."""
        db = self.detach()
        if db is not None and inside_sqlite.was_idle:
            db.close()
        elif db is not None:
            keep_for_ever(db)  # a thread of the parent may be inside SQLite, and closing would wait for it

    def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in the calling thread, which is the connection's own."""
        if self.raw is None:
            raise closed()
        return self._do(work, self.raw)

    def _do(self, work: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
        with inside_sqlite.work(), file_problems_explained("the store"):
            return self._reading(work, db)


def closed() -> ClosedError:
    """The error of a call to a closed memory."""
    return ClosedError("this memory was closed; make a new Memory to open it again")


async def connect(
    path: str, *, prepare: Callable[[Path], object] | None = None, wanted: Identity | None = None
) -> Connection:
    """Open one connection to the file at `path`, or to `:memory:`.

    All of it happens in the connection's own thread, because an ending interpreter cannot start another.

    Args:
        path: The file.
        prepare: Called first, in the connection's thread: creates or checks the file.
        wanted: The identity that the file must have, if given.
    """

    def connector() -> sqlite3.Connection:
        mark_own_thread()
        with inside_sqlite.work():
            if prepare is not None:
                prepare(Path(path))
            return _connected(path, wanted)

    connection = Connection(connector)
    with file_problems_explained(f"the memory file {path!r}"):
        await connection.open()
    return connection


def _connected(path: str, wanted: Identity | None) -> sqlite3.Connection:
    db = sqlite3.connect(
        path, isolation_level=None, timeout=BUSY_MS / 1000, cached_statements=256, check_same_thread=False
    )
    try:
        set_up(db)
        if path == IN_MEMORY:
            migrate(db)
        elif wanted is not None:
            insist_on_opened(path, wanted)
    except BaseException:  # on any error: no other code can close this connection
        db.close()
        raise
    return db


def set_up(db: sqlite3.Connection) -> None:
    """Apply the settings of every connection."""
    _write_ahead(db)
    db.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute(
        "PRAGMA cache_size = -8192"
    )  # KiB; searches read the owner indexes, and the system caches the file as well


def _write_ahead(db: sqlite3.Connection) -> None:
    """Turn on the write-ahead log. If another process reads a new file meanwhile, SQLite fails without waiting."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(BUSY_PAUSE_SECONDS)
        else:
            return
