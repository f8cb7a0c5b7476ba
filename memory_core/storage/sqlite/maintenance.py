"""Operations on a whole store: list its owners, update statistics, reclaim space."""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from memory_core.models import Scope
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.erasing import rewrite_file, scrub

logger = logging.getLogger(__name__)

_OWNERS: Final = (
    "SELECT app, user FROM owner WHERE EXISTS (SELECT 1 FROM record WHERE record.owner = owner.id) ORDER BY app, user"
)


def owners(db: sqlite3.Connection) -> list[Scope]:
    """All owners that have a record."""
    with explaining("the name of an owner"):
        return [Scope(app, user) for app, user in db.execute(_OWNERS)]


def tidy(db: sqlite3.Connection) -> None:
    """Housekeeping for idle times: merge the write-ahead log and update the query planner's statistics."""
    db.execute("PRAGMA analysis_limit = 400")  # rows per index: enough for the planner, and quick
    db.execute("PRAGMA optimize")
    db.execute("PRAGMA wal_checkpoint(PASSIVE)")


def vacuum(db: sqlite3.Connection) -> None:
    """Rewrite the file without unused pages and merge the write-ahead log."""
    rewrite_file(db)
    db.execute("PRAGMA optimize")
    if not scrub(db):
        logger.info("the write-ahead log is kept for now: another process is reading an older state of the file")
