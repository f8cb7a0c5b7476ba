"""Erasure: nothing of it left, neither in tables nor in the bytes of a file."""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from memory_core.errors import reason_for_log
from memory_core.models import STATES, Scope
from memory_core.storage.sqlite import meta, writing
from memory_core.storage.sqlite.files import BUSY_MS
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.where import conditions
from memory_core.where.value import Where

logger = logging.getLogger(__name__)

PATIENCE_MS: Final = 1_000
"""How long an erasure waits for readers of older states, of this process or others; writers wait with it."""

_SLACK: Final = "slack"
"""In `meta`: the file has to be written anew to complete an erasure."""
_BEFORE_EVERYTHING: Final = -(1 << 63)
"""As the present moment it makes expired records count, which must go too."""


def remove(db: sqlite3.Connection, scope: Scope) -> tuple[int, int, int | None]:
    """Delete everything in the scope, and the owner itself if the scope is all of it.

    Returns records, sessions and the owner's number, if there was one.
    """
    owner = find(db, scope)
    if owner is None:
        return 0, 0, None
    found = conditions(owner.id, scope, Where(states=STATES), _BEFORE_EVERYTHING)
    (sessions,) = db.execute(
        f"SELECT count(DISTINCT session) FROM record WHERE {found.sql}",
        found.parameters,
    ).fetchone()
    meta.put(db, _SLACK, 1)  # for `scrub`, even if this process ends before it
    records = writing.delete(db, scope, owner.id, found, forget=True)
    if scope.agent is None and scope.session is None and scope.collection is None:
        db.execute("DELETE FROM outbox WHERE owner = ?", (owner.id,))
        db.execute("DELETE FROM owner WHERE id = ?", (owner.id,))
    return records, sessions, owner.id


def scrub(db: sqlite3.Connection) -> bool:
    """Make what was deleted unreadable in the files; True when that is complete.

    Deleted rows are overwritten as they go (`secure_delete`), but two things outlive them: copies in the slack of pages
    that were split until the file is written anew, and older pages in the write-ahead log until it is cut off.
    """
    if meta.get(db, _SLACK) is not None:
        try:
            write_anew(db)
        except sqlite3.OperationalError as error:  # such as a full disk; the mark makes the next erasure try again
            logger.warning("the file still holds traces of what was erased: %s", reason_for_log(error))
            return False
    db.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
    try:
        (busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    return not busy


def write_anew(db: sqlite3.Connection) -> None:
    """Copy what is alive into a new file, page by page, in the place of the old one."""
    db.execute("PRAGMA temp_store = FILE")  # the copy may be larger than the memory
    try:
        db.execute("VACUUM")
    finally:
        db.execute("PRAGMA temp_store = MEMORY")
    meta.remove(db, _SLACK)
