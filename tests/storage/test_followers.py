"""Followers of the changes of a file are never wrong about it, and never call an intact file damaged."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import (
    BoundMemory,
    DamagedStoreError,
    Draft,
    Memory,
    StorageError,
    StoreUnavailableError,
    Where,
    run_sync,
)
from memory_core.models import Mode
from memory_core.storage.sqlite import owners
from memory_core.storage.sqlite.problems import file_problems_explained
from tests.storage.embedders import WordEmbedder

LATER = datetime(2040, 1, 1, tzinfo=UTC)


def texts(handle: BoundMemory) -> set[str]:
    """The texts that a search finds."""
    return {hit.record.text for hit in run_sync(handle.search, "note", limit=1_000, floor=False)}


def change_all(handle: BoundMemory, days: int) -> None:
    """Change every record of an owner in one transaction."""
    ids = [record.id for record in run_sync(handle.list, limit=1_000).records]
    run_sync(handle.postpone, dict.fromkeys(ids, LATER + timedelta(days=days)))


KEPT, CHANGED = 20, 8


@pytest.mark.parametrize("later", range(KEPT - CHANGED - 1, KEPT + 2))
def test_a_list_of_changes_that_is_trimmed_at_any_row_hides_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    """The list is trimmed after `later` more changes of somebody else, and so at each row of one change of many."""
    monkeypatch.setattr(owners, "OUTBOX_KEPT", KEPT)
    now = [datetime(2030, 1, 1, tzinfo=UTC)]
    with Memory(tmp_path / "memory.db", embedder=None, clock=lambda: now[0]) as memory:
        ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
        run_sync(ann.add_many, [f"note {n}" for n in range(CHANGED)])
        run_sync(bob.add, "a note that changes often")
        for days in range(2 * KEPT - CHANGED - later + 2):
            change_all(bob, days)
        assert len(texts(ann)) == CHANGED  # her index is in memory from now on
        change_all(ann, 1)  # they expire, one day after `LATER`
        for days in range(later):
            change_all(bob, 100 + days)
        now[0] = LATER + timedelta(days=2)
        assert texts(ann) == set()


steps = st.lists(
    st.tuples(st.sampled_from(["ann", "bob"]), st.sampled_from(["add", "change", "delete", "search"])), max_size=40
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps, st.integers(1, 12))
def test_the_list_of_changes_has_all_rows_of_a_change_or_none(
    tmp_path_factory: pytest.TempPathFactory, taken: list[tuple[str, str]], kept: int
) -> None:
    path, before = tmp_path_factory.mktemp("kept") / "memory.db", owners.OUTBOX_KEPT
    owners.OUTBOX_KEPT = kept  # type: ignore[misc]  # a smaller list than anybody has
    try:
        with Memory(path, embedder=None) as memory, closing(sqlite3.connect(path)) as db:
            made = Counter[tuple[int, int]]()
            for number, (user, step) in enumerate(taken):
                handle = memory.bind(user=user)
                if step == "add":
                    run_sync(handle.add_many, [f"note {number} of {n}" for n in range(3)])
                elif step == "change":
                    change_all(handle, number)
                elif step == "delete":
                    some = [record.id for record in run_sync(handle.list, limit=2).records]
                    run_sync(handle.delete_where, Where(ids=some or ["nothing"]))
                assert texts(handle) == {record.text for record in run_sync(handle.list, limit=1_000).records}
                there = Counter[tuple[int, int]](db.execute("SELECT owner, version FROM outbox").fetchall())
                made |= there
                assert all(made[change] == count for change, count in there.items())
    finally:
        owners.OUTBOX_KEPT = before  # type: ignore[misc]


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "vector"])
def test_an_index_that_names_a_record_the_file_lacks_is_loaded_again(tmp_path: Path, mode: Mode) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, [Draft(f"note {n}", importance=n / 10) for n in range(5)])
        run_sync(ann.search, "note")
        with closing(sqlite3.connect(path)) as db, db:  # a change that nobody is told of
            db.execute("DELETE FROM lexical WHERE key IN (SELECT key FROM record WHERE text = 'note 3')")
            db.execute("DELETE FROM chunk WHERE record IN (SELECT key FROM record WHERE text = 'note 3')")
            db.execute("DELETE FROM record WHERE text = 'note 3'")
        hits = run_sync(ann.search, "note", mode=mode, limit=10, floor=False)
        assert {hit.record.text for hit in hits} == {"note 0", "note 1", "note 2", "note 4"}


@pytest.mark.parametrize(
    ("importance", "where"),
    [(0.5, Where()), (0.0, Where(kinds=["note"])), (0.5, Where(kinds=["note"]))],
)
def test_an_index_that_lacks_a_record_of_the_file_is_loaded_again(
    tmp_path: Path, importance: float, where: Where
) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        ann = memory.bind(user="ann")
        gone = [run_sync(ann.add, Draft(f"note {n}", importance=n / 10)) for n in range(5)][3]
        with closing(sqlite3.connect(path)) as db, db:
            (key,) = db.execute("SELECT key FROM record WHERE id = ?", (gone.id,)).fetchone()
            rows = {
                table: db.execute(f"SELECT * FROM {table} WHERE {column} = ?", (key,)).fetchall()
                for table, column in (("record", "key"), ("lexical", "key"), ("chunk", "record"))
            }
        run_sync(ann.delete, gone.id)
        assert texts(ann) == {"note 0", "note 1", "note 2", "note 4"}
        with closing(sqlite3.connect(path)) as db, db:  # a change that nobody is told of
            for table, found in rows.items():
                for row in found:
                    db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        hits = run_sync(ann.search, "note", importance=importance, where=where, limit=10, floor=False)
        assert {hit.record.text for hit in hits} == {f"note {n}" for n in range(5)}


LONGEST = 100_000
"""SQLite's limit for a value, lowered so that a few thousandths of the texts reach it."""


