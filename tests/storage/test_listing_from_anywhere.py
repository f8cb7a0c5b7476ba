"""Pages that are read for other loops than the memory's own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memory_core import BoundMemory, ClosedError, Memory, run_sync
from memory_core.concurrency.loop import core_loop
from memory_core.storage.sqlite.store import SqliteStore
from tests.open_store import store_of


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory(tmp_path / "memory.db", embedder=None)
    run_sync(memory.bind(user="ann").add, "Ann drinks jasmine tea")
    return memory


async def texts(ann: BoundMemory) -> list[str]:
    return [record.text for record in (await ann.list()).records]


def test_a_caller_that_is_gone_before_its_page_harms_nobody(memory: Memory) -> None:
    ann, go_on = memory.bind(user="ann"), threading.Event()
    store = run_sync(store_of, memory)
    assert isinstance(store, SqliteStore)

    async def leave() -> None:
        asyncio.run_coroutine_threadsafe(store._reader.run(lambda _: go_on.wait()), core_loop().loop)
        asyncio.create_task(texts(ann))  # noqa: RUF006  (it is cancelled with its loop, behind the other)
        await asyncio.sleep(0)

    asyncio.run(leave())
    go_on.set()
    assert asyncio.run(texts(ann)) == ["Ann drinks jasmine tea"]
    run_sync(memory.close)


def test_whoever_lists_while_the_memory_closes_gets_a_page_or_is_told(memory: Memory) -> None:
    ann, closing = memory.bind(user="ann"), threading.Barrier(5)

    async def read_to_the_end() -> int:
        closing.wait()
        for count in range(1_000_000):
            try:
                assert await texts(ann) == ["Ann drinks jasmine tea"]
            except ClosedError:
                return count
        raise AssertionError("it never closed")

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(lambda: asyncio.run(read_to_the_end())) for _ in range(4)]
        closing.wait()
        run_sync(memory.close)
        for reader in readers:
            reader.result()
