"""Reads take turns: one that takes long goes on beside the others, and nobody waits for it but for its own index."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from memory_core import (
    AnyOf,
    BoundMemory,
    ClosedError,
    DataCondition,
    Draft,
    FieldCondition,
    Memory,
    Patch,
    Scope,
    StorageError,
    Where,
)
from memory_core.concurrency.loop import on_core
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.storage.sqlite import readers
from memory_core.storage.sqlite.owner_index_cache import OwnerIndexes
from memory_core.storage.sqlite.owners import find_all
from memory_core.storage.sqlite.readers import MOST_CONNECTIONS, MOST_OF_OWNER, Readers
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.transfer.jsonl import exported
from memory_core.where.where import EVERYTHING
from tests.open_store import store_of

RECORDS = 40
EVEN = Where(matching=[DataCondition(("even",), "eq", value=True)])
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3000000000) SELECT count(*) FROM n"
EVE = Scope("default", "eve")
MANY = 15_000
"""So many reads begin with more steps than a brief one may take, as SQLite counts them for a statement."""


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    async with Memory(tmp_path / "memory.db", embedder=None) as memory:
        drafts = [Draft(f"tea {n}", data={"even": n % 2 == 0}, collection="c") for n in range(RECORDS)]
        await memory.bind(user="eve").add_many(drafts)
        await memory.bind(user="ann").add("Ann drinks jasmine tea")
        yield memory


async def readers_of(memory: Memory) -> Readers:
    store = await store_of(memory)
    assert isinstance(store, SqliteStore)
    return store._reader


async def on_readers(memory: Memory, work: Callable[[sqlite3.Connection], object], **more: Any) -> object:
    reader = await readers_of(memory)
    return await on_core(lambda: reader.run(work, **more))


@asynccontextmanager
async def busy(memory: Memory, count: int = 1, **more: Any) -> AsyncGenerator[None]:
    """Reads that take as long as the block does."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    def read(_: sqlite3.Connection) -> None:
        begun.release()
        assert go_on.wait(300)

    running = [asyncio.create_task(on_readers(memory, read, **more)) for _ in range(count)]
    for _ in running:
        assert await asyncio.to_thread(begun.acquire, timeout=300)
    try:
        yield
        assert not any(task.done() for task in running)
    finally:
        go_on.set()
        await asyncio.wait(running)


async def everything_of(someone: BoundMemory) -> None:
    assert await someone.search("tea")
    assert await someone.search("tea", where=EVEN) == [] or someone.scope == EVE
    assert await someone.search("tea", mode="substring")
    assert (await someone.list()).records
    assert (await someone.stats()).records
    assert await someone.collections() == (["c"] if someone.scope == EVE else [])


async def downloaded(memory: Memory) -> int:
    """The number of lines of Eve's export."""
    return sum([part.count(b"\n") async for part in exported(memory, owner=EVE)])


@pytest.mark.parametrize("count", [1, 3, MOST_CONNECTIONS - 1])
async def test_nobody_waits_for_reads_that_take_long(memory: Memory, count: int) -> None:
    async with busy(memory, count):
        await everything_of(memory.bind(user="ann"))
        await everything_of(memory.bind(user="eve"))


async def test_when_all_connections_are_taken_the_next_read_waits_for_the_first_that_ends(memory: Memory) -> None:
    async with busy(memory, MOST_CONNECTIONS):
        waiting = asyncio.create_task(memory.bind(user="ann").list())
        await asyncio.sleep(5 * readers.TURN_SECONDS)
        assert not waiting.done()
    assert len(await waiting) == 1


async def test_of_one_owner_only_a_few_reads_go_on_so_that_others_have_connections(memory: Memory) -> None:
    eve, ann = memory.bind(user="eve"), memory.bind(user="ann")
    async with busy(memory, MOST_OF_OWNER, of=[EVE]):
        waiting = [asyncio.create_task(eve.list()) for _ in range(2 * MOST_CONNECTIONS)]
        downloads = [asyncio.create_task(downloaded(memory)) for _ in range(MOST_CONNECTIONS)]
        await everything_of(ann)
        assert await eve.search("tea")
        assert not any(task.done() for task in [*waiting, *downloads])
    assert [len(await task) for task in waiting] == [RECORDS] * len(waiting)
    assert [await task for task in downloads] == [RECORDS + 2] * len(downloads)


async def test_small_reads_go_on_after_many_thousands(memory: Memory) -> None:
    ann = memory.bind(user="ann")
    for _ in range(MANY):
        assert len(await ann.list(limit=1)) == 1


async def test_an_index_is_used_by_one_search_at_a_time(memory: Memory) -> None:
    eve, ann = memory.bind(user="eve"), memory.bind(user="ann")
    both = ann.sharing({"eve": eve})
    async with busy(memory, of=[EVE], is_search=True):
        waiting = [asyncio.create_task(one.search("tea")) for one in (eve, both)]
        assert len(await ann.search("tea")) == 1
        assert len(await eve.list()) == RECORDS
        assert not any(task.done() for task in waiting)
    for task in waiting:
        assert await task


