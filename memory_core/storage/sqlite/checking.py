"""Check that a file is intact: its pages, tables and rows, and what is derived from the records; repair the latter.

Each finding says whether it is damage (`damage.py`). Records are never changed. One whose own row is damaged stays as
it is: only a backup has what it said.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

from memory_core.chunking import Span
from memory_core.errors import DamagedStoreError, MemoryCoreError
from memory_core.models import Finding, MemoryRecord
from memory_core.retrieval.analysis import ANALYSIS
from memory_core.retrieval.features import features
from memory_core.storage.shared.prepared import Prepared, prepare
from memory_core.storage.sqlite import meta, revisions
from memory_core.storage.sqlite.codec import COLUMNS, is_whole, to_record
from memory_core.storage.sqlite.connection import BUSY_MS
from memory_core.storage.sqlite.damage import digest, has_whole_vector
from memory_core.storage.sqlite.files import prepare_file
from memory_core.storage.sqlite.meta import stored_fingerprint
from memory_core.storage.sqlite.owners import SIZE, note_changes, owner_names
from memory_core.storage.sqlite.problems import file_problems_explained, lenient, proves_damage
from memory_core.storage.sqlite.reanalysis import progress
from memory_core.storage.sqlite.schema import MIGRATIONS, STATEMENTS, statements_of
from memory_core.storage.sqlite.transactions import transaction
from memory_core.storage.sqlite.writing import derive, link, linked, underive

MAX_FINDINGS: Final = 20
"""Most findings reported of one kind, since a file may be damaged throughout."""

_COUNTED: Final = {
    "records that no search by words can find": (
        "SELECT count(*) FROM record WHERE key NOT IN (SELECT key FROM lexical)"
    ),
    "analysed texts without a record": "SELECT count(*) FROM lexical WHERE key NOT IN (SELECT key FROM record)",
    "chunks without a record": "SELECT count(*) FROM chunk WHERE record NOT IN (SELECT key FROM record)",
    "texts with a missing chunk": (
        "SELECT count(*) FROM (SELECT 1 FROM chunk GROUP BY record HAVING min(n) <> 0 OR max(n) + 1 <> count(*))"
    ),
    "links without a record": "SELECT count(*) FROM link WHERE record NOT IN (SELECT key FROM record)",
    "earlier texts without a record": "SELECT count(*) FROM revision WHERE record NOT IN (SELECT key FROM record)",
    "texts without chunks": "SELECT count(*) FROM record WHERE text <> '' AND key NOT IN (SELECT record FROM chunk)",
    "records without an owner": "SELECT count(*) FROM record WHERE owner NOT IN (SELECT id FROM owner)",
    "records in the key range of another owner": "SELECT count(*) FROM record WHERE key >> 32 <> owner",
    "records with a key beyond their owner's counter": (
        "SELECT count(*) FROM record JOIN owner ON owner.id = record.owner WHERE key & 0xffffffff >= next"
    ),
    "owners whose records or bytes are counted wrongly": (
        "SELECT count(*) FROM owner LEFT JOIN "
        f"(SELECT owner, count(*) AS found, sum({SIZE}) AS size FROM record GROUP BY owner) AS counted "
        "ON counted.owner = owner.id WHERE (records, bytes) IS NOT (coalesce(found, 0), coalesce(size, 0))"
    ),
}
"""Rows that must not exist, and the query that counts them."""

_OF_VALUES: Final = re.compile(r"CHECK constraint failed in |[\w-]+ value in ")
"""The beginning of what SQLite's integrity check says about a value that the table does not allow. It says nothing
about pages."""

Findings = Iterator[Finding]


def check(db: sqlite3.Connection) -> list[Finding]:
    """Find what is wrong with a file; reads all of it and does not raise on damage."""
    with lenient(db):
        return [finding for one_check in _CHECKS for finding in _findings(db, one_check)]


def _findings(db: sqlite3.Connection, one_check: Callable[[sqlite3.Connection], Findings]) -> Findings:
    """The findings of one check; a check that cannot be completed is a finding, too."""
    found = 0
    try:
        for finding in islice(one_check(db), MAX_FINDINGS):
            found += 1
            yield finding
    except (sqlite3.Error, MemoryCoreError, TypeError, ValueError, LookupError, OverflowError, AttributeError) as error:
        # Damaged values can have any type and cause any error, so all are reported alike.
        why = " ".join(str(error).split())
        said = f"the {_CHECKS[one_check]} cannot be read to the end ({type(error).__name__}: {why:.200})"
        yield Finding(said, is_damage=isinstance(error, DamagedStoreError) or proves_damage(error))
    if found == MAX_FINDINGS:
        yield Finding(f"there may be more that is wrong with the {_CHECKS[one_check]}")


def _not_as_written(what: str) -> Finding:
    """The finding of a checksum that does not fit."""
    return Finding(f"{what} is not as it was written", is_damage=True)


def _pages(db: sqlite3.Connection) -> Findings:
    for (finding,) in db.execute(f"PRAGMA integrity_check({MAX_FINDINGS})"):
        if finding != "ok":
            said = " ".join(str(finding).split())
            yield Finding(f"SQLite's integrity check says: {said}", is_damage=_OF_VALUES.match(said) is None)


def _tables(db: sqlite3.Connection) -> Findings:
    found: dict[str, str] = dict(db.execute(STATEMENTS))
    for name, statement in statements_of(MIGRATIONS).items():
        if found.get(name) != statement:
            yield Finding(f"the table, index or trigger {name!r} is missing or differs from this format")


def _facts(db: sqlite3.Connection) -> Findings:
    for name, value, stored in db.execute("SELECT name, value, digest FROM meta"):
        if digest(name, value) != stored:
            yield _not_as_written(f"the entry {name!a} of the table `meta`")
    meta.tombstone_key(db)


def _counts(db: sqlite3.Connection) -> Findings:
    for what, query in _COUNTED.items():
        (count,) = db.execute(query).fetchone()
        if count:
            yield Finding(f"there are {count} {what}")


def _records(db: sqlite3.Connection) -> Findings:
    for owner, key, row in _rows(db):
        if not is_whole(row, *owner):
            yield _not_as_written(f"the record {row[0]!a:.200} of {owner[0]!a}/{owner[1]!a} (key {key})")


def _rows(db: sqlite3.Connection) -> Iterator[tuple[tuple[str, str], int, tuple[Any, ...]]]:
    """Every record's row, with its owner's names and its key."""
    number, owner = None, ("", "")
    for *row, of, key in db.execute(f"SELECT {COLUMNS}, owner, key FROM record ORDER BY key"):
        if of != number:
            number, owner = of, owner_names(db, of)
        yield owner, key, tuple(row)


def _whole_records(db: sqlite3.Connection) -> Iterator[tuple[int, MemoryRecord]]:
    return ((key, to_record(row, *owner)) for owner, key, row in _rows(db) if is_whole(row, *owner))


def _revisions(db: sqlite3.Connection) -> Findings:
    for key, *row in db.execute("SELECT record, rev, text, until, digest FROM revision"):
        if not revisions.is_whole(key, tuple(row)):
            yield _not_as_written(f"an earlier text of the record with the key {key!a}")


def _pieces(db: sqlite3.Connection) -> Findings:
    for key, n, start, stop, stored in db.execute("SELECT record, n, start, stop, digest FROM chunk"):
        if digest(key, n, start, stop) != stored:
            yield _not_as_written(f"the position of chunk {n!a} of the record with the key {key!a}")


def _vectors(db: sqlite3.Connection) -> Findings:
    for key, n, vector, stored in db.execute("SELECT record, n, vector, vector_digest FROM chunk"):
        if not has_whole_vector(vector, stored):
            yield _not_as_written(f"the vector of chunk {n!a} of the record with the key {key!a}")
    fingerprint = stored_fingerprint(db)
    if fingerprint is not None:
        stored = 2 * fingerprint.dimensions  # float16
        (count,) = db.execute("SELECT count(*) FROM chunk WHERE length(vector) <> ?", (stored,)).fetchone()
        if count:
            yield Finding(f"there are {count} vectors with another number of dimensions than the embedder's")


def _words(db: sqlite3.Connection) -> Findings:
    if progress(db) != (ANALYSIS, None):
        return  # another version analysed them
    for key, record in _whole_records(db):
        wanted = features(record)
        filed = db.execute("SELECT terms, flags, words FROM lexical WHERE key = ?", (key,)).fetchone()
        if filed not in {None, (wanted.packed, wanted.flags, wanted.words)}:
            yield Finding(f"the search terms of the record {record.id!r} do not match its text")


def _links(db: sqlite3.Connection) -> Findings:
    for key, record in _whole_records(db):
        if record.links and sorted(_filed_links(db, key)) != sorted(linked(key, record)):
            yield Finding(f"the links of the record {record.id!r} are filed differently")


def _filed_links(db: sqlite3.Connection, key: int) -> list[tuple[int, str, int]]:
    return db.execute("SELECT record, target, derives FROM link WHERE record = ?", (key,)).fetchall()


_CHECKS: Final[dict[Callable[[sqlite3.Connection], Findings], str]] = {
    _pages: "pages",
    _tables: "tables",
    _facts: "facts about the file",
    _records: "records",
    _revisions: "earlier texts",
    _pieces: "chunks",
    _vectors: "vectors",
    _words: "words",
    _links: "links",
    _counts: "counts of rows",
}
"""The checks, each with the name of what it reads."""


_WITHOUT_RECORD: Final = (
    "DELETE FROM lexical WHERE key NOT IN (SELECT key FROM record)",
    "DELETE FROM chunk WHERE record NOT IN (SELECT key FROM record)",
    "DELETE FROM revision WHERE record NOT IN (SELECT key FROM record)",
)
_COUNT_AGAIN: Final = (
    "UPDATE owner SET records = (SELECT count(*) FROM record WHERE record.owner = owner.id), "
    f"bytes = (SELECT coalesce(sum({SIZE}), 0) FROM record WHERE record.owner = owner.id)"
)


def repair(path: Path) -> int:
    """Derive again what does not fit its record; returns for how many records. Their vectors are pending then.

    Raises:
        StorageError: The file cannot be used, or is damaged beyond what is derived.
    """
    real = prepare_file(path)
    with (
        file_problems_explained(f"the memory file {real!r}"),
        closing(sqlite3.connect(real, isolation_level=None, timeout=BUSY_MS / 1000)) as db,
        lenient(db),
        transaction(db, alters_schema=True),
    ):
        db.execute("REINDEX")
        for statement in _WITHOUT_RECORD:
            db.execute(statement)
        faulty = list(_faulty(db))
        for owner, key, made in faulty:
            underive(db, [key])
            derive(db, [key], [made])
            note_changes(db, owner, [key])
        db.execute("DELETE FROM link")
        link(db, _whole_records(db))
        db.execute(_COUNT_AGAIN)
    return len(faulty)


def _faulty(db: sqlite3.Connection) -> Iterator[tuple[int, int, Prepared]]:
    """Whole records with something wrong in what is derived from them, derived again. A text stays in the pieces that
    it was written in; if they are not known, it is split as by default."""
    for *row, owner, key in db.execute(f"SELECT {COLUMNS}, owner, key FROM record ORDER BY key").fetchall():
        app, user = owner_names(db, owner)
        if not is_whole(tuple(row), app, user):
            continue
        record = to_record(tuple(row), app, user)
        wanted = features(record)
        terms = db.execute("SELECT terms, flags, words FROM lexical WHERE key = ?", (key,)).fetchone()
        chunks = _whole_chunks(db, key, record.text)
        if chunks is None:
            yield owner, key, prepare(record)
        elif terms != (wanted.packed, wanted.flags, wanted.words) or not _has_whole_vectors(db, key):
            yield owner, key, prepare(record)._replace(chunks=chunks)


def _whole_chunks(db: sqlite3.Connection, key: int, text: str) -> list[Span] | None:
    rows = db.execute("SELECT n, start, stop, digest FROM chunk WHERE record = ? ORDER BY n", (key,)).fetchall()
    if [n for n, *_ in rows] != list(range(len(rows))) or bool(text) != bool(rows):
        return None
    is_written = all(digest(key, n, start, stop) == stored for n, start, stop, stored in rows)
    return [(start, stop) for _, start, stop, _ in rows] if is_written else None


def _has_whole_vectors(db: sqlite3.Connection, key: int) -> bool:
    return all(
        has_whole_vector(vector, stored)
        for vector, stored in db.execute("SELECT vector, vector_digest FROM chunk WHERE record = ?", (key,))
    )
