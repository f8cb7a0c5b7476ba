"""Repair what a file derives from its records: terms, chunks, vectors, counts and the indexes of SQLite.

Records are never changed. One whose own row is damaged stays as it is: only a backup has what it said.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from memory_core.chunking import DEFAULT_CHUNKER
from memory_core.retrieval.features import features
from memory_core.storage.shared.prepared import prepare
from memory_core.storage.sqlite.codec import COLUMNS, is_whole, to_record
from memory_core.storage.sqlite.damage import has_whole_vector, lenient, piece_digest
from memory_core.storage.sqlite.files import BUSY_MS, file_problems_explained, prepare_file
from memory_core.storage.sqlite.owners import owner_names
from memory_core.storage.sqlite.usage import SIZE
from memory_core.storage.sqlite.writing import rewrite

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
    ):
        db.execute("BEGIN IMMEDIATE")
        db.execute("REINDEX")
        for statement in _WITHOUT_RECORD:
            db.execute(statement)
        faulty = list(_faulty(db))
        for owner, key, record in faulty:
            rewrite(db, owner, key, prepare(record, DEFAULT_CHUNKER))
        db.execute(_COUNT_AGAIN)
        db.execute("COMMIT")
    return len(faulty)


def _faulty(db: sqlite3.Connection) -> Iterator[tuple[int, int, Any]]:
    """Whole records with something wrong in what is derived from them."""
    for *row, owner, key in db.execute(f"SELECT {COLUMNS}, owner, key FROM record ORDER BY key").fetchall():
        app, user = owner_names(db, owner)
        if not is_whole(tuple(row), app, user):
            continue
        record = to_record(tuple(row), app, user)
        wanted = features(record)
        terms = db.execute("SELECT terms, flags, words FROM lexical WHERE key = ?", (key,)).fetchone()
        if terms != (wanted.packed, wanted.flags, wanted.words) or not _has_whole_chunks(db, key, record.text):
            yield owner, key, record


def _has_whole_chunks(db: sqlite3.Connection, key: int, text: str) -> bool:
    rows = db.execute(
        "SELECT n, start, stop, digest, vector, vector_digest FROM chunk WHERE record = ? ORDER BY n", (key,)
    ).fetchall()
    if [n for n, *_ in rows] != list(range(len(rows))) or bool(text) != bool(rows):
        return False
    return all(
        piece_digest(key, n, start, stop) == digest and has_whole_vector(vector, vector_digest)
        for n, start, stop, digest, vector, vector_digest in rows
    )
