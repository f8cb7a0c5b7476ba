"""The gateway of `storage/rules`: the rows of one owner in the tables, within the writer's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory_core.models import MemoryRecord, Scope
from memory_core.storage.rules.deleting import BEFORE_EVERYTHING, take_away
from memory_core.storage.rules.deriving import loses_source
from memory_core.storage.rules.rows import Head, Row
from memory_core.storage.shared.merging import owner_of
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.shared.stored_forms import micros
from memory_core.storage.sqlite import meta, revisions
from memory_core.storage.sqlite.codec import COLUMNS, NAMES, links_in, to_record, to_row
from memory_core.storage.sqlite.damage import explaining, has_whole_vector
from memory_core.storage.sqlite.owners import (
    SIZE,
    Owner,
    Usage,
    find,
    find_or_add,
    note_changes,
    take_keys,
    usage_of,
)
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.tombstones import Tombstones
from memory_core.storage.sqlite.where import STAYING, Conditions, conditions, owner_range
from memory_core.storage.sqlite.writing import derive, link, underive, unlink, write_new
from memory_core.values.json_text import encode_json
from memory_core.where.where import ANY_STATE, Where

_NOBODY: Final = Owner(id=-1, next=0, version=0)
_LINKED: Final = (
    "key IN (SELECT record FROM link WHERE target IN (SELECT value FROM json_each(?)) AND record BETWEEN ? AND ?)"
)


_MADE: Final = """
WITH RECURSIVE made (key) AS (
    SELECT record FROM link
    WHERE target IN (SELECT value FROM json_each(:ids)) AND derives AND record BETWEEN :first AND :last
    UNION
    SELECT link.record FROM made CROSS JOIN record ON record.key = made.key CROSS JOIN link ON link.target = record.id
    WHERE derives AND link.record BETWEEN :first AND :last
)"""
"""The records that were made of the words of these, of what was made of them, and so on."""
MOST_AT_ONCE: Final = 200
"""So many derived records are deleted in the transaction in which their source is."""
MOST_DELETED: Final = 1_000
"""So many records that satisfy conditions, or have expired, are deleted in one transaction: others wait for it."""


class SqliteRows:
    """`Rows` of one owner."""

    def __init__(self, db: sqlite3.Connection, scope: Scope, owner: Owner) -> None:
        self._db = db
        self._scope = owner_of(scope)
        self._owner = owner
        self.rewritten: dict[int, tuple[int, int]] = {}
        """The first version of each record that was changed here, and the last, by key."""

    def with_ids(self, ids: Sequence[str]) -> list[Row]:
        """See `StoredRows`."""
        return self._rows("owner = ? AND id IN (SELECT value FROM json_each(?))", self._owner.id, encode_json(ids))

    def with_source_keys(self, source_keys: Sequence[str]) -> dict[str, Row | None]:
        """See `StoredRows`."""
        found = by_source_key(self._db, self._scope, self._owner, source_keys)
        unknown = [source for source in source_keys if source not in found]
        return {**dict.fromkeys(Tombstones(self._db, self._scope).among(unknown)), **found}

    def linking_to(self, ids: Collection[str]) -> list[Row]:
        """See `StoredRows`."""
        return self._rows(_LINKED, encode_json(list(ids)), *owner_range(self._owner.id)) if self._has_links() else []

    def earlier(self, row: Row) -> Sequence[tuple[int, str, datetime]]:
        """See `StoredRows`."""
        return revisions.of(self._db, row.key, row.record.id)

    def matching(self, scope: Scope, where: Where, now: datetime) -> list[Head]:
        """See `StoredRows`; SQLite decides all of these conditions (`deletion.py`)."""
        found = conditions(self._owner.id, scope, where, micros(now), hides=self._owner.hides, shown=STAYING)
        assert found.in_python is None  # noqa: S101  (for the reader: they would hold up all writers)
        return self._heads(found)

    def with_keys(self, keys: Sequence[int]) -> list[Head]:
        """The records of these keys that exist."""
        found = Conditions()
        found.add("key IN (SELECT value FROM json_each(?))", encode_json(keys))
        if self._owner.hides:
            found.add(STAYING)
        return self._heads(found)

    def expired(self, scope: Scope, now: datetime, new: Sequence[MemoryRecord] = ()) -> list[Head]:
        """See `StoredRows`."""
        heads = {head.key: head for head in self._heads(self._expired(scope, now), MOST_DELETED)}
        if new and len(heads) == MOST_DELETED:
            in_the_way = self._expired(scope, now)
            _take_names(in_the_way, new)
            heads |= {head.key: head for head in self._heads(in_the_way)}
        return list(heads.values())

    def _expired(self, scope: Scope, now: datetime) -> Conditions:
        start, hides = micros(BEFORE_EVERYTHING), self._owner.hides
        found = conditions(self._owner.id, scope, ANY_STATE, start, hides=hides, shown=STAYING)
        found.add("expires_at <= ?", micros(now))
        return found

    def append(self, new: Sequence[Prepared]) -> None:
        """See `ChangedRows`."""
        owner = self._owner
        if owner.hides:
            self.make_room([item.record for item in new], new[0].record.created_at)
        take_keys(self._db, owner.id, usage_of(item.record for item in new))
        first = owner.id << OWNER_BITS | owner.next
        write_new(self._db, owner.id, range(first, first + len(new)), new)

    def rewrite(self, row: Row, item: Prepared) -> None:
        """See `ChangedRows`."""
        if not item.vectors and row.record.text == item.record.text:
            item = item._replace(vectors=self._vectors(row.key, item.chunks), made_by=None)
        underive(self._db, [row.key])
        grown = self._write([(row, item.record)])
        derive(self._db, [row.key], [item])
        note_changes(self._db, self._owner.id, [row.key], grown)

    def overwrite(self, changed: Sequence[tuple[Row, MemoryRecord]]) -> None:
        """See `ChangedRows`."""
        if changed:
            grown = self._write(changed)
            note_changes(self._db, self._owner.id, sorted(row.key for row, _ in changed), grown)

    def remove(self, gone: Sequence[Head]) -> None:
        """See `ChangedRows`."""
        meta.put(self._db, meta.SLACK, 1)
        keys = [head.key for head in gone]
        underive(self._db, keys)
        unlink(self._db, [head.key for head in gone if head.links])
        self._db.executemany("DELETE FROM record WHERE key = ?", [(key,) for key in keys])
        if self._owner.hides:
            self._db.executemany("DELETE FROM hidden WHERE key = ?", [(key,) for key in keys])
        note_changes(self._db, self._owner.id, keys, Usage(-len(keys), -sum(head.size for head in gone)))

    def forget(self, source_keys: Sequence[str], *, forgotten: bool) -> None:
        """See `ChangedRows`."""
        tombstones = Tombstones(self._db, self._scope)
        (tombstones.add if forgotten else tombstones.remove)(source_keys)

    def hide_made_of(self, gone: Sequence[Head], now: datetime) -> int:
        """See `HidingRows`."""
        if not self._hide([head.id for head in gone], now, stays=False):
            return 0
        keys = encode_json([head.key for head in gone])
        self._db.execute("DELETE FROM hidden WHERE key IN (SELECT value FROM json_each(?))", (keys,))
        counted = "SELECT count(*) FROM hidden WHERE NOT stays AND key BETWEEN ? AND ?"
        return int(self._db.execute(counted, owner_range(self._owner.id)).fetchone()[0])

    def hide_to_follow(self, changed: Collection[str], now: datetime) -> bool:
        """See `HidingRows`."""
        return self._hide(changed, now, stays=True)

    def _hide(self, ids: Collection[str], now: datetime, *, stays: bool) -> bool:
        """Hide what was made of the words of records, if it is much; what goes does not stay for another reason."""
        first, last = owner_range(self._owner.id)
        parameters = {"ids": encode_json(list(ids)), "first": first, "last": last, "stays": stays, "at": micros(now)}
        if not self._has_links():
            return False
        made = f"{_MADE} SELECT count(*) FROM (SELECT 1 FROM made LIMIT {MOST_AT_ONCE + 1})"
        (count,) = self._db.execute(made, parameters).fetchone()
        if count <= MOST_AT_ONCE:
            return False
        self._db.execute(
            f"{_MADE} INSERT INTO hidden SELECT key, :stays, :at FROM made WHERE true "
            "ON CONFLICT DO UPDATE SET stays = min(stays, excluded.stays)",
            parameters,
        )
        self._owner = replace(self._owner, hides=True)
        return True

    def next_to_follow(self, most: int) -> list[Row]:
        """The first of the owner's hidden records that stay; sources mostly arrive before what is made of them."""
        found = "key IN (SELECT key FROM hidden WHERE stays AND key BETWEEN ? AND ? ORDER BY key LIMIT ?)"
        return self._rows(found, *owner_range(self._owner.id), most)

    def show(self, rows: Iterable[Row]) -> None:
        """End the hiding of records that stay."""
        self._db.executemany("DELETE FROM hidden WHERE key = ? AND stays", [(row.key,) for row in rows])

    @property
    def hides(self) -> bool:
        """True if the file has hidden rows, which the caller has to delete (`hidden.py`)."""
        return self._owner.hides

    def hidden(self, most: int) -> list[Head]:
        """Some of the owner's hidden records that go."""
        first, last = owner_range(self._owner.id)
        found = Conditions()
        found.add("key IN (SELECT key FROM hidden WHERE NOT stays AND key BETWEEN ? AND ? LIMIT ?)", first, last, most)
        return self._heads(found)

    def make_room(self, new: Sequence[MemoryRecord], now: datetime) -> None:
        """Delete hidden records of which a new one has the id or the source key."""
        found = Conditions()
        found.add("record.owner = ? AND key IN (SELECT key FROM hidden WHERE NOT stays)", self._owner.id)
        _take_names(found, new)
        if gone := self._heads(found):
            take_away(self, gone, now)

    def _has_links(self) -> bool:
        """True if a record of the owner has a link; saves looking for links to each of many records without any."""
        found = self._db.execute("SELECT 1 FROM link WHERE record BETWEEN ? AND ? LIMIT 1", owner_range(self._owner.id))
        return found.fetchone() is not None

    def _rows(self, found: str, *parameters: object) -> list[Row]:
        rows = self._db.execute(
            f"SELECT {COLUMNS}, key FROM record WHERE {found}{_shown(self._owner)} ORDER BY key", parameters
        )
        return list(_to_rows(rows, self._scope))

    def _heads(self, found: Conditions, most: int = -1) -> list[Head]:
        rows = self._db.execute(
            f"SELECT key, id, source_key, version, links, {SIZE} FROM record WHERE {found.sql} LIMIT ?",
            (*found.parameters, most),
        )
        with explaining("the links of a record"):
            return [
                Head(key, id_, source, version, links_in(links), size)
                for key, id_, source, version, links, size in rows
            ]

    def _vectors(self, key: int, pieces: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        """The vectors of a record, unless one is pending or damaged, or they are of other pieces of its text."""
        rows = self._db.execute(
            "SELECT start, stop, vector, vector_digest FROM chunk WHERE record = ? ORDER BY n", (key,)
        )
        stored = rows.fetchall()
        is_complete = all(vector and has_whole_vector(vector, digest) for _, _, vector, digest in stored)
        is_same = [(start, stop) for start, stop, _, _ in stored] == list(pieces)
        return [vector for _, _, vector, _ in stored] if is_complete and is_same else ()

    def _write(self, changed: Sequence[tuple[Row, MemoryRecord]]) -> Usage:
        """Write the columns that changed, and keep texts that changed; returns the change in usage."""
        values: dict[tuple[int, ...], list[tuple[object, ...]]] = {}
        for row, after in changed:
            first, _ = self.rewritten.get(row.key, (row.record.version, 0))
            self.rewritten[row.key] = (first, after.version)
            if loses_source(row.record, after):
                revisions.replace(self._db, row.key, ())
            elif row.record.text != after.text:
                revisions.keep(self._db, row.key, row.record.rev, row.record.text, after.updated_at)
            now = to_row(after)
            at = tuple(n for n, (old, new) in enumerate(zip(to_row(row.record), now, strict=True)) if _differ(old, new))
            values.setdefault(at, []).append((*(now[n] for n in at), row.key))
        for at, rows in values.items():
            columns = ", ".join(f"{NAMES[n]} = ?" for n in at)
            self._db.executemany(f"UPDATE record SET {columns} WHERE key = ?", rows)
        relinked = [(row.key, after) for row, after in changed if row.record.links != after.links]
        unlink(self._db, [key for key, _ in relinked])
        link(self._db, relinked)
        before = usage_of(row.record for row, _ in changed)
        return Usage(0, usage_of(after for _, after in changed).bytes - before.bytes)


def rows_to_write(db: sqlite3.Connection, scope: Scope) -> SqliteRows:
    """The rows of an owner, who is created if missing."""
    return SqliteRows(db, scope, find_or_add(db, scope))


def rows_of(db: sqlite3.Connection, scope: Scope) -> SqliteRows:
    """The rows of an owner, which has no rows before its first write."""
    return SqliteRows(db, scope, find(db, scope) or _NOBODY)


def by_source_key(db: sqlite3.Connection, scope: Scope, owner: Owner, source_keys: Sequence[str]) -> dict[str, Row]:
    """The rows of those source keys that are stored."""
    rows = db.execute(
        f"SELECT {COLUMNS}, key FROM record WHERE owner = ? AND source_key IN (SELECT value FROM json_each(?))"
        f"{_shown(owner)}",
        (owner.id, encode_json(source_keys)),
    )
    return {row.record.source_key or "": row for row in _to_rows(rows, scope)}


def _take_names(found: Conditions, new: Sequence[MemoryRecord]) -> None:
    """Require the id or the source key of a new record."""
    found.add(
        "(id IN (SELECT value FROM json_each(?)) OR source_key IN (SELECT value FROM json_each(?)))",
        encode_json([one.id for one in new]),
        encode_json([one.source_key for one in new]),
    )


def _shown(owner: Owner) -> str:
    return f" AND {STAYING}" if owner.hides else ""


def _to_rows(rows: Iterable[tuple[object, ...]], scope: Scope) -> Iterator[Row]:
    for row in rows:
        key = row[-1]
        assert isinstance(key, int)  # noqa: S101  (an INTEGER PRIMARY KEY)
        yield Row(key, to_record(row, scope.app, scope.user or ""))


def _differ(old: object, new: object) -> bool:
    """True if two values are stored differently: 1, 1.0 and True are equal, and are not."""
    return type(old) is not type(new) or old != new
