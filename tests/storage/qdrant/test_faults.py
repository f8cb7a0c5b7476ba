"""The outcome of requests that fail: nothing acknowledged is lost, nothing is stored twice or by halves."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count, cycle

import pytest

from memory_core import (
    BoundMemory,
    Draft,
    MemoryRecord,
    Patch,
    StorageError,
    StoreUnavailableError,
    UnfinishedWriteError,
    Where,
    run_sync,
)
from memory_core.storage.qdrant import points as requests
from memory_core.storage.qdrant.settings import Patience, Server
from memory_core.testing.base import everything, texts
from tests.storage.qdrant.conftest import ONCE, Open
from tests.storage.qdrant.engine import Call, Decide, Fault
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import points, settle

pytestmark = pytest.mark.uncovered

ADDS = [60, pytest.param(10_000, marks=pytest.mark.torture)]
"""The numbers of records that the fault runs add."""
QUICK_FAULTS = (Fault.UNAVAILABLE, Fault.BUSY, Fault.RESET, Fault.LOST, Fault.HALF)


def every(nth: int) -> Decide:
    """Each nth request fails, in one way after the other."""
    following = cycle(QUICK_FAULTS)
    requests = count(1)
    return lambda _: next(following) if next(requests) % nth == 0 else None


def from_write(first: Fault, then: Fault) -> Decide:
    """Everything from the first write to the records on fails."""
    begun: list[Call] = []

    def decide(call: Call) -> Fault | None:
        if call.is_write and not call.collection.endswith("-meta"):
            begun.append(call)
            return first if len(begun) == 1 else then
        return then if begun else None

    return decide


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "step"),
    [((None,), 13), pytest.param(QUICK_FAULTS, 1, marks=pytest.mark.torture)],
    ids=["some", "every one"],
)
def test_no_single_fault_is_noticed(
    loopback: Loopback, server: Server, connect: Open, faults: Sequence[Fault | None], step: int
) -> None:
    """Whichever request it hits: a day of every operation is lived again and again, until the fault comes too late."""
    ann = connect(server).bind(user="ann")
    for first, fault in enumerate(faults):
        nth, day, reached = 1 + first, 0, True
        while reached:
            kind = fault or QUICK_FAULTS[day % len(QUICK_FAULTS)]
            hit: list[Call] = []
            loopback.fail(once(nth, kind, hit))
            live_a_day(ann, 1_000 * first + day)
            loopback.fail()
            settle(loopback)
            reached = bool(hit)
            nth, day = nth + step, day + 1  # the requests of a day move a little with what the background does
        assert day > len(QUICK_FAULTS)


def once(nth: int, fault: Fault, hit: list[Call]) -> Decide:
    """The nth request from now on fails; `hit` holds it then."""
    requests = count(1)

    def decide(call: Call) -> Fault | None:
        if next(requests) != nth:
            return None
        hit.append(call)
        return fault

    return decide


def test_an_answer_that_comes_too_late_changes_nothing(loopback: Loopback, server: Server, connect: Open) -> None:
    ann = connect(server).bind(user="ann")
    loopback.fail(lambda call: Fault.LATE if call.number in late else None)
    late = {len(loopback.engine.calls) + 3}
    live_a_day(ann, 1)
    settle(loopback)


def live_a_day(ann: BoundMemory, day: int) -> None:
    """Every kind of operation, each with what it should give; nothing is left."""
    one = run_sync(ann.add, Draft("tea at noon", session="s", source_key=f"tea {day}"))
    two, three = run_sync(ann.add_many, [Draft("tea at one", session="s"), Draft("", data={"v": 1})])
    assert two is not None
    assert three is not None
    (item,) = run_sync(ann.put_many, [Draft("coffee", source_key=f"coffee {day}", session="s")])
    changed = run_sync(ann.update, one.id, Patch(text="jasmine tea at noon"))
    assert (changed.rev, changed.id) == (2, one.id)
    again = run_sync(ann.add, Draft("jasmine tea at noon", session="s", source_key=f"tea {day}"))
    assert again == changed
    assert texts(run_sync(ann.search, "jasmine", mode="lexical", limit=1)) == ["jasmine tea at noon"]
    assert texts(run_sync(ann.search, "jasmine tea", limit=1)) == ["jasmine tea at noon"]
    (read,) = run_sync(ann.list, where=Where(ids=(two.id,)), touch=True).records
    assert read.access_count == 1
    assert run_sync(ann.stats).records == 4
    assert everything(ann) == [changed, read, three, item]
    run_sync(ann.delete_where, Where(ids=(two.id,)))
    assert everything(ann) == [changed, three, item]
    run_sync(ann.erase)
    assert everything(ann) == []
    assert run_sync(ann.add_many, [Draft("x", source_key=f"tea {day}")]) == [None]


@pytest.mark.parametrize("adds", ADDS)
def test_with_a_fault_on_every_tenth_request_everything_is_stored_once(
    loopback: Loopback, server: Server, connect: Open, adds: int
) -> None:
    loopback.engine.keep_calls = False
    ann = connect(server).bind(user="ann")
    loopback.fail(every(10))
    acknowledged, errors = add_under_faults(ann, adds)
    loopback.fail()
    settle(loopback)
    assert errors == 0
    assert len(acknowledged) >= adds
    assert_stored(ann, acknowledged, at_most=len(acknowledged))


@pytest.mark.parametrize("adds", ADDS)
def test_without_patience_the_caller_hears_of_everything_that_is_not_stored(
    loopback: Loopback, server: Server, connect: Open, adds: int
) -> None:
    loopback.engine.keep_calls = False
    ann = connect(server, patience=ONCE).bind(user="ann")
    loopback.fail(every(10))
    acknowledged, errors = add_under_faults(ann, adds)
    loopback.fail()
    assert errors > 0
    settle(loopback)
    assert_stored(ann, acknowledged, at_most=len(acknowledged) + 3 * errors)


def add_under_faults(ann: BoundMemory, number: int) -> tuple[list[MemoryRecord], int]:
    """Add records, alone and three at once; those that were acknowledged, and how many calls failed."""
    acknowledged: list[MemoryRecord] = []
    errors = added = 0
    while added < number:
        size = 3 if added % 4 == 0 else 1
        drafts = [Draft(f"word{n} of many", session=f"s{n % 7}" if n % 2 else None) for n in range(added, added + size)]
        added += size
        try:
            acknowledged += [record for record in run_sync(ann.add_many, drafts) if record is not None]
        except StorageError:
            errors += 1
    return acknowledged, errors


def assert_stored(ann: BoundMemory, acknowledged: Sequence[MemoryRecord], *, at_most: int) -> None:
    """Each acknowledged record is there once, exactly, and findable."""
    stored: dict[str, MemoryRecord] = {}
    cursor: str | None = None
    while cursor is not None or not stored:
        page = run_sync(ann.list, limit=1_000, cursor=cursor)
        stored |= {record.id: record for record in page.records}
        cursor = page.cursor
        if cursor is None:
            break
    assert run_sync(ann.stats).records == len(stored) <= at_most
    assert {record.id: stored.get(record.id) for record in acknowledged} == {r.id: r for r in acknowledged}
    for record in random.Random(0).sample(list(acknowledged), 5):
        (hit, *_) = run_sync(ann.search, record.text.split()[0], mode="lexical")
        assert hit.record == record


@pytest.mark.parametrize("first", [Fault.HALF, Fault.RESET, Fault.LOST], ids=lambda fault: fault.name)
def test_a_batch_that_stopped_half_way_says_what_is_stored_and_can_be_repeated(
    loopback: Loopback, server: Server, connect: Open, monkeypatch: pytest.MonkeyPatch, first: Fault
) -> None:
    monkeypatch.setattr(requests, "MAX_POINTS", 4)
    ann = connect(server).bind(user="ann")
    before = run_sync(ann.add, Draft("tea", source_key="k"))
    drafts = [
        Draft("jasmine tea", source_key="k"),
        *(Draft(f"n{n}", source_key=f"n{n}", session="s") for n in range(9)),
    ]
    loopback.fail(after_writes(1, first, Fault.UNAVAILABLE))
    with pytest.raises(UnfinishedWriteError, match=r"does not answer after 6 attempts.*repeating") as caught:
        run_sync(ann.add_many, drafts)
    loopback.fail()
    error = caught.value
    assert len(error.stored) + len(error.missing) + len(error.unknown) == 10
    assert error.unknown
    held = points(loopback)
    assert set(error.stored) <= held.keys() <= {*error.stored, *error.unknown, before.id}
    run_sync(ann.add_many, drafts)
    settle(loopback)
    assert sorted(texts(everything(ann))) == sorted(["jasmine tea", *(f"n{n}" for n in range(9))])
    assert run_sync(ann.get, before.id) == next(r for r in everything(ann) if r.text == "jasmine tea")


def after_writes(count: int, first: Fault, then: Fault) -> Decide:
    """Some writes to the records are done; the next one has a fault, and then nothing works."""
    begun: list[Call] = []

    def decide(call: Call) -> Fault | None:
        if call.is_write and not call.collection.endswith("-meta"):
            begun.append(call)
        if len(begun) <= count:
            return None
        return first if call is begun[count] else then

    return decide


def test_a_record_of_which_nobody_knows_whether_it_is_stored_is_said_to_be_one(
    loopback: Loopback, server: Server, connect: Open
) -> None:
    ann = connect(server).bind(user="ann")
    loopback.fail(from_write(Fault.LOST, Fault.UNAVAILABLE))
    with pytest.raises(UnfinishedWriteError, match="of 1 it is unknown") as caught:
        run_sync(ann.add, Draft("tea", id="mine", source_key="k"))
    loopback.fail()
    assert (caught.value.stored, caught.value.missing, caught.value.unknown) == ((), (), ("mine",))
    assert run_sync(ann.add, Draft("tea", id="mine", source_key="k")).id == "mine"
    assert texts(everything(ann)) == ["tea"]


def test_a_lost_reply_to_a_write_that_is_there_is_not_noticed(
    loopback: Loopback, server: Server, connect: Open
) -> None:
    ann = connect(server, patience=ONCE).bind(user="ann")
    lost: list[Call] = []
    writes = from_write(Fault.LOST, Fault.UNAVAILABLE)

    def lose_one(call: Call) -> Fault | None:
        if lost or writes(call) is None:
            return None
        lost.append(call)
        return Fault.LOST

    loopback.fail(lose_one)
    record = run_sync(ann.add, "tea")
    assert lost
    assert everything(ann) == [record]


def test_a_batch_whose_first_request_fails_never_happened(loopback: Loopback, server: Server, connect: Open) -> None:
    ann = connect(server).bind(user="ann")
    loopback.fail(lambda call: Fault.RESET if call.is_write else None)
    for call in (lambda: run_sync(ann.add_many, ["one", "two"]), lambda: run_sync(ann.add, "three")):
        with pytest.raises(StoreUnavailableError):
            call()
    loopback.fail()
    assert everything(connect(server).bind(user="ann")) == []


def test_a_probe_fails_while_writes_do_and_changes_no_record(loopback: Loopback, server: Server, connect: Open) -> None:
    memory = connect(server)
    record = run_sync(memory.bind(user="ann").add, "tea")
    run_sync(memory.operator().probe)
    loopback.fail(lambda call: Fault.UNAVAILABLE if call.is_write and not call.collection.endswith("-meta") else None)
    with pytest.raises(StoreUnavailableError):
        run_sync(memory.operator().probe)
    assert everything(memory.bind(user="ann")) == [record]  # reads go on
    loopback.fail()
    run_sync(memory.operator().probe)
    assert everything(memory.bind(user="ann")) == [record]


def test_a_delete_that_stopped_half_way_says_so_and_can_be_repeated(
    loopback: Loopback, server: Server, connect: Open
) -> None:
    ann = connect(server).bind(user="ann")
    run_sync(ann.add_many, [Draft(f"n{n}", session="s", kind="fact" if n % 2 else "note") for n in range(10)])
    loopback.fail(from_write(Fault.LOST, Fault.UNAVAILABLE))
    with pytest.raises(UnfinishedWriteError):
        run_sync(ann.delete_where, Where(kinds=("fact",)))
    loopback.fail()
    run_sync(ann.delete_where, Where(kinds=("fact",)))
    assert texts(everything(ann)) == ["n0", "n2", "n4", "n6", "n8"]


def test_a_server_that_restarts_is_not_noticed(loopback: Loopback, server: Server, connect: Open) -> None:
    ann = connect(server, patience=Patience()).bind(user="ann")
    for n in range(3):
        run_sync(ann.add, f"n{n}")
        loopback.stop()
        loopback.start()
    assert texts(everything(ann)) == [f"n{n}" for n in range(3)]


def test_a_server_that_is_gone_is_named_in_one_sentence(loopback: Loopback, server: Server, connect: Open) -> None:
    ann = connect(server).bind(user="ann")
    loopback.stop()
    calls: list[Callable[[], object]] = [
        lambda: run_sync(ann.add, "x"),
        lambda: run_sync(ann.search, "x"),
        lambda: run_sync(ann.list),
        lambda: run_sync(ann.delete_where, Where()),
        lambda: run_sync(ann.stats),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailableError, match=rf"Qdrant at .*{server.name} does not answer") as caught:
            call()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300
    with pytest.raises(StoreUnavailableError):
        connect(server)
