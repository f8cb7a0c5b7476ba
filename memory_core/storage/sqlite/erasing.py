"""Erase an owner's records from the tables and from the bytes of the files."""

from __future__ import annotations

import logging
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from memory_core.errors import reason_for_log
from memory_core.models import Scope
from memory_core.storage.rules import deleting
from memory_core.storage.rules.deleting import BEFORE_EVERYTHING
from memory_core.storage.shared.merging import owner_of
from memory_core.storage.shared.stored_forms import micros
from memory_core.storage.sqlite import meta
from memory_core.storage.sqlite.hidden import delete_all
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.rows import SqliteRows
from memory_core.storage.sqlite.transactions import transaction
from memory_core.storage.sqlite.upkeep import log_is_kept, restart_log, rewrite_file, truncate_log
from memory_core.storage.sqlite.where import STAYING, conditions
from memory_core.where.where import ANY_STATE

LARGEST_IN_MEMORY: Final = 1 << 30
"""Larger files are rewritten by way of a temporary file of the system, which holds live rows only."""
_AT_ONCE: Final = 1 << 24
"""Zeros inserted by one statement."""

logger = logging.getLogger(__name__)


class Removed(NamedTuple):
    """The rows that an erasure has removed from the tables."""

    records: int
    derived: int
    sessions: int
    owner: int | None
    """The owner's number; `None` if there was no owner."""
    hides: bool = False
    """True if derived records are hidden, and have to be deleted."""


def remove(db: sqlite3.Connection, scope: Scope, now: datetime) -> Removed:
    """Delete all records in the scope, and the owner's row if the scope is the whole owner.

    What was made of their words goes with them, also of those that have expired.
    """
    delete_all(db)  # what another deletion has hidden
    owner = find(db, scope)
    if owner is None:
        return Removed(0, 0, 0, None)
    start = micros(BEFORE_EVERYTHING)
    found = conditions(owner.id, scope, ANY_STATE, start, hides=owner.hides, shown=STAYING)
    (sessions,) = db.execute(
        f"SELECT count(DISTINCT session) FROM record WHERE {found.sql}",
        found.parameters,
    ).fetchone()
    meta.put(db, meta.SLACK, 1)  # although nothing may be deleted: an earlier change leaves copies too
    rows = SqliteRows(db, scope, owner)
    records, derived = deleting.erase(rows, scope, now)
    if scope == owner_of(scope):
        db.execute("DELETE FROM outbox WHERE owner = ?", (owner.id,))
        db.execute("DELETE FROM owner WHERE id = ?", (owner.id,))
    return Removed(records, derived, sessions, owner.id, rows.hides)


def scrub(db: sqlite3.Connection) -> bool:
    """Make deleted rows unreadable in the files; returns whether that is complete."""
    if meta.get(db, meta.SLACK) is not None:
        try:
            is_overwritten = _overwrite_deleted(db)
        except sqlite3.OperationalError as error:  # such as a full disk; the next call finds `SLACK` and retries
            logger.warning("the file still contains traces of deleted records: %s", reason_for_log(error))
            return False
        if not is_overwritten:
            return False
    return truncate_log(db)


def _overwrite_deleted(db: sqlite3.Connection) -> bool:
    """Overwrite whatever is not live in the file and in its log; `False` if a reader of an older state prevents it.

    SQLite overwrites deleted rows (`secure_delete`), but copies remain in the unused space of split pages and in the
    log, and a file that is merely shortened leaves its end in free blocks of the disk. So the live rows are written to
    the beginning of the log, and zeros behind them, until both files are covered to their ends; only then are they
    shortened. SQLite does all of it: closing another descriptor of the file would drop its locks (`files.py`).
    """
    held = _bytes_held(db)
    is_large = held.file > LARGEST_IN_MEMORY
    with log_is_kept(db):
        if not restart_log(db):
            return False
        rewrite_file(db, temporary="FILE" if is_large else "MEMORY")
        _fill_with_zeros(db, max(held.file, held.log))
        if not restart_log(db):
            return False
        rewrite_file(db, temporary="FILE" if is_large else "MEMORY")
        meta.remove(db, meta.SLACK)
    return True


class _Held(NamedTuple):
    """The bytes of the file and of its log."""

    file: int
    log: int


def _bytes_held(db: sqlite3.Connection) -> _Held:
    (_, _, path) = db.execute("PRAGMA database_list").fetchone()
    return _Held(_size(path), _size(f"{path}-wal")) if path else _Held(0, 0)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0


def _fill_with_zeros(db: sqlite3.Connection, least: int) -> None:
    """Let the database have so many bytes, of which all that is new are zeros in unused pages."""
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (page,) = db.execute("PRAGMA page_size").fetchone()
    left = least - pages * page
    with transaction(db, alters_schema=True):
        db.execute("CREATE TABLE zeros (bytes)")
        while left > 0:
            size = min(left, _AT_ONCE)
            db.execute("INSERT INTO zeros VALUES (zeroblob(?))", (size,))
            left -= size
        db.execute("DROP TABLE zeros")  # `secure_delete` writes its pages all the same
