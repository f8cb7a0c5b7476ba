"""The table `meta`: named values, each with a digest, among them the fingerprint of the embedder."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict
from functools import lru_cache
from typing import Final

from memory_core.models import Fingerprint
from memory_core.storage.shared.fingerprints import insist_on_embedder
from memory_core.storage.sqlite.damage import damaged, digest, unreadable

SLACK: Final = "slack"
"""Set when records were deleted and their traces have not been overwritten since then."""
TOMBSTONE_KEY: Final = "tombstone_key"
"""The key of the tombstones' keyed hash."""

_Value = str | bytes | int


def get(db: sqlite3.Connection, name: str) -> _Value | None:
    """The value of a name, if there is one.

    Raises:
        DamagedStoreError: The value is not as it was written.
    """
    row = db.execute("SELECT value, digest FROM meta WHERE name = ?", (name,)).fetchone()
    if row is None:
        return None
    if digest(name, row[0]) != row[1]:
        raise damaged(f"the entry {name!r} of the table `meta`")
    value: _Value = row[0]
    return value


def put(db: sqlite3.Connection, name: str, value: _Value) -> None:
    """Set the value of a name."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (name, value, digest(name, value)))


def remove(db: sqlite3.Connection, name: str) -> None:
    """Delete a name and its value."""
    db.execute("DELETE FROM meta WHERE name = ?", (name,))


def tombstone_key(db: sqlite3.Connection) -> bytes:
    """The key of the tombstones' keyed hash; every file has one from its creation."""
    found = get(db, TOMBSTONE_KEY)
    if not isinstance(found, bytes):
        raise unreadable("the key of forgotten sources")
    return found


def stored_fingerprint(db: sqlite3.Connection, name: str = "fingerprint") -> Fingerprint | None:
    """The fingerprint of the embedder whose vectors the file stores, or the one stored as `name`, if there is one."""
    value = get(db, name)
    return None if value is None else _parsed(str(value))


@lru_cache(maxsize=8)
def _parsed(text: str) -> Fingerprint:
    return Fingerprint(**json.loads(text))


def store_fingerprint(db: sqlite3.Connection, fingerprint: Fingerprint, name: str = "fingerprint") -> None:
    """Store a fingerprint as `name`."""
    put(db, name, json.dumps(asdict(fingerprint)))


def claim(db: sqlite3.Connection, wanted: Fingerprint) -> None:
    """Store a fingerprint unless the file has one."""
    if stored_fingerprint(db) is None:
        store_fingerprint(db, wanted)


def is_claimed(db: sqlite3.Connection, wanted: Fingerprint) -> bool:
    """True if the file stores vectors of this embedder; `False` if it has none of any.

    Raises:
        FingerprintError: It stores vectors of another one.
    """
    check_fingerprint(db, wanted)
    return stored_fingerprint(db) is not None


def check_fingerprint(db: sqlite3.Connection, wanted: Fingerprint) -> None:
    """Refuse vectors of another embedder than the file's; see `fingerprints.insist_on_embedder`."""
    insist_on_embedder(stored_fingerprint(db), wanted)
