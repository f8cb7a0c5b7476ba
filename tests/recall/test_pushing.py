"""The memories that are pushed into a prompt: nothing for small talk, the fact for a question, and for a follow-up
as well."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from memory_core import PUSHED, BoundMemory, Draft, InvalidInputError, Memory, RecallOptions
from tests.corpora.loading import owners
from tests.recall.pushing import FOLLOW_UPS, SMALL_TALK, follow_up

FACTS = [
    "Ann lives in Oslo",
    "Ann's dog is called Rex",
    "The boiler code is 4711",
    "Ann drinks jasmine tea in the morning",
    "The router in the cellar has the password kolibri-9",
    "Rosa is allergic to hazelnuts",
]


@pytest_asyncio.fixture
async def ann() -> AsyncIterator[BoundMemory]:
    async with Memory(":memory:") as memory:
        ann = memory.bind(user="ann")
        await ann.add_many([Draft(fact) for fact in FACTS])
        yield ann


async def test_small_talk_pushes_nothing_and_a_question_its_fact(ann: BoundMemory) -> None:
    silent = [not await ann.recall(each["text"], PUSHED) for each in SMALL_TALK[::4]]
    assert sum(silent) >= 0.95 * len(silent)
    block = await ann.recall("What is the code of the boiler?", PUSHED)
    assert [hit.record.text for hit in block.hits] == ["The boiler code is 4711"]


@pytest.mark.slow
async def test_small_talk_of_each_language_pushes_nothing_among_facts_of_many() -> None:
    async with Memory(":memory:") as memory:
        ann = memory.bind(user="ann")
        await ann.add_many([replace(each, source_key=None) for owner in owners("languages") for each in owner.records])
        for language in ("en", "de", "fr", "es", "it", "pt"):
            said = [each["text"] for each in SMALL_TALK if each["language"] == language]
            silent = [not await ann.recall(text, PUSHED) for text in said]
            assert len(said) >= 40, language
            assert sum(silent) >= 0.95 * len(silent), language


async def test_a_message_that_asks_for_nothing_says_so_in_its_explanation(ann: BoundMemory) -> None:
    block = await ann.recall("Thanks, see you!", RecallOptions(pushed=True, floor=False), explain=True)
    assert not block
    assert {each.reason for each in block.considered} == {"small talk"}
    assert all(each.hit.relevance is not None and each.hit.relevance.surplus <= 0 for each in block.considered)


async def test_a_line_that_adds_nothing_is_not_pushed(ann: BoundMemory) -> None:
    said = [("user", "My Volvo needs 5W-30 oil"), ("assistant", "Nice, thanks for telling me")]
    await ann.remember(said, session="monday")
    block = await ann.recall("Which oil does my Volvo need?", RecallOptions(pushed=True, floor=False), explain=True)
    assert "5W-30" in block.text
    assert {each.reason for each in block.considered if each.hit.record.text.startswith("Nice")} == {"adds nothing"}


async def test_a_question_is_understood_from_its_conversation(ann: BoundMemory) -> None:
    said = [("user", "The router in the cellar needs a restart."), ("assistant", "Shall I wait?")]
    question = "What do I need for it?"
    assert "kolibri-9" not in str(await ann.recall("What do I need for it?", PUSHED))
    assert "kolibri-9" in str(await ann.recall(question, PUSHED, conversation=said))
    assert "kolibri-9" in str(await ann.recall(question, PUSHED, conversation=[*said, ("user", question)]))
    assert not await ann.recall("Great, thanks!", PUSHED, conversation=said)


async def test_a_short_question_that_is_near_small_talk_continues_its_conversation(ann: BoundMemory) -> None:
    await ann.add("Dr. Lindqvist only sees patients on Tuesdays and Thursdays")
    said = [("user", "I need an appointment with Dr. Lindqvist."), ("assistant", "Sure.")]
    assert "Tuesdays" not in str(await ann.recall("Which days work?", PUSHED))
    for _ in range(2):  # the second time the conversation itself is stored, too
        assert "Tuesdays" in str(await ann.recall("Which days work?", PUSHED, conversation=said))
        await ann.remember(said, session="now")
    for small_talk in ("How do you spell accommodate?", "How many seconds are in a day?", "how's it going?"):
        assert not await ann.recall(small_talk, PUSHED, conversation=said), small_talk


async def test_a_full_question_is_not_misled_by_its_conversation(ann: BoundMemory) -> None:
    said = [("user", "The router in the cellar needs a restart."), ("assistant", "Shall I wait?")]
    assert "jasmine" in str(await ann.recall("Which tea does Ann drink in the morning?", PUSHED, conversation=said))


async def test_a_conversation_adds_nothing_that_is_about_neither() -> None:
    async with Memory(":memory:") as memory:
        ann = memory.bind(user="ann")
        await ann.add_many(["Ann is allergic to penicillin", "The spare key is with Mrs Okafor"])
        said = [("user", "Where did I leave the spare key of the shed?")]
        for conversation in ([], said):
            recalled = await ann.recall("spare key", conversation=conversation)
            assert [record.text for record in recalled.records] == ["The spare key is with Mrs Okafor"]


async def test_what_was_said_in_the_conversation_is_no_result(ann: BoundMemory) -> None:
    said = [("user", "My bicycle is green"), ("assistant", "Noted.")]
    await ann.remember(said, session="now")
    assert "bicycle" in str(await ann.recall("Which colour is my bicycle?"))
    recalled = await ann.recall("Which colour is my bicycle?", conversation=said, explain=True)
    assert "bicycle" not in recalled.text
    reasons = {each.reason for each in recalled.considered if each.hit.record.text == "My bicycle is green"}
    assert reasons == {"excluded"}


@pytest.mark.parametrize("wrong", ["hello", [("robot", "hello")], [7]])
async def test_a_conversation_of_something_else_is_refused(ann: BoundMemory, wrong: object) -> None:
    with pytest.raises(InvalidInputError):
        await ann.recall("tea", conversation=wrong)  # type: ignore[arg-type]


@pytest.mark.slow
async def test_follow_ups_reach_nine_of_ten_of_what_the_full_questions_do() -> None:
    found = await follow_up("facts")
    assert found.in_conversation >= 0.9 * found.full
    assert found.after_another >= 0.95 * found.full
    assert found.full >= 0.95 * len(FOLLOW_UPS)
