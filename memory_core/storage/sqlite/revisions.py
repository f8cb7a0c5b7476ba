"""The table `revision`: earlier texts of records."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from memory_core.storage.shared.stored_forms import micros, moment
from memory_core.storage.shared.transfer import Revision
from memory_core.storage.shared.versions import REVISIONS_KEPT
from memory_core.storage.sqlite.damage import damaged_record, digest

_COLUMNS: Final = "rev, text, until, digest"


def keep(db: sqlite3.Connection, key: int, rev: int, text: str, until: datetime) -> None:
    """Store the text that a record had until now, and delete the oldest one beyond `REVISIONS_KEPT`."""
    _insert(db, key, [(rev, text, until)])
    db.execute("DELETE FROM revision WHERE record = ? AND rev <= ?", (key, rev - REVISIONS_KEPT))


def replace(db: sqlite3.Connection, key: int, revisions: Iterable[Revision]) -> None:
    """Replace the earlier texts of a record."""
    db.execute("DELETE FROM revision WHERE record = ?", (key,))
    _insert(db, key, revisions)


def of(db: sqlite3.Connection, key: int, id: str) -> tuple[Revision, ...]:  # noqa: A002  (the record's own word)
    """The earlier texts of a record, oldest first.

    Raises:
        DamagedStoreError: A row is not as it was written.
    """
    rows = db.execute(f"SELECT {_COLUMNS} FROM revision WHERE record = ? ORDER BY rev", (key,)).fetchall()
    if not all(is_whole(key, row) for row in rows):
        raise damaged_record(id)
    return tuple((rev, text, moment(until)) for rev, text, until, _ in rows)


def is_whole(key: int, row: tuple[object, ...]) -> bool:
    """True if a row (rev, text, until, digest) is as it was written for this record."""
    return digest(key, *row[:-1]) == row[-1]


def _insert(db: sqlite3.Connection, key: int, revisions: Iterable[Revision]) -> None:
    values = [(key, rev, text, micros(until)) for rev, text, until in revisions]
    db.executemany("INSERT OR REPLACE INTO revision VALUES (?, ?, ?, ?, ?)", [(*row, digest(*row)) for row in values])
