"""RadBot's surface: the documented calls, and what the document leaves broken."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from google.adk.agents import LlmAgent

from memory_adk.radbot import (
    EnhancedMemoryManager,
    MemoryDetector,
    QdrantMemoryService,
    create_enhanced_memory_agent,
    create_memory_enabled_agent,
    get_embedding_model,
)
from memory_adk.testing import ScriptedLlm, prompt
from memory_core import InvalidInputError, Memory, WrongThreadError
from tests.adapters.adk.agents import ANN, Guard, entry_of, said_event, session_with, texts
from tests.storage.qdrant.loopback import HOST, Loopback


@pytest.fixture
def radbot(memory: Memory) -> QdrantMemoryService:
    return QdrantMemoryService(memory=memory)


@pytest.fixture
def echoing(monkeypatch: pytest.MonkeyPatch) -> ScriptedLlm:
    """ADK's default model for agents that name none: it answers with its prompt."""
    model = ScriptedLlm(script=[lambda request: f"SEEN {prompt(request)}"] * 9)
    monkeypatch.setattr(LlmAgent, "_default_model", model)
    return model


async def test_turns_are_stored_by_themselves_and_recalled_in_another_session(
    echoing: ScriptedLlm, radbot: QdrantMemoryService
) -> None:
    async with create_memory_enabled_agent(memory_service=radbot, name="helper") as agent:
        await agent.aprocess_message(ANN, "My favourite tea is jasmine")
        answer = await agent.aprocess_message(ANN, "Which is my favourite tea?", session_id="other")
        other = await agent.aprocess_message("mallory", "Which is the favourite tea?")
    assert 'user: "My favourite tea is jasmine"' in answer
    assert 'helper (assistant): "SEEN My favourite tea is jasmine"' in answer
    assert "jasmine" not in other
    stored = await radbot.handle("radbot", ANN).list(order="oldest")
    assert [record.kind for record in stored.records] == ["message"] * 4
    turns = radbot.search_memories("favourite tea", ANN, memory_type="conversation_turn")
    assert {turn.metadata["session_id"] for turn in turns} == {"main", "other"}


async def test_what_a_user_asks_to_have_remembered_is_stored_with_its_type_and_tags(
    echoing: ScriptedLlm, radbot: QdrantMemoryService
) -> None:
    async with create_enhanced_memory_agent(memory_service=radbot) as agent:
        await agent.aprocess_message(ANN, "Hello. Our plan for the garden is roses #beto_garden")
        await agent.aprocess_message(ANN, "Note this: the gate code is 4711")
    (plan,) = radbot.search_memories("garden roses", ANN, memory_type="memories")
    assert (plan.text, plan.metadata["tags"]) == ("Our plan for the garden is roses", ["beto_garden"])
    (code,) = radbot.search_memories("gate code", ANN, memory_type="important_fact")
    assert (code.text, code.metadata["user_message"]) == ("the gate code is 4711", "Note this: the gate code is 4711")
    stored = (await radbot.handle("radbot", ANN).list()).records
    assert [(record.kind, record.tier) for record in stored if record.role == "user"] == [
        ("important_fact", "high"),
        ("memories", "medium"),
    ]


async def test_save_this_means_the_last_message_of_the_same_user_and_session_that_said_something(
    echoing: ScriptedLlm, radbot: QdrantMemoryService
) -> None:
    async with create_enhanced_memory_agent(memory_service=radbot) as agent:
        await agent.aprocess_message(ANN, "The roof has three layers of felt")
        await agent.aprocess_message("mallory", "Let's save this")
        await agent.aprocess_message(ANN, "Let's save this", session_id="other")
        assert not (await radbot.handle("radbot", "mallory").stats()).by_kind.get("memories")
        assert not (await radbot.handle("radbot", ANN).stats()).by_kind.get("memories")
        await agent.aprocess_message(ANN, "Let's save this")
        await agent.aprocess_message(ANN, "Save this design, please @beto_roof")
    (saved,) = radbot.search_memories("roof", ANN, memory_type="memories")
    assert (saved.text, saved.metadata["tags"]) == ("The roof has three layers of felt", ["beto_roof"])


def test_a_session_can_be_processed_as_often_as_wanted_and_may_grow(radbot: QdrantMemoryService) -> None:
    def exchanges() -> list[str]:
        return [found.text for found in radbot.search_memories("tea", ANN, memory_type="conversation_turn")]

    events = [
        said_event("Which tea?"),
        said_event("Jasmine", author="waiter", at=1),
        said_event("Important: no milk", invocation_id="i2", at=2),
    ]
    for length in (2, 3, 3):
        radbot.process_session(session_with(*events[:length]))
    assert exchanges() == ["User: Which tea?\nAssistant: Jasmine"]
    events.append(said_event("or mint", author="cook", at=3, invocation_id="i1"))
    radbot.process_session(session_with(*events))
    assert exchanges() == ["User: Which tea?\nAssistant: Jasmine\nor mint"]
    assert radbot.clear_user_memory(ANN) == 4
    radbot.process_session(session_with(*events))
    assert radbot.search_memories("tea", ANN) == []


def test_the_documented_methods_store_find_and_clear_for_one_user(radbot: QdrantMemoryService) -> None:
    made = radbot.add_memory(
        text="Ann sails in June", user_id=ANN, memory_type="preference", metadata={"tags": ["sea"], "from": "chat"}
    )
    yesterday, tomorrow = (datetime.now() + timedelta(days=days) for days in (-1, 1))  # noqa: DTZ005  (as documented)
    (found,) = radbot.search_memories("When does Ann sail?", user_id=ANN, limit=3, from_time=yesterday)
    assert (found.id, found.text, found.memory_type) == (made, "Ann sails in June", "preference")
    assert (found.metadata["tags"], found.metadata["from"]) == (["sea"], "chat")
    assert found.timestamp.utcoffset() == timedelta(0)
    assert radbot.search_memories("sail", user_id=ANN, from_time=tomorrow) == []
    assert radbot.search_memories("sail", user_id="bob") == []
    assert radbot.clear_user_memory("bob") == 0
    assert radbot.clear_user_memory(ANN) == 1


