"""Processes that back up, restore or upgrade are killed at random moments: nothing is lost or there by half."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import Memory, run_sync
from memory_core.storage.sqlite.unfinished_copies import SUFFIX
from tests.storage.consistency import assert_consistent
from tests.storage.embedders import WordEmbedder

pytestmark = pytest.mark.process

SCRIPT = Path(__file__).with_name("backing_up_process.py")
STEPS = 40
"""The number of formats beyond the present one that the upgrading process knows."""


def killed(what: str, folder: Path, life: int, most_seconds: float) -> list[str]:
    """The lines that a process acknowledged before it was killed, at some moment of its work."""
    command = [sys.executable, str(SCRIPT), what, str(folder), str(life)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        killer = threading.Timer(random.random() * most_seconds, process.kill)
        killer.start()
        lines = process.stdout.read().split("\n")[:-1]
    killer.cancel()
    killer.join()
    assert not any("Error" in line for line in lines), lines[-20:]
    return lines


def texts(path: Path) -> list[str]:
    with Memory(path, embedder=None, read_only=True) as memory:
        assert run_sync(memory.operator().check) == []
        ann, found, cursor = memory.bind(user="ann"), list[str](), None
        while True:
            page = run_sync(ann.list, order="oldest", limit=10_000, cursor=cursor)
            found += [record.text for record in page.records]
            if (cursor := page.cursor) is None:
                return found


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.torture)])
def test_a_killed_backup_is_whole_or_not_there_and_costs_nothing_of_the_memory(tmp_path: Path, kills: int) -> None:
    written: list[str] = []
    for life in range(kills):
        lines = killed("backup", tmp_path, life, 1.5)
        before = list(written)
        written += [line for line in lines if line.startswith("life")]
        copies = {path.name for path in tmp_path.glob("backup-*.db")}
        assert {line for line in lines if line.startswith("backup")} <= copies
        for copy in tmp_path.glob("backup-*.db"):
            found = texts(copy)
            assert set(before) <= set(found), "what was acknowledged before this process began"
            copy.unlink()
        assert len(list(tmp_path.glob(f".*{SUFFIX}"))) <= 1, "each backup removes what the one before it has left"
    if not (tmp_path / "memory.db").exists():  # killed before it was made
        assert not written
        return
    with Memory(tmp_path / "memory.db", embedder=None, read_only=True) as memory:
        run_sync(memory.backup, tmp_path / "last.db")
    assert not list(tmp_path.glob(f".*{SUFFIX}"))
    found = texts(tmp_path / "memory.db")
    assert len(set(found)) == len(found)
    assert set(written) <= set(found)
    assert_consistent(tmp_path / "memory.db", WordEmbedder())


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.torture)])
def test_a_killed_restore_leaves_one_whole_memory_or_the_other(tmp_path: Path, kills: int) -> None:
    old, new = [f"old number {n}" for n in range(400)], [f"new number {n}" for n in range(300)]
    for name, some in (("memory.db", old), ("other.db", new)):
        with Memory(tmp_path / name, embedder=WordEmbedder()) as memory:
            run_sync(memory.bind(user="ann").add_many, some)
            if some is new:
                run_sync(memory.backup, tmp_path / "backup.db")
    for life in range(kills):
        lines = killed("restore", tmp_path, life, 0.6)
        with Memory(tmp_path / "memory.db", embedder=None):
            pass  # undoes what was interrupted in the old file
        found = texts(tmp_path / "memory.db")
        assert found == new or (found == old and not lines)
        if found == new:
            with Memory(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
                run_sync(memory.bind(user="ann").erase)
                run_sync(memory.bind(user="ann").add_many, old)
    assert texts(tmp_path / "backup.db") == new


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.torture)])
def test_a_killed_upgrade_goes_on_where_it_stopped(tmp_path: Path, kills: int) -> None:
    path, some = tmp_path / "memory.db", [f"number {n}" for n in range(50)]
    with Memory(path, embedder=WordEmbedder()) as memory:
        run_sync(memory.bind(user="ann").add_many, some)
    whole = path.read_bytes()
    for life in range(kills):
        if life % 10 == 0:
            path.write_bytes(whole)
        before = steps(path)
        lines = killed("upgrade", tmp_path, life, 0.05)
        after = steps(path)
        assert after >= before
        assert after == STEPS or not lines
    deadline = time.monotonic() + 300
    while steps(path) < STEPS:
        assert time.monotonic() < deadline
        killed("upgrade", tmp_path, kills, 60)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert [text for (text,) in db.execute("SELECT text FROM record ORDER BY key")] == some


def steps(path: Path) -> int:
    """The number of made-up steps that a file has seen; every one of them entirely."""
    with closing(sqlite3.connect(path)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        columns = [name for _, name, *_ in db.execute("PRAGMA table_info(owner)") if name.startswith("mood")]
        assert columns == [f"mood{number}" for number in range(version - 1)]
        for column in columns:
            assert db.execute(f"SELECT count(*) FROM owner WHERE {column} IS NOT 'calm'").fetchone() == (0,)
        return len(columns)
