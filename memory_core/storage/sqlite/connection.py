"""One connection of a store file: how it is checked, opened and used."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import aiosqlite

from memory_core.bridge import answer
from memory_core.errors import ClosedError, DamagedStoreError, NotAStoreError, StoreUnavailableError
from memory_core.storage.sqlite.conditions import install
from memory_core.storage.sqlite.damage import damaged, is_undecodable, reading
from memory_core.storage.sqlite.schema import APPLICATION_ID, check_version, migrate

T = TypeVar("T")

PAGE_BYTES: Final = 16_384
"""Rows are about a kilobyte with their vector; larger pages read an owner in fewer steps."""
BUSY_MS: Final = 30_000
"""How long a writer waits for another process's transaction."""
BUSY_PAUSE_SECONDS: Final = 0.01
"""How long to wait before asking again where SQLite does not wait by itself."""

_ROWS_AT_ONCE: Final = 64
"""What aiosqlite's own cursors would fetch together; they are not used."""

IN_MEMORY: Final = ":memory:"
_MAGIC: Final = b"SQLite format 3\0"


class Connection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole unit of work in one hop to its thread, or in none."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, _ROWS_AT_ONCE)
        self._in_use = threading.Lock()
        """Held by whichever thread is working with the file."""
        self._is_closing = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in the connection's thread, translating what SQLite reports."""
        return await self.submit(work)

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """`run`, for a caller on the loop that has no task to wait in."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(done, work)
        return done

    def hand_over(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Run `work`, which raises nothing, and wake nobody when it is done."""
        self._put(None, work)

    def _put(self, done: asyncio.Future[T] | None, work: Callable[[sqlite3.Connection], T]) -> None:
        if not self._running or self._connection is None:
            raise _closed()
        job = (done, partial(self._do, work, self._connection))
        self._tx.put_nowait(job)  # pyright: ignore[reportUnknownMemberType]  # aiosqlite leaves its type open

    def at_once(self, work: Callable[[sqlite3.Connection], T | None]) -> T | None:
        """Run brief work in the caller's thread, the loop's; `None` if the file is in use, or `work` says so.

        Waking another thread and being woken by it takes longer than a search of a thousand records.
        """
        if self._is_closing or self._connection is None:
            raise _closed()
        if not self._in_use.acquire(blocking=False):
            return None
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # see below
        try:
            with explained("the store"):
                return reading(work, self._connection)
        finally:
            # Whoever polices blocking calls (LangGraph's development server does) looks for a running loop. This one
            # serves memories alone, and how long it may stand still for them is decided here.
            asyncio._set_running_loop(loop)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            self._in_use.release()

    def begin(self, work: Callable[[sqlite3.Connection], T], done: asyncio.Future[T]) -> None:
        """`run`, from any thread: `done`, of whatever loop, is answered by the connection's thread."""
        self._tx.put_nowait((None, partial(self._answer, work, done)))  # pyright: ignore[reportUnknownMemberType]
        if not self._running:  # the thread may have ended before it came to this
            answer([(done, None, _closed())])

    async def close(self) -> None:
        """Finish what is queued and close the file."""
        self._is_closing = True
        await super().close()

    def _answer(self, work: Callable[[sqlite3.Connection], T], done: asyncio.Future[T]) -> None:
        if done.done():  # nobody waits any more
            return
        try:
            result = self._result(work)
        except BaseException as error:  # noqa: BLE001  (whatever it was, it is the caller's)
            answer([(done, None, error)])
        else:
            answer([(done, result, None)])

    def _result(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._is_closing or self._connection is None:
            raise _closed()
        return self._do(work, self._connection)

    def _do(self, work: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
        with self._in_use, explained("the store"):
            return reading(work, db)


def _closed() -> ClosedError:
    return ClosedError("this memory was closed; make a new Memory to open it again")


@contextmanager
def explained(what: str) -> Generator[None]:
    """Say in one sentence what SQLite or the system reports."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, sqlite3.Error) and is_undecodable(error):
            raise damaged(f"text in {what}") from error
        raise StoreUnavailableError(f"{what} cannot be used: {error}") from error
    except sqlite3.DatabaseError as error:
        raise DamagedStoreError(f"{what} is damaged ({error}); restore it from a backup") from error


async def connect(path: str, *, synchronous: str, prepare: bool = False) -> Connection:
    """Open one connection to the file at `path`, or to `:memory:`; with `prepare` the file is checked or made first.

    All of it happens in the connection's own thread: an interpreter that is ending has no other to offer.
    """

    def connector() -> sqlite3.Connection:
        if prepare:
            prepare_file(Path(path))
        db = sqlite3.connect(
            path, isolation_level=None, timeout=BUSY_MS / 1000, cached_statements=256, check_same_thread=False
        )
        try:
            set_up(db, synchronous)
            if path == IN_MEMORY:
                migrate(db)
        except BaseException:  # whatever it was, nobody else can close this connection
            db.close()
            raise
        return db

    connection = Connection(connector)
    with explained(f"the memory file {path!r}"):
        await connection
    return connection


def set_up(db: sqlite3.Connection, synchronous: str) -> None:
    """How every connection works with the file."""
    _write_ahead(db)
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute("PRAGMA cache_size = -8192")  # KiB; searches read the corpora, and the system caches the file as well
    install(db)


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


def prepare_file(path: Path) -> str:
    """Make the file if it is missing, else make sure it is a store of ours; bring it up to date and return its name.

    Raises:
        NotAStoreError, NewerStoreError, StoreUnavailableError: Each in one sentence; nothing was touched.
    """
    path = full_path(path)
    with explained(f"the memory file {str(path)!r}"):
        _check(path)
        _create(path)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_MS / 1000)) as db:
            db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            db.execute("PRAGMA secure_delete = ON")  # what a migration drops may hold words
            migrate(db)
    return str(path)


def full_path(path: Path) -> Path:
    """The absolute path of a file, so that it stays the same file when the process changes its directory."""
    try:
        return path.expanduser().absolute()
    except (OSError, RuntimeError) as error:  # such as "~somebody" who has no home directory
        raise StoreUnavailableError(f"the memory file {str(path)!r} cannot be used: {error}") from error


def _check(path: Path) -> None:
    """Look at the header only; opening the file with SQLite could already change it."""
    if "\0" in str(path):
        raise OSError("a NUL character is in no file's name")
    if not path.exists():
        return
    if not path.is_file():
        raise NotAStoreError(f"{str(path)!r} is not a file; give the path of a memory file")
    if not os.access(path, os.R_OK | os.W_OK):
        raise StoreUnavailableError(f"the memory file {str(path)!r} is not readable and writable for this user")
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return  # made by touch, or by a process that was killed before it wrote anything
    if header[:16] != _MAGIC or int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise NotAStoreError(f"{str(path)!r} is not a memory store; give another path, or move that file away")
    check_version(int.from_bytes(header[60:64], "big"))


def _create(path: Path) -> None:
    """An empty file nobody else can read, before the first byte of content is in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    os.close(descriptor)
