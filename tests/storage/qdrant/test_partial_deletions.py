"""A deletion of several records that ends in the middle: what its error says of each record is true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from memory_core import (
    BoundMemory,
    ConflictError,
    Draft,
    MemoryCoreError,
    MemoryRecord,
    Patch,
    StorageError,
    UnfinishedWriteError,
    Where,
    run_sync,
)
from memory_core.storage.qdrant import erasing
from memory_core.testing.base import everything
from memory_core.where.where import ANY_STATE
from tests.storage.qdrant.conftest import ONCE, Open
from tests.storage.qdrant.engine import Fault
from tests.storage.qdrant.loopback import Loopback, _route
from tests.storage.qdrant.settled import settle
from tests.storage.qdrant.test_faults import after_writes

RECORDS = 6
IN_ONE_REQUEST = 2
WRITES = RECORDS // IN_ONE_REQUEST
"""The requests of a deletion that nothing disturbs."""

Change = Callable[[BoundMemory, MemoryRecord], object]


@pytest.fixture(autouse=True)
def _small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "MAX_POINTS", IN_ONE_REQUEST)


def before_write(loopback: Loopback, monkeypatch: pytest.MonkeyPatch, number: int, work: Callable[[], object]) -> None:
    """Do something else just before the server applies the write of this number, counted from 0 after this call."""
    answer, begun = loopback._answer, list[str]()

    async def interrupted(method: str, path: str, body: bytes) -> tuple[int, bytes, str]:
        if path != "/" and _route(method, path, body)[0] == "write" and "-meta" not in path:
            begun.append(path)
            if len(begun) == number + 1:
                await asyncio.to_thread(work)
        return await answer(method, path, body)

    monkeypatch.setattr(loopback, "_answer", interrupted)


def ended(call: Callable[[], object]) -> MemoryCoreError | None:
    """The end of a deletion: its error, or `None`."""
    try:
        call()
    except (ConflictError, StorageError) as error:
        return error
    return None


def insist_that_it_is_true(
    error: MemoryCoreError | None, seen: Sequence[MemoryRecord], ann: BoundMemory, by_others: Sequence[str] = ()
) -> None:
    """Check that the end of a deletion says of each record what is so; `by_others` are gone in any case."""
    ids, there = {record.id for record in seen}, {record.id for record in run_sync(ann.list, where=ANY_STATE).records}
    if error is None:
        assert not ids & there
    elif not isinstance(error, UnfinishedWriteError):
        assert ids - there <= {*by_others}
    else:
        assert sorted((*error.stored, *error.missing, *error.unknown)) == sorted(ids)
        assert error.stored or error.unknown
        assert not {*error.stored} & there
        assert {*error.missing} - {*by_others} <= there
        assert f"{len(error.stored)} of {len(ids)} memories are deleted, {len(error.missing)} were not" in str(error)
        assert "nothing" not in str(error)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, RECORDS - 1])
@pytest.mark.parametrize("number", range(WRITES))
@pytest.mark.parametrize("is_deleted", [False, True], ids=["changed", "deleted"])
def test_what_an_interrupted_deletion_says_is_so(
    loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch, number: int, victim: int, *, is_deleted: bool
) -> None:
    ann, other = connect().bind(user="ann"), connect().bind(user="ann")
    seen = [run_sync(ann.add, f"number {n}") for n in range(RECORDS)]
    stays = run_sync(ann.add, "nobody saw this")
    settle(loopback)

    was_there: list[bool] = []

    def disturb() -> None:
        was_there.append(run_sync(other.get, seen[victim].id) is not None)
        if not was_there[0]:
            return
        if is_deleted:
            run_sync(other.delete, seen[victim].id)
        else:
            run_sync(other.update, seen[victim].id, Patch(text="changed meanwhile"))

    before_write(loopback, monkeypatch, number, disturb)
    error = ended(lambda: run_sync(ann.delete_exactly, {record.id: record.version for record in seen}))
    insist_that_it_is_true(error, seen, ann, [seen[victim].id] if is_deleted else [])
    assert (error is not None) is was_there[0]
    assert run_sync(ann.get, stays.id) == stays
    if isinstance(error, UnfinishedWriteError):  # the way out that it names
        left = [record for record in everything(ann) if record.id in error.missing]
        run_sync(ann.delete_exactly, {record.id: record.version for record in left})
    if isinstance(error, UnfinishedWriteError) or error is None:
        assert everything(ann) == [stays]


def test_a_conflict_before_anything_has_gone_says_so(
    loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one record of a request is changed, so that request deletes nothing."""
    monkeypatch.setattr(erasing, "MAX_POINTS", 1)
    ann, other = connect().bind(user="ann"), connect().bind(user="ann")
    seen = [run_sync(ann.add, f"number {n}") for n in range(3)]

    def change_all() -> None:
        for record in seen:
            run_sync(other.update, record.id, Patch(tags=["changed"]))

    before_write(loopback, monkeypatch, 0, change_all)
    with pytest.raises(ConflictError, match="nothing was deleted"):
        run_sync(ann.delete_exactly, {record.id: record.version for record in seen})
    assert len(everything(ann)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.LOST, Fault.HALF])
@pytest.mark.parametrize("count", range(WRITES))
@pytest.mark.parametrize("has_links", [False, True], ids=["alone", "linked"])
def test_what_a_deletion_says_when_the_server_fails_is_so(
    loopback: Loopback, connect: Open, count: int, fault: Fault, *, has_links: bool
) -> None:
    ann = connect(patience=ONCE).bind(user="ann")
    seen = [run_sync(ann.add, Draft(f"number {n}", kind="fact")) for n in range(RECORDS)]
    stays = run_sync(ann.supersede, seen[0].id, Draft("what is true now", kind="note")) if has_links else None
    settle(loopback)
    where = Where(kinds=["fact"], states=("active", "archived"))
    loopback.fail(after_writes(count, fault, Fault.UNAVAILABLE))
    error = ended(lambda: run_sync(ann.delete_where, where))
    loopback.fail()
    assert error is not None
    insist_that_it_is_true(error, seen, ann)
    assert count == 0 or isinstance(error, UnfinishedWriteError)
    run_sync(ann.delete_where, where)
    assert [record.text for record in everything(ann)] == ([] if stays is None else [stays.text])


def test_a_deletion_whose_links_stay_names_what_it_deleted(loopback: Loopback, connect: Open) -> None:
    """All markers are written, and then the server fails: the error names the deleted records, not those that link."""
    ann = connect(patience=ONCE).bind(user="ann")
    old = run_sync(ann.add, "the office is on the second floor")
    new = run_sync(ann.supersede, old.id, "the office is on the third floor")
    settle(loopback)
    loopback.fail(after_writes(1, Fault.LOST, Fault.UNAVAILABLE))
    with pytest.raises(UnfinishedWriteError, match="1 of 1 memories are deleted") as caught:
        run_sync(ann.delete, old.id)
    loopback.fail()
    assert (caught.value.stored, caught.value.missing, caught.value.unknown) == ((old.id,), (), ())
    assert run_sync(ann.get, old.id) is None
    assert run_sync(ann.get, new.id) is not None
