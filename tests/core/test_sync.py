"""The synchronous view of a handle."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from memory_core import (
    BoundMemory,
    Draft,
    Memory,
    Patch,
    RecordNotFoundError,
    SyncMemory,
    Where,
    WrongThreadError,
    run_sync,
)
from memory_core.adapting import on_core
from memory_core.operation import OPERATIONS

METHODS = {name for name, _ in inspect.getmembers(SyncMemory, inspect.isfunction) if not name.startswith("_")}


@pytest.fixture
def ann() -> SyncMemory:
    return Memory(":memory:", embedder=None).bind(app="sync", user="ann").sync


def test_each_everyday_operation_does_what_the_handle_does(ann: SyncMemory) -> None:
    record = ann.add(Draft("Ann drinks jasmine tea", kind="preference"))
    assert ann.get(record.id) == record
    assert [hit.record for hit in ann.search("tea")] == [record]
    changed = ann.update(record.id, Patch(text="Ann drinks green tea"), expected_version=1)
    newer = ann.supersede(changed.id, "Ann drinks coffee")
    assert ann.list().records == (newer,)
    ann.remember([("user", "My cat is called Miso"), ("assistant", "A good name.")], session="s")
    assert "Miso" in ann.recall("What is my cat called?").text
    assert [each and each.text for each in ann.add_many(["one", "two"])] == ["one", "two"]
    ann.delete(newer.id)
    with pytest.raises(RecordNotFoundError):
        ann.delete(newer.id)


def test_the_rarer_operations_block_as_well(ann: SyncMemory) -> None:
    old = ann.add("Ann drinks jasmine tea")
    new = ann.supersede(old.id, "Ann drinks coffee")
    assert [version.text for version in ann.history(new.id)] == [old.text, new.text]
    ann.put_many([Draft("a page", source_key="page", collection="wiki")])
    assert ann.collections() == ["wiki"]
    assert ann.delete_where(Where(collection="wiki")).records == 1
    assert ann.stats().records == 2
    ann.erase()
    assert ann.stats().records == 0


def test_it_has_every_operation_with_the_arguments_that_the_handle_takes() -> None:
    assert sorted(OPERATIONS) == sorted(METHODS)
    for name in OPERATIONS:
        ours, theirs = getattr(SyncMemory, name), getattr(BoundMemory, name)
        assert inspect.signature(ours) == inspect.signature(theirs), name
        assert ours.__doc__ == theirs.__doc__


def test_it_works_in_other_threads_and_on_a_running_loop(ann: SyncMemory) -> None:
    threads = [threading.Thread(target=ann.add, args=(f"note {n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def in_a_notebook() -> int:
        return len(ann.list().records)

    assert asyncio.run(in_a_notebook()) == 8


def test_on_the_loop_of_the_memories_it_says_what_to_do(ann: SyncMemory) -> None:
    async def blocked() -> None:
        ann.search("tea")

    with pytest.raises(WrongThreadError, match=r"await search\(\.\.\.\)"):
        run_sync(on_core, blocked)


def test_it_says_whose_it_is(ann: SyncMemory) -> None:
    assert repr(ann) == f"{ann.handle!r}.sync"
