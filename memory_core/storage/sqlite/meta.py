"""What the file says about itself: few values by name, each with a digest."""

from __future__ import annotations

import sqlite3
from typing import Final

from memory_core.storage.sqlite.damage import damaged, digest

TOMBSTONE_KEY: Final = "tombstone_key"
"""The secret that tombstones are hashed with."""

_Value = str | bytes | int


def get(db: sqlite3.Connection, name: str) -> _Value | None:
    """The value of a name, if there is one.

    Raises:
        DamagedStoreError: It is not the one that was put there.
    """
    row = db.execute("SELECT value, digest FROM meta WHERE name = ?", (name,)).fetchone()
    if row is None:
        return None
    if digest(name, row[0]) != row[1]:
        raise damaged(f"what the file says of itself ({name})")
    value: _Value = row[0]
    return value


def put(db: sqlite3.Connection, name: str, value: _Value) -> None:
    """Give a name a value."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (name, value, digest(name, value)))


def remove(db: sqlite3.Connection, name: str) -> None:
    """Forget a name and its value."""
    db.execute("DELETE FROM meta WHERE name = ?", (name,))


def tombstone_key(db: sqlite3.Connection) -> bytes:
    """The secret that every file has from the start."""
    found = get(db, TOMBSTONE_KEY)
    if not isinstance(found, bytes):
        raise damaged("the key of forgotten sources")
    return found
