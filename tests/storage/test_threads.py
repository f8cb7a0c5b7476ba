"""Which thread a search runs in: the core loop's own if it takes a moment, the reader's if it may take longer."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_core import BoundMemory, Memory
from memory_core.loop import on_core
from memory_core.storage.sqlite import owner_index_cache
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.owner_index_cache import READY_CHANGES
from memory_core.storage.sqlite.store import SqliteStore

CORE = "memory-core"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    # With an embedder, the reader is asked for owed vectors after a write, and may be at that when a search comes.
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        yield memory


async def reader_of(memory: Memory) -> Connection:
    store = await on_core(memory.ready)
    assert isinstance(store, SqliteStore)
    return store._reader


async def threads_of_a_search(memory: Memory, ann: BoundMemory) -> set[str]:
    """The names of the threads that asked the file."""
    reader, seen = await reader_of(memory), set[str]()
    db = reader._connection
    assert db is not None
    db.set_trace_callback(lambda _: seen.add(threading.current_thread().name))
    assert (await ann.search("jasmine tea"))[0].record.text == "Ann drinks jasmine tea"
    db.set_trace_callback(None)
    return seen


async def test_a_small_owner_is_searched_without_waking_a_thread_once_it_is_loaded(memory: Memory) -> None:
    ann = memory.bind(user="ann")
    await ann.add("Ann drinks jasmine tea")
    assert await threads_of_a_search(memory, ann) > {CORE}  # it has to be loaded
    assert await threads_of_a_search(memory, ann) == {CORE}
    await ann.add("Ann sails on Sundays")
    assert await threads_of_a_search(memory, ann) == {CORE}


async def test_an_owner_with_much_to_read_or_to_search_is_left_to_the_readers_thread(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = memory.bind(user="ann")
    await ann.add("Ann drinks jasmine tea")
    await ann.search("tea")
    await ann.add_many(f"note {number}" for number in range(READY_CHANGES + 1))
    assert await threads_of_a_search(memory, ann) > {CORE}
    assert await threads_of_a_search(memory, ann) == {CORE}
    monkeypatch.setattr(owner_index_cache, "READY_ROWS", READY_CHANGES)
    for _ in range(2):
        assert await threads_of_a_search(memory, ann) > {CORE}


async def test_a_search_waits_its_turn_while_the_reader_is_busy(memory: Memory) -> None:
    ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
    await ann.add("Ann drinks jasmine tea")
    await ann.search("tea")
    reader, has_begun, may_end = await reader_of(memory), threading.Event(), threading.Event()

    def long(_: sqlite3.Connection) -> None:
        has_begun.set()
        may_end.wait(30)

    busy = asyncio.create_task(on_core(reader.run, long))
    await asyncio.to_thread(has_begun.wait, 30)
    found = asyncio.create_task(ann.search("tea"))
    await bob.add("Bob drinks coffee")  # what does not read goes on
    assert not found.done()
    may_end.set()
    assert [hit.record.text for hit in await found] == ["Ann drinks jasmine tea"]
    await busy
