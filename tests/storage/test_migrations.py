"""Files of older formats: they open, and hold what they held."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from memory_core import Draft, Memory, run_sync
from memory_core.storage.sqlite import schema
from memory_core.storage.sqlite.schema import APPLICATION_ID, MIGRATIONS
from tests.storage.consistency import assert_consistent

KEY = 1 << 32 | 1
"""Of the first record of the first owner."""

_RECORD = {
    "key": KEY, "owner": 1, "id": "old", "text": "I drink jasmine tea", "kind": "note", "tier": "raw", "author": "Ann",
    "data": "{}", "tags": "[]", "importance": 0.5, "confidence": 1.0, "created_at": 0, "updated_at": 0,
    "occurred_at": 0, "access_count": 0, "state": "active", "rev": 1, "collection": "drinks",
}  # fmt: skip


def make_first_format(path: Path) -> None:
    """A file as the first version of the library left it, with one record."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        schema.m001_create(db)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 1")
        db.execute("INSERT INTO owner (app, user, next) VALUES ('demo', 'ann', 2)")
        marks = ", ".join("?" * len(_RECORD))
        db.execute(f"INSERT INTO record ({', '.join(_RECORD)}) VALUES ({marks})", list(_RECORD.values()))
        terms = "1 januari 1970 ann drink jasmin tea"
        db.execute("INSERT INTO lexical VALUES (?, ?, 0, 4)", (KEY, terms))
        db.execute("INSERT INTO fts (rowid, terms) VALUES (?, ?)", (KEY, terms))
        db.execute("INSERT INTO chunk VALUES (?, 0, 0, 19, NULL)", (KEY,))


def test_a_file_of_the_first_format_opens_and_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    make_first_format(path)
    with Memory(path, embedder=None) as memory:
        ann = memory.bind(app="demo", user="ann")
        run_sync(ann.add, Draft("and oolong", collection="drinks"))
        (hit,) = run_sync(ann.search, "jasmine")
        assert (hit.record.id, hit.record.collection) == ("old", "drinks")
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert_consistent(path)


def test_an_upgraded_file_keeps_no_readable_copy_of_a_text_that_is_erased(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    make_first_format(path)
    with Memory(path, embedder=None) as memory:
        assert run_sync(memory.bind(app="demo", user="ann").erase).files_clean
        assert not [file for file in tmp_path.iterdir() if b"jasmin" in file.read_bytes()]


def test_an_upgraded_file_has_the_tables_of_a_new_one(tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    make_first_format(old)
    tables: list[list[tuple[str, str]]] = []
    for path in (old, new):
        with Memory(path, embedder=None):
            pass
        with closing(sqlite3.connect(path)) as db:
            tables.append(db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall())
    assert tables[0] == tables[1]
