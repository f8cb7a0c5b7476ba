"""Long reads of one owner, which nobody else's searches wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memory_core import AnyOf, BoundMemory, ClosedError, DataCondition, Draft, FieldCondition, Memory, Patch, Where
from memory_core.concurrency.loop import on_core
from memory_core.storage.sqlite import owner_index_cache, readers
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.store import SqliteStore
from tests.open_store import store_of

RECORDS = 40
EVEN = Where(matching=[DataCondition(("even",), "eq", value=True)])

Read = Callable[[BoundMemory], Coroutine[Any, Any, object]]

GROUP = AnyOf(EVEN.matching or ())
LONG: dict[str, Read] = {
    "a search with keywords": lambda eve: eve.search("tea", where=Where(keywords=["tea"])),
    "a search with conditions on data": lambda eve: eve.search("tea", where=EVEN),
    "a search by vector with a group": lambda eve: eve.search("tea", where=Where(matching=[GROUP])),
    "a search by substring": lambda eve: eve.search("tea", mode="substring"),
    "a search of many records that are not loaded": lambda eve: eve.search("tea"),
    "a search with conditions on many records": lambda eve: eve.search("tea", where=Where(min_importance=0.1)),
    "a page with conditions on data": lambda eve: eve.list(where=EVEN),
    "a page out of order": lambda eve: eve.list(order="importance"),
    "a large page": lambda eve: eve.list(limit=readers.LONG_PAGE + 1),
    "the collections": lambda eve: eve.collections(EVEN),
    "the counts": lambda eve: eve.stats(),
    "the counts with conditions on data": lambda eve: eve.stats(EVEN),
}


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "LONG_ROWS", RECORDS // 2)
    monkeypatch.setattr(owner_index_cache, "LONG_LOAD", RECORDS // 2)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    async with Memory(tmp_path / "memory.db", embedder=None) as memory:
        drafts = [Draft(f"tea {n}", data={"even": n % 2 == 0}, collection="c") for n in range(RECORDS)]
        await memory.bind(user="eve").add_many(drafts)
        await memory.bind(user="ann").add("Ann drinks jasmine tea")
        yield memory


async def file_of(memory: Memory) -> SqliteStore:
    store = await store_of(memory)
    assert isinstance(store, SqliteStore)
    return store


@asynccontextmanager
async def busy(memory: Memory) -> AsyncGenerator[None]:
    """Somebody's read, which takes as long as the block does."""
    go_on = threading.Event()

    async def begin() -> None:
        connection = await (await file_of(memory))._readers.long()
        connection.hand_over(lambda _: go_on.wait())

    await on_core(begin)
    try:
        yield
    finally:
        go_on.set()


@pytest.mark.parametrize("read", LONG.values(), ids=LONG.keys())
async def test_nobody_elses_searches_wait_for(memory: Memory, read: Read) -> None:
    eve, ann = memory.bind(user="eve"), memory.bind(user="ann")
    async with busy(memory):
        long = asyncio.create_task(read(eve))
        for _ in range(3):
            assert len(await ann.search("tea")) == 1
            assert len((await ann.list()).records) == 1
            assert len((await ann.list(where=Where(keywords=["nothing"], ids=[]))).records) == 0
            await asyncio.sleep(0.01)
        assert not long.done()
    await long


async def test_a_search_finds_the_same_whoever_read_for_it(memory: Memory) -> None:
    eve = memory.bind(user="eve")
    for where in (EVEN, Where(keywords=["7", "8"]), Where(min_importance=0.1)):
        expected = {record.id for record in (await eve.list(where=where, limit=100)).records}
        for _ in range(2):
            assert {hit.record.id for hit in await eve.search("tea", where=where, limit=100)} == expected


async def test_what_changes_while_conditions_are_asked_about_is_asked_again(memory: Memory) -> None:
    eve = memory.bind(user="eve")
    await eve.search("tea")  # loads the records
    store = await file_of(memory)
    ids = {record.text: record.id for record in (await eve.list(limit=100)).records}

    async def question() -> Any:
        def look(db: Any) -> Any:
            owner = find(db, eve.scope)
            assert owner is not None
            return store._owner_indexes.missing(db, ((owner, eve.scope),), EVEN)

        missing = await store._reader.run(look)
        assert missing is not None
        return await missing(store._readers)

    take_over = await on_core(question)
    await eve.update(ids["tea 0"], Patch(data={"even": False}))
    await eve.update(ids["tea 1"], Patch(data={"even": True}))
    await eve.delete(ids["tea 2"])
    await eve.add(Draft("tea 100", data={"even": True}))
    await eve.search("tea")  # what has changed has new rows now
    await on_core(store._reader.run, lambda _: take_over())
    found = {hit.record.text for hit in await eve.search("tea", where=EVEN, limit=100)}
    assert found == {"tea 1", "tea 100", *(f"tea {n}" for n in range(4, RECORDS, 2))}


async def test_records_that_go_while_they_are_loaded_are_not_found(memory: Memory) -> None:
    eve = memory.bind(user="eve")
    store = await file_of(memory)

    async def loading() -> Any:
        def look(db: Any) -> Any:
            owner = find(db, eve.scope)
            assert owner is not None
            return store._owner_indexes.missing(db, ((owner, eve.scope),), Where())

        missing = await store._reader.run(look)
        assert missing is not None
        return await missing(store._readers)

    take_over = await on_core(loading)
    await eve.delete_where(EVEN)
    await on_core(store._reader.run, lambda _: take_over())
    assert len(await eve.search("tea", limit=100)) == RECORDS // 2
    again = await on_core(store._reader.run, lambda _: take_over())  # once more, now that it is old
    assert again is None
    assert len(await eve.search("tea", limit=100)) == RECORDS // 2


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
                assert served.wait(60)
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
            assert await asyncio.to_thread(begun.wait, 60)
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


async def test_a_closed_store_opens_no_connection_for_a_long_read() -> None:
    async def fail() -> Any:
        raise AssertionError("a connection was opened")

    one: Any = None
    closed = Readers(one, fail)
    await closed.close()
    with pytest.raises(ClosedError):
        await closed.long()
