"""Write records to the tables: plain functions, called inside the writer's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Final
from zlib import crc32

from memory_core.errors import DuplicateIdError
from memory_core.models import STATES, Fingerprint, Link, MemoryRecord, Quota, Scope
from memory_core.records.superseding import already_superseded, retired, superseded_by
from memory_core.storage.shared.merging import insist_on_reach, is_searched_differently, merged, updated
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.shared.stored_forms import micros
from memory_core.storage.shared.transfer import tombstone
from memory_core.storage.sqlite import meta, revisions
from memory_core.storage.sqlite.codec import COLUMNS, NAMES, to_record, to_row
from memory_core.storage.sqlite.damage import damaged, explaining, piece_digest
from memory_core.storage.sqlite.meta import SELECT_FINGERPRINT, fingerprint_row, stored_fingerprint
from memory_core.storage.sqlite.owners import (
    SIZE,
    Owner,
    Usage,
    begin_append,
    begin_write,
    note_changes,
    take_keys,
    usage_of,
    within,
)
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.where import Conditions, conditions
from memory_core.values.json_text import encode_json
from memory_core.where.where import Where

_STATEMENT_ROWS: Final = (64, 32, 16, 8, 4, 2, 1)
"""Rows per INSERT statement: only a few sizes, so that a connection keeps the statements prepared."""

_RECORD: Final = f"record (key, owner, {COLUMNS})"
_SET: Final = ", ".join(f"{name} = ?" for name in COLUMNS.split(", "))


class Tombstones:
    """The source keys that an owner had forgotten, stored as keyed hashes only."""

    def __init__(self, db: sqlite3.Connection, scope: Scope) -> None:
        self._db = db
        self._secret = meta.tombstone_key(db)
        self._scope = scope

    def add(self, source_keys: Sequence[str]) -> None:
        rows = [(self._digest(key),) for key in source_keys]
        self._db.executemany("INSERT OR IGNORE INTO tombstone VALUES (?)", rows)

    def among(self, source_keys: Sequence[str]) -> set[str]:
        """The given keys that are forgotten."""
        if self._db.execute("SELECT 1 FROM tombstone LIMIT 1").fetchone() is None:
            return set()
        return {key for key in source_keys if self._holds(key)}

    def _holds(self, source_key: str) -> bool:
        found = self._db.execute("SELECT 1 FROM tombstone WHERE digest = ?", (self._digest(source_key),))
        return found.fetchone() is not None

    def _digest(self, source_key: str) -> bytes:
        return tombstone(self._secret, self._scope, source_key)


@dataclass(frozen=True, slots=True)
class Adds:
    """New records of one owner, one per caller, which the writer adds together if it can."""

    scope: Scope
    items: Sequence[Prepared]
    quota: Quota | None = None

    def __call__(self, db: sqlite3.Connection) -> list[MemoryRecord | None]:
        return within(self.quota, self.scope, lambda db: insert(db, self.scope, self.items))(db)

    def apart(self) -> list[Adds]:
        """The same adds, one object per caller."""
        return [Adds(self.scope, [item], self.quota) for item in self.items]


def insert(db: sqlite3.Connection, scope: Scope, batch: Sequence[Prepared]) -> list[MemoryRecord | None]:
    """Write new records; known source keys update, forgotten ones are left out (`None`)."""
    now = micros(batch[0].record.created_at)
    sources = [item.record.source_key for item in batch if item.record.source_key is not None]
    # Without source keys all records are new.
    if sources:
        owner, has_expired = begin_write(db, scope, now)
    else:
        owner, has_expired = begin_append(db, scope, now, usage_of(item.record for item in batch))
    if has_expired:
        sweep(db, scope, owner.id, now)
    known = by_sources(db, scope, owner.id, sources) if sources else {}
    buried = Tombstones(db, scope).among(sources) if sources else set[str]()
    new: list[Prepared] = []
    position_of: dict[str, int] = {}  # in `new`, by source key
    results: list[MemoryRecord | int | None] = []  # a number stands for the record at that position of `new`
    for item in batch:
        source = item.record.source_key
        if source is None:
            results.append(len(new))
            new.append(item)
        elif source in position_of:
            position = position_of[source]
            new[position] = merged(new[position], item)
            results.append(position)
        elif source in known:
            insist_on_reach(scope, known[source][1])
            record = _bring_up_to_date(db, owner.id, known[source], item)
            known[source] = (known[source][0], record)  # the key may be repeated in the batch
            results.append(record)
        elif source in buried:
            results.append(None)
        else:
            position_of[source] = len(new)
            results.append(len(new))
            new.append(item)
    append(db, owner, new, has_keys=not sources)
    retire(db, scope, owner.id, (item.record for item in new))
    return [new[result].record if isinstance(result, int) else result for result in results]


def append(db: sqlite3.Connection, owner: Owner, new: Sequence[Prepared], *, has_keys: bool = False) -> None:
    """Assign keys to new records, unless `begin_append` did, and write them with everything derived from them."""
    if not new:
        return
    keys = [owner.id << OWNER_BITS | seq for seq in range(owner.next, owner.next + len(new))]
    if not has_keys:
        take_keys(db, owner.id, usage_of(item.record for item in new))
    _write(db, owner.id, keys, new)


def retire(db: sqlite3.Connection, scope: Scope, owner: int, new: Iterable[MemoryRecord]) -> None:
    """Mark the records in reach that these supersede."""
    for record in new:
        for old in superseded_by(record) if record.links else ():
            if old != record.id:  # a put may replace the very record that it names
                _retire_one(db, scope, owner, old, record)


def _retire_one(db: sqlite3.Connection, scope: Scope, owner: int, id: str, new: MemoryRecord) -> None:  # noqa: A002
    now = micros(new.created_at)
    rivals = conditions(owner, Scope(scope.app, scope.user), Where(states=STATES, links=(Link("supersedes", id),)), now)
    rivals.add("id <> ?", new.id)
    if db.execute(f"SELECT 1 FROM record WHERE {rivals.sql}", rivals.parameters).fetchone() is not None:
        raise already_superseded(id)
    found = conditions(owner, scope, Where(states=STATES, ids=(id,)), now)
    row = db.execute(f"SELECT {COLUMNS}, key FROM record WHERE {found.sql}", found.parameters).fetchone()
    if row is not None:
        old = to_record(row, scope.app, scope.user or "")
        if (after := retired(old, new)) is not old:
            overwrite_fields(db, owner, row[-1], after)


def sweep(db: sqlite3.Connection, scope: Scope, owner: int, now: int) -> None:
    """Delete expired records, so that they do not stay on disk and their ids and source keys can be used again."""
    expired = Conditions()
    expired.add("owner = ? AND expires_at <= ?", owner, now)
    delete(db, scope, owner, expired, forget=False)


def rewrite(db: sqlite3.Connection, owner: int, key: int, item: Prepared) -> None:
    """Write a changed record over its row, with everything derived from it."""
    _unindex(db, [key])
    db.execute("DELETE FROM chunk WHERE record = ?", (key,))
    grown = _overwrite(db, key, item.record)
    _derive(db, [key], [item])
    note_changes(db, owner, [key], grown)


def restore(db: sqlite3.Connection, owner: Owner, items: Sequence[Prepared]) -> list[int]:
    """Write records as they are, over those of the same ids, and return their keys."""
    rows = db.execute(
        "SELECT id, key FROM record WHERE owner = ? AND id IN (SELECT value FROM json_each(?))",
        (owner.id, encode_json([item.record.id for item in items])),
    )
    known: dict[str, int] = dict(rows.fetchall())
    new = [item for item in items if item.record.id not in known]
    first = owner.id << OWNER_BITS | owner.next
    take_keys(db, owner.id, usage_of(item.record for item in new))
    _write(db, owner.id, range(first, first + len(new)), new)
    old = [(known[item.record.id], item) for item in items if item.record.id in known]
    _unindex(db, [key for key, _ in old])
    db.executemany("DELETE FROM chunk WHERE record = ?", [(key,) for key, _ in old])
    grown = [_overwrite(db, key, item.record) for key, item in old]
    _derive(db, [key for key, _ in old], [item for _, item in old])
    note_changes(db, owner.id, sorted(known.values()), Usage(0, sum(more.bytes for more in grown)))
    keys = iter(range(first, first + len(new)))
    return [known[item.record.id] if item.record.id in known else next(keys) for item in items]


def overwrite_fields(db: sqlite3.Connection, owner: int, key: int, record: MemoryRecord) -> None:
    """Write a record whose searchable fields did not change."""
    note_changes(db, owner, [key], _overwrite(db, key, record))


def overwrite_columns(db: sqlite3.Connection, changed: Iterable[tuple[int, MemoryRecord]], *names: str) -> None:
    """Write records of which only these columns changed, and their digests; other indexes are not updated."""
    wanted = [NAMES.index(name) for name in (*names, "digest")]
    rows = [(*(row[at] for at in wanted), key) for key, record in changed for row in [to_row(record)]]
    columns = ", ".join(f"{NAMES[at]} = ?" for at in wanted)
    db.executemany(f"UPDATE record SET {columns} WHERE key = ?", rows)


def _overwrite(db: sqlite3.Connection, key: int, record: MemoryRecord) -> Usage:
    """Write a record over its row and keep the old text if it differs; returns the change in usage."""
    rev, text, before = db.execute(f"SELECT rev, text, {SIZE} FROM record WHERE key = ?", (key,)).fetchone()
    if text != record.text:
        revisions.keep(db, key, rev, text, record.updated_at)
    db.execute(f"UPDATE record SET {_SET} WHERE key = ?", (*to_row(record), key))
    return Usage(0, usage_of([record]).bytes - before)


def delete(db: sqlite3.Connection, scope: Scope, owner: int, found: Conditions, *, forget: bool) -> int:
    """Delete the records that satisfy the conditions."""
    rows = db.execute(f"SELECT key, source_key, id, {SIZE} FROM record WHERE {found.sql}", found.parameters).fetchall()
    if not rows:
        return 0
    keys = [row[0] for row in rows]
    meta.put(db, meta.SLACK, 1)
    if forget:
        Tombstones(db, scope).add([source for _, source, _, _ in rows if source is not None])
    _unindex(db, keys)
    ids = [(key,) for key in keys]
    db.executemany("DELETE FROM chunk WHERE record = ?", ids)
    db.executemany("DELETE FROM record WHERE key = ?", ids)
    unlinked, saved = _unlink(db, scope, owner, {id for _, _, id, _ in rows})  # noqa: A001
    note_changes(db, owner, keys + unlinked, Usage(-len(keys), -sum(row[-1] for row in rows) - saved))
    return len(keys)


def _unlink(db: sqlite3.Connection, scope: Scope, owner: int, gone: Collection[str]) -> tuple[list[int], int]:
    """Remove links to deleted records from the remaining ones; returns the changed keys and the bytes saved."""
    linked = db.execute("SELECT key, links FROM record WHERE owner = ? AND links <> '[]'", (owner,)).fetchall()
    with explaining("the links of a record"):
        keys = [key for key, links in linked if any(link.partition(":")[2] in gone for link in json.loads(links))]
    before = [(key, record_at(db, scope, key)) for key in keys]
    after = [
        (key, replace(old, links=tuple(one for one in old.links if one.id not in gone), version=old.version + 1))
        for key, old in before
    ]
    overwrite_columns(db, after, "links", "version")
    return keys, usage_of(old for _, old in before).bytes - usage_of(new for _, new in after).bytes


def record_at(db: sqlite3.Connection, scope: Scope, key: int) -> MemoryRecord:
    """The record of a key."""
    row = db.execute(f"SELECT {COLUMNS} FROM record WHERE key = ?", (key,)).fetchone()
    return to_record(row, scope.app, scope.user or "")


def by_source(db: sqlite3.Connection, scope: Scope, owner: int, source: str) -> tuple[int, MemoryRecord] | None:
    """The key and the record of a source key, if it is stored."""
    return by_sources(db, scope, owner, [source]).get(source)


def by_sources(
    db: sqlite3.Connection, scope: Scope, owner: int, sources: Sequence[str]
) -> dict[str, tuple[int, MemoryRecord]]:
    """The key and the record of each source key that is stored."""
    rows = db.execute(
        f"SELECT {COLUMNS}, source_key, key FROM record "
        "WHERE owner = ? AND source_key IN (SELECT value FROM json_each(?))",
        (owner, encode_json(sources)),
    )
    return {row[-2]: (row[-1], to_record(row, scope.app, scope.user or "")) for row in rows}


def _bring_up_to_date(
    db: sqlite3.Connection, owner: int, known: tuple[int, MemoryRecord], item: Prepared
) -> MemoryRecord:
    """Update a stored turn if its text grew or changed."""
    key, record = known
    newer = updated(record, item.record)
    if newer is record:
        return record
    if is_searched_differently(record, newer):
        rewrite(db, owner, key, item.again(newer))
    else:
        overwrite_fields(db, owner, key, newer)
    return newer


def _write(db: sqlite3.Connection, owner: int, keys: Sequence[int], items: Sequence[Prepared]) -> None:
    rows = [(key, owner, *to_row(item.record)) for key, item in zip(keys, items, strict=True)]
    try:
        insert_rows(db, _RECORD, rows)
    except sqlite3.IntegrityError as error:
        ids = [item.record.id for item in items]
        taken = next((given for given in ids if ids.count(given) > 1 or _has_id(db, owner, given, keys[0])), None)
        if taken is not None:
            said = f"there is a record of id {taken!r} already; update it, or leave the id out"
            raise DuplicateIdError(said) from error
        source = _taken_source(db, owner, [item.record.source_key for item in items], keys[0])
        if source is not None:
            raise DuplicateIdError(f"source key {source!r} belongs to another record already") from error
        raise damaged("the row of an owner") from error  # its next key is in use
    _derive(db, keys, items)


def _has_id(db: sqlite3.Connection, owner: int, id: str, before: int) -> bool:  # noqa: A002
    """Whether a record older than the key `before` has this id."""
    found = db.execute("SELECT 1 FROM record WHERE owner = ? AND id = ? AND key < ?", (owner, id, before))
    return found.fetchone() is not None


def _taken_source(db: sqlite3.Connection, owner: int, sources: Sequence[str | None], before: int) -> str | None:
    """The first source key that is repeated, or that a record older than the key `before` has."""
    given = [source for source in sources if source is not None]
    rows = db.execute(
        "SELECT source_key FROM record WHERE owner = ? AND key < ? AND source_key IN (SELECT value FROM json_each(?))",
        (owner, before, encode_json(given)),
    )
    known = {source for (source,) in rows}
    return next((source for source in given if source in known or given.count(source) > 1), None)


def _derive(db: sqlite3.Connection, keys: Sequence[int], items: Sequence[Prepared]) -> None:
    pairs = list(zip(keys, items, strict=True))
    lexical = [(key, item.features.packed, item.features.flags, item.features.words) for key, item in pairs]
    insert_rows(db, "lexical", lexical)
    embedders = {item.made_by for item in items}
    current = {made_by for made_by in embedders if made_by is None or _is_stored(db, made_by)}
    chunks: list[tuple[object, ...]] = []
    for key, item in pairs:
        vectors = item.vectors if item.made_by in current else ()
        for n, (start, stop) in enumerate(item.chunks):
            vector = (vectors[n], crc32(vectors[n])) if vectors else (None, None)
            chunks.append((key, n, start, stop, piece_digest(key, n, start, stop), *vector))
    insert_rows(db, "chunk", chunks)


def _is_stored(db: sqlite3.Connection, made_by: Fingerprint) -> bool:
    """Whether the file still stores vectors of this embedder: it may have been re-embedded in the meantime.

    Raises:
        DamagedStoreError: The fingerprint of the file is damaged.
    """
    row = db.execute(SELECT_FINGERPRINT).fetchone()
    return row == fingerprint_row(made_by) or stored_fingerprint(db) == made_by


def insert_rows(db: sqlite3.Connection, table: str, rows: Sequence[Sequence[object]]) -> None:
    """Insert rows, many in one statement.

    Each step of a statement releases the interpreter lock and has to reacquire it from threads that prepare the next
    writes; `executemany` would do so for every row.
    """
    done = 0
    for size in _STATEMENT_ROWS:
        while len(rows) - done >= size:
            values = chain.from_iterable(rows[done : done + size])
            db.execute(_insertion(table, len(rows[0]), size), tuple(values))
            done += size


@cache
def _insertion(table: str, columns: int, rows: int) -> str:
    marks = f"({', '.join('?' * columns)})"
    return f"INSERT INTO {table} VALUES {', '.join([marks] * rows)}"


def _unindex(db: sqlite3.Connection, keys: Sequence[int]) -> None:
    db.executemany("DELETE FROM lexical WHERE key = ?", [(key,) for key in keys])
