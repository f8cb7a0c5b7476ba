"""The table `hidden`: keys of records that are deleted for every reader, although their rows are still there.

A write transaction is short. So if much was made of the words of a deleted record, its transaction hides all of that,
and the rows are deleted in parts, each in a transaction of its own, before the caller is answered. Whatever reads
`record` leaves hidden rows out (`Owner.hides`). If a process dies in between, the next one that opens the file deletes
the rest.
"""

from __future__ import annotations

import sqlite3
import time
from datetime import datetime
from typing import Final

from memory_core.models import Scope
from memory_core.storage.rules.deleting import take_away
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.owners import find, owner_names
from memory_core.storage.sqlite.rows import SqliteRows
from memory_core.storage.sqlite.schema import OWNER_BITS

SLICE_SECONDS: Final = 0.005
"""How long one transaction deletes hidden rows."""
_PART: Final = 32
"""So many are deleted between two looks at the clock."""


def is_due(db: sqlite3.Connection) -> bool:
    """Whether hidden rows have to be deleted."""
    return db.execute("SELECT 1 FROM hidden LIMIT 1").fetchone() is not None


async def delete_hidden(writer: Writer, now: datetime) -> None:
    """Delete all hidden rows; other writes go in between."""
    while await writer.write(lambda db: _delete_slice(db, now)):
        pass


def delete_all(db: sqlite3.Connection, now: datetime) -> None:
    """Delete all hidden rows within the present transaction."""
    while _delete_part(db, now):
        pass


def _delete_slice(db: sqlite3.Connection, now: datetime) -> bool:
    """Delete hidden rows for `SLICE_SECONDS`; returns whether more follow."""
    end = time.perf_counter() + SLICE_SECONDS
    while _delete_part(db, now):
        if time.perf_counter() > end:
            return is_due(db)
    return False


def _delete_part(db: sqlite3.Connection, now: datetime) -> bool:
    """Delete some hidden rows of one owner; `False` if there are none."""
    row = db.execute("SELECT key >> ? FROM hidden LIMIT 1", (OWNER_BITS,)).fetchone()
    if row is None:
        return False
    scope = Scope(*owner_names(db, row[0]))
    owner = find(db, scope)
    assert owner is not None  # noqa: S101  (an owner is removed after its hidden rows)
    rows = SqliteRows(db, scope, owner)
    take_away(rows, rows.hidden(_PART), now)
    return True
