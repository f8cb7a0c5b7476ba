"""Several processes write to one server: each store here has its own client, its own locks and its own clock."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from memory_core import BoundMemory, Draft, DuplicateIdError, Patch, Where, run_sync
from memory_core.testing.base import everything, texts
from tests.storage.qdrant.conftest import Open
from tests.storage.qdrant.engine import Call, Fault
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import settle

pytestmark = pytest.mark.uncovered

WRITERS = 4
ROUNDS = 8


@pytest.fixture
def anns(connect: Open) -> list[BoundMemory]:
    """Handles on the memory of one owner, each with a connection of its own."""
    return [connect().bind(user="ann") for _ in range(WRITERS)]


def at_once(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """The values that they return, or the errors that they raise."""

    async def work() -> list[Any]:
        return await asyncio.gather(*calls, return_exceptions=True)

    return run_sync(work)


def test_one_id_is_taken_once(loopback: Loopback, anns: list[BoundMemory]) -> None:
    for n in range(ROUNDS):
        results = at_once(*(ann.add(Draft(f"text of {i}", id=f"id {n}")) for i, ann in enumerate(anns)))
        stored = [result for result in results if not isinstance(result, BaseException)]
        assert len(stored) == 1, results
        assert sum(isinstance(result, DuplicateIdError) for result in results) == WRITERS - 1
        assert run_sync(anns[0].get, f"id {n}") == stored[0]
    settle(loopback)


@pytest.mark.slow
def test_one_id_is_taken_once_whatever_the_source_keys(loopback: Loopback, anns: list[BoundMemory]) -> None:
    """Each source key has a point of its own, so no point refuses the second one."""
    for n in range(ROUNDS):
        drafts = [Draft(f"text of {i}", id=f"id {n}", source_key=f"key {n} {i}") for i in range(WRITERS)]
        results = at_once(*(ann.add(draft) for ann, draft in zip(anns, drafts, strict=True)))
        stored = [result for result in results if not isinstance(result, BaseException)]
        assert len(stored) == 1, results
        assert sum(isinstance(result, DuplicateIdError) for result in results) == WRITERS - 1
        assert everything(anns[0])[-1] == stored[0]
    assert len(everything(anns[0])) == ROUNDS
    settle(loopback)


def test_one_source_key_has_one_record(loopback: Loopback, anns: list[BoundMemory]) -> None:
    for n in range(ROUNDS):
        results = at_once(*(ann.add(Draft("the same", source_key=f"key {n}")) for ann in anns))
        assert len({result.id for result in results}) == 1, results
        (held,) = run_sync(anns[0].list, where=Where(source_keys=(f"key {n}",))).records
        assert held == results[0]
    settle(loopback)


def test_batches_that_share_source_keys_are_stored_once(loopback: Loopback, anns: list[BoundMemory]) -> None:
    drafts: list[str | Draft] = [Draft(f"turn {n}", source_key=f"key {n}", session="s") for n in range(10)]
    results = at_once(*(ann.add_many(drafts) for ann in anns))
    assert all(result == results[0] for result in results), results
    assert sorted(texts(everything(anns[0]))) == sorted(draft.text for draft in drafts if isinstance(draft, Draft))
    settle(loopback)


def test_no_change_is_lost(loopback: Loopback, anns: list[BoundMemory]) -> None:
    record = run_sync(anns[0].add, Draft("tea", data={"n": 0}))
    patches = [Patch(text="coffee"), Patch(importance=0.9), Patch(emotion="joy"), Patch(tags=["hot"])]
    at_once(*(ann.update(record.id, patch) for ann, patch in zip(anns, patches, strict=True)))
    after = run_sync(anns[0].get, record.id)
    assert after is not None
    assert (after.text, after.importance, after.emotion, after.tags, after.rev) == ("coffee", 0.9, "joy", ("hot",), 2)
    settle(loopback)


def test_texts_that_are_changed_at_once_count_every_revision(loopback: Loopback, anns: list[BoundMemory]) -> None:
    record = run_sync(anns[0].add, Draft("tea", session="s"))
    for n in range(ROUNDS):
        at_once(*(ann.update(record.id, Patch(text=f"tea {n} {i}")) for i, ann in enumerate(anns)))
    after = run_sync(anns[0].get, record.id)
    assert after is not None
    assert after.rev == 1 + ROUNDS * WRITERS
    settle(loopback)


def test_a_deletion_and_a_change_at_once_leave_all_or_nothing(loopback: Loopback, anns: list[BoundMemory]) -> None:
    for n in range(ROUNDS):
        record = run_sync(anns[0].add, Draft(f"tea {n}", session="s"))
        at_once(
            anns[0].update(record.id, Patch(text="changed")),
            anns[1].delete(record.id),
            anns[2].update(record.id, Patch(tags=["x"])),
        )
        assert run_sync(anns[3].get, record.id) is None
    assert everything(anns[0]) == []
    settle(loopback)


def test_turns_of_one_session_follow_each_other(loopback: Loopback, anns: list[BoundMemory]) -> None:
    for _ in range(4):
        at_once(*(ann.add(Draft(f"turn of {i}", session="s")) for i, ann in enumerate(anns)))
    settle(loopback)
    assert Counter(texts(everything(anns[0]))) == Counter({f"turn of {i}": 4 for i in range(WRITERS)})


def test_an_insertion_that_was_overtaken_is_withdrawn(loopback: Loopback, connect: Open) -> None:
    """Between looking and writing somebody else takes the source key: the later one steps back and looks again."""
    slow, fast = connect().bind(user="ann"), connect().bind(user="ann")
    first: list[Call] = []

    def overtake(call: Call) -> Fault | None:
        if call.is_write and not call.collection.endswith("-meta") and not first:
            first.append(call)
            return Fault.UNAVAILABLE  # and while the slow one waits to try again ...
        return None

    loopback.fail(overtake)
    results = at_once(slow.add(Draft("tea", source_key="k")), fast.add(Draft("tea", source_key="k")))
    assert results[0] == results[1]
    assert everything(slow) == [results[0]]
    settle(loopback)
