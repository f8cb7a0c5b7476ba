"""The file of a store: who may read it, and what happens to one that is not ours, not whole, or not usable."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from memory_core import (
    FingerprintError,
    InvalidInputError,
    Memory,
    MiniLmEmbedder,
    NewerStoreError,
    NotAStoreError,
    StorageError,
    StoreUnavailableError,
    run_sync,
)
from memory_core.storage.sqlite.connection import set_up
from memory_core.storage.sqlite.files import prepare_file
from tests.storage.consistency import assert_consistent
from tests.storage.embedders import WordEmbedder


def open_and_use(path: Path | str) -> None:
    """Open, add, search and close; whichever fails first."""
    with Memory(path, embedder=None) as memory:
        handle = memory.bind(user="ann")
        run_sync(handle.add, "tea")
        run_sync(handle.search, "tea")
        run_sync(handle.list)
        run_sync(handle.erase)


def snapshot(folder: Path) -> dict[str, bytes]:
    """The bytes of every file, without the empty or rebuildable ones that SQLite leaves beside a database."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A closed store with a few hundred records."""
    path = tmp_path / "memory.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        handle = memory.bind(user="ann")
        run_sync(handle.add_many, [f"Ann drank tea number {number} {'and more ' * 20}" for number in range(300)])
    return path


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "memory.db"
    path.parent.mkdir()
    old = os.umask(0)
    try:
        with Memory(path, embedder=None) as memory:
            run_sync(memory.bind(user="ann").add, "tea")
            files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(old)
    assert files == dict.fromkeys(("memory.db", "memory.db-wal", "memory.db-shm", "memory.db-turn"), 0o600)


def test_a_mistyped_folder_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match=r"there is no folder .*typo'; create it, or correct the path"):
        run_sync(Memory(tmp_path / "typo" / "memory.db", embedder=None).open)
    assert not list(tmp_path.iterdir())


def test_a_closed_store_is_one_file(store: Path) -> None:
    assert [file.name for file in store.parent.iterdir()] == ["memory.db"]
    assert_consistent(store, WordEmbedder())


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    open_and_use(path)
    assert_consistent(path)


def test_names_with_special_characters_are_names(tmp_path: Path) -> None:
    for name in ("with space.db", "a?mode=ro#x.db", "100%.db", "ünï.db", "'quoted\".db", "file::memory:"):
        open_and_use(tmp_path / name)
        assert (tmp_path / name).is_file()


def test_what_is_no_store_or_no_embedder_is_refused_at_once() -> None:
    for store in (None, 5, b"memory.db", ["memory.db"]):
        with pytest.raises(InvalidInputError, match="store must be a path or a Store"):
            Memory(cast("Any", store))
    with pytest.raises(InvalidInputError, match=r"QdrantStore\.from_uri") as refused:
        Memory("qdrant://key@host:6333/memories")
    assert "key@" not in str(refused.value)
    for embedder in ("minilm", 5, MiniLmEmbedder, object()):
        with pytest.raises(InvalidInputError, match="embedder must be one"):
            Memory("memory.db", embedder=cast("Any", embedder))


def test_a_text_file_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my own notes " * 100)
    before = snapshot(tmp_path)
    with pytest.raises(NotAStoreError, match=r"notes\.txt' is not a memory store"):
        open_and_use(path)
    assert snapshot(tmp_path) == before


def test_another_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE record (key INTEGER PRIMARY KEY)")
        db.commit()
    before = snapshot(tmp_path)
    with pytest.raises(NotAStoreError, match="not a memory store"):
        open_and_use(path)
    assert snapshot(tmp_path) == before


