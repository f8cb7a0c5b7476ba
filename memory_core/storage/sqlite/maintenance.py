"""What whoever runs a store does with all of it: who is in it, giving space back."""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from memory_core.models import Scope
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.erasing import scrub, write_anew

logger = logging.getLogger(__name__)

_OWNERS: Final = (
    "SELECT app, user FROM owner WHERE EXISTS (SELECT 1 FROM record WHERE record.owner = owner.id) ORDER BY app, user"
)


def owners(db: sqlite3.Connection) -> list[Scope]:
    """Everybody who has a record."""
    with explaining("the name of an owner"):
        return [Scope(app, user) for app, user in db.execute(_OWNERS)]


def tidy(db: sqlite3.Connection) -> None:
    """What is better done while nobody waits: fold the write-ahead log in, and count what the query planner goes by."""
    db.execute("PRAGMA analysis_limit = 400")  # rows an index: enough for the planner, and no long wait
    db.execute("PRAGMA optimize")
    db.execute("PRAGMA wal_checkpoint(PASSIVE)")


def vacuum(db: sqlite3.Connection) -> None:
    """Write the file anew without its gaps and fold the write-ahead log in."""
    write_anew(db)
    db.execute("PRAGMA optimize")
    if not scrub(db):
        logger.info("the write-ahead log stays for now: another process reads an older state of the file")
