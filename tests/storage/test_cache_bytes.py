"""The number of bytes of owners' indexes that stay in memory: an option of the memory, for all owners of a file
together."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_core import InvalidInputError, Memory, Scope
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.retrieval.owner_index import OwnerIndex
from memory_core.storage.sqlite.owner_index_cache import OwnerIndexes
from memory_core.storage.sqlite.owners import find_all
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.values.limits import CACHE_BYTES
from memory_core.where.where import EVERYTHING

ANN, BEN = Scope(app="demo", user="ann"), Scope(app="demo", user="ben")


def store_at(path: Path, cache_bytes: int) -> SqliteStore:
    return SqliteStore(path, embedder=HashingEmbedder(), clock=lambda: datetime.now(UTC), cache_bytes=cache_bytes)


def limit_of(store: SqliteStore) -> int:
    return store._shared.owner_indexes.max_bytes  # pyright: ignore[reportPrivateUsage]  (nothing shows it)


@pytest.mark.parametrize(("most", "kept"), [(CACHE_BYTES, [BEN, ANN]), (0, [BEN])])
async def test_what_exceeds_the_limit_is_dropped_and_found_again(tmp_path: Path, most: int, kept: list[Scope]) -> None:
    path = tmp_path / "m.db"
    async with Memory(path, embedder=None, cache_bytes=most) as memory:
        for scope in (ANN, BEN):
            await memory.bind(app="demo", user=scope.user).add(f"{scope.user} drinks tea")
        for scope in (ANN, BEN, ANN, BEN):
            (hit,) = await memory.bind(app="demo", user=scope.user).search("tea")
            assert hit.record.text == f"{scope.user} drinks tea"
    indexes = OwnerIndexes(None, most)
    with closing(sqlite3.connect(path)) as db:

        def index_of(scope: Scope) -> OwnerIndex:
            return indexes.of(db, find_all(db, [scope])).joined(EVERYTHING)

        loaded = {scope: index_of(scope) for scope in (ANN, BEN)}
        assert [scope for scope in (BEN, ANN) if index_of(scope) is loaded[scope]] == kept


async def test_of_memories_on_one_file_the_largest_limit_counts(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    small, large = store_at(path, 1_000), store_at(path, 5_000)
    async with Memory(small), Memory(large):
        assert (limit_of(small), limit_of(large)) == (5_000, 5_000)
        async with Memory(store_at(path, 0)):
            assert limit_of(small) == 5_000


async def test_it_outlives_another_embedder(tmp_path: Path) -> None:
    store = store_at(tmp_path / "m.db", 7_000)
    async with Memory(store) as memory:
        await memory.bind(user="ann").add("Ann drinks tea")
        await memory.reembed(HashingEmbedder(dimensions=32))
        assert limit_of(store) == 7_000


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "1 GB", None])
def test_what_is_no_number_of_bytes_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match="cache_bytes must be a whole number from 0"):
        Memory(":memory:", embedder=None, cache_bytes=wrong)


def test_it_is_for_files(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cache_bytes and read_only are for memories in a file"):
        Memory(store_at(tmp_path / "m.db", 1_000), cache_bytes=1_000)
