"""Read-only connections."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from memory_core.concurrency.threads import mark_own_thread
from memory_core.errors import NotAStoreError, StoreUnavailableError
from memory_core.storage.sqlite.connection import BUSY_MS, Connection
from memory_core.storage.sqlite.fork_gate import inside_sqlite
from memory_core.storage.sqlite.lineage import insist_on_own_log
from memory_core.storage.sqlite.problems import file_problems_explained, reading
from memory_core.storage.sqlite.schema import APPLICATION_ID, MIGRATIONS, format_of

T = TypeVar("T")


async def connect_for_reading(path: Path, *, follow: bool = True) -> Connection:
    """Open a read-only connection to an existing file of the current format.

    SQLite needs a -shm file beside a database that may be written. If it cannot be created, or would be as read-only
    as the database and block later writers, the file is opened as `immutable`, and every read checks that it did not
    change.

    Args:
        path: An absolute path.
        follow: Show later writes of other processes, if the file is writable. Without it, a file that no process has
            open is opened as `immutable`, and no file is created beside it.

    Raises:
        NotAStoreError, NewerStoreError, StoreUnavailableError: Nothing was changed.
    """
    what = f"the memory file {str(path)!r}"
    with file_problems_explained(what):
        is_fixed = _is_fixed(path, follow=follow)
        before = _State.of(path)

    def connector() -> sqlite3.Connection:
        mark_own_thread()
        with inside_sqlite.work():
            if not is_fixed:
                insist_on_own_log(path)
            return open_for_reading(path, immutable=is_fixed)

    connection = Connection(connector, partial(_unchanged, path, before) if is_fixed else reading)
    with file_problems_explained(what):
        await connection.open()
    return connection


def open_for_reading(path: Path, *, immutable: bool) -> sqlite3.Connection:
    """Open the sqlite3 connection of `connect_for_reading`, in the calling thread.

    Args:
        path: An absolute path.
        immutable: Assume that no process changes the file, and read no other file.
    """
    uri = f"{path.as_uri()}?mode=ro{'&immutable=1' if immutable else ''}"
    timeout = BUSY_MS / 1000
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=timeout, check_same_thread=False)
    try:
        _check_format(db, path)
        db.execute("PRAGMA query_only = ON")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("PRAGMA cache_size = -8192")
    except BaseException:  # on any error: no other code can close this connection
        db.close()
        raise
    return db


def _check_format(db: sqlite3.Connection, path: Path) -> None:
    try:
        (application,) = db.execute("PRAGMA application_id").fetchone()
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        application = None
    if application != APPLICATION_ID:
        raise NotAStoreError(f"{str(path)!r} is not a memory store; give another path")
    version = format_of(db)
    if version < len(MIGRATIONS):
        raise StoreUnavailableError(
            f"the memory file {str(path)!r} has an older format ({version}, this version reads {len(MIGRATIONS)}); "
            "open it once without read_only=True, which brings it up to date"
        )


def _is_fixed(path: Path, *, follow: bool) -> bool:
    """True if the file has to be opened as `immutable`."""
    if not os.access(path, os.R_OK):
        raise StoreUnavailableError(f"the memory file {str(path)!r} is not readable for this user")
    if _is_interrupted(path.with_name(f"{path.name}-journal")):
        raise StoreUnavailableError(
            f"a write to the memory file {str(path)!r} was interrupted and has to be undone first; open it once "
            "without read_only=True, which does that"
        )
    folder_is_open = os.access(path.parent, os.W_OK)
    if not _wal(path).exists():
        return not (follow and folder_is_open and os.access(path, os.W_OK))
    if not folder_is_open:
        raise StoreUnavailableError(
            f"the memory file {str(path)!r} has a write-ahead log beside it, which cannot be read in a folder where "
            "this user may not write; let the process that writes the file close it, or copy both to another folder"
        )
    return False


def _is_interrupted(journal: Path) -> bool:
    """True if a rollback journal still has to be applied, which is not so if it is empty or begins with zero."""
    try:
        with journal.open("rb") as file:  # no connection locks a journal, so closing its descriptor drops no lock
            return file.read(1) not in {b"", b"\0"}
    except FileNotFoundError:
        return False


class _State(NamedTuple):
    """Attributes that change when a process writes to a file or opens it for writing."""

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
    """`problems.reading`, with a check before and after that the file has not changed since it was opened."""
    _check_unchanged(path, before)
    try:
        return reading(work, db)
    finally:
        _check_unchanged(path, before)


def _check_unchanged(path: Path, before: _State) -> None:
    if _State.of(path) != before:
        raise StoreUnavailableError(
            f"the memory file {str(path)!r} was changed, or opened for writing by another process, while it was read "
            "as immutable; close this memory and open it again"
        )
