"""What the file says about itself: few values by name, each with a digest, and whose vectors it has."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict
from functools import lru_cache
from typing import Final

from memory_core.errors import FingerprintError
from memory_core.models import Fingerprint
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


def held(db: sqlite3.Connection, name: str = "fingerprint") -> Fingerprint | None:
    """The embedder whose vectors searches read, if there is any (or another fingerprint kept in `meta`)."""
    value = get(db, name)
    return None if value is None else _parsed(str(value))


@lru_cache(maxsize=8)
def _parsed(text: str) -> Fingerprint:
    return Fingerprint(**json.loads(text))


def hold(db: sqlite3.Connection, fingerprint: Fingerprint, name: str = "fingerprint") -> None:
    """Make it the one the file holds."""
    put(db, name, json.dumps(asdict(fingerprint)))


def claim(db: sqlite3.Connection, wanted: Fingerprint) -> None:
    """Make it the one the file holds, unless there is one already."""
    if held(db) is None:
        hold(db, wanted)


def insist(db: sqlite3.Connection, wanted: Fingerprint) -> None:
    """Refuse vectors of one embedder where the file holds those of another.

    Raises:
        FingerprintError: It says which, and what to do.
    """
    found = held(db)
    if found is not None and found != wanted:
        raise FingerprintError(
            f"the vectors in the memory file were made by {found.name} {found.revision} ({found.dimensions} "
            f"dimensions), not by {wanted.name} {wanted.revision} ({wanted.dimensions}); open it with that embedder, "
            "or compute them anew: open it with embedder=None and call `await memory.reembed(embedder)`"
        )
