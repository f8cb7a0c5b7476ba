"""`memory_spade.stock` behaves as spade_llm's code: what the 96 tests of spade_llm 0.3's memory ask for.

The names of the parameters and functions name the behaviour. One behaviour is different on purpose: the constructor of
`AgentBaseMemory` makes no folder (`test_the_folder_is_made_when_the_memory_is_opened`).
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import spade_llm.memory as original
from spade_llm.memory.agent_base_memory_tools import AgentBaseMemoryStoreTool as OriginalStoreTool
from spade_llm.memory.backends import MemoryBackend as OriginalBackend
from spade_llm.memory.backends import MemoryEntry as OriginalEntry
from spade_llm.tools import LLMTool

from memory_spade import stock
from memory_spade.stock import AgentBaseMemory, MemoryBackend, MemoryEntry, SQLiteMemoryBackend

AGENT = "bot@localhost"
CATEGORIES = ("fact", "pattern", "preference", "capability")
NOW = datetime.now()  # noqa: DTZ005  (spade_llm's times have no zone)


class InAList(MemoryBackend):
    """A backend of an application, which refuses calls before it is open and can be made to fail."""

    def __init__(self) -> None:
        self.entries: list[MemoryEntry] = []
        self.opened = 0
        self.error: Exception | None = None

    async def initialize(self) -> None:
        if self.error is not None:
            raise self.error
        self.opened += 1

    async def store_memory(self, entry: MemoryEntry) -> str:
        self._check()
        self.entries.append(entry)
        return str(entry.id)

    async def get_memories_by_category(self, agent_id: str, category: str, limit: int = 50) -> list[MemoryEntry]:
        return [entry for entry in self._recent(agent_id) if entry.category == category][:limit]

    async def search_memories(self, agent_id: str, query: str, limit: int = 10) -> list[MemoryEntry]:
        texts = [(f"{entry.content} {entry.context}".lower(), entry) for entry in self._recent(agent_id)]
        return [entry for text, entry in texts if query.strip() and query.lower() in text][:limit]

    async def get_recent_memories(self, agent_id: str, limit: int = 10) -> list[MemoryEntry]:
        return self._recent(agent_id)[:limit]

    async def update_access(self, memory_id: str) -> None:
        self._check()
        for entry in self.entries:
            entry.access_count += entry.id == memory_id

    async def delete_memory(self, memory_id: str) -> bool:
        self._check()
        kept = [entry for entry in self.entries if entry.id != memory_id]
        found, self.entries = len(kept) < len(self.entries), kept
        return found

    async def get_memory_stats(self, agent_id: str) -> dict[str, Any]:
        return {"total_memories": len(self._recent(agent_id))}

    async def cleanup(self) -> None:
        self.opened -= 1

    def _recent(self, agent_id: str) -> list[MemoryEntry]:
        self._check()
        own = [entry for entry in self.entries if entry.agent_id == agent_id]
        return sorted(own, key=lambda entry: entry.last_accessed or NOW, reverse=True)

    def _check(self) -> None:
        assert self.opened
        if self.error is not None:
            raise self.error


SAMPLES = (
    ("mem1", AGENT, "fact", "The user prefers Python over JavaScript", "Programming language preference"),
    ("mem2", AGENT, "pattern", "User typically works in the morning", "Work schedule"),
    ("mem3", AGENT, "preference", "User likes detailed explanations", "Communication style"),
    ("mem4", AGENT, "capability", "User is skilled in data analysis", "Technical capability"),
    ("mem5", "other@localhost", "fact", "What another agent knows about Python", None),
)


@pytest.fixture(params=["a backend of one's own", "a file", ":memory:"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AgentBaseMemory]:
    match request.param:
        case "a file":
            opened = AgentBaseMemory(AGENT, memory_path=str(tmp_path))
        case ":memory:":
            opened = AgentBaseMemory(AGENT, SQLiteMemoryBackend(":memory:"))
        case _:
            opened = AgentBaseMemory(AGENT, InAList())
    yield opened
    await opened.cleanup()


@pytest.fixture
async def filled(memory: AgentBaseMemory) -> AgentBaseMemory:
    await memory.backend.initialize()
    for hours, (id, agent, category, content, context) in enumerate(SAMPLES):  # noqa: A001
        moment = NOW - timedelta(hours=len(SAMPLES) - hours)
        entry = MemoryEntry(agent, category, content, context, 0.9, id, moment, moment)
        await memory.backend.store_memory(entry)
    return memory


def parameters(function: Any) -> list[tuple[str, object]]:
    return [(name, each.default) for name, each in inspect.signature(function).parameters.items()]


@pytest.mark.parametrize("name", original.__all__)
def test_names_and_signatures_are_those_of_the_code(name: str) -> None:
    theirs, ours = getattr(original, name), getattr(stock, name)
    assert parameters(ours) == parameters(theirs)
    public = [each for each in vars(theirs) if not each.startswith("_")] if inspect.isclass(theirs) else []
    for method in public:
        assert parameters(getattr(ours, method)) == parameters(getattr(theirs, method)), method


def test_entries_and_backends_have_the_fields_and_methods_of_the_code() -> None:
    assert parameters(MemoryEntry) == parameters(OriginalEntry)
    assert MemoryBackend.__abstractmethods__ == OriginalBackend.__abstractmethods__
    entry = MemoryEntry(AGENT, "fact", "x")
    assert entry.id != MemoryEntry(AGENT, "fact", "x").id
    assert isinstance(entry.created_at, datetime)
    assert isinstance(entry.last_accessed, datetime)
    assert entry.created_at.tzinfo is None


def test_a_backend_of_ones_own_is_used_and_opened_at_first_use_only() -> None:
    backend = InAList()
    memory = AgentBaseMemory(agent_id=AGENT, backend=backend)
    assert (memory.agent_id, memory.backend, backend.opened) == (AGENT, backend, 0)


def test_the_default_backend_is_a_file_named_after_the_agent(tmp_path: Path) -> None:
    for agent, name in ((AGENT, "bot_localhost"), ("test@user/agent", "test_user_agent")):
        backend = AgentBaseMemory(agent, memory_path=str(tmp_path)).backend
        assert isinstance(backend, SQLiteMemoryBackend)
        assert Path(backend.db_path).name == f"{name}_base_memory.db"


async def test_the_folder_is_made_when_the_memory_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPADE_LLM_MEMORY_PATH", raising=False)
    memory = AgentBaseMemory(AGENT)
    assert os.listdir(tmp_path) == []  # noqa: PTH208
    await memory.store_memory("fact", "x")
    assert (tmp_path / "spade_llm" / "data" / "agent_memory" / "bot_localhost_base_memory.db").exists()
    await memory.cleanup()


@pytest.mark.parametrize("category", CATEGORIES)
async def test_every_category_is_stored_with_context_and_confidence(memory: AgentBaseMemory, category: str) -> None:
    known = await memory.store_memory(category=category, content="Test content", context="Test context", confidence=0.8)
    (entry,) = await memory.get_memories_by_category(category)
    assert (entry.id, entry.agent_id, entry.category) == (known, AGENT, category)
    assert (entry.content, entry.context, entry.confidence) == ("Test content", "Test context", 0.8)


async def test_context_and_confidence_have_defaults(memory: AgentBaseMemory) -> None:
    await memory.store_memory("fact", "Test content")
    (entry,) = await memory.get_recent_memories()
    assert (entry.context, entry.confidence) == (None, 1.0)


@pytest.mark.parametrize("confidence", [0.0, 1.0])
@pytest.mark.parametrize("content", ["A" * 10_000, "用户喜欢Python编程 🐍"])
async def test_bounds_of_confidence_long_and_other_texts_are_kept(
    memory: AgentBaseMemory, confidence: float, content: str
) -> None:
    await memory.store_memory("fact", content, confidence=confidence)
    (entry,) = await memory.get_memories_by_category("fact")
    assert (entry.content, entry.confidence) == (content, confidence)


async def test_wrong_categories_and_confidences_are_value_errors_and_the_memory_goes_on(
    memory: AgentBaseMemory,
) -> None:
    with pytest.raises(ValueError, match="Invalid category 'invalid'"):
        await memory.store_memory("invalid", "x")
    for confidence in (1.5, -0.1):
        with pytest.raises(ValueError, match=r"Confidence must be between 0\.0 and 1\.0"):
            await memory.store_memory("fact", "x", confidence=confidence)
    assert await memory.get_recent_memories() == []
    assert await memory.store_memory("fact", "Valid content")


async def test_a_search_finds_content_and_context_of_its_agent_and_counts(filled: AgentBaseMemory) -> None:
    assert [entry.id for entry in await filled.search_memories("Python", limit=1)] == ["mem1"]
    assert (await filled.search_memories("schedule"))[0].context == "Work schedule"
    counts = {entry.id: entry.access_count for entry in await filled.backend.get_recent_memories(AGENT)}
    assert (counts["mem1"], counts["mem2"], counts["mem3"]) == (1, 1, 0)


@pytest.mark.parametrize("query", ["", "   "])
async def test_a_blank_query_and_a_limit_of_zero_find_nothing(filled: AgentBaseMemory, query: str) -> None:
    assert await filled.search_memories(query) == []
    assert await filled.search_memories("Python", limit=0) == []
    assert await filled.get_memories_by_category("fact", limit=0) == []
    assert await filled.get_recent_memories(limit=0) == []


async def test_an_empty_memory_finds_nothing_and_deletes_nothing(memory: AgentBaseMemory) -> None:
    assert await memory.search_memories("nonexistent") == []
    assert await memory.get_memories_by_category("fact") == []
    assert await memory.get_recent_memories() == []
    assert await memory.delete_memory("nonexistent") is False
    assert (await memory.get_memory_stats())["total_memories"] == 0


async def test_a_category_has_all_its_memories_up_to_the_limit(memory: AgentBaseMemory) -> None:
    for number in range(3):
        await memory.store_memory("fact", f"Test fact {number}")
    found = await memory.get_memories_by_category("fact", limit=50)
    assert {entry.content for entry in found} == {f"Test fact {number}" for number in range(3)}
    assert len(await memory.get_memories_by_category("fact", limit=2)) == 2


async def test_recent_memories_are_the_last_used_ones_of_the_agent_and_stay_in_order(filled: AgentBaseMemory) -> None:
    for _ in range(2):
        assert [entry.id for entry in await filled.get_recent_memories(limit=3)] == ["mem4", "mem3", "mem2"]


async def test_relevant_memories_match_the_context_or_are_recent(filled: AgentBaseMemory) -> None:
    assert (await filled.get_relevant_memories("data analysis", limit=1))[0].id == "mem4"
    for nothing in (None, "", "   "):
        assert len(await filled.get_relevant_memories(nothing, limit=2)) == 2


async def test_a_deleted_memory_is_gone(memory: AgentBaseMemory) -> None:
    known = await memory.store_memory("fact", "Integration test content")
    assert (await memory.search_memories("Integration"))[0].id == known
    assert await memory.delete_memory(known) is True
    assert await memory.search_memories("Integration") == []


async def test_statistics_count_the_memories_of_the_agent(filled: AgentBaseMemory) -> None:
    stats = await filled.get_memory_stats()
    assert stats["total_memories"] == 4
    if isinstance(filled.backend, SQLiteMemoryBackend):
        assert stats["category_counts"] == dict.fromkeys(CATEGORIES, 1)
        assert stats["oldest_memory"] < stats["newest_memory"]
        empty = await AgentBaseMemory("nobody@localhost", filled.backend).get_memory_stats()
        assert empty == {"total_memories": 0, "category_counts": {}, "oldest_memory": None, "newest_memory": None}


async def test_a_memory_is_opened_once_by_whatever_is_called_first_and_again_after_cleanup() -> None:
    backend = InAList()
    memory = AgentBaseMemory(AGENT, backend)
    await memory.cleanup()
    assert backend.opened == 0
    for _ in range(2):
        await memory.store_memory("fact", "x")
        await memory.get_recent_memories()
        assert backend.opened == 1
        await memory.cleanup()
        assert backend.opened == 0


async def test_errors_of_a_backend_reach_the_caller() -> None:
    backend = InAList()
    memory = AgentBaseMemory(AGENT, backend)
    backend.error = RuntimeError("Database connection failed")
    with pytest.raises(RuntimeError, match="Database connection failed"):
        await memory.store_memory("fact", "x")
    backend.error = None
    await memory.store_memory("fact", "x")
    backend.error = RuntimeError("Storage failed")
    with pytest.raises(RuntimeError, match="Storage failed"):
        await memory.store_memory("fact", "x")


async def test_two_memories_on_one_file_write_at_the_same_time(tmp_path: Path) -> None:
    both = [AgentBaseMemory("test@user.domain/resource", memory_path=str(tmp_path)) for _ in range(2)]
    stores = [each.store_memory("fact", f"Memory {n} of {at}") for at, each in enumerate(both) for n in range(5)]
    assert len(set(await asyncio.gather(*stores))) == 10
    for each in both:
        assert len(await each.get_memories_by_category("fact", limit=100)) == 10
        await each.cleanup()


def sample(*categories: str) -> list[MemoryEntry]:
    return [MemoryEntry(AGENT, category, f"A {category}", "context") for category in categories]


@pytest.mark.parametrize("categories", [(), ("fact", "fact"), CATEGORIES, tuple(reversed(CATEGORIES))])
async def test_memories_are_formatted_by_category_in_the_words_of_the_code(
    categories: Sequence[str], tmp_path: Path
) -> None:
    theirs, ours = original.AgentBaseMemory(AGENT, memory_path=str(tmp_path)), AgentBaseMemory(AGENT, InAList())
    memories: Any = sample(*categories)
    assert await ours.format_for_context(memories) == await theirs.format_for_context(memories)
    assert ours.get_context_summary(memories) == theirs.get_context_summary(memories)


def test_without_an_event_loop_the_summary_is_grouped_too() -> None:
    memory = AgentBaseMemory(AGENT, InAList())
    assert memory.get_context_summary([]) is None
    assert memory.get_context_summary(sample("pattern")) == "Patterns I remember:\n- A pattern"


def tools_of(memory: AgentBaseMemory) -> dict[str, LLMTool]:
    return {tool.name: tool for tool in stock.create_base_memory_tools(memory)}


def test_the_tools_are_those_of_the_code(caplog: pytest.LogCaptureFixture) -> None:
    memory = AgentBaseMemory(AGENT, InAList())
    theirs: Any = OriginalStoreTool
    with caplog.at_level(logging.INFO):
        tools, again = tools_of(memory), tools_of(memory)
    assert "Created 3 base memory tools" in caplog.text
    originals = {tool.name: tool for tool in original.create_base_memory_tools(theirs)}
    assert set(tools) == set(originals) == {"store_memory", "search_memories", "list_memories"}
    for name, tool in tools.items():
        assert isinstance(tool, LLMTool)
        assert tool is not again[name]
        assert type(tool) is type(again[name])
        assert type(tool).__name__ == type(originals[name]).__name__
        assert tool.base_memory is memory  # type: ignore[attr-defined]
        assert without_descriptions(tool.parameters) == without_descriptions(originals[name].parameters)
        assert all(each["description"] for each in tool.parameters["properties"].values())
        assert "Use this tool" in tool.description
        assert json.loads(json.dumps(tool.to_dict())) == tool.to_dict()
        assert tool.to_openai_tool()["function"]["name"] == name


def without_descriptions(schema: Any) -> Any:
    properties = {
        name: {key: value for key, value in each.items() if key != "description"}
        for name, each in schema["properties"].items()
    }
    return {**schema, "properties": properties}


async def test_the_tools_answer_in_the_words_of_the_code(memory: AgentBaseMemory) -> None:
    tools = tools_of(memory)
    store, search, listing = tools["store_memory"], tools["search_memories"], tools["list_memories"]
    for category in CATEGORIES:
        assert await listing.execute(category=category) == f"No {category} memories found."
    for query in ("nonexistent", "", "特殊查询 🔍", "x" * 500):
        assert await search.execute(query=query, limit=5) == f"No memories found for query: {query}"

    stored = await store.execute(category="fact", content="API uses JSON", context="API documentation", confidence=0.5)
    assert stored == "Stored fact memory: API uses JSON"
    assert await store.execute(category="pattern", content="特殊字符 🚀 " + "x" * 1_000) == (
        "Stored pattern memory: 特殊字符 🚀 " + "x" * 1_000
    )
    assert await listing.execute(category="fact", limit=30) == (
        "My fact memories (1 total):\n- API uses JSON\n  Context: API documentation"
    )
    found = await search.execute(query="API", limit=1)
    assert found == "Found 1 memories for 'API':\n- [fact] API uses JSON\n  Context: API documentation"
    assert "Context:" not in await listing.execute(category="pattern")


async def test_the_tools_pass_on_limits_and_their_defaults(memory: AgentBaseMemory) -> None:
    for number in range(25):
        await memory.store_memory("fact", f"harbour {number}")
    tools = tools_of(memory)
    for limit, shown in ((None, 20), (1, 1), (50, 25)):
        answer = await tools["list_memories"].execute(category="fact", **({} if limit is None else {"limit": limit}))
        assert answer.startswith(f"My fact memories ({shown} total):")
    for limit, shown in ((None, 10), (5, 5), (20, 20)):
        answer = await tools["search_memories"].execute(query="harbour", **({} if limit is None else {"limit": limit}))
        assert answer.startswith(f"Found {shown} memories for 'harbour':")


async def test_the_tools_work_at_the_same_time(memory: AgentBaseMemory) -> None:
    tools = tools_of(memory)
    calls = [
        call
        for number in range(10)
        for call in (
            tools["store_memory"].execute(category="fact", content=f"Fact {number}"),
            tools["search_memories"].execute(query=f"query {number}"),
            tools["list_memories"].execute(category="pattern"),
        )
    ]
    answers = await asyncio.gather(*calls)
    assert sum(answer.startswith("Stored fact memory:") for answer in answers) == 10
    assert sum(answer == "No pattern memories found." for answer in answers) == 10
    assert len(await memory.get_memories_by_category("fact")) == 10


@pytest.mark.parametrize("error", [ValueError("down"), RuntimeError("down"), TimeoutError("down"), Exception("down")])
async def test_the_tools_report_every_error_to_the_model_and_log_it(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    backend = InAList()
    tools = tools_of(AgentBaseMemory(AGENT, backend))
    backend.error = error
    answers = {
        "store memory": await tools["store_memory"].execute(category="fact", content="x"),
        "search memories": await tools["search_memories"].execute(query="x"),
        "list memories": await tools["list_memories"].execute(category="fact"),
    }
    for what, answer in answers.items():
        assert answer == f"Failed to {what}: down"
        assert f"Failed to {what}" in caplog.text


async def test_notes_and_their_tool_use_the_words_of_the_code_and_keep_conversations_apart(tmp_path: Path) -> None:
    notes = stock.AgentInteractionMemory(AGENT, str(tmp_path))
    tool = stock.AgentMemoryTool(notes)

    async def converse(conversation: str) -> str:
        tool.set_conversation_id(conversation)
        await asyncio.sleep(0)
        return str(await tool.execute(information=f"said in {conversation}"))

    answers = await asyncio.gather(*(asyncio.create_task(converse(each)) for each in ("one", "two")))
    assert answers[0] == "Remembered information about this interaction: said in one"
    assert notes.get_context_summary("two") == "Previous interaction notes:\n- said in two"
    assert notes.get_all_interactions() == {each: [{"content": f"said in {each}"}] for each in ("one", "two")}
    assert notes.storage_path.exists()
    assert notes.get_context_summary("three") is None
