"""Searches and writes that are under way when the embedder changes."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core import Draft, Memory, run_sync
from memory_core.models import Mode
from memory_core.protocols import Maintained
from memory_core.storage.qdrant.settings import Patience
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing.base import texts
from tests.storage.embedders import DIMENSIONS, WordEmbedder
from tests.storage.qdrant.conftest import Open
from tests.storage.qdrant.engine import Call, Fault
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import settle, wait_for


class TurnedEmbedder(WordEmbedder):
    """Its words are in other dimensions."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        return np.roll(super()._vector(text), 1)


class ReplacedEmbedder(WordEmbedder):
    """Another embedder takes its place while it embeds a query."""

    def __init__(self, successor: WordEmbedder) -> None:
        super().__init__()
        self.successor = successor
        self.store: Maintained | None = None

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        made = await super().embed_query(text)
        if self.store is not None:
            await self.store.reembed(self.successor)
        return made


@pytest.mark.parametrize("dimensions", [DIMENSIONS, 96])
@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_a_search_that_began_before_the_embedder_changed_finds_as_before(mode: Mode, dimensions: int) -> None:
    embedder = ReplacedEmbedder(TurnedEmbedder("successor", dimensions))
    store = QdrantStore(":memory:", embedder=embedder)
    with Memory(store) as memory:
        ann = memory.bind(user="ann")
        long = " ".join(f"The train to Bergen leaves at {n}." for n in range(200))
        run_sync(ann.add_many, ["Ann drinks jasmine tea", "Bob drinks coffee", Draft(long)])
        expected = run_sync(ann.search, "jasmine tea", mode=mode, floor=False)
        embedder.store = store
        assert run_sync(ann.search, "jasmine tea", mode=mode, floor=False) == expected
        assert texts(run_sync(ann.search, "jasmine tea", mode=mode, limit=1)) == ["Ann drinks jasmine tea"]


class ClosableEmbedder(ReplacedEmbedder):
    """Embeds no more once it is closed."""

    is_closed = False

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        made = await super().embed_query(text)
        if self.is_closed:
            raise RuntimeError("the model is closed")
        return made

    async def close(self) -> None:
        self.is_closed = True


def test_a_search_whose_embedder_is_replaced_and_closed_uses_the_new_one() -> None:
    embedder = ClosableEmbedder(TurnedEmbedder("successor", 96))
    store = QdrantStore(":memory:", embedder=embedder)
    with Memory(store) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, ["Ann drinks jasmine tea", "Bob drinks coffee"])
        embedder.store = store
        assert texts(run_sync(ann.search, "jasmine tea", mode="vector", limit=1)) == ["Ann drinks jasmine tea"]
        assert embedder.is_closed


def test_an_embedder_that_takes_its_own_place_stays_open() -> None:
    embedder = ClosableEmbedder(WordEmbedder())
    with Memory(QdrantStore(":memory:", embedder=embedder)) as memory:
        assert run_sync(memory.reembed, embedder) == 0
        assert not embedder.is_closed
    assert embedder.is_closed


NEW = WordEmbedder("the successor", 96)


def test_a_write_that_arrives_after_the_embedder_has_changed_is_found_by_meaning(
    connect: Open, loopback: Loopback
) -> None:
    refused, has_switched, is_passed = threading.Event(), threading.Event(), threading.Event()
    refusals: list[Call] = []

    def decide(call: Call) -> Fault | None:
        sent = call.body.model_dump_json() if call.is_write else ""
        if NEW.fingerprint.name in sent:
            has_switched.set()
        if has_switched.is_set() and call.name == "scroll":
            is_passed.set()
        if "arrives late" not in sent or is_passed.is_set() or len(refusals) > 20:
            return None
        refused.set()
        refusals.extend([call] if has_switched.is_set() else [])
        return Fault.UNAVAILABLE

    loopback.fail(decide)
    memory = connect(patience=Patience(attempts=10_000, first_pause_seconds=0.001, longest_pause_seconds=0.001))
    ann = memory.bind(user="ann")
    run_sync(ann.add, "Bob drinks coffee")

    async def change_the_embedder_meanwhile() -> None:
        writing = asyncio.create_task(ann.add("This arrives late"))
        await asyncio.to_thread(refused.wait)
        await memory.reembed(NEW)
        await writing

    asyncio.run(change_the_embedder_meanwhile())
    settle(loopback)
    assert texts(run_sync(ann.search, "This arrives late", mode="vector", limit=1)) == ["This arrives late"]


def test_what_another_process_wrote_with_the_old_embedder_is_found_by_meaning_once_the_store_is_opened_again(
    connect: Open,
) -> None:
    here, there = connect(), connect()
    run_sync(there.reembed, NEW)
    run_sync(here.bind(user="ann").add, "Ann drinks jasmine tea")
    run_sync(here.close)
    ann = connect(embedder=NEW).bind(user="ann")
    wait_for(lambda: texts(run_sync(ann.search, "jasmine tea", mode="vector")) == ["Ann drinks jasmine tea"])


def test_a_server_that_fails_after_the_embedder_has_changed_does_not_undo_the_change(
    connect: Open, loopback: Loopback
) -> None:
    memory = connect()
    ann = memory.bind(user="ann")
    run_sync(ann.add, "Ann drinks jasmine tea")
    has_switched = threading.Event()

    def decide(call: Call) -> Fault | None:
        if call.is_write and call.collection.endswith("-meta"):
            has_switched.set()
        return Fault.UNAVAILABLE if has_switched.is_set() and call.name == "scroll" else None

    loopback.fail(decide)
    assert run_sync(memory.reembed, NEW) == 1
    assert has_switched.is_set()
    loopback.fail()
    run_sync(ann.add, "Bob drinks coffee", embed="later")
    settle(loopback)
    assert texts(run_sync(ann.search, "jasmine tea", mode="vector", limit=1)) == ["Ann drinks jasmine tea"]
    assert texts(run_sync(ann.search, "coffee", mode="vector", limit=1)) == ["Bob drinks coffee"]
