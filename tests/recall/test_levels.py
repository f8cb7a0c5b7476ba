"""Which level a block shows: a fact, the turn it was said in, or the summary of the session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from memory_core import BoundMemory, Draft, Link, Memory, Patch

START = datetime(2026, 3, 2, tzinfo=UTC)
TURN = "I'm allergic to peanuts. Yesterday the harbour was full of ships, and the market sold old maps and lamps."
SUMMARY = "Ann: I'm allergic to peanuts.\nAnn: We bought a compass at the fair."


@pytest_asyncio.fixture
async def ann() -> AsyncIterator[BoundMemory]:
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="ann")
        for number, text in enumerate((TURN, "We bought a compass at the fair.", "The kettle is broken.")):
            at = START + timedelta(minutes=number)
            draft = Draft(text, kind="message", role="user", session="s", author="Ann", occurred_at=at, id=f"t{number}")
            await ann.add(draft)
        links = [Link("derived_from", "t0")]
        fact = Draft("I'm allergic to peanuts.", kind="fact", author="Ann", role="user", links=links, id="fact")
        whole = Draft(
            SUMMARY, kind="summary", session="s", links=[Link("summarizes", f"t{n}") for n in range(3)], id="sum"
        )
        await ann.add_many([fact, whole])
        yield ann


async def shown(ann: BoundMemory, query: str) -> list[str]:
    return [record.id for record in (await ann.recall(query, neighbors=False)).records]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("What am I allergic to?", ["fact"]),
        ("Am I allergic, and what about maps in the market?", ["t0"]),
        ("Which compass did we buy?", ["t1"]),
    ],
)
async def test_a_block_shows_the_level_that_answers_and_each_thing_once(
    ann: BoundMemory, query: str, ids: list[str]
) -> None:
    assert (await shown(ann, query))[: len(ids)] == ids
    assert "sum" not in await shown(ann, query)


async def test_a_summary_stands_for_turns_that_are_compacted(ann: BoundMemory) -> None:
    for number in range(3):
        await ann.update(f"t{number}", Patch(state="compacted"))
    assert await shown(ann, "Which compass did we buy?") == ["sum"]


async def test_what_is_left_out_is_explained(ann: BoundMemory) -> None:
    recalled = await ann.recall("What am I allergic to?", explain=True)
    reasons = {each.hit.record.id: (each.reason, each.of) for each in recalled.considered}
    assert reasons["t0"] == ("duplicate", "fact")
    assert reasons["sum"][0] == "duplicate"
