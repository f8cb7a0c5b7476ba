"""Many conditions on many tags: they are decided for a few records at a time, and everybody else goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from memory_core import Draft, FieldCondition, Memory, NoneOf, Patch, RecordNotFoundError, Where
from memory_core.values.limits import MAX_CONDITIONS, MAX_TAGS

pytestmark = pytest.mark.uncovered

RECORDS = 100
ABSENT = [FieldCondition("tags", "starts_with", f"zz{number}") for number in range(MAX_CONDITIONS // 2 - 2)]
ODD = FieldCondition("author", "eq", "odd")


def drafts() -> list[Draft]:
    tags = [f"tag {number}" for number in range(MAX_TAGS)]
    return [Draft(f"note {number}", tags=tags, author="odd" if number % 2 else "even") for number in range(RECORDS)]


async def done_beside(work: Awaitable[object], step: Callable[[], Awaitable[object]]) -> int:
    """The number of times that somebody else got something done while a call was carried out."""
    task, times = asyncio.ensure_future(work), 0
    await asyncio.sleep(0)
    while not task.done():
        await step()
        times += 1
    await task
    return times


async def test_neither_searches_nor_adds_wait_for_somebody_elses_conditions(tmp_path: Path) -> None:
    nothing = Where(matching=[*(NoneOf([one]) for one in ABSENT), FieldCondition("tags", "eq", "nowhere")])
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
        await ann.add_many(drafts())
        await bob.add("the tide table")
        assert await done_beside(ann.list(where=nothing), lambda: bob.search("tide")) >= 10
        sought = ann.search("note", mode="substring", where=nothing)
        assert await done_beside(sought, lambda: bob.search("tide")) >= 10
        assert await done_beside(ann.delete_where(nothing), lambda: bob.add("the tide turns")) >= 10
        assert len(await ann.list(limit=2 * RECORDS)) == RECORDS


async def test_what_satisfies_many_conditions_is_found_and_deleted_and_nothing_else(tmp_path: Path) -> None:
    where = Where(matching=[*(NoneOf([one]) for one in ABSENT), ODD])
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        await ann.add_many(drafts())
        found = await ann.list(where=where, limit=2 * RECORDS)
        assert {record.author for record in found} == {"odd"}
        assert len(found) == len(await ann.search("note", where=where, limit=2 * RECORDS)) == RECORDS // 2
        assert (await ann.delete_where(where)).records == RECORDS // 2
        assert {record.author for record in await ann.list(limit=2 * RECORDS)} == {"even"}


async def test_what_changes_while_a_deletion_looks_for_it_is_tested_again(tmp_path: Path) -> None:
    where = Where(matching=[*(NoneOf([one]) for one in ABSENT), ODD])
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        stored = await ann.add_many(drafts())
        odd = [record.id for record in stored[1::2] if record is not None]
        deleting = asyncio.create_task(ann.delete_where(where))
        changed = list[str]()
        for id in odd[-1:0:-10]:  # noqa: A001  (the word of the library)
            try:
                await ann.update(id, Patch(author="even now"))
            except RecordNotFoundError:  # it was deleted first
                break
            changed.append(id)
        deleted = (await deleting).records
        left = {record.id: record.author for record in await ann.list(limit=2 * RECORDS)}
        assert deleted == len(odd) - len(changed)
        assert "odd" not in left.values()
        assert [left[each] for each in changed] == ["even now"] * len(changed)
