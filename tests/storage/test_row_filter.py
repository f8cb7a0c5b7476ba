"""The records at which Python has to look: part by part, beside other work, and exact although records change
meanwhile."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from memory_core import (
    AnyOf,
    BoundMemory,
    DataCondition,
    Draft,
    FieldCondition,
    Memory,
    Patch,
    Where,
    run_sync,
)
from memory_core.concurrency.loop import core_loop, on_core
from memory_core.concurrency.threads import in_slices, yield_now
from memory_core.storage.sqlite import row_filter
from memory_core.storage.sqlite.readers import Readers

RECORDS = 60
EVEN = Where(matching=[DataCondition(("even",), "eq", value=True)])
LOOKED_AT: dict[str, Callable[[BoundMemory], Awaitable[object]]] = {
    "a search": lambda eve: eve.search("tea", where=EVEN),
    "a search for keywords": lambda eve: eve.search("tea", where=Where(keywords=["tea"])),
    "a search by substring": lambda eve: eve.search("tea", mode="substring", limit=RECORDS),
    "a page": lambda eve: eve.list(where=EVEN, limit=RECORDS),
    "a page that counts": lambda eve: eve.list(where=EVEN, limit=RECORDS, touch=True),
    "the collections": lambda eve: eve.collections(EVEN),
    "a deletion": lambda eve: eve.delete_where(EVEN),
}


@pytest.fixture(params=["file", ":memory:"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Memory]:
    path = ":memory:" if request.param == ":memory:" else tmp_path / "memory.db"
    async with Memory(path, embedder=None) as memory:
        drafts = [Draft(f"tea {n}", data={"even": n % 2 == 0}, collection=f"c{n % 3}") for n in range(RECORDS)]
        await memory.bind(user="eve").add_many(drafts)
        await memory.bind(user="ann").add(Draft("Ann drinks jasmine tea", data={"even": True}))
        yield memory


@pytest.fixture(autouse=True)
def parts_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_filter, "_PART", 7)


def before_it_is_read(monkeypatch: pytest.MonkeyPatch, change: Callable[[], Awaitable[object]]) -> None:
    """Change something once all was looked at, and before what passed is read."""
    sift = Readers.run_filter

    async def sift_and_change(self: Readers, row_filter: Any) -> None:
        await sift(self, row_filter)
        monkeypatch.setattr(Readers, "run_filter", sift)
        await change()

    monkeypatch.setattr(Readers, "run_filter", sift_and_change)


async def texts(eve: BoundMemory, **more: Any) -> list[str]:
    found, cursor = list[str](), None
    while True:
        page = await eve.list(where=EVEN, cursor=cursor, **more)
        found += [record.text for record in page.records]
        if (cursor := page.cursor) is None:
            return found


@pytest.mark.parametrize("read", LOOKED_AT.values(), ids=LOOKED_AT.keys())
async def test_everybody_else_goes_on_while_python_looks_at_the_records_of(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, read: Callable[[BoundMemory], Awaitable[object]]
) -> None:
    eve, ann = memory.bind(user="eve"), memory.bind(user="ann")
    looks, go_on, check = threading.Event(), threading.Event(), row_filter.RowFilter.check

    def look_slowly(self: row_filter.RowFilter, rows: Any) -> None:
        if len(rows) > 1:  # Ann has one
            looks.set()
            assert go_on.wait(300)
        check(self, rows)

    monkeypatch.setattr(row_filter.RowFilter, "check", look_slowly)
    task = asyncio.ensure_future(read(eve))
    assert await asyncio.to_thread(looks.wait, 300)
    assert len(await ann.search("tea", where=EVEN)) == 1
    assert len((await ann.list(where=EVEN)).records) == 1
    await ann.add(Draft("more", data={"even": False}))
    assert (await ann.delete_where(Where(data={"even": False}, source_keys=[]))).records == 0
    assert not task.done()
    go_on.set()
    await task


@pytest.mark.parametrize("order", ["newest", "oldest", "importance", "accessed"])
async def test_pages_hold_what_satisfies_conditions_in_order(memory: Memory, order: Any) -> None:
    eve = memory.bind(user="eve")
    expected = [f"tea {n}" for n in range(0, RECORDS, 2)]
    found = await texts(eve, order=order, limit=7)
    assert found == (expected if order == "oldest" else expected[::-1])


async def test_a_page_shows_records_as_they_are_when_it_is_read(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve = memory.bind(user="eve")
    ids = {record.text: record.id for record in (await eve.list(limit=100)).records}

    async def change() -> None:
        await eve.update(ids["tea 58"], Patch(data={"even": False}))
        await eve.update(ids["tea 56"], Patch(text="green tea 56"))
        await eve.delete(ids["tea 54"])

    before_it_is_read(monkeypatch, change)
    page = await eve.list(where=EVEN, limit=4)
    assert [record.text for record in page.records] == ["green tea 56", "tea 52", "tea 50"]
    rest = [f"tea {n}" for n in range(48, -1, -2)]
    assert [r.text for r in (await eve.list(where=EVEN, limit=100, cursor=page.cursor)).records] == rest


async def test_a_record_that_moves_back_is_on_a_later_page(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    eve = memory.bind(user="eve")
    ids = {record.text: record.id for record in (await eve.list(limit=100)).records}
    before_it_is_read(monkeypatch, lambda: eve.update(ids["tea 58"], Patch(importance=0.01)))
    found = await texts(eve, order="importance", limit=5)
    assert found == [*(f"tea {n}" for n in range(56, -1, -2)), "tea 58"]


async def test_a_page_of_which_nothing_is_left_is_followed_by_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve = memory.bind(user="eve")
    ids = {record.text: record.id for record in (await eve.list(limit=100)).records}
    before_it_is_read(monkeypatch, lambda: eve.delete_where(Where(ids=[ids[f"tea {n}"] for n in (58, 56, 54)])))
    assert [record.text for record in (await eve.list(where=EVEN, limit=2)).records] == ["tea 52", "tea 50"]


async def test_a_deletion_spares_what_was_changed_before_it(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    eve = memory.bind(user="eve")
    ids = {record.text: record.id for record in (await eve.list(limit=100)).records}
    before_it_is_read(monkeypatch, lambda: eve.update(ids["tea 0"], Patch(data={"even": False})))
    assert (await eve.delete_where(EVEN)).records == RECORDS // 2 - 1
    assert await eve.get(ids["tea 0"]) is not None
    assert await texts(eve) == []


async def test_a_group_of_conditions_on_fields_and_on_data_is_decided_as_one(memory: Memory) -> None:
    eve = memory.bind(user="eve")
    group = AnyOf([FieldCondition("collection", "eq", "c0"), DataCondition(("even",), "eq", value=True)])
    expected = {f"tea {n}" for n in range(RECORDS) if n % 3 == 0 or n % 2 == 0}
    found = (await eve.list(where=Where(matching=[group]), limit=100)).records
    assert {record.text for record in found} == expected
    for _ in range(2):
        hits = await eve.search("tea", where=Where(matching=[group]), limit=100)
        assert {hit.record.text for hit in hits} == expected


async def test_a_group_with_a_field_that_reads_change_is_never_remembered(memory: Memory) -> None:
    eve = memory.bind(user="eve")
    group = AnyOf([FieldCondition("access_count", "eq", 0), DataCondition(("even",), "eq", value=True)])
    where = Where(matching=[group])
    assert len(await eve.search("tea", where=where, limit=100)) == RECORDS
    await eve.list(limit=2, touch=True)  # one of them is odd
    assert len(await eve.search("tea", where=where, limit=100)) == RECORDS - 1


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_does_not_wait_for_python_to_look_at_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looking, go_on, check = threading.Event(), threading.Event(), row_filter.RowFilter.check

    def look_slowly(self: row_filter.RowFilter, rows: Any) -> None:
        looking.set()
        assert go_on.wait(300)
        check(self, rows)

    monkeypatch.setattr(row_filter.RowFilter, "check", look_slowly)
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        eve = memory.bind(user="eve")
        run_sync(eve.add, Draft("tea", data={"even": True}))
        reader = threading.Thread(target=lambda: run_sync(eve.list, where=EVEN))
        reader.start()
        assert looking.wait(300)
        child = os.fork()
        if child == 0:
            code = 1
            try:  # which it could not, had a read been under way
                with Memory(path, embedder=None) as own:
                    code = 0 if run_sync(own.bind(user="eve").stats).records == 1 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        go_on.set()
        reader.join()


async def test_long_work_in_a_thread_lets_the_core_loop_go_first() -> None:
    turns: list[int] = []

    def work() -> None:
        core = core_loop().loop
        for number in range(5):
            core.call_soon_threadsafe(turns.append, number)
            for _ in range(100_000):
                yield_now()
            assert turns[-1] == number

    await on_core(in_slices, work)
    yield_now()  # elsewhere it does nothing
