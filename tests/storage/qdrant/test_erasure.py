"""A deleted record stays deleted and an erased one is gone, whatever crashed before and whatever arrives later."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memory_core import BoundMemory, Draft, Memory, Patch, StorageError, Where, run_sync
from memory_core.concurrency.loop import on_core
from memory_core.storage.qdrant import erasing
from memory_core.storage.qdrant.owners import LIFE
from memory_core.testing import Ticks
from memory_core.testing.base import everything, texts
from tests.open_store import store_of
from tests.storage.qdrant.conftest import ONCE, Open
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.engine import Call, Fault
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import everything as points_of
from tests.storage.qdrant.settled import markers, points

SECRETS = ["my bank PIN is unicorn", "my other secret"]
AWAYS: dict[str, Callable[[BoundMemory], object]] = {
    "delete": lambda ann: [run_sync(ann.delete, record.id) for record in everything(ann)],
    "delete_where": lambda ann: run_sync(ann.delete_where, Where()),
    "erase": lambda ann: run_sync(ann.erase),
}


class Held:
    """Keeps the first write to the records on its way; the sender is told that the connection was cut."""

    def __init__(self, loopback: Loopback) -> None:
        self.loopback = loopback
        self.calls: list[Call] = []

    def __call__(self, call: Call) -> Fault | None:
        if call.is_write and not call.collection.endswith("-meta") and not self.calls:
            self.calls.append(call)
            return Fault.RESET
        return None

    def arrive(self) -> None:
        """Do what was held, as it was asked for."""
        (call,) = self.calls
        self.loopback.on_loop(lambda: self.loopback.engine.run(call))


def all_bytes(loopback: Loopback) -> str:
    """Everything that any collection holds, but markers' tokens."""
    return repr([points_of(loopback, name) for name in loopback.engine.created])


def sweep(memory: Memory, clock: Ticks) -> None:
    """The background's round."""

    async def work() -> None:
        store: Any = await store_of(memory)
        await erasing.sweep(store._access, clock())

    run_sync(lambda: on_core(work))


@pytest.mark.parametrize("how", AWAYS)
def test_deleted_records_stay_deleted_when_a_batch_failed_before(loopback: Loopback, connect: Open, how: str) -> None:
    """The writer's second request fails; nobody carries out the rest later."""
    ann = connect(patience=ONCE).bind(user="ann")
    begun: list[Call] = []

    def fail_after_the_write(call: Call) -> Fault | None:
        begun.extend([call] if call.is_write else [])
        return Fault.RESET if begun and call is not begun[0] else None

    loopback.fail(fail_after_the_write)
    with pytest.raises(StorageError):
        run_sync(ann.add_many, SECRETS)
    loopback.fail()
    other = connect().bind(user="ann")
    assert texts(everything(other)) == SECRETS
    AWAYS[how](other)
    sweep(connect(), Ticks())
    assert everything(connect().bind(user="ann")) == []
    assert "unicorn" not in all_bytes(loopback)


@pytest.mark.parametrize("how", AWAYS)
@pytest.mark.parametrize("source_key", [None, "k"])
def test_a_request_that_arrives_late_does_not_bring_back_what_was_deleted(
    loopback: Loopback, connect: Open, clock: Ticks, how: str, source_key: str | None
) -> None:
    memory = connect()
    ann, held = memory.bind(user="ann"), Held(loopback)
    loopback.fail(held)
    run_sync(ann.add, Draft("a secret of a unicorn", source_key=source_key, session="s"))
    loopback.fail()
    AWAYS[how](ann)
    held.arrive()
    assert everything(ann) == []
    clock.advance(seconds=(LIFE - timedelta(seconds=1)).total_seconds())
    sweep(memory, clock)
    held.arrive()
    assert everything(ann) == []
    assert run_sync(ann.search, "secret", floor=False) == []
    assert "unicorn" not in all_bytes(loopback)


def test_a_late_insertion_that_nobody_saw_before_the_erasure_is_deleted(
    loopback: Loopback, connect: Open, clock: Ticks
) -> None:
    memory = connect(patience=ONCE)
    ann, held = memory.bind(user="ann"), Held(loopback)
    run_sync(ann.add, "tea")
    loopback.fail(held)
    with pytest.raises(StorageError):
        run_sync(ann.add, "a secret of a unicorn")
    loopback.fail()
    run_sync(ann.erase)
    held.arrive()
    assert everything(ann) == []
    assert run_sync(ann.stats).records == 0
    run_sync(ann.add, "coffee")
    sweep(memory, clock)
    assert "unicorn" not in all_bytes(loopback)
    assert texts(everything(ann)) == ["coffee"]


