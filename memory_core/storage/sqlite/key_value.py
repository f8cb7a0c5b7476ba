"""The operations of `protocols.KeyValue` as plain functions, called inside the writer's or reader's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory_core.models import STATES, MemoryRecord, Scope
from memory_core.storage.shared.merging import insist_on_reach, replacing
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.sqlite import writing
from memory_core.storage.sqlite.codec import COLUMNS, to_record
from memory_core.storage.sqlite.damage import has_whole_vector
from memory_core.storage.sqlite.owners import Owner, find, find_or_add, note_changes
from memory_core.storage.sqlite.row_filter import RowFilter, narrow
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import conditions
from memory_core.where.where import Where

_BEFORE_EVERYTHING: Final = -(1 << 63)
"""Used as the current time, it makes expired records visible."""


def put(
    db: sqlite3.Connection, scope: Scope, batch: Sequence[Prepared], remove: Collection[str], now: int
) -> list[MemoryRecord]:
    """See `KeyValue.put`."""
    owner = find_or_add(db, scope)
    writing.sweep(db, scope, owner.id, now)
    if remove:
        gone = conditions(owner.id, scope, Where(states=STATES, source_keys=tuple(remove)), now)
        writing.delete(db, scope, owner.id, gone, forget=False)
    latest = {item.record.source_key or "": item for item in batch}
    stored: dict[str, MemoryRecord] = {}
    new: list[Prepared] = []
    for source, item in latest.items():
        known = writing.by_source(db, scope, owner.id, source)
        if known is None:
            new.append(item)
            stored[source] = item.record
        else:
            insist_on_reach(scope, known[1])
            stored[source] = _replace(db, owner, known, item)
    writing.append(db, owner, new)
    writing.retire(db, scope, owner.id, stored.values())
    return [stored[item.record.source_key or ""] for item in batch]


def _replace(db: sqlite3.Connection, owner: Owner, known: tuple[int, MemoryRecord], item: Prepared) -> MemoryRecord:
    key, before = known
    record = replacing(before, item.record)
    vectors = item.vectors or _kept_vectors(db, key, before, record)
    writing.rewrite(db, owner.id, key, item._replace(record=record, vectors=vectors))
    return record


def _kept_vectors(db: sqlite3.Connection, key: int, before: MemoryRecord, after: MemoryRecord) -> Sequence[bytes]:
    """The vectors of a record if its text did not change."""
    if before.text != after.text:
        return ()
    rows = db.execute("SELECT vector, vector_digest FROM chunk WHERE record = ? ORDER BY n", (key,)).fetchall()
    return (
        [vector for vector, _ in rows]
        if all(vector and has_whole_vector(vector, digest) for vector, digest in rows)
        else ()
    )


def collections(
    db: sqlite3.Connection, scope: Scope, where: Where, now: int, row_filter: RowFilter | None
) -> list[str]:
    """See `KeyValue.collections`; `row_filter` was made for these conditions."""
    with snapshot(db):
        owner = find(db, scope)
        if owner is None:
            return []
        found = conditions(owner.id, scope, where, now)
        found.add("collection IS NOT NULL")
        narrow(db, found, row_filter)
        rows = db.execute(
            f"SELECT DISTINCT collection FROM record WHERE {found.sql} ORDER BY collection", found.parameters
        )
        return [collection for (collection,) in rows]


def postpone(db: sqlite3.Connection, scope: Scope, expiries: Mapping[str, datetime | None], now: int) -> None:
    """See `KeyValue.postpone`."""
    owner = find(db, scope)
    if owner is None:
        return
    found = conditions(owner.id, scope, Where(states=STATES, ids=tuple(expiries)), now)
    rows = db.execute(f"SELECT {COLUMNS}, key FROM record WHERE {found.sql}", found.parameters).fetchall()
    records = [(row[-1], to_record(row, scope.app, scope.user or "")) for row in rows]
    changes = [
        (key, replace(record, expires_at=expiries[record.id], version=record.version + 1))
        for key, record in records
        if record.expires_at != expiries[record.id]
    ]
    writing.overwrite_columns(db, changes, "expires_at", "version")
    note_changes(db, owner.id, sorted(key for key, _ in changes))


def sweep(db: sqlite3.Connection, scope: Scope, now: int) -> int:
    """See `KeyValue.sweep`."""
    owner = find(db, scope)
    if owner is None:
        return 0
    found = conditions(owner.id, scope, Where(states=STATES), _BEFORE_EVERYTHING)
    found.add("expires_at <= ?", now)
    return writing.delete(db, scope, owner.id, found, forget=False)
