"""The records that fade, and those that do not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from memory_core import BoundMemory, Draft, InvalidInputError, Memory, Patch, Where
from memory_core.lifecycle import MaintainPolicy, Maintenance, apply_steps, maintain, undo_maintenance

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
    assert await gone(ann, MaintainPolicy(most_records=1)) == [("budget", "note 0"), ("budget", "note 4")]
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
        [
            note("I live in Oslo", 9, id="oslo"),
            note("I live in Oslo.", 8),
            note("I moved to Bergen", 7, data={"corrects": "oslo"}),
            note("It rains", 6),
        ]
    )
    policy = MaintainPolicy(contradictions="supersede", most_records=2)
    assert [reason for reason, _ in await gone(ann, policy)] == ["duplicate", "correction"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"half_lives": {"note": 0}},
        {"most_records": 0},
        {"most_bytes": 0},
        {"most_records": True},
        {"alike": "supersede"},
        {"delete_after": float("nan")},
        {"duplicates": "none"},
        {"duplicates": "supersede"},
        {"contradictions": "merge"},
        {"contradictions": None},
        {"half_lives": 5},
        {"half_lives": {"note": "30"}},
        {"lifetimes": {"note": None}},
        {"most_records": "100"},
        {"delete_after": timedelta(days=30)},
        {"periods": "week"},
    ],
)
def test_a_policy_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="must be"):
        MaintainPolicy(**wrong)


async def test_only_a_policy_that_says_so_deletes_what_was_archived_long_ago(tmp_path: Path) -> None:
    now = [NOW - timedelta(days=40)]
    async with Memory(tmp_path / "m.db", embedder=None, clock=lambda: now[0]) as memory:
        ann = memory.bind(user="ann")
        gone = await ann.add(Draft("The ferry was late", source_key="ferry"))
        kept = await ann.add(Draft("The gate code is 2580", tags=["pinned"]))
        old = await ann.add("Ann lives in Oslo")
        await ann.supersede(old.id, "Ann lives in Bergen")
        for record in (gone, kept):
            await ann.update(record.id, Patch(state="archived"))
        now[0] = NOW - timedelta(days=5)
        late = await ann.add(Draft("It rained"))
        await ann.update(late.id, Patch(state="archived"))
        now[0] = NOW
        assert (await maintain(ann, MaintainPolicy(most_records=9))).steps == ()
        policy = MaintainPolicy(delete_after=30)
        plan = await maintain(ann, policy, dry_run=True)
        assert [(step.reason, step.gone) for step in plan.steps] == [("deleted", ("The ferry was late",))]
        assert await ann.get(gone.id) is not None
        await ann.update(gone.id, Patch(importance=0.9))  # somebody changes it after the plan
        assert (await apply_steps(ann, plan.steps)).steps == ()
        assert (await maintain(ann, policy)).steps == ()  # it was touched today
        now[0] = NOW + timedelta(days=27)
        assert [step.gone for step in (await maintain(ann, policy)).steps] == [("It rained",)]
        assert [await ann.get(each.id) is None for each in (gone, kept, old, late)] == [False, False, False, True]


async def test_a_policy_with_an_unknown_period_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="period must be"):
        MaintainPolicy(periods=("year",))  # type: ignore[arg-type]
