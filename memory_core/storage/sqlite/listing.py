"""Read without ranking: single records, earlier texts, names and counts."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from memory_core.models import EMPTY_STATS, Known, MemoryRecord, Scope, Stats, Version
from memory_core.storage.shared.stored_forms import moment
from memory_core.storage.shared.versions import versions_of
from memory_core.storage.sqlite import revisions
from memory_core.storage.sqlite.codec import COLUMNS, to_record
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.matching_rows import READ_FIELDS
from memory_core.storage.sqlite.owners import SIZE, Owner, find
from memory_core.storage.sqlite.row_filter import narrow
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import Conditions, conditions, owner_range
from memory_core.storage.sqlite.writing import overwrite_columns
from memory_core.values.json_text import encode_json
from memory_core.where.meaning import names_any
from memory_core.where.where import ANY_STATE, Where


def one(db: sqlite3.Connection, scope: Scope, id: str, now: int) -> tuple[int, int, MemoryRecord] | None:  # noqa: A002
    """The owner, key and record of an id, in any state, if the record is visible in the scope."""
    owner = find(db, scope)
    if owner is None:
        return None
    found = conditions(owner.id, scope, replace(ANY_STATE, ids=(id,)), now, hides=owner.hides)
    row = db.execute(f"SELECT {COLUMNS}, key FROM record WHERE {found.sql}", found.parameters).fetchone()
    return None if row is None else (owner.id, row[-1], to_record(row, scope.app, scope.user or ""))


def versions(db: sqlite3.Connection, scope: Scope, id: str, now: int) -> list[Version]:  # noqa: A002
    """See `Store.versions`."""
    with snapshot(db):
        known = one(db, scope, id, now)
        if known is None:
            return []
        return versions_of(known[2], revisions.of(db, known[1], id))


def known(db: sqlite3.Connection, scope: Scope, keys: Sequence[str] | None, now: int) -> list[Known]:
    """See `LeanReads.known`."""
    with snapshot(db):
        owner = find(db, scope)
        if owner is None:
            return []
        found = conditions(owner.id, scope, replace(ANY_STATE, source_keys=keys), now, hides=owner.hides)
        found.add("source_key IS NOT NULL")
        # A plus keeps SQLite from walking the session in order when it can look up the few records that are named.
        order = "occurred_at, key" if keys is None else "+occurred_at, key"
        rows = db.execute(
            f"SELECT source_key, id, rev, version, state, record.left FROM record WHERE {found.sql} ORDER BY {order}",
            found.parameters,
        )
        return [Known(key, id, rev, version, state, bool(left)) for key, id, rev, version, state, left in rows]  # noqa: A001


def touch(
    db: sqlite3.Connection, scope: Scope, where: Where, records: Sequence[MemoryRecord], now: int
) -> tuple[MemoryRecord, ...]:
    """Count a read of these records, and return them as they are then. Followers are not notified: nothing that is
    searched changes. A record that somebody has changed since it was read is returned as it was, and not counted; so is
    one that somebody else has read meanwhile, if the conditions are on that.
    """
    is_counted_once = names_any(where.matching or (), READ_FIELDS)
    owner = find(db, scope)
    wanted = encode_json([record.id for record in records])
    rows = db.execute(
        f"SELECT {COLUMNS}, key FROM record WHERE owner = ? AND id IN (SELECT value FROM json_each(?))",
        (-1 if owner is None else owner.id, wanted),
    ).fetchall()
    found = {one.id: (row[-1], one) for row in rows for one in [to_record(row, scope.app, scope.user or "")]}
    touched: dict[str, tuple[int, MemoryRecord]] = {}
    for record in records:
        key, one = found.get(record.id, (0, None))
        if one is None:
            continue
        reads = {} if is_counted_once else {name: getattr(one, name) for name in READ_FIELDS}
        if one == replace(record, **reads):
            touched[one.id] = key, replace(one, accessed_at=moment(now), access_count=one.access_count + 1)
    overwrite_columns(db, touched.values(), *READ_FIELDS)
    return tuple(touched[record.id][1] if record.id in touched else record for record in records)


def collections(db: sqlite3.Connection, scope: Scope, where: Where, now: int) -> list[str]:
    """See `LeanReads.collections`."""
    with snapshot(db):
        owner = find(db, scope)
        if owner is None:
            return []
        found = conditions(owner.id, scope, where, now, hides=owner.hides)
        found.add("collection IS NOT NULL")
        narrow(db, found)
        rows = db.execute(
            f"SELECT DISTINCT collection FROM record WHERE {found.sql} ORDER BY collection", found.parameters
        )
        return [collection for (collection,) in rows]


def pending(db: sqlite3.Connection, scope: Scope, now: int) -> int:
    """The number of missing vectors of the records visible in a scope; takes time only for those that are missing."""
    with snapshot(db):
        owner = find(db, scope)
        return (
            0 if owner is None else _pending(db, owner, conditions(owner.id, scope, ANY_STATE, now, hides=owner.hides))
        )


def _pending(db: sqlite3.Connection, owner: Owner, found: Conditions) -> int:
    (missing,) = db.execute(
        "SELECT count(*) FROM chunk CROSS JOIN record ON record.key = chunk.record "
        f"WHERE chunk.vector IS NULL AND chunk.record BETWEEN ? AND ? AND {found.sql}",
        (*owner_range(owner.id), *found.parameters),
    ).fetchone()
    return int(missing)


_SUMS: Final = "count(*), min(occurred_at), max(occurred_at), sum(importance), sum(confidence), sum(size), sum(is_left)"
_COUNTED: Final = f"kind, tier, state, occurred_at, importance, confidence, {SIZE} AS size, record.left AS is_left"


def count(db: sqlite3.Connection, scope: Scope, where: Where, now: int, *, has_embedder: bool) -> Stats:
    """Count the records visible in a scope that satisfy conditions, in one pass over them.

    Args:
        has_embedder: True if missing vectors count as pending; without an embedder they never arrive.
    """
    with snapshot(db):
        owner = find(db, scope)
        if owner is None:
            return EMPTY_STATS
        found = conditions(owner.id, scope, where, now, hides=owner.hides)
        narrow(db, found)
        # The limit keeps SQLite from sorting whole rows, with all of their texts in memory.
        counted = f"SELECT {_COUNTED} FROM record WHERE {found.sql} LIMIT -1"
        groups = db.execute(
            f"SELECT kind, tier, state, {_SUMS} FROM ({counted}) GROUP BY kind, tier, state", found.parameters
        ).fetchall()
        (sessions,) = db.execute(
            f"SELECT count(DISTINCT session) FROM record WHERE session IS NOT NULL AND {found.sql}", found.parameters
        ).fetchone()
        missing = _pending(db, owner, found) if has_embedder else 0
    if not groups:
        return EMPTY_STATS
    with explaining("a moment of a record"):
        return _stats(groups, sessions, missing)


def _stats(groups: Sequence[tuple[Any, ...]], sessions: int, missing: int) -> Stats:
    """The counts of rows that are grouped by kind, tier and state."""
    kinds, tiers, states = (_numbers(groups, place) for place in range(3))
    records = sum(kinds.values())
    oldest, newest = (choose(group[place] for group in groups) for choose, place in ((min, 4), (max, 5)))
    importance, confidence, size, left = (sum(group[place] for group in groups) for place in (6, 7, 8, 9))
    return Stats(
        records,
        kinds,
        tiers,
        states,
        left,
        sessions,
        moment(oldest),
        moment(newest),
        importance / records,
        confidence / records,
        missing,
        size,
    )


def _numbers(groups: Sequence[tuple[Any, ...]], place: int) -> dict[str, int]:
    """The number of records for each name at this place of the groups."""
    numbers: Counter[str] = Counter()
    for group in groups:
        numbers[group[place]] += group[3]
    return dict(numbers)
