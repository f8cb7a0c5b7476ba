"""What fades, and what does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from memory_core import BoundMemory, Draft, InvalidInputError, Memory, Where
from memory_core.lifecycle import MaintainPolicy, Maintenance, maintain, undo_maintenance

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest_asyncio.fixture
async def ann() -> AsyncIterator[BoundMemory]:
    async with Memory(":memory:", embedder=None, clock=lambda: NOW) as memory:
        yield memory.bind(user="ann")


def note(text: str, days: float, **fields: Any) -> Draft:
    return Draft(text, occurred_at=NOW - timedelta(days=days), **fields)


async def gone(ann: BoundMemory, policy: MaintainPolicy) -> list[tuple[str, str]]:
    done = await maintain(ann, policy)
    assert await maintain(ann, policy) == Maintenance()
    assert {record.text for record in (await ann.list()).records}.isdisjoint(
        text for s in done.steps for text in s.gone
    )
    return [(step.reason, text) for step in done.steps for text in step.gone]


async def test_nothing_fades_unless_the_policy_says_so(ann: BoundMemory) -> None:
    await ann.add(note("old", 10_000, importance=0.01))
    assert await gone(ann, MaintainPolicy()) == []


async def test_what_nobody_reads_fades_by_its_kind_and_importance(ann: BoundMemory) -> None:
    await ann.add_many(
        [
            note("gone", 34, importance=0.5),
            note("young", 32, importance=0.5),
            note("important", 34, importance=0.6),
            note("pinned", 900, tags=["pinned"]),
            note("a fact", 900, kind="fact"),
            note("of tomorrow", -1),
        ]
    )
    await ann.add(note("read", 900))
    await ann.list(where=Where(keywords=["read"]), touch=True)
    assert await gone(ann, MaintainPolicy(half_lives={"note": 10})) == [("faded", "gone")]


async def test_a_budget_keeps_what_matters_most_and_what_is_pinned(ann: BoundMemory) -> None:
    drafts = [
        note(f"note {n}", n, importance=0.9 if n == 4 else 0.5, tags=["pinned"] if n == 5 else []) for n in range(6)
    ]
    await ann.add_many(drafts)
    assert await gone(ann, MaintainPolicy(most_records=4)) == [("budget", "note 3"), ("budget", "note 2")]
    assert await gone(ann, MaintainPolicy(most_bytes=3 * 6)) == [("budget", "note 1")]
    assert await gone(ann, MaintainPolicy(most_records=0)) == [("budget", "note 0"), ("budget", "note 4")]
    assert [record.text for record in (await ann.list()).records] == ["note 5"]


async def test_what_faded_is_archived_and_comes_back(ann: BoundMemory) -> None:
    await ann.add(note("The ferry was late", 900))
    done = await maintain(ann, MaintainPolicy(half_lives={"note": 10}))
    archived = await ann.list(where=Where(states=["archived"]))
    assert [record.text for record in archived.records] == ["The ferry was late"]
    assert await undo_maintenance(ann, done) == ()
    assert len((await ann.list()).records) == 1


async def test_what_is_merged_or_corrected_does_not_count_for_the_budget(ann: BoundMemory) -> None:
    await ann.add_many(
        [note("I live in Oslo", 9), note("I live in Oslo.", 8), note("I moved to Bergen", 7), note("It rains", 6)]
    )
    policy = MaintainPolicy(contradictions="supersede", most_records=2)
    assert [reason for reason, _ in await gone(ann, policy)] == ["duplicate", "correction"]


@pytest.mark.parametrize("wrong", [{"half_lives": {"note": 0}}, {"most_records": -1}, {"most_bytes": -1}])
def test_a_policy_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="must be"):
        MaintainPolicy(**wrong)
