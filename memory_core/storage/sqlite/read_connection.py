"""Connections that can change nothing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from memory_core.errors import NotAStoreError, StoreUnavailableError
from memory_core.storage.sqlite.connection import Connection, inside_sqlite
from memory_core.storage.sqlite.damage import reading
from memory_core.storage.sqlite.files import BUSY_MS, file_problems_explained
from memory_core.storage.sqlite.schema import APPLICATION_ID, MIGRATIONS, check_version
from memory_core.threads import mark_own_thread

T = TypeVar("T")


async def connect_for_reading(path: Path, *, follow: bool = True) -> Connection:
    """A connection that can change nothing, to an existing file of the present format.

    SQLite needs a -shm file beside a database that somebody may write. Where none can be made, or would be made as
    read-only as the database and stop later writers, the file is read as one that does not change (`immutable`), which
    every read checks.

    Args:
        path: An absolute path.
        follow: See what others write from now on, if the file is one that may be written; without it a file that nobody
            has open is read as one that does not change, and nothing is made beside it.

    Raises:
        NotAStoreError, NewerStoreError, StoreUnavailableError: Each in one sentence; nothing was touched.
    """
    what = f"the memory file {str(path)!r}"
    with file_problems_explained(what):
        is_fixed = _is_fixed(path, follow=follow)
        before = _State.of(path)

    def connector() -> sqlite3.Connection:
        mark_own_thread()
        with inside_sqlite.work():
            return open_for_reading(path, immutable=is_fixed)

    connection = Connection(connector, partial(_unchanged, path, before) if is_fixed else reading)
    with file_problems_explained(what):
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


def _is_fixed(path: Path, *, follow: bool) -> bool:
    """Whether the file has to be read as one that does not change."""
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
    """Whether a rollback journal is still to be applied; one that begins with zero, or is empty, is not."""
    try:
        with journal.open("rb") as file:  # no connection locks a journal, so a descriptor of it harms nobody
            return file.read(1) not in {b"", b"\0"}
    except FileNotFoundError:
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
