"""Erase an owner's records from the tables and from the bytes of the files."""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from memory_core.errors import reason_for_log
from memory_core.models import STATES, Scope
from memory_core.storage.sqlite import meta, writing
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.upkeep import rewrite_file, truncate_log
from memory_core.storage.sqlite.where import conditions
from memory_core.where.value import Where

logger = logging.getLogger(__name__)

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
    return truncate_log(db)
