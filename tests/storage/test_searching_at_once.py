"""Searches that are so brief that nobody is woken up for them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from memory_core import BoundMemory, Draft, Hit, Memory, Where
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.requests import SearchRequest
from memory_core.storage.sqlite.owner_index_cache import READY_ROWS
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.store import SqliteStore
from tests.open_store import store_of

TEA = Where(collection="tea")


async def found(ann: BoundMemory) -> list[Hit]:
    return await ann.search("jasmine tea 7", where=TEA, mode="vector", limit=5)


async def is_ready(ann: BoundMemory) -> bool:
    store = await store_of(ann)
    assert isinstance(store, SqliteStore)
    request = SearchRequest(text="tea", limit=5, mode="vector", where=TEA, explain=False)

    def look(db: sqlite3.Connection) -> bool:
        owner = find(db, ann.scope)
        assert owner is not None
        return store._owner_indexes.is_ready(((owner, ann.scope),), request)

    return await store._reader.run(look)


async def test_a_few_records_among_many_are_found_the_same_at_once(tmp_path: Path) -> None:
    embedder = HashingEmbedder(dimensions=16)
    async with Memory(tmp_path / "memory.db", embedder=embedder) as memory:
        ann = memory.bind(user="ann")
        await ann.add_many([f"coffee {n}" for n in range(READY_ROWS + 1)])
        await ann.add_many([Draft(f"jasmine tea {n}", collection="tea") for n in range(20)])
        assert not await is_ready(ann)
        first = await found(ann)
        assert await is_ready(ann)
        assert await found(ann) == first
        assert first[0].record.text == "jasmine tea 7"
        await ann.delete(first[0].record.id)
        again = await ann.add(Draft("jasmine tea 7", collection="tea"))
        assert await is_ready(ann)
        assert (await found(ann))[0].record.id == again.id
        await ann.add_many([Draft(f"green tea {n}", collection="tea") for n in range(40)])
        assert not await is_ready(ann)
        assert len(await found(ann)) == 5
