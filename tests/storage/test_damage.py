"""Files with damaged bytes, files that were cut off: nothing wrong is ever returned without a word about it."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from memory_core import (
    BoundMemory,
    DamagedStoreError,
    Draft,
    Link,
    Memory,
    MemoryRecord,
    Patch,
    RecordNotFoundError,
    Scope,
    StorageError,
    Version,
    Where,
    run_sync,
)
from memory_core.chunking import SentenceChunker
from memory_core.models import STATES
from memory_core.storage.shared.transfer import Carried
from memory_core.storage.sqlite.checking import repair
from memory_core.storage.sqlite.store import SqliteStore
from tests.open_store import store_of
from tests.storage.embedders import WordEmbedder

Everything = dict[str, object]
QUERIES = ("jasmine tea", "Who bought number 7 on Friday?", "the river and the long walk")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with something in every column and table."""
    path = tmp_path_factory.mktemp("whole") / "memory.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        for user in ("ann", "tom"):
            handle = memory.bind(user=user)
            turns = [
                Draft(f"{user} bought tea number {n}", session=f"s{n % 3}", author=user, tags=["tea", f"n{n}"])
                for n in range(40)
            ]
            stored = [cast("MemoryRecord", one) for one in run_sync(handle.add_many, turns)]
            run_sync(handle.add, Draft("a long walk by the river. " * 400, data={"where": ["river", 1.5]}))
            run_sync(handle.add, Draft("grüner Tee", source_key="g", links=[Link("follows", stored[0].id)]))
            for n in range(3):
                run_sync(handle.update, stored[n].id, Patch(text=f"{user} bought jasmine tea number {n}"))
            run_sync(handle.supersede, stored[5].id, "nobody bought anything")
            run_sync(handle.delete, stored[6].id)
            run_sync(handle.list, limit=5, touch=True)
            while run_sync(handle.stats).vectors_pending:
                time.sleep(0.01)
    return path


def everything(path: Path) -> Everything:
    """The results of exports and searches; raises what the first of them raises."""
    found: Everything = {}
    with Memory(path, embedder=WordEmbedder()) as memory:
        owners = run_sync(memory.operator().owners)
        found["owners"] = owners
        for owner in owners:
            handle = memory.operator().handle(owner)
            records = run_sync(handle.list, where=Where(states=STATES), limit=1_000).records
            found[f"{owner} records"] = records
            found[f"{owner} history"] = [history(handle, record.id) for record in records]
            found[f"{owner} carried"] = run_sync(carried, memory, [record.id for record in records], handle.scope)
            for mode in ("hybrid", "lexical", "vector", "substring"):
                found[f"{owner} {mode}"] = [run_sync(handle.search, query, mode=mode) for query in QUERIES]
    return found


def history(handle: BoundMemory, id: str) -> list[Version]:  # noqa: A002  (the record's own word)
    try:
        return run_sync(handle.history, id)
    except RecordNotFoundError:  # an index that is damaged has no entry for it, which a check reports
        return []


async def carried(memory: Memory, ids: list[str], scope: Scope) -> list[Carried]:
    store = await store_of(memory)
    assert isinstance(store, SqliteStore)
    return await store.port().take(scope, ids)


def verdict(path: Path, before: Everything) -> str:
    """The fate of a damaged file: `refused`, `reported`, `harmless`, or else what is wrong with that."""
    try:
        with Memory(path, embedder=None) as memory:
            findings = run_sync(memory.operator().check)
    except StorageError:
        return "refused"
    assert all("\n" not in finding.problem for finding in findings)
    try:
        after = everything(path)
    except StorageError as error:
        return "reported" if findings else f"check is silent about what raises {error}"
    if findings:
        return "reported"
    return (
        "harmless" if after == before else f"check is silent about {[k for k in before if after.get(k) != before[k]]}"
    )


