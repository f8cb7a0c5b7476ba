"""Read without ranking: single records, earlier texts and counts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from memory_core.models import EMPTY_STATS, STATES, MemoryRecord, Scope, Stats, Version
from memory_core.storage.shared.stored_forms import moment
from memory_core.storage.shared.versions import versions_of
from memory_core.storage.sqlite import revisions
from memory_core.storage.sqlite.codec import COLUMNS, to_record
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.owners import SIZE, find
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import conditions
from memory_core.storage.sqlite.writing import overwrite_columns
from memory_core.where.value import Where


def one(db: sqlite3.Connection, scope: Scope, id: str, now: int) -> tuple[int, int, MemoryRecord] | None:  # noqa: A002
    """The owner, key and record of an id, in any state, if the record is visible in the scope."""
    owner = find(db, scope)
    if owner is None:
        return None
    found = conditions(owner.id, scope, Where(states=STATES, ids=(id,)), now)
    row = db.execute(f"SELECT {COLUMNS}, key FROM record WHERE {found.sql}", found.parameters).fetchone()
    return None if row is None else (owner.id, row[-1], to_record(row, scope.app, scope.user or ""))


def versions(db: sqlite3.Connection, scope: Scope, id: str, now: int) -> list[Version]:  # noqa: A002
    """See `Store.versions`."""
    with snapshot(db):
        known = one(db, scope, id, now)
        if known is None:
            return []
        return versions_of(known[2], revisions.of(db, known[1], id))


def touch(
    db: sqlite3.Connection, keys: Sequence[int], records: Sequence[MemoryRecord], now: int
) -> tuple[MemoryRecord, ...]:
    """Count a read of these records and return them. Followers are not notified: nothing that is searched changes."""
    read = tuple(replace(one, accessed_at=moment(now), access_count=one.access_count + 1) for one in records)
    overwrite_columns(db, zip(keys, read, strict=True), "accessed_at", "access_count")
    return read


def count(db: sqlite3.Connection, scope: Scope, now: int, *, has_embedder: bool) -> Stats:
    """Count the records visible in a scope.

    Args:
        has_embedder: Whether missing vectors count as pending; without an embedder they never arrive.
    """
    with snapshot(db):
        owner = find(db, scope)
        if owner is None:
            return EMPTY_STATS
        found = conditions(owner.id, scope, Where(states=STATES), now)
        total = db.execute(
            "SELECT count(*), count(DISTINCT session), min(occurred_at), max(occurred_at), avg(importance), "
            f"avg(confidence), sum({SIZE}) FROM record WHERE {found.sql}",
            found.parameters,
        ).fetchone()
        (pending,) = db.execute(
            f"SELECT count(*) FROM chunk WHERE vector IS NULL AND record IN (SELECT key FROM record WHERE {found.sql})",
            found.parameters,
        ).fetchone()
        by = {
            column: dict(
                db.execute(
                    f"SELECT {column}, count(*) FROM record WHERE {found.sql} GROUP BY {column}",
                    found.parameters,
                ).fetchall()
            )
            for column in ("kind", "tier", "state")
        }
    records, sessions, oldest, newest, importance, confidence, size = total
    with explaining("a moment of a record"):
        return Stats(
            records,
            by["kind"],
            by["tier"],
            by["state"],
            sessions,
            None if oldest is None else moment(oldest),
            None if newest is None else moment(newest),
            importance,
            confidence,
            pending if has_embedder else 0,
            size or 0,
        )
