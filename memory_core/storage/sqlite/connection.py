"""One connection of a store file: how it is checked, opened and used."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from memory_core.crossing import answer, settle
from memory_core.errors import ClosedError, StoreUnavailableError
from memory_core.loop import core_loop
from memory_core.storage.sqlite.damage import Reading, reading
from memory_core.storage.sqlite.files import BUSY_MS, Identity, file_problems_explained, identity, prepare_file
from memory_core.storage.sqlite.raw_connection import RawConnection
from memory_core.storage.sqlite.schema import migrate
from memory_core.threads import ForkGate, keep_for_ever, mark_own_thread

T = TypeVar("T")

BUSY_PAUSE_SECONDS: Final = 0.01
"""How long to wait before asking again where SQLite does not wait by itself."""

IN_MEMORY: Final = ":memory:"

inside_sqlite: Final = ForkGate()
"""What works with SQLite in this package does so through this gate; see `shared_file.py` for forks."""


class Connection(RawConnection):
    """An aiosqlite connection that runs a whole unit of work in one hop to its thread, or in none."""

    def __init__(self, connector: Callable[[], sqlite3.Connection], reading: Reading = reading) -> None:
        super().__init__(connector)
        self._reading = reading
        """How work is run."""
        self._in_use = threading.Lock()
        """Held by whichever thread is working with the file."""
        self._is_closing = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in the connection's thread, translating what SQLite reports."""
        return await self.submit(work)

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """`run`, for a caller on the loop that has no task to wait in."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.queue(partial(settle, partial(self._do, work, self._open()), done))
        return done

    def hand_over(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Run `work`, which raises nothing, and wake nobody when it is done."""
        self.queue(partial(self._do, work, self._open()))

    def _open(self) -> sqlite3.Connection:
        if not self.is_running or self.raw is None:
            raise _closed()
        return self.raw

    async def briefly(self, work: Callable[[sqlite3.Connection], T | None]) -> T | None:
        """Run brief work in the thread of the core loop; `None` if the file is in use, or `work` says so.

        Waking another thread and being woken by it takes longer than a search of a thousand records.
        """
        db, core = self._open(), core_loop()
        if asyncio.get_running_loop() is not core.loop:
            return None
        return await core.between_turns(partial(self._if_idle, work, db))

    def _if_idle(self, work: Callable[[sqlite3.Connection], T | None], db: sqlite3.Connection) -> T | None:
        if self._is_closing:
            raise _closed()
        if not self._in_use.acquire(blocking=False):
            return None
        try:
            with inside_sqlite.work(), file_problems_explained("the store"):
                return self._reading(work, db)
        finally:
            self._in_use.release()

    def begin(self, work: Callable[[sqlite3.Connection], T], done: asyncio.Future[T]) -> None:
        """`run`, from any thread: `done`, of whatever loop, is answered by the connection's thread."""
        self.queue(partial(self._answer, work, done))
        if not self.is_running:  # the thread may have ended before it came to this
            answer([(done, None, _closed())])

    async def close(self, then: Callable[[], None] | None = None) -> None:
        """Finish what is queued and close the file; then do something more in the same thread."""
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
        """Close it in a forked child, which has none of its threads."""
        db = self.detach()
        if db is not None and inside_sqlite.was_idle:
            db.close()
        elif db is not None:
            keep_for_ever(db)  # a thread of the parent may have been inside of SQLite, and closing would wait for it

    def _answer(self, work: Callable[[sqlite3.Connection], T], done: asyncio.Future[T]) -> None:
        if not done.done():  # else nobody waits any more
            settle(partial(self._result, work), done)

    def _result(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._is_closing or self.raw is None:
            raise _closed()
        return self._do(work, self.raw)

    def _do(self, work: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
        with self._in_use, inside_sqlite.work(), file_problems_explained("the store"):
            return self._reading(work, db)


def _closed() -> ClosedError:
    return ClosedError("this memory was closed; make a new Memory to open it again")


async def connect(path: str, *, synchronous: str, prepare: bool = False, wanted: Identity | None = None) -> Connection:
    """Open one connection to the file at `path`, or to `:memory:`; with `prepare` the file is checked or made first.

    With `wanted` it has to be that file.

    All of it happens in the connection's own thread: an interpreter that is ending has no other to offer.
    """

    def connector() -> sqlite3.Connection:
        mark_own_thread()
        with inside_sqlite.work():
            return _connected(path, synchronous, prepare=prepare, wanted=wanted)

    connection = Connection(connector)
    with file_problems_explained(f"the memory file {path!r}"):
        await connection
    return connection


def _connected(path: str, synchronous: str, *, prepare: bool, wanted: Identity | None) -> sqlite3.Connection:
    if prepare:
        prepare_file(Path(path))
    db = sqlite3.connect(
        path, isolation_level=None, timeout=BUSY_MS / 1000, cached_statements=256, check_same_thread=False
    )
    try:
        set_up(db, synchronous)
        if path == IN_MEMORY:
            migrate(db)
        elif wanted is not None:
            _insist_on_same(path, wanted)
    except BaseException:  # whatever it was, nobody else can close this connection
        db.close()
        raise
    return db


def _insist_on_same(path: str, wanted: Identity) -> None:
    if identity(Path(path)) != wanted:
        raise StoreUnavailableError(f"the memory file {path!r} was replaced while it was opened; open it again")


def set_up(db: sqlite3.Connection, synchronous: str) -> None:
    """How every connection works with the file."""
    _write_ahead(db)
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute(
        "PRAGMA cache_size = -8192"
    )  # KiB; searches read the owner indexes, and the system caches the file as well


def _write_ahead(db: sqlite3.Connection) -> None:
    """Keep a write-ahead log. Whoever else looks at a new file meanwhile makes SQLite refuse this without waiting."""
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
