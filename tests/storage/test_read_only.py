"""A memory that is opened for reading: everything is found, nothing is changed, in the file and beside it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_core import (
    BoundMemory,
    Draft,
    FingerprintError,
    InvalidInputError,
    Memory,
    NotAStoreError,
    Patch,
    ReadOnlyError,
    StoreUnavailableError,
    Where,
    run_sync,
)
from memory_core.storage.sqlite import schema
from tests.storage.embedders import WordEmbedder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "memory.db"
    path.parent.mkdir()
    with Memory(path, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, [Draft(f"tea number {n}", source_key=str(n)) for n in range(20)])
        gone = run_sync(ann.add, "gone already")
        run_sync(ann.update, gone.id, Patch(expires_at=datetime(2024, 1, 1, tzinfo=UTC)))
    return path


def test_a_memory_that_is_read_only_finds_everything_and_changes_nothing(store: Path) -> None:
    before = store.read_bytes()
    with Memory(store, embedder=WordEmbedder(), read_only=True) as memory:
        ann = memory.bind(user="ann")
        (hit,) = run_sync(ann.search, "tea number 7", limit=1)
        assert hit.record.text == "tea number 7"
        page = run_sync(ann.list, limit=5, touch=True)
        assert {record.access_count for record in page.records} == {0}
        assert len(run_sync(ann.history, hit.record.id)) == 1
        assert run_sync(ann.stats).records == 20
        assert run_sync(memory.operator().check) == []
        made = run_sync(memory.backup, store.parent / "copy.db")
    assert store.read_bytes() == before
    assert made.exists()


WRITES: dict[str, Callable[[Memory, BoundMemory, str], Any]] = {
    "add": lambda memory, ann, id: ann.add("x"),  # noqa: A006
    "add later": lambda memory, ann, id: ann.add("x", embed="later"),  # noqa: A006
    "add_many": lambda memory, ann, id: ann.add_many(["x", "y"]),  # noqa: A006
    "update": lambda memory, ann, id: ann.update(id, Patch(text="x")),  # noqa: A006
    "supersede": lambda memory, ann, id: ann.supersede(id, "x"),  # noqa: A006
    "delete": lambda memory, ann, id: ann.delete(id),  # noqa: A006
    "delete_where": lambda memory, ann, id: ann.delete_where(Where()),  # noqa: A006
    "put_many": lambda memory, ann, id: ann.put_many([Draft("x", source_key="1")]),  # noqa: A006
    "postpone": lambda memory, ann, id: ann.postpone({id: None}),  # noqa: A006
    "sweep": lambda memory, ann, id: ann.sweep(),  # noqa: A006
    "erase": lambda memory, ann, id: ann.erase(),  # noqa: A006
    "vacuum": lambda memory, ann, id: memory.operator().vacuum(),  # noqa: A006
    "reembed": lambda memory, ann, id: memory.reembed(WordEmbedder("others", 32)),  # noqa: A006
}


@pytest.mark.parametrize("write", WRITES)
def test_every_write_is_refused(store: Path, write: str) -> None:
    before = store.read_bytes()
    with Memory(store, embedder=WordEmbedder(), read_only=True) as memory:
        ann = memory.bind(user="ann")
        known = run_sync(ann.list, limit=1).records[0].id

        async def attempt() -> None:
            await WRITES[write](memory, ann, known)

        with pytest.raises(ReadOnlyError, match="read_only=True"):
            run_sync(attempt)
    assert store.read_bytes() == before


def test_it_follows_what_others_write(store: Path) -> None:
    with (
        Memory(store, embedder=WordEmbedder(), read_only=True) as reader,
        Memory(store, embedder=WordEmbedder()) as writer,
    ):
        run_sync(writer.bind(user="ann").add, "coffee")
        assert [hit.record.text for hit in run_sync(reader.bind(user="ann").search, "coffee")][:1] == ["coffee"]


def test_what_cannot_be_read_as_it_is_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = store.parent

    def read(path: Path, **how: Any) -> None:
        with Memory(path, read_only=True, **how):
            pass

    with pytest.raises(StoreUnavailableError, match="No such file"):
        read(folder / "missing.db")
    (folder / "empty.db").touch()
    (folder / "notes.txt").write_text("my own notes " * 100)
    for name in ("empty.db", "notes.txt"):
        with pytest.raises(NotAStoreError, match="is not a memory store"):
            read(folder / name)
    with pytest.raises(InvalidInputError, match="needs an existing file"):
        Memory(":memory:", read_only=True)
    with pytest.raises(FingerprintError, match="made by words"):
        read(store, embedder=WordEmbedder("others", 32))
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, lambda db: None))
    monkeypatch.setattr("memory_core.storage.sqlite.read_connection.MIGRATIONS", schema.MIGRATIONS)
    with pytest.raises(StoreUnavailableError, match=r"has an older format.*brings it up to date"):
        read(store, embedder=None)
    assert sorted(path.name for path in folder.iterdir() if "memory.db-" not in path.name) == [
        "empty.db",
        "memory.db",
        "notes.txt",
    ]


AS_NOBODY = """
import os, sys
from memory_core import Memory, StorageError, run_sync
from memory_core.storage.sqlite.store import SqliteStore
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
path = sys.argv[1]
memory = Memory(path, embedder=None, read_only=True)
try:
    ann = memory.bind(user="ann")
    print(len(run_sync(ann.list, limit=100).records), len(run_sync(ann.search, "tea", limit=100)))
    sys.stdout.flush()
    sys.stdin.readline()
    print(len(run_sync(ann.search, "tea", limit=100)))
except StorageError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def shown(store: Path) -> Iterator[Path]:
    """A store that others may read."""
    for parent in store.parents[:-2]:  # as root, pytest's folders are closed to others
        parent.chmod(parent.stat().st_mode | 0o011)
    store.parent.chmod(0o755)
    store.chmod(0o444)
    yield store
    store.parent.chmod(0o700)


def as_nobody(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", AS_NOBODY, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.process
@pytest.mark.parametrize("mode", [0o555, 0o777])
def test_a_file_that_nobody_may_write_is_read_and_nothing_appears_beside_it(shown: Path, mode: int) -> None:
    shown.parent.chmod(mode)
    before = shown.read_bytes()
    output, errors = as_nobody(shown).communicate("\n", timeout=300)
    assert (output, errors) == ("20 20\n20\n", "")
    assert [path.name for path in shown.parent.iterdir()] == ["memory.db"]
    assert shown.read_bytes() == before


@pytest.mark.process
def test_a_write_ahead_log_in_a_read_only_folder_is_refused(shown: Path) -> None:
    with closing(sqlite3.connect(shown)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE owner SET version = version")
        db.execute("COMMIT")
        assert shown.with_name("memory.db-wal").exists()
        shown.parent.chmod(0o555)
        output, errors = as_nobody(shown).communicate("\n", timeout=300)
        assert output.startswith("StoreUnavailableError the memory file")
        assert "write-ahead log" in output
        assert errors == ""


@pytest.mark.process
@pytest.mark.skipif(os.getuid() != 0, reason="needs a second user who may write")
def test_a_file_that_is_changed_while_it_is_read_as_unchanging_is_noticed(shown: Path) -> None:
    shown.parent.chmod(0o555)
    process = as_nobody(shown)
    assert process.stdout is not None
    assert process.stdout.readline() == "20 20\n"
    with Memory(shown, embedder=WordEmbedder()) as memory:
        run_sync(memory.bind(user="ann").add, "tea again")
        output, _ = process.communicate("\n", timeout=300)
    assert output.startswith("StoreUnavailableError")
    assert "was changed, or opened" in output
