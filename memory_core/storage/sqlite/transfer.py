"""Transfer records of a file unchanged, in and out; see `memory_core.storage.shared.transfer`."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from memory_core.models import Fingerprint, MemoryRecord, Scope
from memory_core.storage.rules.deleting import BEFORE_EVERYTHING, discard
from memory_core.storage.shared.prepared import Prepared, prepare_all, with_these_vectors
from memory_core.storage.shared.transfer import Carried, Entry, Tombstones, sources_of
from memory_core.storage.sqlite import meta, owners, revisions, writing
from memory_core.storage.sqlite.codec import COLUMNS, to_record
from memory_core.storage.sqlite.damage import damaged_record, has_whole_vector
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.owners import find, find_or_add
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.rows import SqliteRows
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import STAYING, owner_range
from memory_core.values.json_text import encode_json
from memory_core.where.where import ANY_STATE

_SEQ = (1 << OWNER_BITS) - 1


@dataclass(frozen=True, slots=True)
class SqlitePort:
    """`Copyable` over a file's connections."""

    reader: Readers
    writer: Writer
    prepare: Callable[[MemoryRecord], Prepared]
    claim: Callable[[], Awaitable[None]]
    """See `SharedFile.claim`."""
    embedder: Fingerprint | None
    """Of the embedder with which the file was opened."""

    async def owners(self) -> list[Scope]:
        return await self.reader.run(owners.owners)

    async def manifest(self, scope: Scope) -> list[Entry]:
        return await self.reader.run(lambda db: _manifest(db, scope), of=[scope])

    async def take(self, scope: Scope, ids: Collection[str]) -> list[Carried]:
        return await self.reader.run(lambda db: _take(db, scope, ids), of=[scope])

    async def restore(self, scope: Scope, items: Sequence[Carried], *, remove: Collection[str] = ()) -> None:
        await self.claim()
        prepared = await prepare_all(self.prepare, [item.record for item in items])
        made_by = await self.fingerprint() if any(item.vectors for item in items) else None
        batch = [
            (item, with_these_vectors(made, item.vectors, made_by)) for item, made in zip(items, prepared, strict=True)
        ]
        await self.writer.write(lambda db: _restore(db, scope, batch, remove))

    async def next_seq(self, scope: Scope) -> int:
        """The seq of the owner's next record."""
        return await self.reader.run(lambda db: _next_seq(db, scope), of=[scope])

    async def take_at(self, scope: Scope, seqs: Collection[int], most_bytes: int) -> list[Carried]:
        """The records at these seqs, in order of arrival, until they have so many bytes; deleted ones are left out."""
        return await self.reader.run(lambda db: _take_at(db, scope, seqs, most_bytes), of=[scope])

    async def fingerprint(self) -> Fingerprint | None:
        """The fingerprint of its vectors, or of those that it will have."""
        return await self.reader.run(meta.stored_fingerprint) or self.embedder

    async def tombstones(self) -> Tombstones:
        return await self.reader.run(_tombstones)

    async def adopt(self, tombstones: Tombstones) -> None:
        await self.writer.write(lambda db: _adopt(db, tombstones))


def read(db: sqlite3.Connection, scope: Scope, rows: str, parameters: Sequence[object]) -> Iterator[Carried]:
    """The records that satisfy an SQL condition on `record`, in order of arrival, without vectors."""
    chosen = f"FROM record WHERE {rows} AND {STAYING}"
    staying = {key for (key,) in db.execute("SELECT key FROM hidden WHERE stays")}  # what follows its sources soon
    for row in db.execute(f"SELECT {COLUMNS}, key {chosen} ORDER BY key", parameters):
        record = to_record(row, scope.app, scope.user or "")
        if row[-1] in staying:
            record = replace(record, left=True)
        yield Carried(record, row[-1] & _SEQ, revisions.of(db, row[-1], record.id))


def with_vectors(db: sqlite3.Connection, owner: int, items: Sequence[Carried]) -> list[Carried]:
    """Add the vectors of records that have none pending."""
    found: list[Carried] = []
    for item in items:
        key = owner << OWNER_BITS | item.seq
        rows = db.execute("SELECT vector, vector_digest FROM chunk WHERE record = ? ORDER BY n", (key,)).fetchall()
        if any(not has_whole_vector(*row) for row in rows):
            raise damaged_record(item.record.id)
        vectors = tuple(vector for vector, _ in rows)
        found.append(item if None in vectors else replace(item, vectors=vectors))
    return found


def _next_seq(db: sqlite3.Connection, scope: Scope) -> int:
    owner = find(db, scope)
    return 0 if owner is None else owner.next


def _take_at(db: sqlite3.Connection, scope: Scope, seqs: Collection[int], most_bytes: int) -> list[Carried]:
    with snapshot(db):
        owner = find(db, scope)
        if owner is None:
            return []
        keys = encode_json([owner.id << OWNER_BITS | seq for seq in seqs])
        found, size = list[Carried](), 0
        for item in read(db, scope, "key IN (SELECT value FROM json_each(?))", (keys,)):
            (whole,) = with_vectors(db, owner.id, [item])
            found.append(whole)
            size += whole.size
            if size >= most_bytes:
                break
        return found


def _manifest(db: sqlite3.Connection, scope: Scope) -> list[Entry]:
    with snapshot(db):
        owner = find(db, scope)
        if owner is None:
            return []
        here = owner_range(owner.id)
        whole = db.execute(
            "SELECT record FROM chunk WHERE record BETWEEN ? AND ? GROUP BY record HAVING count(vector) = count(*)",
            here,
        )
        done = {key & _SEQ for (key,) in whole}
        return [
            Entry(item.record.id, item.seq, item.digest(), item.seq in done, sources_of(item.record))
            for item in read(db, scope, "key BETWEEN ? AND ?", here)
        ]


def _take(db: sqlite3.Connection, scope: Scope, ids: Collection[str]) -> list[Carried]:
    with snapshot(db):
        owner = find(db, scope)
        if owner is None:
            return []
        rows = "owner = ? AND id IN (SELECT value FROM json_each(?))"
        return with_vectors(db, owner.id, list(read(db, scope, rows, (owner.id, encode_json(list(ids))))))


def _restore(
    db: sqlite3.Connection, scope: Scope, batch: Sequence[tuple[Carried, Prepared]], remove: Collection[str]
) -> None:
    owner = find_or_add(db, scope)
    rows = SqliteRows(db, scope, owner)
    if owner.hides and batch:
        records = [item.record for _, item in batch]
        rows.make_room(records, records[0].updated_at)
    if remove:
        gone = rows.matching(scope, replace(ANY_STATE, ids=tuple(remove)), BEFORE_EVERYTHING)
        discard(rows, gone, forget=None)
    keys = writing.restore(db, owner, [item for _, item in batch])
    for key, (item, _) in zip(keys, batch, strict=True):
        revisions.replace(db, key, item.revisions)


def _tombstones(db: sqlite3.Connection) -> Tombstones:
    with snapshot(db):
        return Tombstones(
            meta.tombstone_key(db), frozenset(digest for (digest,) in db.execute("SELECT digest FROM tombstone"))
        )


def _adopt(db: sqlite3.Connection, tombstones: Tombstones) -> None:
    meta.put(db, meta.TOMBSTONE_KEY, tombstones.secret)
    db.executemany("INSERT OR IGNORE INTO tombstone VALUES (?)", [(digest,) for digest in tombstones.digests])
