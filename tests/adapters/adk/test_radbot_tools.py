"""The documented names that stand beside the service: tool functions, the manager with any service, embeddings."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from google.adk.tools.function_tool import FunctionTool

from memory_adk.radbot import (
    EmbeddingModel,
    EnhancedMemoryAgent,
    EnhancedMemoryManager,
    FoundMemory,
    MemoryDetector,
    QdrantMemoryService,
    create_enhanced_memory_agent,
    create_memory_enabled_agent,
    embed_text,
    get_embedding_model,
    search_past_conversations,
    store_important_information,
)
from memory_adk.testing import ScriptedLlm, ask
from memory_core import Memory
from tests.adapters.adk.agents import ANN, runner_of

RESULT_KEYS = {"text", "timestamp", "memory_type", "similarity"}


@dataclass
class Documented:
    """Any object with the documented methods."""

    kept: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add_memory(self, text: str, user_id: str, memory_type: str, metadata: dict[str, Any]) -> None:
        if "broken" in text:
            raise ConnectionError("out of reach")
        self.kept.append({"text": text, "user_id": user_id, "memory_type": memory_type, "metadata": metadata})

    def search_memories(self, query: str, user_id: str, limit: int, from_time: datetime | None) -> list[FoundMemory]:
        if query == "broken":
            raise ConnectionError("out of reach")
        now = datetime.now(UTC)
        texts = [one["text"] for one in self.kept if one["user_id"] == user_id][:limit]
        return [
            FoundMemory(text, text, now, "important_fact", 0.5) for text in texts if not from_time or from_time < now
        ]


@pytest.fixture
def radbot(memory: Memory) -> QdrantMemoryService:
    return QdrantMemoryService(memory=memory)


def context(service: object, user_id: str | None = ANN) -> Any:
    return SimpleNamespace(memory_service=service, user_id=user_id)


@pytest.mark.parametrize("kind", ["ours", "any object"])
def test_the_tool_functions_answer_with_the_documented_keys(radbot: QdrantMemoryService, kind: str) -> None:
    service = radbot if kind == "ours" else Documented()
    stored = store_important_information("Ann sails in June", tool_context=context(service))
    assert stored == {
        "success": True,
        "message": "Successfully stored information as important_fact",
        "stored_text": "Ann sails in June",
    }
    found = search_past_conversations("sails", max_results=3, time_window_days=2, tool_context=context(service))
    assert (found["success"], found["query"], found["results_count"]) == (True, "sails", 1)
    (result,) = found["results"]
    assert result.keys() == RESULT_KEYS
    assert (result["text"], result["memory_type"]) == ("Ann sails in June", "important_fact")
    assert datetime.fromisoformat(result["timestamp"]).utcoffset() == timedelta(0)
    assert search_past_conversations("sails", tool_context=context(service, "bob"))["results"] == []
    json.dumps(found)


@pytest.mark.parametrize("tool", [search_past_conversations, store_important_information])
def test_the_tool_functions_say_what_is_missing(tool: Any) -> None:
    assert tool("tea") == {"error": "Memory service not available"}
    assert tool("tea", tool_context=context(None)) == {"error": "Memory service not available"}
    assert tool("tea", tool_context=context(Documented(), None)) == {"error": "User ID not available in tool context"}
    nested = SimpleNamespace(memory_service=Documented(), session=SimpleNamespace(user_id=ANN))
    assert tool("tea", tool_context=nested)["success"] is True


def test_the_tool_functions_return_every_error_as_an_answer(radbot: QdrantMemoryService) -> None:
    assert search_past_conversations("broken", tool_context=context(Documented())) == {
        "error": "Error searching memories: out of reach"
    }
    assert store_important_information("broken", tool_context=context(Documented())) == {
        "error": "Error storing information: out of reach"
    }
    assert "'query'" in search_past_conversations(" ", tool_context=context(radbot))["error"]
    assert "above 0" in search_past_conversations("a", time_window_days=-1, tool_context=context(radbot))["error"]


async def test_the_tool_functions_are_tools_of_an_adk_agent(radbot: QdrantMemoryService) -> None:
    calls = [
        ("store_important_information", {"information": "Ann sails in June", "memory_type": "preference"}),
        ("search_past_conversations", {"query": "When does Ann sail?", "max_results": "3"}),
    ]
    model = ScriptedLlm(script=[*calls, "In June."])
    tools = [FunctionTool(search_past_conversations), FunctionTool(store_important_information)]
    async with runner_of(radbot, model, *tools) as runner:
        assert await ask(runner, "When?", user_id=ANN, session_id="s1") == "In June."
    answers = responses(model)
    assert answers[0]["message"] == "Successfully stored information as preference"
    assert [result["text"] for result in answers[1]["results"]] == ["Ann sails in June"]


async def test_a_factorys_agent_has_the_tools_of_the_toolset_which_name_what_they_find(
    radbot: QdrantMemoryService,
) -> None:
    calls = [
        ("store_important_information", {"information": "Ann sails in June"}),
        ("search_past_conversations", {"query": "When does Ann sail?"}),
        ("search_past_conversations", {}),
    ]
    model = ScriptedLlm(script=[*calls, "In June."])
    async with create_memory_enabled_agent(memory_service=radbot, model=model) as agent:
        assert await agent.aprocess_message(ANN, "When?") == "In June."
    stored, found, failed = responses(model)
    assert (stored["status"], stored["stored_text"]) == ("success", "Ann sails in June")
    assert (found["status"], found["results_count"]) == ("success", 1)
    assert found["results"][0].keys() >= RESULT_KEYS | {"id"}
    assert failed["status"] == "error"


def responses(model: ScriptedLlm) -> list[dict[str, Any]]:
    parts = [part.function_response for content in model.requests[-1].contents for part in content.parts or []]
    return [part.response for part in parts if part is not None and part.response is not None]


def test_the_manager_works_with_any_service_and_says_when_it_has_none() -> None:
    service = Documented()
    manager = EnhancedMemoryManager()
    assert "has no memory_service" in manager.process_message("important: tea", ANN)["error"]
    manager.memory_service = service
    done = manager.process_message("important: the code is 4711 #beto_gate", ANN)
    assert done == {"success": True, "memory_type": "important_fact", "text": "the code is 4711", "tags": ["beto_gate"]}
    assert service.kept == [
        {
            "text": "the code is 4711",
            "user_id": ANN,
            "memory_type": "important_fact",
            "metadata": {"tags": ["beto_gate"]},
        }
    ]
    assert manager.process_message("important: broken", ANN) == {"error": "Failed to store memory: out of reach"}


async def test_the_manager_works_in_a_coroutine_and_keeps_the_last_ten_messages(radbot: QdrantMemoryService) -> None:
    manager = EnhancedMemoryManager(radbot, MemoryDetector())
    for n in range(12):
        manager.process_message(f"remember: number {n}", ANN)
    assert manager.conversation_history == [f"remember: number {n}" for n in range(2, 12)]
    assert (await radbot.handle("radbot", ANN).stats()).records == 12


def test_an_embedding_model_has_a_name_a_size_and_a_client() -> None:
    model = get_embedding_model()
    assert isinstance(model, EmbeddingModel)
    assert (model.name, model.vector_size) == ("MiniLM+USE", 576)
    vector = embed_text("Ann sails in June", model)
    assert len(vector) == model.vector_size
    assert all(type(value) is float for value in vector)
    assert sum(value * value for value in vector) == pytest.approx(1, abs=1e-5)
    assert embed_text("Ann sails in June") == vector
    asyncio.run(model.client.close())


def test_a_service_names_its_collection_and_its_model(radbot: QdrantMemoryService) -> None:
    service = QdrantMemoryService("tea")
    assert (service.collection_name, service.vector_size) == ("tea", 576)
    assert service.embedding_model is not None
    assert radbot.vector_size is None


async def test_the_enhanced_factory_makes_an_enhanced_agent(radbot: QdrantMemoryService) -> None:
    async with create_enhanced_memory_agent(memory_service=radbot, model=ScriptedLlm()) as agent:
        assert isinstance(agent, EnhancedMemoryAgent)
        assert agent.memory_service is radbot
