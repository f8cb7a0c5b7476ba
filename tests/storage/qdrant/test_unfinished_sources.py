"""A writer dies between the change of a source and that of what was made of it: readers see what the rule says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory_core import BoundMemory, Draft, Link, MemoryRecord, Patch, StorageError, Where, run_sync
from memory_core.where.where import ANY_STATE
from tests.storage.qdrant.conftest import ONCE, Open
from tests.storage.qdrant.engine import Fault
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import points, settle
from tests.storage.qdrant.test_faults import after_writes
from tests.storage.qdrant.test_partial_deletions import before_write

Change = Callable[[BoundMemory, MemoryRecord], object]


def delete(ann: BoundMemory, said: MemoryRecord) -> None:
    run_sync(ann.delete, said.id)


def leave(ann: BoundMemory, said: MemoryRecord) -> None:
    run_sync(ann.update, said.id, Patch(left=True))


def edit(ann: BoundMemory, said: MemoryRecord) -> None:
    run_sync(ann.update, said.id, Patch(text="the code has changed"))


def shown(ann: BoundMemory) -> set[str]:
    """The texts that lists and searches of every kind show."""
    found = {record.text for record in run_sync(ann.list).records}
    for mode in ("hybrid", "lexical", "vector", "substring"):
        found |= {hit.record.text for hit in run_sync(ann.search, "2231", mode=mode, floor=False)}
    return found


@pytest.mark.parametrize("change", [delete, leave, edit])
@pytest.mark.parametrize("source_key", [None, "k"])
def test_readers_do_not_see_what_was_made_of_it(
    loopback: Loopback, connect: Open, change: Change, source_key: str | None
) -> None:
    writer, ann = connect(patience=ONCE).bind(user="ann"), connect().bind(user="ann")
    said = run_sync(ann.add, Draft("the code is 2231", source_key=source_key))
    fact = run_sync(ann.add, Draft("Ann: 2231", links=[Link("derived_from", said.id, said.rev)]))
    short = run_sync(ann.add, Draft("in short: 2231", links=[Link("summarizes", fact.id, fact.rev)]))
    settle(loopback)
    assert {"Ann: 2231", "in short: 2231"} < shown(ann)
    loopback.fail(after_writes(1, Fault.UNAVAILABLE, Fault.UNAVAILABLE))
    with pytest.raises(StorageError):
        change(writer, said)
    loopback.fail()
    settle(loopback)
    assert not {"Ann: 2231", "in short: 2231"} & shown(ann)
    for one in (fact, short):
        known = run_sync(ann.get, one.id)
        assert known is None if change is delete else known is not None and known.left
    if change is delete:
        assert run_sync(ann.get, said.id) == said  # it goes last
    if change is not delete:
        assert {"Ann: 2231", "in short: 2231"} < {each.text for each in run_sync(ann.list, where=ANY_STATE).records}


@pytest.mark.parametrize("source_key", [None, "k"])
def test_what_a_dead_writer_made_of_a_record_that_was_deleted_meanwhile_is_not_seen(
    loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch, source_key: str | None
) -> None:
    writer, ann = connect(patience=ONCE).bind(user="ann"), connect().bind(user="ann")
    said = run_sync(ann.add, Draft("the code is 2231", source_key=source_key))
    settle(loopback)

    def delete_and_stop() -> None:
        run_sync(ann.delete, said.id)
        loopback.fail(after_writes(1, Fault.UNAVAILABLE, Fault.UNAVAILABLE))

    before_write(loopback, monkeypatch, 0, delete_and_stop)
    with pytest.raises(StorageError):
        run_sync(writer.add, Draft("Ann: 2231", links=[Link("derived_from", said.id, said.rev)]))
    loopback.fail()
    settle(loopback)
    assert len(points(loopback)) == 1
    assert shown(ann) == set()


def test_what_was_made_of_an_expired_record_is_seen(loopback: Loopback, connect: Open) -> None:
    ann = connect().bind(user="ann")
    said = run_sync(ann.add, "the code is 2231")
    run_sync(ann.add, Draft("Ann: 2231", links=[Link("derived_from", said.id, said.rev)]))
    run_sync(ann.delete_exactly, {said.id: said.version}, keeps_derived=True)
    settle(loopback)
    assert shown(ann) == {"Ann: 2231"}
    assert run_sync(ann.list, where=Where(left=False)).records[0].text == "Ann: 2231"
