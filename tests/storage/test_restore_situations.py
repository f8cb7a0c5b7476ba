"""Restoring in every awkward situation: refused or done, never half. A full disk is in `faults/`."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import Memory, NewerStoreError, NotAStoreError, StorageError, StoreUnavailableError, run_sync
from tests.storage.consistency import assert_consistent

CRASHING = Path(__file__).with_name("crashing_process.py")


def remember(path: Path, text: str) -> None:
    with Memory(path, embedder=None) as memory:
        run_sync(memory.bind(user="ann").add, text)


def texts(path: Path) -> list[str]:
    with Memory(path, embedder=None) as memory:
        assert run_sync(memory.operator().check) == []
        return [record.text for record in run_sync(memory.bind(user="ann").list, order="oldest").records]


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    remember(tmp_path / "memory.db", "in the backup")
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        made = run_sync(memory.backup, tmp_path / "monday.db")
    remember(tmp_path / "memory.db", "written since")
    return made


def version(number: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA user_version = {number}")

    return change


BACKUPS: dict[str, tuple[Callable[[Path], object], type[StorageError], str]] = {
    "of a newer version": (version(99), NewerStoreError, "newer version of memory-core"),
    "of an older version": (version(0), StoreUnavailableError, "has an older format"),
    "that is empty": (lambda path: path.write_bytes(b""), NotAStoreError, "not a memory store"),
    "that is something else": (lambda path: path.write_bytes(b"notes " * 9_000), NotAStoreError, "not a memory store"),
    "that was cut": (
        lambda path: path.write_bytes(path.read_bytes()[:-20_000]),
        StorageError,
        "cannot be used|damaged|not a memory store",
    ),
}


@pytest.mark.parametrize("over", [False, True], ids=["to a new name", "over a memory"])
@pytest.mark.parametrize("what", BACKUPS)
def test_a_backup_that_cannot_be_restored_changes_nothing(
    tmp_path: Path, backup: Path, what: str, *, over: bool
) -> None:
    change, error, said = BACKUPS[what]
    change(backup)
    target = tmp_path / ("memory.db" if over else "new.db")
    with pytest.raises(error, match=said):
        run_sync(Memory.restore, backup, target, overwrite=over)
    assert texts(tmp_path / "memory.db") == ["in the backup", "written since"]
    assert not (tmp_path / "new.db").exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.process
@pytest.mark.parametrize("reads_only", [False, True], ids=["writer", "reader"])
def test_a_memory_that_another_process_has_open_is_not_replaced(
    tmp_path: Path, backup: Path, *, reads_only: bool
) -> None:
    path = tmp_path / "memory.db"
    holding = f"""
from memory_core import Memory, run_sync
with Memory({str(path)!r}, embedder=None, read_only={reads_only}) as memory:
    run_sync(memory.bind(user="ann").list)
    print("open", flush=True)
    input()
"""
    command = [sys.executable, "-c", holding]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(StoreUnavailableError, match="in use and cannot be replaced"):
            run_sync(Memory.restore, backup, path, overwrite=True)
        process.communicate("\n")
    assert process.returncode == 0
    assert texts(path) == ["in the backup", "written since"]
    assert run_sync(Memory.restore, backup, path, overwrite=True) == path
    assert texts(path) == ["in the backup"]


@pytest.mark.process
def test_the_log_of_a_process_that_crashed_goes_with_the_memory_that_is_replaced(tmp_path: Path, backup: Path) -> None:
    path = tmp_path / "memory.db"
    assert subprocess.run([sys.executable, str(CRASHING), str(path), "appended"], check=False).returncode == 9
    assert (tmp_path / "memory.db-wal").stat().st_size
    run_sync(Memory.restore, backup, path, overwrite=True)
    assert texts(path) == ["in the backup"]
    assert_consistent(path)
