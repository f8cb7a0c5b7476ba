"""Reads without ranking: pages of records, and counts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory_core.models import EMPTY_STATS, STATES, MemoryRecord, Order, Page, Scope, Stats, Version
from memory_core.protocols import ListRequest
from memory_core.storage.shared.cursors import decode_cursor, encode_cursor
from memory_core.storage.shared.values import moment
from memory_core.storage.shared.versions import versions_of
from memory_core.storage.sqlite import revisions
from memory_core.storage.sqlite.codec import COLUMNS, to_record
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.snapshot import snapshot
from memory_core.storage.sqlite.usage import SIZE
from memory_core.storage.sqlite.where import conditions
from memory_core.storage.sqlite.writing import overwrite_columns
from memory_core.where.value import Where

Records = tuple[MemoryRecord, ...]

_ORDERS: Final[dict[Order, tuple[str, str, str]]] = {
    "newest": ("occurred_at", "<", "DESC"),
    "oldest": ("occurred_at", ">", "ASC"),
    "importance": ("importance", "<", "DESC"),
    "accessed": ("coalesce(accessed_at, created_at)", "<", "DESC"),
}
"""Column, how the rest of a page compares with its last record, direction. Ties go by key in the same direction."""


def page(db: sqlite3.Connection, scope: Scope, request: ListRequest, now: int) -> tuple[Page, list[int]]:
    """One page, and the keys of its records."""
    column, sign, direction = _ORDERS[request.order]
    after = None if request.cursor is None else decode_cursor(request.cursor, request.order, (float, int))
    owner = find(db, scope)
    if owner is None:
        return Page((), None), []
    found = conditions(owner.id, scope, request.where, now)
    if after is not None:
        found.add(f"({column}, key) {sign} (?, ?)", *after)
    # A plus keeps SQLite from walking the owner in order when it can look up the few records that are named.
    named = request.where.ids is not None or request.where.source_keys is not None
    rows = db.execute(
        f"SELECT {COLUMNS}, {column}, key FROM record WHERE {found.sql} "
        f"ORDER BY {'+' if named else ''}{column} {direction}, key {direction} LIMIT ?",
        [*found.parameters, request.limit + 1],
    ).fetchall()
    shown = rows[: request.limit]
    records = tuple(to_record(row, scope.app, scope.user or "") for row in shown)
    cursor = encode_cursor(request.order, *shown[-1][-2:]) if len(rows) > len(shown) else None
    return Page(records, cursor), [row[-1] for row in shown]


def one(db: sqlite3.Connection, scope: Scope, id: str, now: int) -> tuple[int, int, MemoryRecord] | None:  # noqa: A002
    """Owner, key and record of an id, in any state, if the scope reaches it."""
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


def touch(db: sqlite3.Connection, keys: Sequence[int], records: Sequence[MemoryRecord], now: int) -> Records:
    """Count a read of these records and return them. No follower needs to know: nothing that is searched changed."""
    read = tuple(replace(one, accessed_at=moment(now), access_count=one.access_count + 1) for one in records)
    overwrite_columns(db, zip(keys, read, strict=True), "accessed_at", "access_count")
    return read


def count(db: sqlite3.Connection, scope: Scope, now: int, *, owes: bool) -> Stats:
    """Count what a scope reaches.

    Args:
        owes: Whether there is an embedder that owes vectors.
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
        (owed,) = db.execute(
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
            owed if owes else 0,
            size or 0,
        )
