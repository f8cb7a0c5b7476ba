"""A write-ahead log that another file has left is refused; one that belongs to the file never is."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest

from memory_core import Memory, StoreUnavailableError, run_sync
from memory_core.app.main import main
from memory_core.storage.sqlite import lineage
from memory_core.storage.sqlite.checking import repair
from memory_core.storage.sqlite.files import PAGE_BYTES
from memory_core.storage.sqlite.views import add_view
from tests.storage.consistency import assert_consistent
from tests.storage.crashing_process import reading

CRASHING = Path(__file__).with_name("crashing_process.py")
WRITING = Path(__file__).with_name("writing_process.py")
LOGS = ("appended", "wrapped", "partly merged", "rewritten")
PATIENCE_SECONDS = 300

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")


def remember(path: Path, user: str, count: int) -> list[str]:
    texts = [f"old fact {number} of {user} {'and more ' * 20}" for number in range(count)]
    with Memory(path, embedder=None) as memory:
        run_sync(memory.bind(user=user).add_many, texts)
    return texts


def texts_of(path: Path, user: str, *, read_only: bool = False) -> list[str]:
    with Memory(path, embedder=None, read_only=read_only) as memory:
        assert run_sync(memory.operator().check) == []
        return [record.text for record in run_sync(memory.bind(user=user).list, order="oldest", limit=1_000).records]


def crash(path: Path, what: str) -> None:
    done = subprocess.run([sys.executable, str(CRASHING), str(path), what], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (9, "")
    assert path.with_name(f"{path.name}-wal").stat().st_size


@pytest.fixture(params=["a backup", "a copy of the closed file"])
def kept(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path, list[str]]:
    """A memory, an earlier state of it, and what that says."""
    path, copy = tmp_path / "memory.db", tmp_path / "kept" / "monday.db"
    texts = remember(path, "ann", 100)
    if request.param == "a backup":
        with Memory(path, embedder=None) as memory:
            run_sync(memory.backup, copy)
    else:
        copy.parent.mkdir()
        shutil.copy(path, copy)
        remember(path, "carol", 3)
    return path, copy, texts


@pytest.mark.process
@pytest.mark.parametrize("what", LOGS)
def test_an_earlier_file_put_beside_a_later_log_is_refused_untouched(
    kept: tuple[Path, Path, list[str]], what: str
) -> None:
    path, copy, texts = kept
    crash(path, what)
    shutil.copy(copy, path)  # over the same inode, as `cp` does
    log = path.with_name("memory.db-wal")
    before = contents(path.parent)
    for attempt in (
        lambda: texts_of(path, "ann"),
        lambda: texts_of(path, "ann", read_only=True),
        lambda: repair(path),
        lambda: add_view(path),
        lambda: run_sync(Memory.restore, copy, path, overwrite=True),
        lambda: run_sync(Memory.restore, path, path.with_name("other.db")),
    ):
        with pytest.raises(StoreUnavailableError) as refused:
            attempt()
        assert repr(str(path)) in str(refused.value)
        assert f"{str(log)!r}, the write-ahead log of the earlier file" in str(refused.value)
        assert "move that log to another folder" in str(refused.value)
        assert contents(path.parent) == before
    log.rename(path.parent / "kept" / "later-wal")
    assert texts_of(path, "ann") == texts
    assert texts_of(path, "bob") == []
    assert_consistent(path)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.process
def test_another_file_moved_to_the_name_is_refused_as_well(tmp_path: Path) -> None:
    path, other = tmp_path / "memory.db", tmp_path / "other.db"
    remember(path, "ann", 10)
    texts = remember(other, "ann", 20)
    crash(path, "appended")
    other.rename(path)
    with pytest.raises(StoreUnavailableError, match="replaced by another one"):
        texts_of(path, "ann")
    (tmp_path / "memory.db-wal").unlink()
    assert texts_of(path, "ann") == texts


@pytest.mark.process
@pytest.mark.parametrize("what", ["missing", "empty"])
def test_the_log_of_a_file_that_is_gone_is_not_lost_to_a_new_one(tmp_path: Path, what: str) -> None:
    path = tmp_path / "memory.db"
    remember(path, "ann", 10)
    crash(path, "appended")
    moved = path.rename(tmp_path / "elsewhere.db")
    if what == "empty":
        path.touch()
    before = contents(tmp_path)
    with pytest.raises(StoreUnavailableError, match=r"memory\.db-wal"):
        texts_of(path, "ann")
    assert contents(tmp_path) == before
    path.unlink(missing_ok=True)
    (tmp_path / "memory.db-wal").rename(tmp_path / "elsewhere.db-wal")
    assert texts_of(moved, "bob")[-1] == "the last fact"


@pytest.mark.process
def test_the_command_line_says_in_one_sentence_which_log_is_in_the_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, copy = tmp_path / "memory.db", tmp_path / "kept" / "monday.db"
    remember(path, "ann", 10)
    with Memory(path, embedder=None) as memory:
        run_sync(memory.backup, copy)
    crash(path, "appended")
    shutil.copy(copy, path)
    assert main(["doctor", "--file", str(path), "--embedder", "none"]) == 1
    assert "move that log to another folder" in " ".join(capsys.readouterr().out.split())


@pytest.mark.process
@pytest.mark.parametrize("what", LOGS)
def test_the_log_of_the_file_itself_is_replayed_also_when_both_are_copied(tmp_path: Path, what: str) -> None:
    path = tmp_path / "memory.db"
    remember(path, "ann", 100)
    crash(path, what)
    both = tmp_path / "both"
    both.mkdir()
    for name in ("memory.db", "memory.db-wal"):
        shutil.copy(tmp_path / name, both / name)
    for place in (path, both / "memory.db"):
        assert texts_of(place, "bob", read_only=True)[-1] == "the last fact"
        assert texts_of(place, "bob")[-1] == "the last fact"
        assert_consistent(place)


@pytest.mark.process
def test_a_memory_is_restored_over_the_file_of_a_process_that_crashed(tmp_path: Path) -> None:
    path, copy = tmp_path / "memory.db", tmp_path / "kept" / "monday.db"
    texts = remember(path, "ann", 10)
    with Memory(path, embedder=None) as memory:
        run_sync(memory.backup, copy)
    for what in LOGS:
        crash(path, what)
        run_sync(Memory.restore, copy, path, overwrite=True)
        assert texts_of(path, "ann") == texts
        assert texts_of(path, "bob") == []


@pytest.mark.process
def test_a_log_that_another_program_writes_has_no_marks_and_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    remember(path, "ann", 10)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE owner SET version = version + 1")
        assert len(texts_of(path, "ann")) == 10
    crash(path, "appended")
    assert texts_of(path, "bob")[-1] == "the last fact"


def test_what_is_no_log_is_left_to_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    remember(path, "ann", 10)
    for rest in (b"", b"an old log", b"\x37\x7f\x06\x82" + bytes(28), random.randbytes(70_000)):
        (tmp_path / "memory.db-wal").write_bytes(rest)
        assert len(texts_of(path, "ann")) == 10


def test_the_marks_stay_in_the_page_where_they_are_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    for _ in range(2):
        remember(path, "ann", 300)
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'meta'").fetchall() == [(2,)]
        with Memory(path, embedder=None) as memory:
            run_sync(memory.bind(user="ann").erase)
            run_sync(memory.operator().vacuum)


def test_every_copy_has_a_mark_of_its_own_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    remember(path, "ann", 10)
    with Memory(path, embedder=None) as memory:
        copies = [run_sync(memory.backup, tmp_path / "kept" / f"{number}.db") for number in range(2)]
    copies.append(run_sync(Memory.restore, copies[0], tmp_path / "kept" / "restored.db"))
    marks = {lineage.mark_of(file) for file in (path, *copies)}
    assert len(marks) == 4
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == ["0.db", "1.db", "restored.db"]


@pytest.mark.process
def test_pages_that_a_loss_of_power_left_under_newer_headers_are_not_taken_for_a_foreign_log(tmp_path: Path) -> None:
    """The header of a page can reach the disk without the page; then what an earlier log had there follows it."""
    path, log = tmp_path / "memory.db", tmp_path / "memory.db-wal"
    texts = remember(path, "ann", 20)
    crash(path, "appended")
    content, known = log.read_bytes(), list(lineage._marks_in(log, whole=True))
    for number, mark in enumerate(dict.fromkeys(known)):
        content = content.replace(mark, number.to_bytes(8, "big"))
    earlier = bytearray(content)
    for start in (found.start() for found in re.finditer(re.escape(lineage._TAG), content)):
        body = content[start : start + 24]
        earlier[start + 24 : start + 28] = crc32(body).to_bytes(4, "big")
    log.write_bytes(earlier)
    assert not set(lineage._marks_in(log, whole=False)) & set(known)
    assert texts_of(path, "ann")[: len(texts)] == texts


@pytest.mark.process
@pytest.mark.parametrize("torn", [0, 60, 8_000, 16_000])
def test_a_page_that_was_torn_while_the_log_was_merged_is_restored_from_it(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "memory.db"
    texts = remember(path, "ann", 20)
    crash(path, "appended")
    content = bytearray(path.read_bytes())
    content[PAGE_BYTES + torn : 2 * PAGE_BYTES] = bytes(PAGE_BYTES - torn)
    path.write_bytes(content)
    assert texts_of(path, "ann")[: len(texts)] == texts


@pytest.mark.process
async def test_every_transaction_in_a_log_names_the_mark_before_it(tmp_path: Path) -> None:
    """Otherwise a log that begins with it would be taken for that of another file."""
    path = tmp_path / "memory.db"
    async with Memory(path, embedder=None) as memory:
        ann = memory.bind(user="ann")
        await ann.add_many([f"fact {number} of ann" for number in range(2_000)])
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        known = lineage.mark_of(path)
        with reading(str(path)):  # so that nothing is merged into the file
            await ann.add("another fact")
            add_view(path)
            await memory.operator().vacuum()
            await ann.add("the last fact")
            marks = list(lineage._marks_in(path.with_name("memory.db-wal"), whole=True))
    transactions = list(dict.fromkeys(zip(marks[::2], marks[1::2], strict=True)))
    assert len(transactions) >= 3
    for before, this in transactions:
        assert before == known
        known = this


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [6, pytest.param(200, marks=pytest.mark.torture)])
def test_a_file_in_use_is_never_taken_for_another_one(tmp_path: Path, rounds: int) -> None:
    """Writers are killed while the file is opened, merged, rewritten and backed up."""
    path = tmp_path / "memory.db"
    remember(path, "ann", 50)
    for number in range(rounds):
        writers = [
            subprocess.Popen([sys.executable, str(WRITING), str(path), name, "100000", str(tmp_path / name)])
            for name in (f"{number}-a", f"{number}-b")
        ]
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not all((tmp_path / f"{number}-{name}").exists() for name in "ab"):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            for step in range(10):
                lineage.insist_on_own_log(path)
                asyncio.run(use(path, tmp_path / "backup.db", step))
        finally:
            for writer in writers:
                writer.kill()
                writer.wait()
    assert len(texts_of(path, "ann")) == 50
    assert len(texts_of(tmp_path / "backup.db", "ann")) == 50


async def use(path: Path, backup: Path, step: int) -> None:
    async with Memory(path, embedder=None, read_only=step % 2 == 1) as memory:
        assert (await memory.bind(user="ann").stats()).records == 50
        if step == 4:
            await memory.backup(backup, overwrite=True)
        if step == 6:
            await memory.operator().vacuum()
    if step == 8:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(RESTART)")
