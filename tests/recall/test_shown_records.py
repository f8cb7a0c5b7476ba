"""The records that may stand in a block, whatever brought them there: a hit, a link, or a turn beside a hit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from memory_core import (
    PUSHED,
    BoundMemory,
    Draft,
    FieldCondition,
    Link,
    Memory,
    MemoryRecord,
    Message,
    Page,
    Patch,
    RecallOptions,
    Where,
)
from memory_core.recall.asked import Asked
from memory_core.recall.copies import names
from memory_core.recall.recalling import recall, recall_for
from memory_core.retrieval.hits import Hits

START = datetime(2026, 5, 4, 9, tzinfo=UTC)
NOW = START + timedelta(days=100)
BY_WORDS = RecallOptions(mode="lexical", floor=False)


@pytest_asyncio.fixture
async def memory() -> AsyncIterator[Memory]:
    async with Memory(":memory:", embedder=None, clock=lambda: NOW) as opened:
        yield opened


@pytest_asyncio.fixture
async def ann(memory: Memory) -> BoundMemory:
    return memory.bind(app="chat", user="ann")


@pytest_asyncio.fixture
async def team(memory: Memory) -> BoundMemory:
    return memory.bind(app="chat", user="team")


async def say(ann: BoundMemory, *said: tuple[str, str, str], session: str = "monday") -> list[MemoryRecord]:
    """Remember turns of a role and an author, a minute apart."""
    messages = [
        Message(text, role=role, author=author, occurred_at=START + timedelta(minutes=n))  # type: ignore[arg-type]
        for n, (role, author, text) in enumerate(said)
    ]
    return await ann.remember(messages, session=session)


async def better_hits(ann: BoundMemory, words: str) -> None:
    """Memories that take the places of the lines that are chosen before any neighbor is."""
    await ann.add_many([Draft(f"{words} {n}") for n in range(3)])


def options(**given: Any) -> RecallOptions:
    return RecallOptions(mode="lexical", floor=False, **given)


async def test_a_linked_memory_may_be_said_expired_or_excluded_like_any_other(ann: BoundMemory) -> None:
    market = await ann.add("It was bought at the market in Ghent")
    said = await ann.add("It was bought at the station")
    old = await ann.add(Draft("It was bought at the harbour", occurred_at=START, valid_to=START + timedelta(days=1)))
    left_out = await ann.add("It was bought at the fair")
    links = [Link("derived_from", each.id) for each in (market, said, old, left_out)]
    await ann.add(Draft("Ann owns a kettle", links=links))
    asked = Asked("kettle", [said.text], lambda record: record.id == left_out.id)
    found = await recall_for(ann, asked, options(links=["derived_from"]))
    assert {record.text for record in found.records} == {"Ann owns a kettle", market.text}


@pytest.mark.parametrize("how", ["said", "excluded", "expired"])
async def test_a_question_that_may_not_be_shown_does_not_come_with_its_reply(ann: BoundMemory, how: str) -> None:
    asked, reply = await say(ann, ("assistant", "Bea", "Which day suits you?"), ("user", "Ann", "Friday, the dentist"))
    if how == "expired":
        await ann.update(asked.id, Patch(valid_to=START + timedelta(days=1)))
    before = [Message(asked.text, role="assistant")] if how == "said" else []
    dentist = Asked("dentist", before, lambda record: how == "excluded" and record.id == asked.id)
    found = await recall_for(ann, dentist, options())
    assert [record.id for record in found.records] == [reply.id]
    assert "Which day" not in found.text


async def test_a_long_answer_beside_its_question_is_not_shown_again(ann: BoundMemory) -> None:
    answer = "It starts with the red button. " + "Wait for the lamp beside the valve. " * 17
    assert 500 < len(answer.strip()) < 1_000
    await say(ann, ("user", "Ann", "Is there any trouble with the old boiler?"), ("assistant", "Bea", answer.strip()))
    await better_hits(ann, "boiler trouble")
    found = await recall(ann, "boiler trouble", BY_WORDS)
    assert found.text.count("red button") == 1


async def test_a_long_question_in_the_line_of_its_reply_is_not_shown_again(ann: BoundMemory) -> None:
    asked = "In winter the ferries are late again and again. " * 15 + "Which harbour do you mean?"
    await say(ann, ("assistant", "Bea", asked), ("user", "Ann", "Ostend"))
    await better_hits(ann, "Ostend Ostend harbour")
    found = await recall(ann, "Ostend harbour", BY_WORDS)
    assert found.text.count("Which harbour do you mean?") == 1


async def test_a_turn_is_beside_another_only_if_nothing_was_said_between_them(ann: BoundMemory) -> None:
    said = await say(
        ann,
        ("user", "Tom", "Are you allergic to nuts?"),
        ("user", "Ann", "Let me check my papers before I answer that, please"),
        ("user", "Bea", "Do you want the window open?"),
        ("user", "Ann", "Yes, nuts and milk"),
    )
    (_, checking, window, _) = said
    visible = [each.id for each in said if each not in (checking, window)]
    found = await recall(ann, "nuts", options(where=Where(ids=visible)))
    assert sorted(found.text.splitlines()[3:5]) == ['- Ann: "Yes, nuts and milk"', '- Tom: "Are you allergic to nuts?"']


async def test_an_earlier_question_does_not_raise_the_share_that_an_answer_needs(ann: BoundMemory) -> None:
    await ann.add(
        Draft("What is the code of the old boiler in the cellar?", role="user", kind="message", session="monday")
    )
    answer = await ann.add("The code is 4711, for the cellar")
    question = "What is the code of the boiler in my cellar?"
    words = Asked(question, shows_query=False)
    found = await recall_for(ann, words, options(), explain=True)
    scores = {each.hit.record.text: each.hit.score for each in found.considered}
    share = 1.05 * scores[answer.text] / max(scores.values())  # more than it has of the earlier question's score
    assert share < 1
    found = await recall_for(ann, words, options(min_score=share))
    assert answer.id in {record.id for record in found.records}


async def test_what_is_demoted_stays_so_with_diversity(ann: BoundMemory) -> None:
    people = ("Tom", "Rosa", "Ben")
    said = ("The boat house is dry", "The key? It hangs behind the oars", "The boat house is green")
    await ann.add_many(
        [Draft(text, author=name, role="user", session=name) for name, text in zip(people, said, strict=True)]
    )
    question = "Where is the key of the boat house?"
    await ann.add(Draft(f"{question[:-1]}, crew?", author="Mallory", role="user", session="Mallory"))
    for diversity in (0.0, 0.1, 0.5):
        found = await recall(ann, question, options(diversity=diversity))
        assert found.hits[-1].record.author == "Mallory", diversity


async def test_memories_of_two_owners_with_one_id_are_two(ann: BoundMemory, team: BoundMemory) -> None:
    await ann.add(Draft("Ann takes her tea with milk", id="tea"))
    await team.add(Draft("The team drinks tea at four", id="tea"))
    found = await ann.sharing({"team": team}).recall("tea", BY_WORDS, explain=True)
    assert {record.text for record in found.records} == {"Ann takes her tea with milk", "The team drinks tea at four"}
    assert [each.reason for each in found.considered] == ["shown", "shown"]


async def test_turns_of_two_owners_in_sessions_of_one_name_are_no_neighbors(
    ann: BoundMemory, team: BoundMemory
) -> None:
    await say(ann, ("user", "Ann", "Ostend, please"))
    asked = Message("Which tea?", role="assistant", author="Bea", occurred_at=START - timedelta(minutes=1))
    await team.remember([asked], session="monday")
    found = await ann.sharing({"team": team}).recall("Ostend", BY_WORDS)
    assert '- Ann: "Ostend, please"' in found.text.splitlines()


async def test_turns_in_one_line_say_each_since_when_they_hold(ann: BoundMemory) -> None:
    _, reply = await say(ann, ("assistant", "Bea", "Which harbour is it?"), ("user", "Ann", "Ostend"))
    await ann.update(reply.id, Patch(valid_from=START))
    found = await recall(ann, "Ostend harbour", BY_WORDS)
    assert 'Bea (assistant): "Which harbour is it?" since 2026-05-04, Ann: "Ostend"' in found.text


class Counted:
    """A handle that counts its searches."""

    def __init__(self, handle: BoundMemory) -> None:
        self._handle, self.limits = handle, list[int]()

    async def search(self, query: str, *, limit: int = 10, **given: Any) -> Hits:
        self.limits.append(limit)
        return await self._handle.search(query, limit=limit, **given)

    async def list(self, **given: Any) -> Page:
        return await self._handle.list(**given)


async def test_a_prompt_that_shows_a_long_conversation_makes_no_search_longer(ann: BoundMemory) -> None:
    asked = "Which tea does the harbour master drink on Friday?"
    elsewhere = await ann.add("The harbour master drinks jasmine tea")
    shown = await say(ann, *(("user", "Ann", f"{asked[:-1]}, and on day {n}") for n in range(150)))
    ids = {record.id for record in shown}
    conditions = (FieldCondition("id", "in", tuple(ids)), FieldCondition("session", "eq", "monday"))
    for condition in conditions:
        counted = Counted(ann)
        found = await recall_for(counted, Asked(asked, (), lambda record: record.id in ids, condition), options())
        assert [record.id for record in found.records] == [elsewhere.id]
        assert max(counted.limits) == min(counted.limits)


async def test_conditions_on_what_is_shown_are_no_reason_to_leave_out_more(ann: BoundMemory) -> None:
    """Neither of a where of its own, nor an explanation: both ask for what they ask for."""
    shown = await ann.add_many([f"tea {n}" for n in range(60)])
    ids = [record.id for record in shown if record is not None]
    asked = Asked("tea", (), lambda record: record.id != ids[7], FieldCondition("id", "nin", ids[7:8]))
    assert [hit.record.id for hit in (await recall_for(ann, asked, options())).hits] == [ids[7]]
    own = options(where=Where(matching=[FieldCondition("id", "in", ids)]))
    assert [hit.record.id for hit in (await recall_for(ann, asked, own)).hits] == [ids[7]]
    explained = await recall_for(ann, asked, options(), explain=True)
    assert {each.reason for each in explained.considered} == {"shown", "excluded"}


@pytest.mark.slow
@pytest.mark.parametrize("message", ["hi", "thanks a lot, hello again"])
async def test_a_message_that_asks_for_nothing_is_searched_for_once(message: str) -> None:
    texts = [f"hi, hello and thanks again from room {n}" for n in range(400)]
    async with Memory(":memory:", clock=lambda: NOW) as memory:
        ann = memory.bind(user="ann")
        await ann.add_many([Draft(text) for text in texts])
        counted = Counted(ann)
        await recall(counted, message, PUSHED)
    assert len(counted.limits) == 1


def names_in(texts: Sequence[str]) -> list[set[str]]:
    return [set(names(text)) for text in texts]


def test_names_of_two_words_and_in_any_script_are_names() -> None:
    assert names_in(
        ["does Ann Lee live in Århus?", "where is Émile, and I?", "Who has B 12?", "gibt es Ökostrom?"]
    ) == [
        {"ann", "lee", "århus"},
        {"émile"},
        {"b", "12"},
        {"ökostrom"},
    ]