def flipped(content: bytes, chance: random.Random) -> bytes:
    """The content with another byte somewhere, as often as not where there was something."""
    place = chance.randrange(len(content))
    while chance.random() < 0.8 and not content[place]:
        place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ chance.randrange(1, 256)]) + content[place + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("count", [16, pytest.param(80, marks=pytest.mark.torture)])
def test_a_damaged_byte_is_reported_or_refused_or_changes_nothing(whole: Path, tmp_path: Path, count: int) -> None:
    content, before = whole.read_bytes(), everything(whole)
    chance = random.Random(count)
    seen: dict[str, int] = {}
    for number in range(count):
        path = tmp_path / f"{number}.db"
        path.write_bytes(flipped(content, chance))
        came_to = verdict(path, before)
        assert came_to in {"refused", "reported", "harmless"}, number
        seen[came_to] = seen.get(came_to, 0) + 1
    assert seen.get("reported", 0) > count // 4, seen


@pytest.mark.parametrize("count", [12, pytest.param(80, marks=pytest.mark.torture)])
def test_a_file_that_was_cut_off_is_reported_or_refused(whole: Path, tmp_path: Path, count: int) -> None:
    content, before = whole.read_bytes(), everything(whole)
    chance = random.Random(count)
    for number in range(count):
        path = tmp_path / f"{number}.db"
        size = chance.randrange(1, len(content))
        path.write_bytes(content[: size - size % 16_384 if number % 3 == 0 and size > 16_384 else size])
        assert verdict(path, before) in {"refused", "reported"}, number


WRITE = """
import os, signal, sys
from memory_core import Memory, run_sync
memory = Memory(sys.argv[1], embedder=None)
ann = memory.bind(user="ann")
for number in range(int(sys.argv[2])):
    run_sync(ann.add, f"tea number {number} " + "and more " * 20)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose writer was killed: all of it is in the write-ahead log."""
    path = tmp_path_factory.mktemp("killed") / "memory.db"
    done = subprocess.run([sys.executable, "-c", WRITE, str(path), "60"], check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    return path


@pytest.mark.process
@pytest.mark.parametrize("count", [6, pytest.param(80, marks=pytest.mark.torture)])
def test_a_write_ahead_log_that_was_cut_off_opens_at_an_earlier_commit(
    killed: Path, tmp_path: Path, count: int
) -> None:
    content, log = killed.read_bytes(), killed.with_name("memory.db-wal").read_bytes()
    chance = random.Random(count)
    lengths: set[int] = set()
    for number in range(count):
        path = tmp_path / f"{number}.db"
        path.write_bytes(content)
        path.with_name(f"{number}.db-wal").write_bytes(log[: chance.randrange(len(log))])
        with Memory(path, embedder=None) as memory:
            texts = [record.text for record in run_sync(memory.bind(user="ann").list, order="oldest", limit=99).records]
            assert run_sync(memory.operator().check) == []
        assert texts == [f"tea number {n} " + "and more " * 20 for n in range(len(texts))]
        lengths.add(len(texts))
    assert len(lengths) > count // 3


def damage(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE record SET text = 'I never said that' WHERE text LIKE 'ann%number 9'",
        "UPDATE record SET text = CAST(x'616e6ec3' AS TEXT) WHERE text LIKE 'ann%number 9'",
        "UPDATE record SET tags = '[nonsense' WHERE text LIKE 'ann%number 9'",
        "UPDATE record SET created_at = 'soon' WHERE text LIKE 'ann%number 9'",
        "UPDATE record SET access_count = 7 WHERE text LIKE 'ann%number 9'",
    ],
)
def test_whoever_reads_a_damaged_record_hears_which_one_it_is(whole: Path, tmp_path: Path, statement: str) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(whole.read_bytes())
    with Memory(path, embedder=None) as memory:
        (hit,) = run_sync(memory.bind(user="ann").search, "ann bought tea number 9", limit=1)
    damage(path, statement)
    with Memory(path, embedder=None) as memory:
        handle, known = memory.bind(user="ann"), hit.record.id
        for read in (
            lambda: run_sync(handle.get, known),
            lambda: run_sync(handle.list, limit=100),
            lambda: run_sync(handle.search, "tea number 9", mode="lexical", limit=50, floor=False),
            lambda: run_sync(handle.history, known),
            lambda: run_sync(handle.list, limit=100, touch=True),
            lambda: run_sync(handle.update, known, Patch(importance=1.0)),
            lambda: run_sync(carried, memory, [known], handle.scope),
        ):
            with pytest.raises(StorageError, match=f"{known}|cannot be read; `Operator.check`"):
                read()
        with pytest.raises(DamagedStoreError, match=f"record '{known}' is not as it was written; `Operator.check`"):
            run_sync(handle.get, known)
        (finding,) = [each for each in run_sync(memory.operator().check) if known in each.problem]
        assert finding.is_damage
        assert "record" in finding.problem


@pytest.mark.parametrize("left", ["chunk VALUES ({key}, 0, 0, 1, 0, NULL, NULL)", "lexical VALUES ({key}, X'', 0, 0)"])
def test_what_is_left_of_a_lost_record_refuses_a_new_one_in_words(tmp_path: Path, left: str) -> None:
    """A disk that reports a write that it did not do can lose the row of a record and keep what is derived from it."""
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        run_sync(memory.bind(user="ann").add, "tea")
    with closing(sqlite3.connect(path)) as db, db:
        ((owner, following),) = db.execute("SELECT id, next FROM owner")
        db.execute(f"INSERT INTO {left.format(key=owner << 32 | following)}")
    with (
        Memory(path, embedder=None) as memory,
        pytest.raises(StorageError, match="what was derived from a record cannot be read"),
    ):
        run_sync(memory.bind(user="ann").add, "cake")


def test_a_damaged_record_stays_known_as_damaged_when_others_change(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(whole.read_bytes())
    damage(path, "UPDATE record SET text = 'I never said that' WHERE text LIKE 'ann%number 9'")
    with Memory(path, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add, Draft("one more", session="s0"))
        run_sync(ann.delete_where, Where(tags_any=("n8",)))
        assert any(each.is_damage for each in run_sync(memory.operator().check))
        run_sync(ann.delete_where, Where(tags_any=("n9",)))  # what is damaged can be deleted
        assert all("counted wrongly" in each.problem for each in run_sync(memory.operator().check))


@pytest.mark.parametrize("damage", ["UPDATE lexical SET words = words + 1", "UPDATE chunk SET vector = zeroblob(9)"])
def test_a_repair_leaves_texts_in_the_pieces_of_the_chunker_they_were_written_with(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=WordEmbedder(), chunker=SentenceChunker(100)) as memory:
        run_sync(memory.bind(user="ann").add, "A long walk by the river. " * 40)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        pieces = db.execute("SELECT start, stop FROM chunk ORDER BY n").fetchall()
        db.execute(damage)
        assert len(pieces) > 10
        assert repair(path) == 1
        assert db.execute("SELECT start, stop FROM chunk ORDER BY n").fetchall() == pieces
    with Memory(path, embedder=WordEmbedder(), chunker=SentenceChunker(100)) as memory:
        assert run_sync(memory.operator().check) == []
