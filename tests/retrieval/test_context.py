"""What the rules of conversations do, and that they leave other records alone."""

from typing import Any
from unittest import mock

import pytest

from memory_core import Draft, Memory
from memory_core.retrieval import ranking
from memory_core.settings import DEFAULT_EMBEDDER

FACTS = [
    f"{who} {does} {what}"
    for who in ("The gardener", "Our neighbour", "The captain")
    for does in ("prunes", "photographs", "sketches", "buys", "sells")
    for what in ("roses in May", "old boats", "a lighthouse", "paper maps", "clocks?")
]
STILL = ranking.Flow(0, 0, 0, 0, 0)
NO_CONTEXT: dict[str, Any] = {"WITH_VECTORS": STILL, "BY_WORDS": STILL, "SESSION": 0.0, "ELSEWHERE": 0.0}


@pytest.mark.parametrize("with_vectors", [True, False])
async def test_facts_of_no_session_rank_the_same_without_the_rules_of_conversations(*, with_vectors: bool) -> None:
    async with Memory(":memory:", embedder=DEFAULT_EMBEDDER if with_vectors else None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many(FACTS)
        for query in ("Who photographs boats?", "roses", "what does the captain sell"):
            ranked = [(hit.record.text, hit.score) for hit in await handle.search(query, limit=20)]
            with mock.patch.multiple(ranking, **NO_CONTEXT):
                assert ranked == [(hit.record.text, hit.score) for hit in await handle.search(query, limit=20)]


async def test_sessions_in_which_the_named_person_spoke_come_first() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        for session, other in (("one", "Tom"), ("two", "Ines")):
            await handle.add_many(
                [
                    Draft("How was the trip?", author="Nadia", session=session),
                    Draft("Fine, we saw a lighthouse.", author=other, session=session),
                    Draft("I love a lighthouse.", author="Nadia", session=session),
                ]
            )
        hits = await handle.search("Which lighthouse did Ines see?", explain=True)
    assert [hit.record.session for hit in hits[:2]] == ["two", "two"]
    assert {hit.record.session for hit in hits if "elsewhere" in (hit.components or {})} == {"one"}


async def test_a_statement_comes_before_a_question_that_says_the_same() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many(["You keep bees?", "We keep bees."])
        assert [hit.record.text for hit in await handle.search("keep bees")] == ["We keep bees.", "You keep bees?"]
