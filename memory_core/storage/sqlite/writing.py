"""Write records and what is derived from them to the tables; called inside the writer's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final
from zlib import crc32

from memory_core.errors import DuplicateIdError
from memory_core.models import DERIVING, MemoryRecord
from memory_core.storage.shared.merging import id_is_taken
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.sqlite import revisions
from memory_core.storage.sqlite.codec import COLUMNS, NAMES, to_row
from memory_core.storage.sqlite.damage import digest, unreadable
from memory_core.storage.sqlite.meta import stored_fingerprint
from memory_core.storage.sqlite.owners import SIZE, Owner, Usage, note_changes, take_keys, usage_of
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.values.json_text import encode_json

_RECORD: Final = f"record (key, owner, {COLUMNS})"
_SET: Final = ", ".join(f"{name} = ?" for name in COLUMNS.split(", "))


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
    write_new(db, owner.id, range(first, first + len(new)), new)
    old = [(known[item.record.id], item) for item in items if item.record.id in known]
    underive(db, [key for key, _ in old])
    unlink(db, [key for key, _ in old])
    grown = [_overwrite(db, key, item.record) for key, item in old]
    derive(db, [key for key, _ in old], [item for _, item in old])
    link(db, ((key, item.record) for key, item in old))
    note_changes(db, owner.id, sorted(known.values()), Usage(0, sum(more.bytes for more in grown)))
    keys = iter(range(first, first + len(new)))
    return [known[item.record.id] if item.record.id in known else next(keys) for item in items]


def overwrite_columns(db: sqlite3.Connection, changed: Iterable[tuple[int, MemoryRecord]], *names: str) -> None:
    """Write records of which only these columns changed, and their digests; followers are not notified."""
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


def write_new(db: sqlite3.Connection, owner: int, keys: Sequence[int], items: Sequence[Prepared]) -> None:
    """Insert records at these keys, with everything derived from them.

    Raises:
        DuplicateIdError: An id or a source key is taken, or repeated among them.
        StorageError: One of the keys is in use.
    """
    rows = [(key, owner, *to_row(item.record)) for key, item in zip(keys, items, strict=True)]
    try:
        _insert(db, _RECORD, rows)
    except sqlite3.IntegrityError as error:
        ids = [item.record.id for item in items]
        taken = next((given for given in ids if ids.count(given) > 1 or _has_id(db, owner, given, keys[0])), None)
        if taken is not None:
            raise id_is_taken(taken) from error
        source = _taken_source(db, owner, [item.record.source_key for item in items], keys[0])
        if source is not None:
            raise DuplicateIdError(f"source key {source!r} belongs to another record already") from error
        raise unreadable("the row of an owner") from error  # its next key is in use
    derive(db, keys, items)
    link(db, ((key, item.record) for key, item in zip(keys, items, strict=True)))


def _has_id(db: sqlite3.Connection, owner: int, id: str, before: int) -> bool:  # noqa: A002
    """True if a record older than the key `before` has this id."""
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


def derive(db: sqlite3.Connection, keys: Sequence[int], items: Sequence[Prepared]) -> None:
    """Insert the terms and pieces of records, and their vectors if they are of the file's embedder: it may have been
    embedded again meanwhile.

    Raises:
        StorageError: There are some already, or the fingerprint of the file is damaged.
    """
    pairs = list(zip(keys, items, strict=True))
    lexical = [(key, item.features.packed, item.features.flags, item.features.words) for key, item in pairs]
    current = {None, stored_fingerprint(db)} if any(item.made_by for item in items) else {None}
    chunks: list[tuple[object, ...]] = []
    for key, item in pairs:
        vectors = item.vectors if item.made_by in current else ()
        for n, (start, stop) in enumerate(item.chunks):
            vector = (vectors[n], crc32(vectors[n])) if vectors else (None, None)
            chunks.append((key, n, start, stop, digest(key, n, start, stop), *vector))
    try:
        _insert(db, "lexical", lexical)
        _insert(db, "chunk", chunks)
    except sqlite3.IntegrityError as error:
        raise unreadable("what was derived from a record") from error


def _insert(db: sqlite3.Connection, table: str, rows: Sequence[Sequence[object]]) -> None:
    if rows:
        db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def underive(db: sqlite3.Connection, keys: Sequence[int]) -> None:
    """Delete the terms and pieces of records."""
    each = [(key,) for key in keys]
    db.executemany("DELETE FROM lexical WHERE key = ?", each)
    db.executemany("DELETE FROM chunk WHERE record = ?", each)


def link(db: sqlite3.Connection, records: Iterable[tuple[int, MemoryRecord]]) -> None:
    """Insert the links of records, by key.

    Raises:
        StorageError: There are some already.
    """
    rows = [row for key, record in records if record.links for row in linked(key, record)]
    try:
        _insert(db, "link", rows)
    except sqlite3.IntegrityError as error:
        raise unreadable("the links of a record") from error


def linked(key: int, record: MemoryRecord) -> list[tuple[int, str, int]]:
    """The rows of a record in the table `link`."""
    derives = dict.fromkeys((one.id for one in record.links), 0)
    derives |= {one.id: 1 for one in record.links if one.relation in DERIVING}
    return [(key, target, is_source) for target, is_source in derives.items()]


def unlink(db: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Delete the links of records."""
    db.executemany("DELETE FROM link WHERE record = ?", [(key,) for key in keys])
