"""Files of an older format are brought up to date when they are opened, and keep what they hold."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import Memory, run_sync
from memory_core.errors import StoreUnavailableError
from memory_core.storage.sqlite import schema
from tests.storage.consistency import assert_consistent


def add_a_column(db: sqlite3.Connection) -> None:
    """A made-up next format."""
    db.execute("ALTER TABLE record ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'")


def fail_halfway(db: sqlite3.Connection) -> None:
    add_a_column(db)
    raise sqlite3.OperationalError("no space left")


def remember(path: Path) -> None:
    with Memory(path, embedder=None) as memory:
        run_sync(memory.bind(app="demo", user="ann").add, "I drink jasmine tea")


def texts(path: Path) -> list[str]:
    with Memory(path, embedder=None) as memory:
        return [hit.record.text for hit in run_sync(memory.bind(app="demo", user="ann").search, "jasmine")]


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        return int(version)


def test_an_older_file_gets_the_steps_it_lacks_and_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.db"
    remember(path)
    before = version_of(path)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, add_a_column))
    assert texts(path) == ["I drink jasmine tea"]
    assert version_of(path) == before + 1
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT mood FROM record").fetchall() == [("calm",)]
    assert_consistent(path)


def test_an_upgraded_file_has_the_tables_of_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    remember(old)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, add_a_column))
    tables: list[list[tuple[str, str]]] = []
    for path in (old, new):
        texts(path)
        with closing(sqlite3.connect(path)) as db:
            tables.append(db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall())
    assert tables[0] == tables[1]


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.db"
    remember(path)
    before = version_of(path)
    with monkeypatch.context() as context:
        context.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, fail_halfway))
        with pytest.raises(StoreUnavailableError, match="no space left"):
            texts(path)
    assert version_of(path) == before
    assert texts(path) == ["I drink jasmine tea"]
