"""One message is one record, so what is forgotten stays forgotten, and each documented type is still found."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from memory_adk.radbot import QdrantMemoryService, create_enhanced_memory_agent
from memory_adk.testing import ScriptedLlm, prompt
from memory_core import Memory, MemoryRecord, TriggerDetector
from tests.adapters.adk.agents import ANN, found, said_event, session_with

SECRET = "remember: my gate code is 4711"
DETECTOR = TriggerDetector()


@pytest_asyncio.fixture
async def radbot(tmp_path: Path) -> AsyncIterator[QdrantMemoryService]:
    async with Memory(tmp_path / "memory.db") as memory:
        yield QdrantMemoryService(memory=memory)


async def stored(radbot: QdrantMemoryService) -> list[MemoryRecord]:
    page = await radbot.memory.bind(app="radbot", user=ANN).list(order="oldest")
    return list(page.records)


async def test_deleting_what_is_shown_leaves_nothing_that_says_it(radbot: QdrantMemoryService) -> None:
    model = ScriptedLlm(script=["Noted, your gate code is 4711."])
    async with create_enhanced_memory_agent(memory_service=radbot, model=model) as agent:
        await agent.aprocess_message(ANN, SECRET)
    (shown,) = await found(radbot, "gate code")
    await radbot.delete_memory(app_name="radbot", user_id=ANN, memory_id=shown.id)
    assert await found(radbot, "gate code") == []
    assert await stored(radbot) == []


async def test_an_agent_that_forgets_a_memory_forgets_all_of_it(radbot: QdrantMemoryService) -> None:
    model = ScriptedLlm(script=["Noted."])
    async with create_enhanced_memory_agent(memory_service=radbot, model=model) as agent:
        await agent.aprocess_message(ANN, SECRET)
        await agent.plugin.flush()
        (record,) = await stored(radbot)
        model.script += [("forget_memory", {"memory_id": record.id}), "Forgotten."]
        await agent.aprocess_message(ANN, "Forget my gate code", session_id="other")
        await agent.plugin.flush()
    assert "4711" not in str(await stored(radbot))


def test_one_record_is_found_as_each_of_the_types_it_stands_for(radbot: QdrantMemoryService) -> None:
    service = radbot.detecting(DETECTOR)
    service.process_session(session_with(said_event(SECRET), said_event("Noted.", author="helper", at=1)))
    texts = {
        kind: [memory.text for memory in service.search_memories("gate code", ANN, memory_type=kind)]
        for kind in ("user_query", "conversation_turn", "important_fact", "memories", "all")
    }
    assert texts == {
        "user_query": [SECRET],
        "conversation_turn": [f"User: {SECRET}\nAssistant: Noted."],
        "important_fact": ["my gate code is 4711"],
        "memories": [],
        "all": ["my gate code is 4711"],
    }
    (memory,) = service.search_memories("gate code", ANN, memory_type="conversation_turn")
    assert (memory.metadata["user_message"], memory.metadata["agent_response"]) == (SECRET, "Noted.")


async def test_a_question_becomes_a_turn_when_it_is_answered(radbot: QdrantMemoryService) -> None:
    asked, answered = said_event("Which tea do I like?"), said_event("Jasmine.", author="helper", at=1)
    await radbot.add_session_to_memory(session_with(asked))
    (question,) = await stored(radbot)
    await radbot.add_session_to_memory(session_with(asked, answered))
    (turn,) = await stored(radbot)
    assert (question.kind, question.text) == ("user_query", "Which tea do I like?")
    assert (turn.kind, turn.text) == ("conversation_turn", "User: Which tea do I like?\nAssistant: Jasmine.")
    assert question.id == turn.id


async def test_a_corrected_memory_is_found_only_as_corrected(radbot: QdrantMemoryService) -> None:
    service = radbot.detecting(DETECTOR)
    await service.add_session_to_memory(session_with(said_event(SECRET), said_event("Noted.", author="helper", at=1)))
    (record,) = await stored(radbot)
    model = ScriptedLlm(script=[("update_memory", {"memory_id": record.id, "content": "The code is 1234"}), "Done."])
    async with create_enhanced_memory_agent(memory_service=radbot, model=model) as agent:
        await agent.aprocess_message(ANN, "It has changed", session_id="other")
    for kind in ("important_fact", "conversation_turn", "user_query"):
        texts = [memory.text for memory in radbot.search_memories("code", ANN, memory_type=kind)]
        assert texts[0] == "The code is 1234"


async def test_a_request_to_save_the_previous_message_marks_that_message_and_undoing_it_unmarks_it(
    radbot: QdrantMemoryService,
) -> None:
    service = radbot.detecting(DETECTOR)
    plan = said_event("The roof has three layers of felt", invocation_id="i1")
    save = said_event("Let's save this @beto_roof", invocation_id="i2", at=1)
    await service.add_session_to_memory(session_with(plan))
    await service.add_session_to_memory(session_with(plan, save))
    assert [(record.kind, record.tags) for record in await stored(radbot)] == [
        ("memories", ("beto_roof",)),
        ("user_query", ()),
    ]
    await service.add_session_to_memory(session_with(plan))
    assert (await stored(radbot))[0].kind == "user_query"


async def test_a_service_without_a_detector_does_not_undo_what_one_with_a_detector_found(
    radbot: QdrantMemoryService,
) -> None:
    session = session_with(said_event(f"{SECRET} #beto_gate"), said_event("Noted.", author="helper", at=1))
    await radbot.detecting(DETECTOR).add_session_to_memory(session)
    await radbot.add_session_to_memory(session)
    (record,) = await stored(radbot)
    assert (record.kind, record.tags) == ("important_fact", ("beto_gate",))
    assert record.data["remembered"] == "my gate code is 4711"


@pytest.mark.parametrize("answer", ["You like jasmine tea.", "I do not know."])
async def test_a_fact_is_recalled_after_many_questions_about_it(radbot: QdrantMemoryService, answer: str) -> None:
    asked = ["Which tea do I like?", "What tea do I like?", "What's my favourite tea?", "Which tea do I prefer?"]
    model = ScriptedLlm(script=["Noted."] + [answer] * 12)
    async with create_enhanced_memory_agent(memory_service=radbot, model=model) as agent:
        await agent.aprocess_message(ANN, "My favourite tea is jasmine", "first")
        for n, question in enumerate(asked * 3):
            await agent.aprocess_message(ANN, question, f"session {n}")
            assert "My favourite tea is jasmine" in prompt(model.requests[-1]), question
            await agent.plugin.flush(vectors=True)
