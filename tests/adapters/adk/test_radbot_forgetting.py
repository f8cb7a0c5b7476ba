"""One message is one record, so what is forgotten stays forgotten, and each documented type is still found."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from memory_adk.radbot import QdrantMemoryService, create_enhanced_memory_agent
from memory_adk.radbot.qdrant_memory import APP_NAME
from memory_adk.testing import ScriptedLlm, prompt
from memory_core import Memory, MemoryRecord
from memory_core.adapting import settled
from tests.adapters.adk.agents import ANN, found, said_event, session_with

SECRET = "remember: my gate code is 4711"
TYPES = ("user_query", "conversation_turn", "important_fact", "memories", "all")


@pytest_asyncio.fixture
async def radbot(tmp_path: Path) -> AsyncIterator[QdrantMemoryService]:
    async with Memory(tmp_path / "memory.db", embedder=None) as memory:  # vectors are computed later: at any moment
        yield QdrantMemoryService(memory=memory)


@pytest_asyncio.fixture
async def with_vectors(tmp_path: Path) -> AsyncIterator[QdrantMemoryService]:
    async with Memory(tmp_path / "memory.db") as memory:
        yield QdrantMemoryService(memory=memory)


async def stored(radbot: QdrantMemoryService) -> list[MemoryRecord]:
    page = await radbot.handle("radbot", ANN).list(order="oldest")
    return list(page.records)


def as_types(radbot: QdrantMemoryService, query: str) -> dict[str, list[str]]:
    return {kind: [memory.text for memory in radbot.search_memories(query, ANN, memory_type=kind)] for kind in TYPES}


async def talk(radbot: QdrantMemoryService, *said: str, answer: str = "Noted.", session: str = "main") -> None:
    model = ScriptedLlm(script=[answer] * len(said))
    async with create_enhanced_memory_agent(memory_service=radbot, model=model) as agent:
        for text in said:
            await agent.aprocess_message(ANN, text, session)


async def test_a_message_is_found_as_each_of_the_types_it_stands_for(radbot: QdrantMemoryService) -> None:
    await talk(radbot, SECRET)
    assert as_types(radbot, "gate code") == {
        "user_query": [SECRET],
        "conversation_turn": [f"User: {SECRET}\nAssistant: Noted."],
        "important_fact": ["my gate code is 4711"],
        "memories": [],
        "all": ["my gate code is 4711"],
    }
    (memory,) = radbot.search_memories("gate code", ANN, memory_type="conversation_turn")
    assert (memory.metadata["user_message"], memory.metadata["agent_response"]) == (SECRET, "Noted.")


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind != "memories"])
async def test_deleting_a_message_that_was_found_as_any_type_deletes_all_of_them(
    radbot: QdrantMemoryService, kind: str
) -> None:
    await talk(radbot, SECRET)
    (shown,) = radbot.search_memories("gate code", ANN, memory_type=kind)
    await radbot.delete_memory(app_name="radbot", user_id=ANN, memory_id=shown.id)
    assert as_types(radbot, "gate code") == {one: [] for one in TYPES}
    assert "4711" not in str(await stored(radbot))


async def test_an_agent_that_forgets_a_memory_forgets_all_of_it(radbot: QdrantMemoryService) -> None:
    model = ScriptedLlm(script=["Noted."])
    async with create_enhanced_memory_agent(memory_service=radbot, model=model) as agent:
        await agent.aprocess_message(ANN, SECRET)
        (shown,) = await found(radbot, "gate code")
        model.script += [("forget_memory", {"memory_id": shown.id}), "Forgotten.", "Bye."]
        await agent.aprocess_message(ANN, "Forget my gate code", session_id="other")
        await agent.aprocess_message(ANN, "Thank you")
    assert "4711" not in str(await stored(radbot))


async def test_a_question_becomes_a_turn_when_it_is_answered(radbot: QdrantMemoryService) -> None:
    asked, answered = said_event("Which tea do I like?"), said_event("Jasmine.", author="helper", at=1)
    await radbot.add_session_to_memory(session_with(asked))
    (question,) = radbot.search_memories("Which tea do I like?", ANN)
    assert radbot.search_memories("tea", ANN, memory_type="conversation_turn") == []
    await radbot.add_session_to_memory(session_with(asked, answered))
    (turn,) = radbot.search_memories("Which tea do I like?", ANN)
    assert (question.memory_type, question.text) == ("user_query", "Which tea do I like?")
    assert (turn.memory_type, turn.text) == ("conversation_turn", "User: Which tea do I like?\nAssistant: Jasmine.")
    assert question.id == turn.id


async def test_a_corrected_memory_is_found_only_as_corrected(radbot: QdrantMemoryService) -> None:
    await talk(radbot, SECRET)
    (secret, _) = await stored(radbot)
    model = ScriptedLlm(script=[("update_memory", {"memory_id": secret.id, "content": "The code is 1234"}), "Done."])
    async with create_enhanced_memory_agent(memory_service=radbot, model=model) as agent:
        await agent.aprocess_message(ANN, "It has changed", session_id="other")
    assert as_types(radbot, "code") == {
        "user_query": ["The code is 1234"],
        "conversation_turn": ["User: The code is 1234\nAssistant: Noted."],
        "important_fact": ["The code is 1234"],
        "memories": [],
        "all": ["The code is 1234"],
    }


async def test_a_request_to_save_the_previous_message_marks_that_message(radbot: QdrantMemoryService) -> None:
    await talk(radbot, "The roof has three layers of felt", "Let's save this @beto_roof")
    asked = [(record.kind, record.tags) for record in await stored(radbot) if record.role == "user"]
    assert asked == [("memories", ("beto_roof",)), ("message", ())]


async def test_what_is_marked_again_stays_as_it_is(radbot: QdrantMemoryService) -> None:
    said = (SECRET, "Let's save this @beto_gate", "note this")
    await talk(radbot, *said)
    marked = await stored(radbot)
    await talk(radbot, "Hello", session="main")
    again = {record.id: record for record in await stored(radbot)}
    assert [again[record.id].version for record in marked] == [record.version for record in marked]
    assert (marked[0].kind, marked[0].tags) == ("important_fact", ("beto_gate",))
    assert radbot.search_memories("gate", ANN, memory_type="important_fact")[0].text == "my gate code is 4711"


async def test_a_session_that_is_added_again_is_stored_once_and_stays_marked(radbot: QdrantMemoryService) -> None:
    model = ScriptedLlm(script=["Noted."])
    async with create_enhanced_memory_agent(memory_service=radbot, model=model) as agent:
        await agent.aprocess_message(ANN, f"{SECRET} #beto_gate")
        session = await agent.runner.session_service.get_session(
            app_name="enhanced_memory_agent", user_id=ANN, session_id="main"
        )
        assert session is not None
        for _ in range(2):
            await radbot.add_session_to_memory(session)
    (record, _) = await stored(radbot)
    assert (record.kind, record.tags) == ("important_fact", ("beto_gate",))


@pytest.mark.parametrize("answer", ["You like jasmine tea.", "I do not know."])
async def test_a_fact_is_recalled_after_many_questions_about_it(with_vectors: QdrantMemoryService, answer: str) -> None:
    asked = ["Which tea do I like?", "What tea do I like?", "What's my favourite tea?", "Which tea do I prefer?"]
    model = ScriptedLlm(script=["Noted."] + [answer] * 12)
    async with create_enhanced_memory_agent(memory_service=with_vectors, model=model) as agent:
        await agent.aprocess_message(ANN, "My favourite tea is jasmine", "first")
        await settled(with_vectors.handle(APP_NAME, ANN))
        for n, question in enumerate(asked * 3):
            await agent.aprocess_message(ANN, question, f"session {n}")
            assert "My favourite tea is jasmine" in prompt(model.requests[-1]), question
            await settled(with_vectors.handle(APP_NAME, ANN))
