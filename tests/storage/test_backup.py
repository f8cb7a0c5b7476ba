"""Backups are whole, private and under their name only when they are complete; restoring them loses nothing else."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import (
    DamagedStoreError,
    Draft,
    InvalidInputError,
    Memory,
    NotAStoreError,
    Progress,
    StorageError,
    StoreUnavailableError,
    run_sync,
)
from memory_core.storage.sqlite import backup
from memory_core.storage.sqlite.unfinished_copies import SUFFIX, unfinished
from tests.storage.consistency import assert_consistent
from tests.storage.embedders import WordEmbedder


def fill(path: Path | str, count: int = 200) -> Memory:
    """An open store with so many records."""
    memory = Memory(path, embedder=WordEmbedder())
    ann = memory.bind(user="ann")
    run_sync(ann.add_many, [Draft(f"tea number {n} {'and more ' * 20}", session=f"s{n % 3}") for n in range(count)])
    return memory


def texts(path: Path) -> list[str]:
    with Memory(path, embedder=WordEmbedder(), read_only=True) as memory:
        return [record.text for record in run_sync(memory.bind(user="ann").list, order="oldest", limit=10_000).records]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_is_the_memory_in_one_private_file(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with fill(tmp_path / "memory.db") as memory:
            made = run_sync(memory.backup, tmp_path / "backups" / "monday.db")
    finally:
        os.umask(old)
    assert made == tmp_path / "backups" / "monday.db"
    assert names(made.parent) == ["monday.db"]
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert texts(made) == texts(tmp_path / "memory.db")
    assert_consistent(made, WordEmbedder())


def test_a_backup_of_a_memory_without_a_file_is_a_file(tmp_path: Path) -> None:
    with fill(":memory:") as memory:
        made = run_sync(memory.backup, tmp_path / "kept.db")
    assert len(texts(made)) == 200


def test_what_was_acknowledged_before_a_backup_is_in_it_and_writers_go_on(tmp_path: Path) -> None:
    """Every slice finds the file changed since the one before."""

    async def both() -> tuple[list[str], list[str]]:
        async with fill(tmp_path / "memory.db", 1_500) as memory:
            ann = memory.bind(user="ann")
            before: list[str] = []
            meanwhile: list[str] = []
            backing_up = asyncio.create_task(memory.backup(tmp_path / "backup.db"))
            while not backing_up.done():
                text = f"written meanwhile, number {len(meanwhile)}"
                await ann.add(text)
                meanwhile.append(text)
            await backing_up
            return before, meanwhile

    before = [f"tea number {n} {'and more ' * 20}" for n in range(1_500)]
    _, meanwhile = asyncio.run(both())
    assert meanwhile
    found = texts(tmp_path / "backup.db")
    assert found[: len(before)] == before
    late = found[len(before) :]
    assert late == meanwhile[: len(late)]
    assert texts(tmp_path / "memory.db") == before + meanwhile


def test_a_backup_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "SLICE_PAGES", 4)
    steps: list[Progress] = []
    with fill(tmp_path / "memory.db") as memory:
        run_sync(memory.backup, tmp_path / "backup.db", progress=steps.append)
    copied = [step for step in steps if step.part == "copying"]
    assert len(copied) > 3
    assert [step.done for step in copied] == sorted({step.done for step in copied})
    total = copied[-1].total
    assert (copied[0], steps[-2:]) == (
        Progress(0, total, "copying"),
        [Progress(total, total, "checking"), Progress(total, total)],
    )


def test_a_backup_that_is_given_up_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "SLICE_PAGES", 1)

    def refuse(step: Progress) -> None:
        if step.done > 3:
            raise KeyError("enough")

    async def cancelled(memory: Memory) -> None:
        began, loop = asyncio.Event(), asyncio.get_running_loop()

        def tell(step: Progress) -> None:
            if step.done:
                loop.call_soon_threadsafe(began.set)

        backing_up = asyncio.create_task(memory.backup(tmp_path / "backups" / "backup.db", progress=tell))
        await began.wait()
        backing_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await backing_up

    with fill(tmp_path / "memory.db", 2_000) as memory:
        with pytest.raises(KeyError, match="enough"):
            run_sync(memory.backup, tmp_path / "backups" / "backup.db", progress=refuse)
        assert names(tmp_path / "backups") == []
        asyncio.run(cancelled(memory))
        while names(tmp_path / "backups"):  # nobody waits for the thread that is told to give up
            time.sleep(0.01)
        run_sync(memory.bind(user="ann").add, "and goes on")
    while names(tmp_path / "backups"):  # the thread that copies ends after its slice, and nothing waits for it
        time.sleep(0.01)


def test_a_backup_of_a_damaged_memory_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "memory.db").__exit__(None, None, None)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as db, db:
        db.execute("UPDATE record SET text = 'coffee' WHERE text LIKE '%number 7 %'")
    with (
        Memory(tmp_path / "memory.db", embedder=None) as memory,
        pytest.raises(DamagedStoreError, match=r"memory is damaged: the record .* is not as it was written"),
    ):
        run_sync(memory.backup, tmp_path / "backups" / "backup.db")
    assert names(tmp_path / "backups") == []


@pytest.mark.parametrize("change", ["UPDATE owner SET records = 99", "DELETE FROM lexical", "DROP INDEX record_time"])
def test_what_is_wrong_but_no_damage_is_not_called_damage_by_a_backup(tmp_path: Path, change: str) -> None:
    with fill(tmp_path / "memory.db", 10):
        pass
    with closing(sqlite3.connect(tmp_path / "memory.db")) as db, db:
        db.execute(change)
    with Memory(tmp_path / "memory.db", embedder=None) as memory, pytest.raises(StorageError) as caught:
        run_sync(memory.backup, tmp_path / "backups" / "backup.db")
    assert not isinstance(caught.value, DamagedStoreError)
    assert not {"damaged", "backup"} & set(str(caught.value).split())
    assert names(tmp_path / "backups") == []


def test_a_backup_replaces_nothing_unless_asked_to(tmp_path: Path) -> None:
    other, notes = tmp_path / "backup.db", tmp_path / "notes.txt"
    notes.write_text("my own notes")
    with fill(tmp_path / "memory.db", 10) as memory:
        run_sync(memory.backup, other)
        run_sync(memory.bind(user="ann").add, "one more")
        with pytest.raises(InvalidInputError, match=r"there is a file .*backup\.db' already"):
            run_sync(memory.backup, other)
        assert len(texts(other)) == 10
        run_sync(memory.backup, other, overwrite=True)
        assert len(texts(other)) == 11
        with pytest.raises(NotAStoreError, match="is not a memory store"):
            run_sync(memory.backup, notes, overwrite=True)
        with pytest.raises(StoreUnavailableError, match="is in use and cannot be replaced"):
            run_sync(memory.backup, tmp_path / "memory.db", overwrite=True)
        with pytest.raises(InvalidInputError, match="not a file"):
            run_sync(memory.backup, ":memory:")
    assert notes.read_text() == "my own notes"


def test_a_backup_is_restored_and_stays_as_it_is(tmp_path: Path) -> None:
    with fill(tmp_path / "memory.db", 10) as memory:
        made = run_sync(memory.backup, tmp_path / "backups" / "backup.db")
        run_sync(memory.bind(user="ann").add, "written since")
        with pytest.raises(StoreUnavailableError, match="is in use"):
            run_sync(Memory.restore, made, tmp_path / "memory.db", overwrite=True)
    before = made.read_bytes()
    with pytest.raises(InvalidInputError, match="already"):
        run_sync(Memory.restore, made, tmp_path / "memory.db")
    assert len(texts(tmp_path / "memory.db")) == 11
    assert run_sync(Memory.restore, made, tmp_path / "memory.db", overwrite=True) == tmp_path / "memory.db"
    assert run_sync(Memory.restore, made, tmp_path / "new" / "memory.db") == tmp_path / "new" / "memory.db"
    for restored in (tmp_path / "memory.db", tmp_path / "new" / "memory.db"):
        assert len(texts(restored)) == 10
        assert_consistent(restored, WordEmbedder())
        assert stat.S_IMODE(restored.stat().st_mode) == 0o600
    assert (names(made.parent), made.read_bytes()) == (["backup.db"], before)


def test_a_damaged_backup_is_not_restored(tmp_path: Path) -> None:
    with fill(tmp_path / "memory.db") as memory:
        made = run_sync(memory.backup, tmp_path / "backup.db")
    before = (tmp_path / "memory.db").read_bytes()
    with closing(sqlite3.connect(made)) as db, db:
        db.execute("UPDATE chunk SET vector = zeroblob(128) WHERE record & 15 = 3")
    with pytest.raises(DamagedStoreError, match="the vector of chunk 0"):
        run_sync(Memory.restore, made, tmp_path / "memory.db", overwrite=True)
    made.write_bytes(made.read_bytes()[:100_000])
    with pytest.raises(StorageError):
        run_sync(Memory.restore, made, tmp_path / "memory.db", overwrite=True)
    assert (tmp_path / "memory.db").read_bytes() == before


def test_what_an_earlier_file_left_beside_its_name_is_never_taken_for_a_part_of_the_new_one(tmp_path: Path) -> None:
    with fill(tmp_path / "memory.db") as memory:
        made = run_sync(memory.backup, tmp_path / "backup.db")
    left = tmp_path / "restored.db-wal"
    left.write_bytes(b"an old log")
    with pytest.raises(StoreUnavailableError, match=r"restored\.db-wal' belongs to an earlier file"):
        run_sync(Memory.restore, made, tmp_path / "restored.db")
    assert left.read_bytes() == b"an old log"


def leave(folder: Path) -> Path:
    """Leave what a killed process leaves; the test of killed backups shows that it is this."""
    left = folder / f".monday.db.x1y2{SUFFIX}"
    left.mkdir()
    (left / "monday.db").write_bytes(b"half of a memory")
    return left


def test_a_backup_removes_what_a_killed_one_left_and_nothing_that_is_being_made(tmp_path: Path) -> None:
    left, other = leave(tmp_path), tmp_path / f".note{SUFFIX}"
    other.write_text("a file of that name is not ours")
    with fill(tmp_path / "memory.db", 10) as memory, unfinished(tmp_path / "tuesday.db") as being_made:
        run_sync(memory.backup, tmp_path / "wednesday.db")
        assert being_made.exists()
    assert not left.exists()
    assert not being_made.parent.exists()
    assert names(tmp_path) == [other.name, "memory.db", "wednesday.db"]
