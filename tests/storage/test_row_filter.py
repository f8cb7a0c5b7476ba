"""The records at which Python has to look: beside other work, and in one state of the file although records change
meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

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
)
from memory_core.concurrency.loop import core_loop, on_core
from memory_core.concurrency.threads import in_slices, yield_now
from memory_core.storage.sqlite import row_filter

pytestmark = pytest.mark.uncovered

T = TypeVar("T")
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


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    async with Memory(tmp_path / "memory.db", embedder=None) as memory:
        drafts = [Draft(f"tea {n}", data={"even": n % 2 == 0}, collection=f"c{n % 3}") for n in range(RECORDS)]
        await memory.bind(user="eve").add_many(drafts)
        await memory.bind(user="ann").add(Draft("Ann drinks jasmine tea", data={"even": True}))
        yield memory


@pytest.fixture(autouse=True)
def parts_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_filter, "_PART", 7)


class Held:
    """Holds the first read that Python has to look at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks, self._go_on = threading.Event(), threading.Event()
        monkeypatch.setattr(row_filter, "yield_now", self._look)

    def _look(self) -> None:
        if not self.looks.is_set():
            self.looks.set()
            assert self._go_on.wait(300)

    async def during(self, read: Awaitable[T], work: Callable[[], Awaitable[object]]) -> T:
        """Do other work while a read is held, and return what it has read."""
        reading = asyncio.ensure_future(read)
        assert await asyncio.to_thread(self.looks.wait, 300)
        await work()
        assert not reading.done()
        self._go_on.set()
        return await reading

    def end(self) -> None:
        """Let it go on."""
        self._go_on.set()


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

    async def work() -> None:
        assert len(await ann.search("tea", where=EVEN)) == 1
        assert len((await ann.list(where=EVEN)).records) == 1
        await ann.add(Draft("more", data={"even": False}))
        assert (await ann.delete_where(Where(data={"even": False}, source_keys=[]))).records == 0

    await Held(monkeypatch).during(read(eve), work)


@pytest.mark.parametrize("order", ["newest", "oldest", "importance", "accessed"])
async def test_pages_hold_what_satisfies_conditions_in_order(memory: Memory, order: Any) -> None:
    eve = memory.bind(user="eve")
    expected = [f"tea {n}" for n in range(0, RECORDS, 2)]
    found = await texts(eve, order=order, limit=7)
    assert found == (expected if order == "oldest" else expected[::-1])


async def test_a_page_shows_one_state_of_the_file(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    eve = memory.bind(user="eve")
    ids = {record.text: record.id for record in (await eve.list(limit=100)).records}

    async def change() -> None:
        await eve.update(ids["tea 58"], Patch(data={"even": False}))
        await eve.update(ids["tea 2"], Patch(text="green tea 2"))
        await eve.delete(ids["tea 0"])

    page = await Held(monkeypatch).during(eve.list(where=EVEN, limit=100), change)
    assert [record.text for record in page.records] == [f"tea {n}" for n in range(58, -1, -2)]
    assert await texts(eve) == [*(f"tea {n}" for n in range(56, 2, -2)), "green tea 2"]


async def test_what_changes_before_a_read_is_counted_is_returned_as_it_was_read_and_not_counted(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve = memory.bind(user="eve")
    ids = {record.text: record.id for record in (await eve.list(limit=100)).records}

    async def change() -> None:
        await eve.update(ids["tea 58"], Patch(text="green tea"))
        await eve.delete(ids["tea 56"])

    page = await Held(monkeypatch).during(eve.list(where=EVEN, limit=3, touch=True), change)
    assert [(record.text, record.access_count) for record in page] == [("tea 58", 0), ("tea 56", 0), ("tea 54", 1)]
    after = {record.text: record.access_count for record in await eve.list(where=EVEN, limit=3)}
    assert after == {"green tea": 0, "tea 54": 1, "tea 52": 0}
    assert await memory.operator().check() == []


async def test_a_deletion_spares_what_was_changed_before_it(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    eve = memory.bind(user="eve")
    ids = {record.text: record.id for record in (await eve.list(limit=100)).records}
    deleted = await Held(monkeypatch).during(
        eve.delete_where(EVEN), lambda: eve.update(ids["tea 0"], Patch(data={"even": False}))
    )
    assert deleted.records == RECORDS // 2 - 1
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