async def test_the_method_of_adk_with_the_same_name_works_beside_it(radbot: QdrantMemoryService) -> None:
    await radbot.add_memory(app_name="any", user_id=ANN, memories=[entry_of("Ann sails", id="sail")])
    assert await texts(radbot, "sails") == ["Ann sails"]
    await radbot.delete_memory(app_name="other", user_id=ANN, memory_id="sail")
    assert await texts(radbot, "sails") == []


async def test_process_message_inside_an_event_loop_says_what_to_call_instead(
    echoing: ScriptedLlm, radbot: QdrantMemoryService
) -> None:
    agent = create_memory_enabled_agent(memory_service=radbot)
    with pytest.raises(WrongThreadError, match="await aprocess_message"):
        agent.process_message(ANN, "hello")
    assert await agent.aprocess_message(ANN, "hello") == "SEEN hello"
    await agent.close()


def test_process_message_can_be_called_again_and_again(echoing: ScriptedLlm, radbot: QdrantMemoryService) -> None:
    agent = create_memory_enabled_agent(memory_service=radbot)
    assert agent.process_message(ANN, "I drink tea") == "SEEN I drink tea"
    assert "I drink tea" in agent.process_message(ANN, "What do I drink?", session_id="other")


def test_the_manager_stores_what_a_message_asks_for_and_says_so(radbot: QdrantMemoryService) -> None:
    manager = EnhancedMemoryManager(memory_service=radbot, detector=MemoryDetector(fact_triggers=["note down"]))
    assert manager.process_message("We sail", ANN) == {"success": False, "message": "No memory triggers detected"}
    assert manager.process_message("memory:", "mallory")["success"] is False
    assert manager.process_message("save our work #beto_sea", ANN) == {
        "success": True,
        "memory_type": "memories",
        "text": "We sail",
        "tags": ["beto_sea"],
    }
    assert manager.process_message("important: x", ANN)["success"] is False
    assert "user must be" in manager.process_message("note down the code", user_id=None)["error"]  # type: ignore[arg-type]


def test_the_detector_answers_as_documented() -> None:
    assert MemoryDetector().detect_memory_triggers("fact: the moon is far #beto_moon") == {
        "detected": True,
        "memory_type": "important_fact",
        "text": "the moon is far",
        "tags": ["beto_moon"],
        "reference_previous": False,
    }
    assert MemoryDetector(memory_triggers=[]).detect_memory_triggers("memory:")["detected"] is False


async def test_a_rewound_or_blocked_request_to_remember_is_forgotten(
    echoing: ScriptedLlm, radbot: QdrantMemoryService
) -> None:
    async with create_enhanced_memory_agent(memory_service=radbot) as agent:
        await agent.aprocess_message(ANN, "important: the code is 4711")
        session = await agent.runner.session_service.get_session(
            app_name="enhanced_memory_agent", user_id=ANN, session_id="main"
        )
        assert session is not None
        await agent.runner.rewind_async(
            user_id=ANN, session_id="main", rewind_before_invocation_id=session.events[0].invocation_id
        )
        await agent.aprocess_message(ANN, "hello")
        agent.runner.plugin_manager.plugins.append(Guard("guard"))
        await agent.aprocess_message(ANN, "important: attack at dawn")
    assert await texts(radbot, "the code is 4711") == []
    assert await texts(radbot, "attack at dawn") == []


def test_the_environment_chooses_the_embedding_model_and_a_typing_error_chooses_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def named(name: str, size: int | None = None) -> str:
        monkeypatch.setenv("RADBOT_EMBED_MODEL", name)
        return get_embedding_model(size).name

    assert named("Gemini", 1536) == "gemini-embedding-001"
    assert named("") == "MiniLM+USE"
    with pytest.raises(ImportError, match="memory-core\\[sentence-transformers\\]"):
        named("sentence-transformers")
    with pytest.raises(InvalidInputError, match="must be gemini or sentence-transformers"):
        named("gemni")
    with pytest.raises(InvalidInputError, match="makes vectors of 576 numbers, not 768"):
        named("", 768)


def test_a_service_connects_at_its_first_use_to_what_its_arguments_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.2:1")
    with Loopback() as server:
        service = QdrantMemoryService("c", host=HOST, port=server.http_port)
        service.add_memory(text="Ann sails", user_id=ANN)
        assert {name for name in server.engine.created if name.startswith("c")}
        asyncio.run(service.close())
    with pytest.raises(InvalidInputError, match="url and host"):
        QdrantMemoryService(url=server.url, host="localhost")
    with pytest.raises(InvalidInputError, match="leave out the others"):
        QdrantMemoryService(url=server.url, memory=Memory(":memory:"))


def test_configuration_and_instructions_that_do_not_exist_are_refused(radbot: QdrantMemoryService) -> None:
    with pytest.raises(InvalidInputError, match="accepts detector_config, not 'detector'"):
        create_enhanced_memory_agent(memory_service=radbot, memory_manager_config={"detector": {}})
    with pytest.raises(InvalidInputError, match="no instruction 'pirate'"):
        create_memory_enabled_agent(memory_service=radbot, instruction_name="pirate")