async def test_an_erasure_forgets_the_index_after_the_search_that_uses_it(memory: Memory) -> None:
    eve = memory.bind(user="eve")
    async with busy(memory, of=[EVE], is_search=True):
        erasing = asyncio.create_task(eve.erase())
        await asyncio.sleep(5 * readers.TURN_SECONDS)
        assert not erasing.done()
    await erasing
    assert await eve.search("tea") == []


async def test_a_statement_ends_when_its_caller_is_gone(memory: Memory) -> None:
    begun, ended = threading.Event(), threading.Event()

    def read(db: sqlite3.Connection) -> None:
        begun.set()
        try:
            db.execute(ENDLESS).fetchone()
        finally:
            ended.set()

    reading = asyncio.create_task(on_readers(memory, read))
    assert await asyncio.to_thread(begun.wait, 300)
    reading.cancel()
    assert await asyncio.to_thread(ended.wait, 300)
    await everything_of(memory.bind(user="ann"))


async def test_a_caller_that_is_gone_before_its_turn_is_left_out(memory: Memory) -> None:
    called: list[object] = []
    async with busy(memory, MOST_CONNECTIONS):
        waiting = asyncio.create_task(on_readers(memory, called.append))
        await asyncio.sleep(5 * readers.TURN_SECONDS)
        waiting.cancel()
        await asyncio.wait([waiting])
        await on_core(asyncio.sleep, 0)  # the core loop knows of it by now
    await everything_of(memory.bind(user="ann"))
    assert called == []


async def test_closing_ends_what_is_read_and_what_waits(tmp_path: Path) -> None:
    memory = await Memory(tmp_path / "memory.db", embedder=None).open()
    await memory.bind(user="ann").add("Ann drinks jasmine tea")
    begun = threading.Semaphore(0)

    def read(db: sqlite3.Connection) -> None:
        begun.release()
        db.execute(ENDLESS).fetchone()

    reading = [asyncio.create_task(on_readers(memory, read)) for _ in range(MOST_CONNECTIONS)]
    for _ in reading:
        assert await asyncio.to_thread(begun.acquire, timeout=300)
    reading.append(asyncio.create_task(memory.bind(user="ann").list()))
    await asyncio.sleep(5 * readers.TURN_SECONDS)
    await memory.close()
    for task in reading:
        with pytest.raises(ClosedError):
            await task


async def test_reads_wait_for_each_other_where_no_other_connection_can_be_opened(tmp_path: Path) -> None:
    async def fail() -> Any:
        raise StorageError("no more descriptors")

    async with Memory(tmp_path / "memory.db", embedder=None) as memory:
        await memory.bind(user="ann").add("Ann drinks jasmine tea")
        (await readers_of(memory))._connect = fail
        async with busy(memory):
            waiting = asyncio.create_task(memory.bind(user="ann").list())
            await asyncio.sleep(5 * readers.TURN_SECONDS)
            assert not waiting.done()
        assert len(await waiting) == 1


async def test_in_memory_reads_wait_for_each_other() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        await memory.bind(user="ann").add("Ann drinks jasmine tea")
        async with busy(memory):
            waiting = asyncio.create_task(memory.bind(user="ann").list())
            await asyncio.sleep(5 * readers.TURN_SECONDS)
            assert not waiting.done()
        assert len(await waiting) == 1


async def test_reads_at_random_beside_writes_find_what_they_should(memory: Memory, monkeypatch: Any) -> None:
    monkeypatch.setattr(readers, "TURN_SECONDS", 0.0)  # every read loses its turn to the next
    users = [memory.bind(user=f"user {n}") for n in range(12)]
    for user in users:
        await user.add_many([f"{user.scope.user} drinks tea {n}" for n in range(20)])

    async def work(user: BoundMemory) -> None:
        for n in range(8):
            found = await user.search("tea", limit=100)
            assert len(found) == len(await user.list(limit=100)) == 20 + n
            assert {hit.record.text.split(" drinks")[0] for hit in found} == {user.scope.user}
            await user.add(f"{user.scope.user} drinks coffee and tea {n}")

    await asyncio.gather(*map(work, users))
    shared = users[0].sharing({f"of {n}": user for n, user in enumerate(users) if n})
    assert len(await shared.search("tea", limit=1_000)) == 12 * 28


