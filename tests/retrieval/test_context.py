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
NO_CONTEXT: dict[str, Any] = {"LENT": 0.0, "SESSION": 0.0, "LENGTH": 0.0}


@pytest.mark.parametrize("with_vectors", [True, False])
async def test_facts_rank_the_same_without_the_rules_of_conversations(*, with_vectors: bool) -> None:
    async with Memory(":memory:", embedder=DEFAULT_EMBEDDER if with_vectors else None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many([Draft(fact, kind="fact", session="notes") for fact in FACTS])
        for query in ("Who photographs boats?", "roses", "what does the captain sell"):
            ranked = [(hit.record.text, hit.score) for hit in await handle.search(query, limit=20)]
            with mock.patch.multiple(ranking, **NO_CONTEXT):
                assert ranked == [(hit.record.text, hit.score) for hit in await handle.search(query, limit=20)]


@pytest.mark.parametrize("with_vectors", [True, False])
async def test_a_record_is_a_turn_by_its_role_or_by_its_kind(*, with_vectors: bool) -> None:
    async with Memory(":memory:", embedder=DEFAULT_EMBEDDER if with_vectors else None) as memory:
        handle = memory.bind(app="demo", user="ann")
        for session, wish in (("fact", {"kind": "fact"}), ("role", {"role": "tool"}), ("kind", {"kind": "message"})):
            texts = ("Where does the ferry land?", "At the old pier.")
            await handle.add_many([Draft(text, session=session, **wish) for text in texts])  # type: ignore[arg-type]
        hits = await handle.search("Where does the ferry land?", explain=True, floor=False)
    lent = {hit.record.session for hit in hits if "neighbor" in (hit.components or {})}
    assert lent == {"role", "kind"}


async def test_the_less_a_turn_says_the_more_it_takes_over() -> None:
    answers = ["At the old pier.", "At the old pier. " + "I went on about this and that. " * 12, "No. " * 250]
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        for session, answer in enumerate(answers):
            turns = ("Where does the ferry land?", answer)
            await handle.add_many([Draft(text, session=str(session), role="user") for text in turns])
        hits = await handle.search("ferry land", explain=True, floor=False)
    taken = {hit.record.text: (hit.components or {}).get("neighbor") for hit in hits}
    short, longer, longest = (taken[answer] for answer in answers)
    assert short is not None
    assert longer is not None
    assert short.weighted > longer.weighted > 0
    assert longest is None


@pytest.mark.parametrize(("question", "is_asked_of_the_user"), [("where do I land", True), ("ferry land", False)])
async def test_turns_of_the_other_role_lend_only_what_is_beyond_the_weight_of_the_role(
    question: str, *, is_asked_of_the_user: bool
) -> None:
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        for answering in ("assistant", "user"):
            turns = (
                Draft("Oh.", session=answering, role="user"),
                Draft("Ferries land.", session=answering, role=answering),
            )
            await handle.add_many(turns)
        hits = await handle.search(question, explain=True, floor=False)
    taken = {
        hit.record.session: (hit.components or {})["neighbor"].weighted for hit in hits if hit.record.text == "Oh."
    }
    unsaid = 1 - 1 / 200
    beyond = ranking.ROLE * ranking.LENT * unsaid if is_asked_of_the_user else 0.0
    assert taken["assistant"] == pytest.approx(taken["user"] - beyond, abs=1e-5)
    assert taken["user"] > ranking.ROLE * ranking.LENT
