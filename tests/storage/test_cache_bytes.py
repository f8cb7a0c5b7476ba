"""The memory that owners take is bounded: that of their indexes by an option, for all owners of a file together, and
that of what is kept beside them, whatever somebody sends."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_core import Draft, InvalidInputError, Memory, Scope
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.records.kinds import MESSAGE_KIND
from memory_core.retrieval.owner_index import OwnerIndex
from memory_core.storage.sqlite.owner_index_cache import MAX_NAMES, KnownNames, OwnerIndexes
from memory_core.storage.sqlite.owners import find_all
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.values.limits import CACHE_BYTES
from memory_core.where.where import EVERYTHING, Where

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


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
async def test_conditions_of_very_many_ids_do_not_stay_in_memory(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        await ann.add("Ann drinks tea")

        async def search(number: int) -> None:
            await ann.search("tea", where=Where(ids=[f"{number} {n}".ljust(500) for n in range(2_000)]))

        await search(0)
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1, 21):
            await search(number)
        after, _ = tracemalloc.get_traced_memory()
    assert after - before < 5_000_000  # the conditions have a megabyte each


async def test_the_names_of_authors_and_sessions_count_for_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with Memory(path, embedder=None) as memory:
        names = [f"{number}".ljust(500) for number in range(50)]
        named = [Draft("tea", kind=MESSAGE_KIND, author=name, session=name) for name in names]
        await memory.bind(app="demo", user="ann").add_many(named)
        await memory.bind(app="demo", user="ben").add_many([Draft("tea", kind=MESSAGE_KIND)] * 50)
    indexes = OwnerIndexes(None, CACHE_BYTES)
    with closing(sqlite3.connect(path)) as db:
        ann, ben = (indexes.of(db, find_all(db, [scope])).joined(EVERYTHING).nbytes for scope in (ANN, BEN))
    assert ann - ben > 50 * 2 * 500


def test_few_names_are_known_of_an_owner_however_many_there_were() -> None:
    known, words = KnownNames(), [f"name{number}" for number in range(3 * MAX_NAMES)]
    for word in words:
        known.correct([ANN], frozenset([word]), frozenset([word]))
    assert 0 < len(known.guess([ANN], frozenset(words))) <= MAX_NAMES


def test_counting_keeps_no_texts_in_memory(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory, closing(sqlite3.connect(":memory:")) as db:
        ann = memory.bind(user="ann").sync
        for number in range(60):
            ann.add(Draft(f"Chart {number}", data={"chart": "x" * 1_000_000}))
        (used,) = db.execute("PRAGMA hard_heap_limit = 50000000").fetchone()
        try:
            assert used == 50_000_000
            counted = ann.stats()
        finally:
            db.execute("PRAGMA hard_heap_limit = 0")
    assert counted.records == 60
    assert counted.bytes is not None
    assert counted.bytes > 60_000_000