@pytest.mark.parametrize("of", ["all records", "what is new"])
def test_an_index_is_whole_after_a_search_that_was_broken_off(tmp_path: Path, of: str) -> None:
    path, embedder = tmp_path / "memory.db", HashingEmbedder(dimensions=8)
    with Memory(path, embedder=embedder) as memory:
        eve = memory.bind(user="eve").sync
        eve.add_many([f"tea {n}" for n in range(RECORDS)])
        for steps in range(20, 3_000, 60):
            with closing(sqlite3.connect(path)) as db:
                indexes, reached = OwnerIndexes(embedder.fingerprint, 1 << 20), find_all(db, [EVE])
                if of == "what is new":
                    indexes.of(db, reached)
                    eve.update(eve.list(limit=1).records[0].id, Patch(text=f"coffee {steps}"))
                    eve.add(f"water {steps}")
                reached = find_all(db, [EVE])
                db.set_progress_handler(lambda: True, steps)
                try:
                    indexes.of(db, reached)
                except sqlite3.OperationalError as error:
                    assert str(error) == "interrupted"  # noqa: PT017
                db.set_progress_handler(None, 0)
                index = indexes.of(db, reached).joined(EVERYTHING)
                (count,) = db.execute("SELECT count(*) FROM record").fetchone()
                assert index.dense is not None
                assert int(index.alive.values.sum()) == len(index.row_of) == count


def test_an_index_that_met_damaged_terms_is_loaded_again_when_they_are_mended(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        eve = memory.bind(user="eve").sync
        eve.add_many(["green tea", "black tea"])
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            indexes = OwnerIndexes(None, 1 << 20)
            indexes.of(db, find_all(db, [EVE]))
            eve.add("white tea")
            key, terms = db.execute("SELECT key, terms FROM lexical ORDER BY key DESC").fetchone()
            db.execute("UPDATE lexical SET terms = terms || x'00' WHERE key = ?", (key,))
            with pytest.raises(StorageError):
                indexes.of(db, find_all(db, [EVE]))
            db.execute("UPDATE lexical SET terms = ? WHERE key = ?", (terms, key))
            index = indexes.of(db, find_all(db, [EVE])).joined(EVERYTHING)
            assert len(index.keys) == len(index.lengths) == len(index.row_of) == 3


async def test_a_search_finds_the_same_with_and_without_what_is_cached(memory: Memory) -> None:
    eve = memory.bind(user="eve")
    for where in (EVEN, Where(keywords=["7", "8"]), Where(min_importance=0.1)):
        expected = {record.id for record in (await eve.list(where=where, limit=100)).records}
        for _ in range(2):
            assert {hit.record.id for hit in await eve.search("tea", where=where, limit=100)} == expected


async def test_a_field_that_reads_change_is_never_remembered(memory: Memory) -> None:
    eve, unread = memory.bind(user="eve"), Where(matching=[AnyOf([FieldCondition("access_count", "eq", 0)])])
    assert len(await eve.search("tea", where=unread, limit=100)) == RECORDS
    await eve.list(limit=10, touch=True)
    assert len(await eve.search("tea", where=unread, limit=100)) == RECORDS - 10


async def test_nobody_waits_for_the_analysis_of_a_long_text(tmp_path: Path) -> None:
    begun, served = threading.Event(), threading.Event()

    class Waiting:
        """Splits a long text only after somebody else was served."""

        def split(self, text: str) -> list[tuple[int, int]]:
            if len(text) > 100:
                begun.set()
                assert served.wait(300)
            return [(0, len(text))]

    async with Memory(tmp_path / "memory.db", embedder=None, chunker=Waiting()) as memory:
        ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
        short = await ann.add("tea")
        writes: list[Callable[[], Coroutine[Any, Any, object]]] = [
            lambda: ann.add("tea " * 1_000),
            lambda: ann.add("お茶" * 500),
            lambda: ann.add_many(["tea " * 300] * 2),
            lambda: ann.update(short.id, Patch(text="tea " * 1_000)),
            lambda: ann.put_many([Draft("tea " * 1_000, source_key="k")]),
        ]
        for write in writes:
            begun.clear()
            served.clear()
            writing = asyncio.create_task(write())
            assert await asyncio.to_thread(begun.wait, 300)
            assert (await bob.list()).records == ()
            assert not writing.done()
            served.set()
            await writing
        assert len(await ann.search("tea", limit=100)) == 5


async def test_long_texts_that_are_still_analysed_are_written_before_the_memory_closes(tmp_path: Path) -> None:
    memory = await Memory(tmp_path / "memory.db", embedder=None).open()
    ann = memory.bind(user="ann")
    adds = [asyncio.create_task(ann.add(f"{n} " + "tea " * 10_000)) for n in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    await memory.close()
    kept = [
        result for result in await asyncio.gather(*adds, return_exceptions=True) if not isinstance(result, Exception)
    ]
    async with Memory(tmp_path / "memory.db", embedder=None) as again:
        assert (await again.bind(user="ann").stats()).records == len(kept)


async def test_a_connection_keeps_8_mb_of_the_pages_that_it_has_read(memory: Memory) -> None:
    store = await store_of(memory)
    assert isinstance(store, SqliteStore)

    def kibibytes(db: sqlite3.Connection) -> int:
        return -int(db.execute("PRAGMA cache_size").fetchone()[0])

    assert await on_readers(memory, kibibytes) == 8 * 1_024
    assert await on_core(lambda: store._shared.writer.write(kibibytes)) == 8 * 1_024
