"""Items that expire."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.store.base import GetOp, PutOp

from memory_core import BoundMemory, InvalidInputError, run_sync
from memory_core.testing import Ticks
from memory_langchain import AsyncMemoryStore, MemoryStore


def test_an_item_expires_after_its_own_or_the_default_time(ann: BoundMemory, clock: Ticks) -> None:
    store = MemoryStore(ann, ttl={"default_ttl": 60})
    store.put(("a",), "default", {"v": 1})
    store.put(("a",), "short", {"v": 1}, ttl=0.5)
    store.put(("a",), "never", {"v": 1}, ttl=None)
    clock.advance(minutes=1)
    assert store.get(("a",), "short") is None
    clock.advance(minutes=60)
    assert [item.key for item in store.search(("a",), query="v")] == ["never"]
    assert [item.key for item in store.search(("a",))] == ["never"]


@pytest.mark.parametrize("omit_expired", [True, False])
def test_expired_items_are_never_returned(ann: BoundMemory, clock: Ticks, *, omit_expired: bool) -> None:
    store = MemoryStore(ann, ttl={"omit_expired": omit_expired})
    store.put(("a",), "k", {"v": "tea"}, ttl=1)
    clock.advance(minutes=1)
    assert store.get(("a",), "k") is None
    assert store.search(("a",)) == store.search(("a",), query="tea") == store.search((), filter={"v": "tea"}) == []
    assert store.list_namespaces() == []


@pytest.mark.parametrize("config", [None, {}, {"refresh_on_read": True}], ids=repr)
def test_reading_puts_the_expiry_off_by_default(ann: BoundMemory, clock: Ticks, config: Any) -> None:
    store = MemoryStore(ann, ttl=config)
    store.put(("a",), "got", {"v": 1}, ttl=10)
    store.put(("b",), "found", {"v": 1}, ttl=10)
    store.put(("c",), "left", {"v": 1}, ttl=10)
    for _ in range(3):
        clock.advance(minutes=9)
        assert store.get(("a",), "got") is not None
        assert len(store.search(("b",), query="v")) == 1
    item = store.get(("a",), "got")
    assert item is not None
    assert item.updated_at == item.created_at
    assert store.get(("c",), "left") is None


def test_refreshing_can_be_switched_off_for_the_store_and_for_a_call(ann: BoundMemory, clock: Ticks) -> None:
    store = MemoryStore(ann, ttl={"refresh_on_read": False, "default_ttl": 10})
    for key in ("one", "two"):
        store.put(("a",), key, {"v": 1})
    clock.advance(minutes=9)
    store.search(("a",))
    store.get(("a",), "one")
    store.get(("a",), "two", refresh_ttl=True)
    clock.advance(minutes=1)
    assert [item.key for item in store.search(("a",))] == ["two"]


def test_a_put_starts_the_time_anew_and_may_end_it(ann: BoundMemory, clock: Ticks) -> None:
    store = MemoryStore(ann)
    store.put(("a",), "again", {"v": 1}, ttl=10)
    store.put(("a",), "kept", {"v": 1}, ttl=10)
    clock.advance(minutes=9)
    store.put(("a",), "again", {"v": 1}, ttl=10)
    store.put(("a",), "kept", {"v": 1})
    clock.advance(minutes=9)
    assert len(store.search(("a",))) == 2
    clock.advance(days=999)
    assert [item.key for item in store.search(("a",))] == ["kept"]


def test_a_read_and_a_put_of_one_item_in_a_batch_leave_what_was_put(ann: BoundMemory, clock: Ticks) -> None:
    store = MemoryStore(ann)
    store.put(("a",), "k", {"v": 1}, ttl=10)
    store.batch([GetOp(("a",), "k"), PutOp(("a",), "k", {"v": 2}, ttl=1)])
    clock.advance(minutes=2)
    assert store.get(("a",), "k") is None


async def test_sweeping_deletes_expired_items_for_good_and_says_how_many(ann: BoundMemory, clock: Ticks) -> None:
    store, awaited = MemoryStore(ann), AsyncMemoryStore(ann)
    await store.aput(("a",), "k", {"v": 1}, ttl=1)
    await store.aput(("a",), "l", {"v": 1})
    assert await awaited.sweep_ttl() == 0
    clock.advance(minutes=1)
    assert await awaited.sweep_ttl() == 1
    assert (await ann.stats()).records == 1
    await store.aput(("a",), "k", {"v": 2}, ttl=1)
    clock.advance(minutes=1)
    assert store.sweep_ttl() == 1


def test_a_write_sweeps_what_has_expired(ann: BoundMemory, clock: Ticks) -> None:
    store = MemoryStore(ann)
    store.put(("a",), "k", {"v": 1}, ttl=1)
    clock.advance(minutes=1)
    store.put(("a",), "l", {"v": 1})
    assert run_sync(ann.stats).records == 1


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e300, True, "10"], ids=repr)
def test_a_time_to_live_that_means_nothing_is_refused(ann: BoundMemory, ttl: Any) -> None:
    with pytest.raises(InvalidInputError, match="ttl"):
        MemoryStore(ann).put(("a",), "k", {"v": 1}, ttl=ttl)