def test_a_newer_store_is_refused_untouched(store: Path) -> None:
    with closing(sqlite3.connect(store)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA user_version = 99")
    before = snapshot(store.parent)
    with pytest.raises(NewerStoreError, match=r"format 99.*upgrade memory-core"):
        open_and_use(store)
    assert snapshot(store.parent) == before


DEVELOPMENT = {
    "a column is missing": ["ALTER TABLE record DROP COLUMN emotion"],
    "there is another column": ["ALTER TABLE owner ADD COLUMN mood"],
    "a table is missing": ["DROP TABLE tombstone"],
    "there is another table": ["CREATE TABLE shelf (record INTEGER, place INTEGER)"],
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("changes", DEVELOPMENT.values(), ids=DEVELOPMENT.keys())
def test_a_file_of_another_development_format_is_refused_untouched(
    store: Path, changes: list[str], *, read_only: bool
) -> None:
    with closing(sqlite3.connect(store)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        for change in changes:
            db.execute(change)
        db.commit()
    before = snapshot(store.parent)
    with (
        pytest.raises(NotAStoreError, match=r"development version .*the table '\w+'.* export it with that version"),
        Memory(store, embedder=None, read_only=read_only) as memory,
    ):
        run_sync(memory.bind(user="ann").list)
    assert snapshot(store.parent) == before


def test_a_file_in_which_a_vector_is_renewed_is_of_this_format(store: Path) -> None:
    with closing(sqlite3.connect(store)) as db:
        db.execute("CREATE TABLE renewal (record INTEGER)")  # left by a process that was killed
        db.commit()
    open_and_use(store)


def test_a_newer_format_is_seen_in_the_write_ahead_log_too(store: Path) -> None:
    with closing(sqlite3.connect(store)) as db:
        db.execute("PRAGMA user_version = 99")  # not in the file's header until a checkpoint
        with pytest.raises(NewerStoreError, match="format 99"):
            open_and_use(store)


@pytest.mark.parametrize(
    ("name", "error", "reason"),
    [
        ("folder", NotAStoreError, "not a file"),
        ("text/x.db", StoreUnavailableError, "cannot be used"),
        ("text/deeper/x.db", StoreUnavailableError, "cannot be used"),
        ("x" * 300 + ".db", StoreUnavailableError, "File name too long"),
        ("nul\0.db", StoreUnavailableError, "NUL"),
        ("loop/x.db", StoreUnavailableError, "cannot be used"),
        ("pipe", NotAStoreError, "not a file"),
    ],
)
def test_a_path_that_cannot_be_a_file_is_refused(
    tmp_path: Path, name: str, error: type[StorageError], reason: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("a file")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(error, match=reason):
        open_and_use(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "loop", "pipe", "text"]


def test_nobodys_home_is_refused() -> None:
    with pytest.raises(StoreUnavailableError, match="home"):
        open_and_use("~nobody-of-this-name/memory.db")


FORBIDDEN = """
import os, sys
from memory_core import Memory, run_sync, StorageError
with Memory(sys.argv[2], embedder=None):
    pass  # all modules are read now, which somebody else may not be allowed to
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    with Memory(sys.argv[1], embedder=None) as memory:
        run_sync(memory.bind(user="ann").add, "tea")
except StorageError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def forbidden(store: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A path at which nobody but root may write."""
    folder = store.parent
    for parent in folder.parents[:-2]:  # as root, pytest's folders are closed to others
        parent.chmod(parent.stat().st_mode | 0o011)
    folder.chmod(0o755)
    path = store
    if request.param == "read only":
        store.chmod(0o444)
    elif request.param == "not readable":
        store.chmod(0o200)
    elif request.param == "new file in a read-only folder":
        path = folder / "new.db"
        folder.chmod(0o555)
    else:
        folder.chmod(0o000)
    yield path
    folder.chmod(0o700)


@pytest.mark.process
@pytest.mark.parametrize(
    "forbidden",
    ["read only", "not readable", "new file in a read-only folder", "closed folder"],
    indirect=True,
)
def test_what_is_not_writable_is_refused_untouched(
    store: Path, forbidden: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = store.read_bytes() if os.getuid() == 0 else None
    command = [sys.executable, "-c", FORBIDDEN, str(forbidden), str(tmp_path_factory.mktemp("free") / "memory.db")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert done.stdout.startswith("StoreUnavailableError the memory file")
    assert str(forbidden) in done.stdout
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    assert whole is None or store.read_bytes() == whole
    assert store == forbidden or not forbidden.exists()


def damaged(store: Path) -> Iterator[tuple[str, bytes]]:
    """The store in several states of ruin."""
    whole = store.read_bytes()
    for size in (100, 512, 4_096, 16_384, 40_000, len(whole) // 2, len(whole) - 16_384, len(whole) - 1):
        yield f"cut to {size}", whole[:size]
    for start in (100, 16_384, 3 * 16_384, len(whole) // 2):
        yield f"zeroed at {start}", whole[:start] + bytes(16_384) + whole[start + 16_384 :]
        noise = bytes(range(256)) * 64
        yield f"noise at {start}", whole[:start] + noise + whole[start + len(noise) :]


def read_all(path: Path) -> str:
    """Read a store in every way; what it says if it cannot be done."""
    try:
        with Memory(path, embedder=WordEmbedder()) as memory:
            handle = memory.bind(user="ann")
            run_sync(handle.list, limit=1_000)
            run_sync(handle.search, "tea", limit=1_000)
            run_sync(handle.stats)
    except (StorageError, FingerprintError) as error:
        return str(error)
    return ""


def test_a_damaged_store_is_a_storage_error_or_still_works(store: Path) -> None:
    for name, content in damaged(store):
        store.write_bytes(content)
        complaint = read_all(store)
        assert len(complaint) < 500, name
        assert "\n" not in complaint, name
        assert store.read_bytes() == content, name
        for beside in store.parent.glob("memory.db-*"):
            beside.unlink()


def test_a_store_of_another_embedder_is_refused_by_both_names(store: Path) -> None:
    before = snapshot(store.parent)
    with (
        pytest.raises(FingerprintError, match=r"made by words 1 \(64 dimensions\), not by others 1 \(32\).*reembed"),
        Memory(store, embedder=WordEmbedder("others", 32)),
    ):
        pass
    assert snapshot(store.parent) == before
    with Memory(store, embedder=None) as memory:
        assert len(run_sync(memory.bind(user="ann").search, "tea", limit=1_000)) == 300


def test_the_first_embedder_that_a_text_is_written_with_is_the_one_a_store_remembers(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        run_sync(memory.bind(user="ann").add, "tea")
    with Memory(path, embedder=WordEmbedder("opened")) as memory:
        run_sync(memory.bind(user="ann").search, "tea")
    with Memory(path, embedder=WordEmbedder("first")) as memory:
        run_sync(memory.bind(user="ann").add, "coffee")
    with pytest.raises(FingerprintError, match="made by first"), Memory(path, embedder=WordEmbedder("second")):
        pass


def test_a_failed_start_can_be_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.mkdir()
    memory = Memory(path, embedder=WordEmbedder())
    handle = memory.bind(user="ann")
    with pytest.raises(NotAStoreError):
        run_sync(handle.add, "tea")
    path.rmdir()
    assert run_sync(handle.add, "tea").text == "tea"
    run_sync(memory.close)


@pytest.mark.process
def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    command = [sys.executable, "-c", FULL, str(path)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    acknowledged = int(done.stdout)
    with Memory(path, embedder=None) as memory:
        handle = memory.bind(user="ann")
        assert len(run_sync(handle.list, limit=10_000).records) == acknowledged
        run_sync(handle.add, "there is room again")
    assert_consistent(path)


FULL = """
import resource, signal, sys
from memory_core import Memory, StoreUnavailableError, run_sync
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
count = 0
with Memory(sys.argv[1], embedder=None) as memory:
    ann = memory.bind(user="ann")
    try:
        while count < 5_000:
            run_sync(ann.add, f"number {count} " + "x" * 2_000)
            count += 1
    except StoreUnavailableError as error:
        assert "\\n" not in str(error)
    for attempt in range(3):
        try:
            run_sync(ann.add, "y" * 5_000)
            count += 1
        except StoreUnavailableError:
            pass
    assert len(run_sync(ann.list, limit=10_000).records) == count, "reads go on"
    assert 0 < count < 5_000
print(count)
"""


def test_a_new_file_that_somebody_else_reads_is_waited_for(tmp_path: Path) -> None:
    """SQLite does not always wait by itself where it turns the write-ahead log on."""
    name = prepare_file(tmp_path / "new.db")
    with closing(sqlite3.connect(name, isolation_level=None, check_same_thread=False)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        leaving = threading.Timer(0.3, reader.execute, ["ROLLBACK"])
        leaving.start()
        with closing(sqlite3.connect(name, isolation_level=None, timeout=0)) as db:
            set_up(db)
            assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        leaving.join()
