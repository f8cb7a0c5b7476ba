"""The upkeep of a file beside reading and writing: it is checked, tidied in pauses, and kept small."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import DamagedStoreError, Draft, Memory, run_sync
from memory_core.storage.sqlite import group_commit
from tests.storage.embedders import WordEmbedder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, [Draft(f"tea number {number}", session="s", author="Ann") for number in range(20)])
    return path


_NO_VERSION = """
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'version INTEGER NOT NULL', 'version INTEGER') WHERE name = 'owner';
PRAGMA writable_schema = RESET;
UPDATE owner SET version = NULL;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'version INTEGER', 'version INTEGER NOT NULL') WHERE name = 'owner';
PRAGMA writable_schema = RESET;
"""
_WITHOUT_ITS_INDEX = """
CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'record_time';
PRAGMA writable_schema = ON;
DELETE FROM sqlite_schema WHERE name = 'record_time';
PRAGMA writable_schema = RESET;
DELETE FROM record WHERE key & 15 = 3;
PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema SELECT * FROM kept;
PRAGMA writable_schema = RESET;
"""


@pytest.mark.parametrize(
    ("change", "problem", "is_damage"),
    [
        ("DELETE FROM lexical WHERE key & 15 = 3", "2 records that no search by words can find", False),
        ("DELETE FROM chunk WHERE record & 15 = 3", "2 texts without chunks", False),
        ("UPDATE chunk SET vector = x'00' WHERE record & 15 = 3", "2 vectors with another number of dimensions", False),
        ("UPDATE lexical SET terms = x'00000000' WHERE key & 15 = 3", "do not match its text", False),
        ("UPDATE record SET text = 'coffee' WHERE key & 15 = 3", "of 'default'/'ann'", True),
        ("UPDATE owner SET next = 5", "16 records with a key beyond their owner's counter", False),
        ("UPDATE owner SET bytes = 5", "1 owners whose records or bytes are counted wrongly", False),
        (_NO_VERSION, "NULL value in owner.version", False),
        (_WITHOUT_ITS_INDEX, "wrong # of entries in index record_time", True),
        ("UPDATE owner SET app = 'b'", "is not as it was written", True),
        ("UPDATE chunk SET start = 1 WHERE record & 15 = 3", "is not as it was written", True),
        ("UPDATE meta SET value = 'x' WHERE name = 'fingerprint'", "the entry 'fingerprint' of the table", True),
        ("UPDATE meta SET digest = 1 WHERE name = 'tombstone_key'", "facts about the file cannot be read", True),
        ("DELETE FROM meta WHERE name = 'tombstone_key'", "facts about the file cannot be read", False),
        ("DROP INDEX record_time", "'record_time' is missing or differs from this format", False),
        ("DELETE FROM owner", "20 records without an owner", False),
    ],
)
def test_a_check_tells_what_does_not_agree_and_whether_it_is_damage(
    store: Path, change: str, problem: str, *, is_damage: bool
) -> None:
    with Memory(store, embedder=None) as memory:
        assert run_sync(memory.operator().check) == []
    with closing(sqlite3.connect(store)) as db, db:
        db.executescript(change)
    with Memory(store, embedder=None) as memory:
        findings = run_sync(memory.operator().check)
    assert [each.is_damage for each in findings if problem in each.problem][:1] == [is_damage], findings


@pytest.mark.parametrize("damage", ["digest = digest + 1", "value = '{}'"])
def test_a_write_notices_that_the_fingerprint_is_damaged(store: Path, damage: str) -> None:
    with Memory(store, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add, "tea number 20")
        with closing(sqlite3.connect(store)) as db, db:
            db.execute(f"UPDATE meta SET {damage} WHERE name = 'fingerprint'")
        with pytest.raises(DamagedStoreError, match="the entry 'fingerprint' of the table `meta`"):
            run_sync(ann.add, "tea number 21")
        assert run_sync(ann.stats).records == 21


def test_a_pause_after_writes_is_used_to_tidy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "IDLE_SECONDS", 0.01)
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory, closing(sqlite3.connect(path)) as reader:
        ann = memory.bind(user="ann")
        for number in range(50):
            run_sync(ann.add, Draft(f"tea number {number}", collection=f"shelf {number % 5}"))
        deadline = time.monotonic() + 300
        counted = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'"
        while reader.execute(counted).fetchone() == (0,):
            assert time.monotonic() < deadline, "nobody tidied"
            time.sleep(0.01)
        run_sync(ann.add, "and one more")  # the writer goes on
        assert run_sync(ann.stats).records == 51
