"""Searches that need the reader, and searches while it is busy."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_core import Memory
from memory_core.concurrency.loop import on_core
from memory_core.storage.sqlite import owner_index_cache
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.owner_index_cache import READY_CHANGES
from memory_core.storage.sqlite.store import SqliteStore
from tests.open_store import store_of


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    # With an embedder, the reader is asked for owed vectors after a write, and may be at that when a search comes.
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        yield memory


async def reader_of(memory: Memory) -> Connection:
    store = await on_core(store_of, memory)
    assert isinstance(store, SqliteStore)
    return store._reader


async def test_a_search_finds_the_same_however_much_its_owner_has(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that takes a moment is done at once; what may take longer is left to the reader."""
    ann = memory.bind(user="ann")

    async def finds_it() -> None:
        for _ in range(2):  # the first one loads what has changed
            assert (await ann.search("jasmine tea"))[0].record.text == "Ann drinks jasmine tea"

    await ann.add("Ann drinks jasmine tea")
    await finds_it()
    await ann.add_many(f"note {number}" for number in range(READY_CHANGES + 1))
    await finds_it()
    monkeypatch.setattr(owner_index_cache, "READY_ROWS", READY_CHANGES)
    await finds_it()


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
