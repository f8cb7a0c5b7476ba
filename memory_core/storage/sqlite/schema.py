"""The tables of a store file, as ordered migrations.

Every row that belongs to an owner has a key `owner << 32 | seq`, so that an owner is one contiguous range in
every table: a scan of one owner reads no pages of others.

| table | contents | purpose |
|---|---|---|
| `owner` | app, user, next seq, version | `version` grows with every change that is not an append: readers compare it |
| `record` | the memories | the source of truth; everything below is derived from it in the same transaction |
| `lexical` | hashed terms of each record | read by keyword search, see `retrieval/postings.py` |
| `revision` | earlier texts of a record | deleted with the record, by a trigger |
| `chunk` | chunks of the text with their vectors | a NULL vector is pending |
| `link` | which record has a link to which id | finds the records that were made of others |
| `hidden` | keys of records that no reader sees | deleted or left soon, see `hidden.py` |
| `outbox` | changes, in order | in-memory indexes of every process follow it |
| `tombstone` | keyed hashes of forgotten source keys | blocks re-ingestion without keeping the deleted keys |
| `meta` | named values: fingerprint, tombstone key, analysis, `lineage.py` | `slack`: an erasure is unfinished |
| `renewal` | vectors of the next embedder | exists only during a run of `reembedding.py` |

What readers rely on, each kept at one place:

- The outbox has all rows of a version or none, and the rows of a version are neighbours (`owners.note_changes`).
- An index and the rows of its owner have the same records; one that does not is stale and is loaded again
  (`searching.found`).
- A value that one statement puts together from many rows stays far below SQLite's limit (`one_value.py`).
- Only a checksum or SQLite itself says that a file is damaged (`damage.py`, `problems.py`).
- The `seq` of an owner's records stays below 2^32, since its key range ends there.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import lru_cache
from typing import Final

from memory_core.errors import NewerStoreError, NotAStoreError
from memory_core.storage.sqlite import lineage, meta
from memory_core.storage.sqlite.transactions import snapshot

logger = logging.getLogger(__name__)

APPLICATION_ID: Final = 0x4D454D43
"""`MEMC` in the file header distinguishes a store from other SQLite files."""

OWNER_BITS: Final = 32
NAME_OF_ANALYSIS: Final = "analysis"
"""In `meta`: the version of the analysis (`analysis.ANALYSIS`), and the key from which rows do not have it yet."""

RENEWAL: Final = "renewal"
"""The table that exists only for a time."""
STATEMENTS: Final = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'"
"""The statements of everything in a file that was created by one."""

Migration = Callable[[sqlite3.Connection], None]

_M001: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL, digest INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE owner (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used twice: caches of other processes go by it
    app TEXT NOT NULL,
    user TEXT NOT NULL,
    next INTEGER NOT NULL DEFAULT 1,
    version INTEGER NOT NULL DEFAULT 0,
    records INTEGER NOT NULL DEFAULT 0,     -- how many, expired ones included
    bytes INTEGER NOT NULL DEFAULT 0,       -- of what they say, see `owners.py`
    UNIQUE (app, user)
);

CREATE TABLE record (
    key INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    role TEXT,
    kind TEXT NOT NULL,
    tier TEXT NOT NULL,
    author TEXT,
    data TEXT NOT NULL,
    tags TEXT NOT NULL,
    importance REAL NOT NULL,
    confidence REAL NOT NULL,
    emotion TEXT,
    created_at INTEGER NOT NULL,            -- this and all times: microseconds since 1970 UTC
    updated_at INTEGER NOT NULL,
    accessed_at INTEGER,
    occurred_at INTEGER NOT NULL,
    access_count INTEGER NOT NULL,
    expires_at INTEGER,
    valid_from INTEGER,
    valid_to INTEGER,
    state TEXT NOT NULL,
    left INTEGER NOT NULL,
    former_state TEXT,                      -- both before another record superseded it
    former_valid_to INTEGER,
    source_key TEXT,
    rev INTEGER NOT NULL,                   -- counts texts
    version INTEGER NOT NULL,               -- counts changes of any column but those of reads
    agent TEXT,
    session TEXT,
    collection TEXT,
    links TEXT NOT NULL,
    occurred_offset INTEGER NOT NULL,       -- of `occurred_at` from UTC, in minutes
    digest INTEGER NOT NULL                 -- of the owner's names and all columns that a caller sees
);
CREATE UNIQUE INDEX record_id ON record (owner, id);
CREATE UNIQUE INDEX record_source ON record (owner, source_key) WHERE source_key IS NOT NULL;
CREATE INDEX record_time ON record (owner, occurred_at, key);
CREATE INDEX record_expiry ON record (owner, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX record_session ON record (owner, session, occurred_at, key) WHERE session IS NOT NULL;
CREATE INDEX record_collection ON record (owner, collection, key) WHERE collection IS NOT NULL;

CREATE TABLE revision (
    record INTEGER NOT NULL,
    rev INTEGER NOT NULL,
    text TEXT NOT NULL,
    until INTEGER NOT NULL,                 -- when another text took its place
    digest INTEGER NOT NULL,
    PRIMARY KEY (record, rev)
) WITHOUT ROWID;
CREATE TRIGGER record_gone AFTER DELETE ON record BEGIN
    DELETE FROM revision WHERE record = old.key;;
END;

CREATE TABLE lexical (
    key INTEGER PRIMARY KEY,
    terms BLOB NOT NULL,                    -- see `term_hashes.pack`
    flags INTEGER NOT NULL,
    words INTEGER NOT NULL
);

CREATE TABLE chunk (
    record INTEGER NOT NULL,
    n INTEGER NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    digest INTEGER NOT NULL,                -- of the columns before it
    vector BLOB,                            -- float16, unit length
    vector_digest INTEGER,
    PRIMARY KEY (record, n)
) WITHOUT ROWID;
CREATE INDEX chunk_pending ON chunk (record, n) WHERE vector IS NULL;

CREATE TABLE link (
    record INTEGER NOT NULL,
    target TEXT NOT NULL,                   -- the id of a record of the same owner, which may be gone
    derives INTEGER NOT NULL,               -- whether the record was made of the target's words (`models.DERIVING`)
    PRIMARY KEY (record, target)
) WITHOUT ROWID;
CREATE INDEX link_target ON link (target, derives);

CREATE TABLE hidden (
    key INTEGER PRIMARY KEY,
    stays INTEGER NOT NULL,                 -- whether its record stays, and follows its sources
    at INTEGER NOT NULL                     -- when it was hidden
);

CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    owner INTEGER NOT NULL,
    version INTEGER NOT NULL,
    key INTEGER NOT NULL
);
CREATE INDEX outbox_owner ON outbox (owner, version);

CREATE TABLE tombstone (digest BLOB PRIMARY KEY) WITHOUT ROWID;
"""


