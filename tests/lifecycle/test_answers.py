"""An extracted fact and the turn that it was said in are one answer of a search."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest_asyncio

from memory_core import BoundMemory, Draft, Hit, Memory, Patch, Where
from memory_core.lifecycle import maintain
from tests.lifecycle.scripted import Diligent

START = datetime(2026, 3, 2, tzinfo=UTC)
SAID = (
    "I'm allergic to peanuts. What can I cook tonight for eleven guests from the harbour, with rice and ginger?",
    "Our neighbour sells peanuts at the harbour.",
    "I collect old maps. I'm a nurse. Are peanuts on any map of yours?",
)
QUESTION = "I'm allergic"


@pytest_asyncio.fixture
async def memory() -> AsyncIterator[Memory]:
    async with Memory(":memory:", embedder=None) as memory:
        yield memory


@pytest_asyncio.fixture
async def ann(memory: Memory) -> BoundMemory:
    ann = memory.bind(user="ann")
    for number, text in enumerate(SAID):
        at = START + timedelta(minutes=number)
        await ann.add(Draft(text, kind="message", role="user", session="s", occurred_at=at, id=f"t{number}"))
    await maintain(ann, model=Diligent())
    return ann


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.record.id for hit in hits]


async def test_the_turn_takes_the_place_of_its_fact_and_shows_what_it_quotes(ann: BoundMemory) -> None:
    apart = await ann.search(QUESTION, floor=False, apart=True)
    assert (apart[0].record.kind, apart[0].record.text) == ("fact", "I'm allergic to peanuts.")
    hits = await ann.search(QUESTION, floor=False)
    assert sorted(ids(hits)) == ["t0", "t1", "t2"]
    assert (hits[0].record.id, hits[0].score) == ("t0", apart[0].score)
    assert hits[0].passage is not None
    assert hits[0].passage.text == "I'm allergic to peanuts."


async def test_every_limit_gives_the_beginning_of_the_same_list(ann: BoundMemory) -> None:
    whole = ids(await ann.search("peanuts, maps and a nurse", floor=False))
    assert len(whole) == len(set(whole)) == 3
    for limit in (1, 2):
        assert ids(await ann.search("peanuts, maps and a nurse", floor=False, limit=limit)) == whole[:limit]


async def test_the_fact_itself_is_found_where_its_turn_is_not(ann: BoundMemory) -> None:
    facts = await ann.search(QUESTION, where=Where(kinds=["fact"]), floor=False)
    assert facts[0].record.text == "I'm allergic to peanuts."
    await ann.update("t0", Patch(state="archived"))
    assert (await ann.search(QUESTION, floor=False))[0].record == facts[0].record


async def test_spaces_have_the_same_answers(memory: Memory, ann: BoundMemory) -> None:
    bob = memory.bind(user="bob")
    shared = ann.sharing({"other": bob})
    assert ids(await shared.search(QUESTION, floor=False)) == ids(await ann.search(QUESTION, floor=False))
    assert len(await shared.search(QUESTION, floor=False, apart=True)) > len(SAID)
    await bob.add(Draft("I'm allergic to cats.", id="t0"))  # an id that Ann's turn has, too
    hits = await shared.search(QUESTION, floor=False)
    assert sorted((hit.record.user, hit.record.id) for hit in hits) == [
        *(("ann", f"t{n}") for n in range(3)),
        ("bob", "t0"),
    ]
    assert {hit.record.text for hit in hits if hit.record.id == "t0"} == {SAID[0], "I'm allergic to cats."}
