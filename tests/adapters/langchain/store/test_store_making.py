"""Stores made as LangGraph's own are: from a path and a configuration."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from memory_core import BoundMemory, FingerprintError, InvalidInputError, Memory, run_sync
from memory_core.testing import Ticks
from memory_langchain import AsyncMemoryStore, LangChainEmbedder, MemoryStore

FAKE = DeterministicFakeEmbedding(size=6)


class AsyncOnly(Embeddings):
    """Embeddings without synchronous methods, whose client belongs to one event loop."""

    def __init__(self) -> None:
        self.loops: set[int] = set()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.loops.add(id(asyncio.get_running_loop()))
        return FAKE.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return (await self.aembed_documents([text]))[0]


async def afunction(texts: list[str]) -> list[list[float]]:
    return FAKE.embed_documents(texts)


def function(texts: list[str]) -> list[list[float]]:
    return FAKE.embed_documents(texts)


@pytest.mark.parametrize("embed", [FAKE, function, afunction, AsyncOnly()], ids=["object", "sync", "async", "aonly"])
def test_any_embed_of_langgraph_makes_the_vectors(tmp_path: Path, embed: Any) -> None:
    index: Any = {"dims": 6, "embed": embed, "fields": ["text"]}
    for _ in range(2):  # the second time over the same file
        with MemoryStore.from_conn_string(tmp_path / "memory.db", index=index) as store:
            assert store.index_config == index
            store.put(("a",), "k", {"text": "tea", "other": "engine"})
            (found,) = store.search(("a",), query="tea")
            assert found.score == pytest.approx(1, abs=1e-3)
    if isinstance(embed, AsyncOnly):
        assert len(embed.loops) == 2  # one for each time it was opened


def counted(texts: list[str]) -> list[list[float]]:
    """As in many examples of LangGraph: a text without any of these words has the vector zero."""
    return [[float(text.count(word)) for word in ("tea", "cat", "dog")] for text in texts]


def test_a_text_without_a_direction_is_stored_and_near_to_nothing_else() -> None:
    index: Any = {"dims": 3, "embed": counted, "fields": ["text"]}
    mine, theirs = MemoryStore.from_conn_string(":memory:", index=index), InMemoryStore(index=index)
    texts = {"a": "I like tea", "b": "The engine is loud", "c": "A cat and a dog"}
    for store in (mine, theirs):
        store.batch([PutOp(("x",), key, {"text": text}) for key, text in texts.items()])
    for query, nearest in (("tea", "a"), ("cat", "c")):
        found = [[item.key for item in store.search(("x",), query=query)] for store in (mine, theirs)]
        assert [keys[0] for keys in found] == [nearest, nearest]
        assert found[0][-1] == "b"
        assert len(found[0]) == len(found[1]) == 3
    assert len(mine.search(("x",), query="engine")) == 3  # where theirs divides by zero
    mine.put(("x",), "d", {"text": "More tea"})
    assert {item.key for item in mine.search(("x",), query="tea", limit=2)} == {"a", "d"}


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    for embed, refused in ((function, False), (afunction, True)):
        index: Any = {"dims": 6, "embed": embed}
        store = MemoryStore.from_conn_string(str(tmp_path / "memory.db"), index=index)
        if refused:
            with pytest.raises(FingerprintError):
                store.setup()
        else:
            with store:
                store.put(("a",), "k", {"text": "tea"})


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"dims": 6}, "embed"),
        ({"embed": FAKE}, "dims"),
        ({"dims": 6, "embed": FAKE, "field": ["text"]}, "'field'"),
        ({"dims": 6, "embed": FAKE, "distance_type": "hamming"}, "'hamming'"),
        (["text"], "mapping"),
    ],
    ids=repr,
)
def test_an_index_that_means_nothing_is_refused(index: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        MemoryStore.from_conn_string(":memory:", index=index)
    with pytest.raises(InvalidInputError, match="address of a server"):
        MemoryStore.from_conn_string("postgresql://localhost/db")


@pytest.mark.parametrize(
    ("distance", "same", "other"), [("cosine", 1, 0), ("inner_product", 1, 0), ("l2", 0, -(2**0.5))]
)
def test_a_distance_type_changes_the_scores_and_never_the_order(distance: str, same: float, other: float) -> None:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[3, 0] if "tea" in text else [0, 1] for text in texts]

    index: Any = {"dims": 2, "embed": embed, "fields": ["text"], "distance_type": distance}
    with MemoryStore.from_conn_string(":memory:", index=index) as store:
        store.put(("a",), "tea", {"text": "jasmine tea"})
        store.put(("a",), "boat", {"text": "a boat"})
        found = {item.key: item.score for item in store.search(("a",), query="tea")}
    assert list(found) == ["tea", "boat"]
    assert found == {"tea": pytest.approx(same, abs=1e-3), "boat": pytest.approx(other, abs=1e-3)}


def test_ann_index_config_changes_nothing() -> None:
    index = {"dims": 6, "embed": FAKE, "fields": ["text"]}
    configs: list[Any] = [index, {**index, "ann_index_config": {"kind": "hnsw", "vector_type": "halfvec"}}]
    scores: list[dict[str, float | None]] = []
    for each in configs:
        with MemoryStore.from_conn_string(":memory:", index=each) as store:
            for number in range(20):
                store.put(("a",), f"{number}", {"text": f"tea {number}"})
            scores.append({item.key: item.score for item in store.search(("a",), query="tea 7", limit=20)})
    assert scores[0] == scores[1]
    assert next(iter(scores[0])) == "7"


def test_without_an_index_nothing_is_embedded_and_items_with_the_words_come_first(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with MemoryStore.from_conn_string(file, index=None) as store:
        assert store.index_config is None
        store.put(("a",), "tea", {"text": "jasmine tea"})
        store.put(("a",), "boat", {"text": "a boat"})
        assert [item.key for item in store.search(("a",), query="Which tea?")] == ["tea", "boat"]
    with Memory(file, embedder=None) as memory:
        assert [hit.similarity for hit in run_sync(memory.bind(user="everyone").search, "tea")] == [None]


def test_the_with_block_closes_what_it_opened_and_nothing_else(memory: Memory, ann: BoundMemory) -> None:
    with MemoryStore.from_conn_string(":memory:") as store:
        store.put(("a",), "k", {"text": "tea"})
    with pytest.raises(Exception, match="closed"):
        store.get(("a",), "k")
    with MemoryStore(ann) as shared:
        shared.put(("a",), "k", {"text": "tea"})
    assert run_sync(ann.list).records


async def test_the_async_store_is_awaited_where_langgraphs_is(tmp_path: Path) -> None:
    async with AsyncMemoryStore.from_conn_string(tmp_path / "memory.db") as store:
        await store.setup()
        await store.start_ttl_sweeper()
        await store.aput(("a",), "k", {"text": "Ann drinks jasmine tea"})
        (found,) = await store.asearch(("a",), query="jasmine")
        assert found.key == "k"
        assert await store.sweep_ttl() == 0
        assert await store.stop_ttl_sweeper()


def test_the_sweeper_deletes_what_has_expired_until_it_is_stopped(
    memory: Memory, ann: BoundMemory, clock: Ticks
) -> None:
    store = MemoryStore(ann, ttl={"default_ttl": 1, "sweep_interval_minutes": 60})
    store.put(("a",), "k", {"text": "tea"})
    clock.advance(minutes=2)
    store.start_ttl_sweeper(0.001)
    while run_sync(memory.operator().owners):  # those that have records, expired ones included
        time.sleep(0.01)
    assert store.stop_ttl_sweeper()
    assert not [thread for thread in threading.enumerate() if "sweeper" in thread.name]
    with pytest.raises(InvalidInputError, match="sweep_interval_minutes"):
        store.start_ttl_sweeper(-1)


async def test_the_async_store_stops_its_sweeper_without_blocking_the_loop(
    ann: BoundMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, sweeping, may_end = AsyncMemoryStore(ann), threading.Event(), threading.Event()

    async def sweep(_: BoundMemory) -> int:  # one that waits for another process
        sweeping.set()
        await asyncio.to_thread(may_end.wait)
        return 0

    monkeypatch.setattr(BoundMemory, "sweep", sweep)
    await store.start_ttl_sweeper(0.0001)
    await asyncio.to_thread(sweeping.wait)
    stopped = asyncio.create_task(store.stop_ttl_sweeper(timeout=300))
    await asyncio.sleep(0)
    may_end.set()  # would never be reached if the loop waited for the sweep
    assert await stopped


def test_a_started_sweeper_can_be_waited_for_and_cancelled(ann: BoundMemory) -> None:
    store = MemoryStore(ann, ttl={"default_ttl": 1})
    started = store.start_ttl_sweeper()
    assert store.start_ttl_sweeper() is started
    assert not started.done()
    assert started.cancel()
    assert store.stop_ttl_sweeper()
    again = store.start_ttl_sweeper()
    assert store.stop_ttl_sweeper()
    assert again.result(timeout=300) is None


async def test_a_started_sweeper_of_the_async_store_is_a_task(ann: BoundMemory) -> None:
    store = AsyncMemoryStore(ann)
    task = await store.start_ttl_sweeper()
    assert task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert await store.stop_ttl_sweeper()


async def test_a_long_item_is_found_by_words_at_once_and_by_meaning_once_settled(ann: BoundMemory) -> None:
    store = MemoryStore(ann, fields=["text"])
    await store.aput(("a",), "long", {"text": "The mast is made of spruce. " * 1_000})
    assert (await MemoryStore(ann, mode="lexical").asearch(("a",), query="spruce mast"))[0].key == "long"
    await store.settled(timeout=60)
    (found,) = await store.asearch(("a",), query="spruce mast")
    assert found.score is not None


def test_embeddings_with_both_forms_are_called_synchronously(tmp_path: Path) -> None:
    class Both(AsyncOnly):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return FAKE.embed_documents(texts)

        def embed_query(self, text: str) -> list[float]:
            return FAKE.embed_query(text)

    both = Both()
    with Memory(tmp_path / "memory.db", embedder=LangChainEmbedder(both, name="both", dimensions=6)) as memory:
        handle = memory.bind(user="ann")
        run_sync(handle.add, "tea")
        assert run_sync(handle.search, "tea", mode="vector", floor=False)
    assert both.loops == set()