def m001_create(db: sqlite3.Connection) -> None:
    """Create all tables."""
    for statement in _statements(_M001):
        db.execute(statement)
    meta.put(db, meta.TOMBSTONE_KEY, secrets.token_bytes(32))


MIGRATIONS: tuple[Migration, ...] = (m001_create,)
"""The migrations in order; `user_version` of a file is the number already applied. Never edit a released one."""


def check_version(version: int) -> None:
    """Refuse a format that this code does not know."""
    if version > len(MIGRATIONS):
        raise NewerStoreError(
            f"the memory file was written by a newer version of memory-core (format {version}, this version knows "
            f"{len(MIGRATIONS)}); upgrade memory-core to open it"
        )


@lru_cache
def statements_of(steps: tuple[Migration, ...]) -> Mapping[str, str]:
    """The statements of the tables, indexes and triggers that these migrations create, by name."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        for step in steps:
            step(new)
        return dict(new.execute(STATEMENTS))


def format_of(db: sqlite3.Connection) -> int:
    """The version of a file's format, whose tables the file has; 0 for a new one.

    Indexes and triggers are left to `check`: what they hold is derived from the tables.

    Raises:
        NewerStoreError: A later version of this library wrote it.
        NotAStoreError: It has other tables than its version: a development version wrote it.
    """
    with snapshot(db):  # another process may be migrating it
        (version,) = db.execute("PRAGMA user_version").fetchone()
        found = _tables(dict(db.execute(STATEMENTS)))
    check_version(version)
    wanted = _tables(statements_of(MIGRATIONS[:version])) if version else found
    others = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if others:
        raise NotAStoreError(
            f"the memory file was written by a development version of memory-core with another format (it differs in "
            f"the table {others[0]!r}); export it with that version (`memory-core export`), and import the lines here"
        )
    return int(version)


def _tables(statements: Mapping[str, str]) -> dict[str, str]:
    return {
        name: statement
        for name, statement in statements.items()
        if statement.startswith("CREATE TABLE") and name != RENEWAL
    }


def note_analysis(db: sqlite3.Connection, following: int | None) -> None:
    """Record that terms are of this version; from the key `following` on, if given, they are older."""
    from memory_core.retrieval.analysis import ANALYSIS  # noqa: PLC0415  (20 ms, for new files only)

    meta.put(db, NAME_OF_ANALYSIS, json.dumps([ANALYSIS, following]))


def migrate(db: sqlite3.Connection) -> None:
    """Apply the missing migrations, each in its own transaction."""
    version = format_of(db)  # the header was checked before, but may be older than the write-ahead log
    for number, step in enumerate(MIGRATIONS[version:], version + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            (seen,) = db.execute("PRAGMA user_version").fetchone()
            if seen < number:  # otherwise another process did it while this one waited for the lock
                step(db)
                if version == 0:
                    note_analysis(db, None)
                lineage.stamp(db)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except BaseException:  # on any error: a migration is applied in full or not at all
            if db.in_transaction:  # SQLite has not rolled it back itself
                db.execute("ROLLBACK")
            raise
    if 0 < version < len(MIGRATIONS):
        logger.info("upgraded a memory file from format %d to %d", version, len(MIGRATIONS))


def _statements(script: str) -> list[str]:
    """Split a script into statements, because `executescript` would commit; `;;` stands for a `;` inside one."""
    parts = script.replace(";;\n", ";\0").split(";\n")
    return [part.replace("\0", "\n") for part in parts if part.strip()]
