"""The table `tombstone`: source keys that were forgotten."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from memory_core.models import Scope
from memory_core.storage.shared.transfer import tombstone
from memory_core.storage.sqlite import meta


class Tombstones:
    """The source keys that an owner had forgotten, stored as keyed hashes only."""

    def __init__(self, db: sqlite3.Connection, scope: Scope) -> None:
        self._db = db
        self._secret = meta.tombstone_key(db)
        self._scope = scope

    def add(self, source_keys: Iterable[str]) -> None:
        """Remember these keys as forgotten."""
        rows = [(self._digest(key),) for key in source_keys]
        self._db.executemany("INSERT OR IGNORE INTO tombstone VALUES (?)", rows)

    def remove(self, source_keys: Iterable[str]) -> None:
        """Remember these keys as forgotten no more."""
        rows = [(self._digest(key),) for key in source_keys]
        self._db.executemany("DELETE FROM tombstone WHERE digest = ?", rows)

    def among(self, source_keys: Iterable[str]) -> set[str]:
        """The given keys that are forgotten."""
        if self._db.execute("SELECT 1 FROM tombstone LIMIT 1").fetchone() is None:
            return set()
        return {key for key in source_keys if self._holds(key)}

    def _holds(self, source_key: str) -> bool:
        found = self._db.execute("SELECT 1 FROM tombstone WHERE digest = ?", (self._digest(source_key),))
        return found.fetchone() is not None

    def _digest(self, source_key: str) -> bytes:
        return tombstone(self._secret, self._scope, source_key)