def test_a_late_change_does_not_bring_back_what_was_deleted(loopback: Loopback, connect: Open) -> None:
    ann, held = connect().bind(user="ann"), Held(loopback)
    record = run_sync(ann.add, "tea")
    loopback.fail(held)
    run_sync(ann.update, record.id, Patch(text="a secret"))
    loopback.fail()
    run_sync(ann.delete, record.id)
    run_sync(ann.add, Draft("coffee", id=record.id))
    held.arrive()
    assert texts(everything(ann)) == ["coffee"]


def test_markers_say_nothing_and_go_when_no_request_can_be_on_its_way(
    loopback: Loopback, connect: Open, clock: Ticks
) -> None:
    memory = connect()
    ann = memory.bind(user="annabel")
    run_sync(ann.add_many, [Draft("a unicorn", id="private-id", source_key="private-key"), "another"])
    for record in everything(ann):
        run_sync(ann.delete, record.id)
    assert sorted(marker["_marker"] for marker in markers(loopback)) == ["deleted", "forgotten"]
    for word in ("annabel", "private-id", "private-key", "unicorn"):
        assert word not in all_bytes(loopback)
    clock.advance(seconds=LIFE.total_seconds())
    sweep(memory, clock)
    assert [marker["_marker"] for marker in markers(loopback)] == ["forgotten"]


def test_an_erased_owner_is_named_nowhere_when_no_request_can_be_on_its_way(
    loopback: Loopback, connect: Open, clock: Ticks
) -> None:
    memory = connect()
    run_sync(memory.bind(user="annabel").add_many, ["one", Draft("two", source_key="k")])
    run_sync(memory.bind(user="annabel").erase)
    clock.advance(seconds=LIFE.total_seconds())
    sweep(memory, clock)
    assert "annabel" not in all_bytes(loopback)
    assert points(loopback) == {}


def test_another_process_notices_an_erasure_with_its_next_request(connect: Open) -> None:
    one, other = connect().bind(user="ann"), connect().bind(user="ann")
    run_sync(one.add, "before")
    assert texts(everything(other)) == ["before"]
    run_sync(one.erase)
    assert everything(other) == []
    run_sync(one.add, "after")
    assert texts(everything(other)) == ["after"]
    assert texts(run_sync(other.search, "after")) == ["after"]
    run_sync(other.erase)
    record = run_sync(one.add, "by the one who did not notice")
    assert everything(other) == [record]


def test_an_erasure_that_crashed_is_completed_by_the_background(
    loopback: Loopback, connect: Open, clock: Ticks
) -> None:
    ann = connect(patience=ONCE).bind(user="ann")
    run_sync(ann.add_many, [Draft("a secret of a unicorn", source_key="k"), "another"])
    writes: list[Call] = []

    def stop_after_the_epoch(call: Call) -> Fault | None:
        writes.extend([call] if call.is_write else [])
        return Fault.UNAVAILABLE if len(writes) > 1 else None

    loopback.fail(stop_after_the_epoch)
    with pytest.raises(StorageError):
        run_sync(ann.erase)
    loopback.fail()
    memory = connect()
    assert everything(memory.bind(user="ann")) == []
    assert run_sync(memory.bind(user="ann").add_many, [Draft("again", source_key="k")]) == [None]
    sweep(memory, clock)
    assert "unicorn" not in all_bytes(loopback)
    assert run_sync(memory.bind(user="ann").add_many, [Draft("again", source_key="k")]) == [None]


def test_nothing_comes_back_on_the_real_engine(real_engine: EdgeEngine, real_loopback: Loopback, connect: Open) -> None:
    real_loopback.on_loop(real_engine.clear)
    from memory_core.storage.qdrant.settings import Server

    ann = connect(Server(url=real_loopback.url, timeout_seconds=5)).bind(user="ann")
    held = Held(real_loopback)
    real_loopback.fail(held)
    record = run_sync(ann.add, Draft("a secret", source_key="k"))
    real_loopback.fail()
    run_sync(ann.delete_where, Where(ids=(record.id,)), forget=False)
    held.arrive()
    assert everything(ann) == []
    run_sync(ann.add, Draft("new", source_key="k"))
    held.arrive()
    assert texts(everything(ann)) == ["new"]
