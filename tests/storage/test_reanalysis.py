"""Files whose texts an older version analysed: they are searched as they are, and catch up by themselves."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import Memory, run_sync
from memory_core.retrieval.analysis import ANALYSIS
from memory_core.retrieval.term_hashes import pack
from memory_core.storage.sqlite import meta, reanalysis
from tests.storage.consistency import assert_consistent

OWNERS, EACH = 3, 7


def make_older(path: Path, *said: object) -> None:
    """A file of some owners, all of whose texts were analysed to the one term "old"; `said` is what it says of that."""
    with Memory(path, embedder=None) as memory:
        for owner in range(OWNERS):
            run_sync(memory.bind(user=f"u{owner}").add_many, [f"Jasmine tea {n}" for n in range(EACH)])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert progress(db) == [ANALYSIS, None]
        db.execute("UPDATE lexical SET terms = ?", (pack(["old"]),))
        db.execute("DELETE FROM meta WHERE name = 'analysis'")
        if said:
            meta.put(db, "analysis", json.dumps(said))


def progress(db: sqlite3.Connection) -> object:
    return json.loads(db.execute("SELECT value FROM meta WHERE name = 'analysis'").fetchone()[0])


def found(memory: Memory, query: str) -> list[int]:
    return [len(run_sync(memory.bind(user=f"u{n}").search, query, limit=100)) for n in range(OWNERS)]


def test_an_older_file_is_analysed_anew_while_it_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reanalysis, "ANALYSED_AT_ONCE", 4)
    path = tmp_path / "memory.db"
    make_older(path)
    with Memory(path, embedder=None) as memory:
        until = time.monotonic() + 300
        while found(memory, "jasmine") != [EACH] * OWNERS:
            both = zip(found(memory, "old"), found(memory, "jasmine"), strict=True)
            assert all(old + new >= EACH for old, new in both)  # each is found by what it has, old or new
            assert time.monotonic() < until
        assert found(memory, "old") == [0] * OWNERS
    assert_consistent(path)


def test_it_goes_on_where_it_stopped_and_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reanalysis, "ANALYSED_AT_ONCE", 4)
    path = tmp_path / "memory.db"
    make_older(path)
    with closing(sqlite3.connect(path)) as db:
        batches = 0
        while reanalysis.renew(db):
            batches += 1
            db.commit()
            db.execute("UPDATE lexical SET terms = ? WHERE key = (SELECT min(key) FROM lexical)", (pack(["kept"]),))
        db.commit()
        assert batches == OWNERS * EACH // 4
        assert not reanalysis.is_due(db)
        held = {terms for (terms,) in db.execute("SELECT terms FROM lexical")}
    assert pack(["old"]) not in held
    assert pack(["kept"]) in held  # what was done is not looked at again


def test_what_a_newer_version_analysed_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    make_older(path, ANALYSIS + 1, None)
    with closing(sqlite3.connect(path)) as db:
        assert not reanalysis.is_due(db)
        assert not reanalysis.renew(db)
        assert progress(db) == [ANALYSIS + 1, None]