class Boasting(sqlite3.Connection):
    """A connection that names four times the limit that it has: only values below a quarter of that are possible."""

    def getlimit(self, category: int, /) -> int:
        return 4 * super().getlimit(category)


@pytest.fixture
def short_values(monkeypatch: pytest.MonkeyPatch) -> None:
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def limited(*given: object, **named: object) -> sqlite3.Connection:
        db = connect(*given, factory=Boasting, **named)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        return db

    monkeypatch.setattr(sqlite3, "connect", limited)


def stored(user: str) -> list[Draft]:
    """Memories whose terms, names or vectors are longer in sum than one value may be, each a small part of it."""
    if user == "volumes":
        return [Draft(f"volume {n} " + " ".join(f"word{n}x{word}" for word in range(800))) for n in range(100)]
    if user == "names":
        return [Draft(f"note {n}", author="\x01" * 512, session="ü" * 512, kind="message") for n in range(400)]
    return [Draft("\f".join(f"piece {piece} of {n}" for piece in range(40))) for n in range(100)]


@pytest.mark.usefixtures("short_values")
@pytest.mark.parametrize("user", ["volumes", "names", "pieces"])
def test_the_values_of_an_owners_index_stay_below_a_quarter_of_the_longest(tmp_path: Path, user: str) -> None:
    path, drafts = tmp_path / "memory.db", stored(user)
    with Memory(path, embedder=WordEmbedder()) as memory:
        run_sync(memory.bind(user=user).add_many, drafts)
    with Memory(path, embedder=WordEmbedder()) as memory:  # loads the index as a whole
        word = drafts[0].text.split()[0]
        assert len(run_sync(memory.bind(user=user).search, word, limit=1_000, floor=False)) == len(drafts)


def explained(cause: Callable[[sqlite3.Connection], object], path: Path) -> StorageError:
    with closing(sqlite3.connect(path)) as db:
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000)
        with pytest.raises(StorageError) as caught, file_problems_explained("the store"):
            cause(db)
    return caught.value


def test_only_what_sqlite_calls_damage_is_called_damage(tmp_path: Path) -> None:
    other, torn = tmp_path / "other.db", tmp_path / "torn.db"
    other.write_bytes(b"no database at all " * 100)
    with closing(sqlite3.connect(torn)) as db, db:
        db.execute("CREATE TABLE t (value)")
        db.executemany("INSERT INTO t VALUES (?)", [("x" * 900,) for _ in range(100)])
    content = torn.read_bytes()
    torn.write_bytes(content[:4_096] + b"\xff" * 4_096 + content[8_192:])
    for path in (other, torn):
        assert isinstance(explained(lambda db: db.execute("SELECT * FROM t").fetchall(), path), DamagedStoreError)
    for cause in (
        lambda db: db.execute("SELECT zeroblob(2000)").fetchall(),
        lambda db: db.execute("SELECT * FROM nowhere"),
        lambda db: db.execute("SELECT ?", ()),
        lambda db: (db.close(), db.execute("SELECT 1")),
    ):
        error = explained(cause, tmp_path / "new.db")
        assert isinstance(error, StoreUnavailableError)
        assert not {"damaged", "backup"} & set(str(error).split())
