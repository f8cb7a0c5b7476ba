"""Erase an owner's records from the tables and from the bytes of the files, and reclaim space."""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from memory_core.errors import reason_for_log
from memory_core.models import STATES, Scope
from memory_core.storage.sqlite import meta, writing
from memory_core.storage.sqlite.connection import BUSY_MS
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.transactions import transaction
from memory_core.storage.sqlite.where import conditions
from memory_core.where.value import Where

logger = logging.getLogger(__name__)

PATIENCE_MS: Final = 1_000
"""How long an erasure waits for readers of older states in any process; writers wait as well."""

_BEFORE_EVERYTHING: Final = -(1 << 63)
"""Used as the current time, it makes expired records visible, so that they are erased too."""


def remove(db: sqlite3.Connection, scope: Scope) -> tuple[int, int, int | None]:
    """Delete all records in the scope, and the owner's row if the scope is the whole owner.

    Returns:
        Number of records, number of sessions, and the owner's number; `None` if there was no owner.
    """
    owner = find(db, scope)
    if owner is None:
        return 0, 0, None
    found = conditions(owner.id, scope, Where(states=STATES), _BEFORE_EVERYTHING)
    (sessions,) = db.execute(
        f"SELECT count(DISTINCT session) FROM record WHERE {found.sql}",
        found.parameters,
    ).fetchone()
    meta.put(db, meta.SLACK, 1)  # although nothing may be deleted: an earlier change leaves copies too
    records = writing.delete(db, scope, owner.id, found, forget=True)
    if scope.agent is None and scope.session is None and scope.collection is None:
        db.execute("DELETE FROM outbox WHERE owner = ?", (owner.id,))
        db.execute("DELETE FROM owner WHERE id = ?", (owner.id,))
    return records, sessions, owner.id


def scrub(db: sqlite3.Connection) -> bool:
    """Make deleted rows unreadable in the files; returns whether that is complete.

    SQLite overwrites deleted rows (`secure_delete`), but two kinds of copies remain: those in the unused space of split
    pages, until the file is rewritten, and older pages in the write-ahead log, until it is truncated.
    """
    if meta.get(db, meta.SLACK) is not None:
        try:
            rewrite_file(db)
        except sqlite3.OperationalError as error:  # such as a full disk; the next call finds `SLACK` and retries
            logger.warning("the file still contains traces of deleted records: %s", reason_for_log(error))
            return False
    db.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
    try:
        (busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    return not busy


def rewrite_file(db: sqlite3.Connection) -> None:
    """Rewrite the file with its live rows only (SQLite's VACUUM)."""
    db.execute("PRAGMA temp_store = FILE")  # the copy may be larger than the memory
    try:
        db.execute("VACUUM")
    finally:
        db.execute("PRAGMA temp_store = MEMORY")
    meta.remove(db, meta.SLACK)


def tidy(db: sqlite3.Connection) -> None:
    """Housekeeping for idle times: merge the write-ahead log and update the query planner's statistics."""
    _update_statistics(db)
    db.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _update_statistics(db: sqlite3.Connection) -> None:
    """What `PRAGMA optimize` would do, in a transaction that gives the file a mark like any other."""
    db.execute("PRAGMA analysis_limit = 400")  # rows per index: enough for the planner, and quick
    due = db.execute("PRAGMA optimize(0xffff)").fetchall()  # the statements, which are not run
    if due:
        with transaction(db, alters_schema=True):
            for (statement,) in due:
                db.execute(statement)


def vacuum(db: sqlite3.Connection) -> None:
    """Rewrite the file without unused pages and merge the write-ahead log."""
    rewrite_file(db)
    _update_statistics(db)
    if not scrub(db):
        logger.info("the write-ahead log is kept for now: another process is reading an older state of the file")
