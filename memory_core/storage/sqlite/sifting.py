"""The records that satisfy conditions which Python has to decide, found part by part (`Sieve`)."""

from __future__ import annotations

import json
import sqlite3

from memory_core.models import Scope
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.readers import Readers, asks_python, looks_long
from memory_core.storage.sqlite.sieve import Sieve, named
from memory_core.storage.sqlite.snapshot import snapshot
from memory_core.storage.sqlite.where import Conditions, conditions
from memory_core.where.value import Where


async def sifted(readers: Readers, scope: Scope, where: Where, now: int) -> Sieve | None:
    """What Python lets pass of the records that satisfy the rest; `None` if SQLite alone decides, or has none."""
    if not asks_python(where):
        return None

    def begin(db: sqlite3.Connection) -> Sieve | None:
        with snapshot(db):
            owner = find(db, scope)
            if owner is None:
                return None
            found = conditions(owner.id, scope, where, now)
            return Sieve.of(found, named(db, found))

    sieve = await readers.run(begin, unless=lambda db: looks_long(find(db, scope), where))
    if sieve is not None:
        await readers.sift(sieve)
    return sieve


def narrow(db: sqlite3.Connection, found: Conditions, sieve: Sieve | None) -> None:
    """Add what a sieve knows to the conditions that it was made for."""
    if sieve is not None:
        found.add("record.key IN (SELECT value FROM json_each(?))", json.dumps(sieve.still(db)))
    elif found.asked is not None:  # the owner came to be since somebody looked
        found.add("FALSE")
