"""A file that is opened for reading only: nothing in it or beside it changes, and nothing works in the background."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from memory_core.bridge import in_thread, mark_own_thread
from memory_core.errors import NotAStoreError, ReadOnlyError, StoreUnavailableError
from memory_core.protocols import Embedder
from memory_core.storage.sqlite import fingerprints
from memory_core.storage.sqlite.conditions import install
from memory_core.storage.sqlite.connection import IN_MEMORY, Connection
from memory_core.storage.sqlite.damage import reading
from memory_core.storage.sqlite.files import BUSY_MS, explained, find
from memory_core.storage.sqlite.intake import Intake
from memory_core.storage.sqlite.prepared import Prepared
from memory_core.storage.sqlite.schema import APPLICATION_ID, MIGRATIONS, check_version
from memory_core.storage.sqlite.shared_file import SharedFile, Wanted
from memory_core.storage.sqlite.turns import NEW
from memory_core.storage.sqlite.vectors import Batch
from memory_core.storage.sqlite.writer import Work, Writer

T = TypeVar("T")


class ReadOnlyFile(SharedFile):
    """A `SharedFile` of one store that refuses every write before anything is done for it."""

    is_read_only = True

    async def _open(self) -> None:
        self._to_close.push_async_callback(self._close_embedder)
        self.reader = self.write_connection = connection = await connect_for_reading(Path(self.path))
        self._to_close.push_async_callback(self._disconnect, connection)
        self.connections.append(connection)
        self.writer = _Refusing(connection, _nothing, _nothing, nullcontext)
        self.intake = Intake(self.writer, self.prepare, self.embedded)
        self._to_close.push_async_callback(self.intake.close)
        if self.embedder is not None:
            wanted = self.embedder.fingerprint
            await self.reader.run(lambda db: fingerprints.insist(db, wanted))

    async def embedded(self, batches: Sequence[Batch], key: int = NEW) -> list[list[Prepared]]:  # noqa: ARG002
        """Refuse: only what is about to be written is embedded here."""
        refuse()

    async def alone(self, work: Callable[[sqlite3.Connection], T]) -> T:  # noqa: ARG002
        """Refuse: what takes the write lock would write."""
        refuse()

    async def reembed(self, embedder: Embedder) -> int:  # noqa: ARG002
        """Refuse."""
        refuse()


class _Refusing(Writer):
    def enqueue(self, work: Work, done: Sequence[asyncio.Future[Any]]) -> None:  # noqa: ARG002
        refuse()


def refuse() -> NoReturn:
    """Raise what every write to such a file raises."""
    raise ReadOnlyError("this memory was opened with read_only=True; open it without that to change anything")


def _nothing(*_: object) -> None:
    pass


async def borrow_for_reading(path: str | os.PathLike[str], wanted: Wanted) -> SharedFile:
    """The file at a path, opened for this store alone; see `borrow`.

    Raises:
        StorageError: There is none, or it cannot be used as it is.
        FingerprintError: Its vectors were made by another embedder.
    """
    if os.fspath(path) == IN_MEMORY:
        raise StoreUnavailableError("':memory:' is empty when it is opened, so there is nothing to read")
    name, _ = await in_thread(partial(find, Path(path)))
    file = ReadOnlyFile(str(name), None, wanted)
    await file.open()
    file.users.append(wanted.embedder)
    return file


async def connect_for_reading(path: Path) -> Connection:
    """A connection that can change nothing, to an existing file of the present format.

    SQLite needs a -shm file beside a database that somebody may write. Where none can be made, or would be made as
    read-only as the database and stop later writers, the file is read as one that does not change (`immutable`), which
    every read checks.

    Raises:
        NotAStoreError, NewerStoreError, StoreUnavailableError: Each in one sentence; nothing was touched.
    """
    what = f"the memory file {str(path)!r}"
    with explained(what):
        is_fixed = _is_fixed(path)
        before = _State.of(path)

    def connector() -> sqlite3.Connection:
        mark_own_thread()
        return open_for_reading(path, immutable=is_fixed)

    connection = Connection(connector, partial(_unchanged, path, before) if is_fixed else reading)
    with explained(what):
        await connection
    return connection


def open_for_reading(path: Path, *, immutable: bool) -> sqlite3.Connection:
    """What `connect_for_reading` opens, in the thread that calls.

    Args:
        path: An absolute path.
        immutable: Take the file for one that nobody changes, and look at no other file.
    """
    uri = f"{path.as_uri()}?mode=ro{'&immutable=1' if immutable else ''}"
    timeout = BUSY_MS / 1000
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=timeout, check_same_thread=False)
    try:
        _insist_on_format(db, path)
        db.execute("PRAGMA query_only = ON")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("PRAGMA cache_size = -8192")
        install(db)
    except BaseException:  # whatever it was, nobody else can close this connection
        db.close()
        raise
    return db


def _insist_on_format(db: sqlite3.Connection, path: Path) -> None:
    try:
        (application,) = db.execute("PRAGMA application_id").fetchone()
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        application = None
    if application != APPLICATION_ID:
        raise NotAStoreError(f"{str(path)!r} is not a memory store; give another path")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    check_version(version)
    if version < len(MIGRATIONS):
        raise StoreUnavailableError(
            f"the memory file {str(path)!r} has an older format ({version}, this version reads {len(MIGRATIONS)}); "
            "open it once without read_only=True, which brings it up to date"
        )


def _is_fixed(path: Path) -> bool:
    """Whether the file has to be read as one that does not change."""
    if not os.access(path, os.R_OK):
        raise StoreUnavailableError(f"the memory file {str(path)!r} is not readable for this user")
    folder_is_open = os.access(path.parent, os.W_OK)
    if not _wal(path).exists():
        return not (folder_is_open and os.access(path, os.W_OK))
    if not folder_is_open:
        raise StoreUnavailableError(
            f"the memory file {str(path)!r} has a write-ahead log beside it, which cannot be read in a folder where "
            "this user may not write; let the process that writes the file close it, or copy both to another folder"
        )
    return False


class _State(NamedTuple):
    """What changes when somebody writes to a file or opens it for that."""

    inode: int
    size: int
    modified_ns: int
    has_wal: bool

    @classmethod
    def of(cls, path: Path) -> _State:
        found = path.stat()
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, _wal(path).exists())


def _wal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _unchanged(path: Path, before: _State, work: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
    """`damage.reading` of a file that nobody has changed since it was opened, nor while it was read."""
    _insist_on(path, before)
    try:
        return reading(work, db)
    finally:
        _insist_on(path, before)


def _insist_on(path: Path, before: _State) -> None:
    if _State.of(path) != before:
        raise StoreUnavailableError(
            f"the memory file {str(path)!r} was changed, or opened by somebody who may change it, while it was read as "
            "one that does not change; close this memory and open it again"
        )
