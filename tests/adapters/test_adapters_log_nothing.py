"""The texts that adapters hand to a memory and get from it are in no line of any logger, at any level."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.adk.events.event import Event
from google.adk.sessions import Session

from memory_adk import MemoryService
from memory_adk.testing import user_says
from memory_core import Memory
from memory_core.embedding.hashing import HashingEmbedder
from memory_langchain import MemoryChatMessageHistory, MemoryRetriever, MemoryStore, MemoryVectorStore, memory_tools
from memory_spade import AgentBaseMemory, AgentInteractionMemory
from memory_xaibo import CoreMemory, TextEmbedder, TokenChunker, VectorIndex, VectorMemory
from tests.test_logs import SECRET, USER, Lines, lines, shows_nothing

__all__ = ["lines"]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "memory.db", embedder=HashingEmbedder())


async def test_the_service_of_adk(memory: Memory, lines: Lines) -> None:
    async with memory:
        service = MemoryService(memory)
        said = Event(author="user", content=user_says(f"{SECRET} tea"), invocation_id="one")
        session = Session(id="monday", app_name=SECRET, user_id=USER, events=[said])
        await service.add_session_to_memory(session)
        found = await service.search_memory(app_name=SECRET, user_id=USER, query=f"where is {SECRET}?")
        assert len(found.memories) == 1
        await service.delete_session(app_name=SECRET, user_id=USER, session_id="monday")
    shows_nothing(lines)


def test_the_parts_of_langchain(memory: Memory, lines: Lines) -> None:
    with memory:
        ann = memory.bind(app=SECRET, user=USER)
        history = MemoryChatMessageHistory(ann, "monday")
        history.add_user_message(f"{SECRET} tea")
        assert len(history.messages) == 1
        assert MemoryRetriever(memory=ann).invoke(f"where is {SECRET}?")
        store = MemoryStore(ann, fields=["text"])
        store.put((SECRET,), SECRET, {"text": f"{SECRET} coffee"})
        assert store.search((SECRET,), query=f"where is {SECRET}?", filter={"text": f"{SECRET} coffee"})
        vectors = MemoryVectorStore(ann)
        vectors.add_texts([f"{SECRET} cocoa"], [{SECRET: SECRET}])
        assert vectors.similarity_search(SECRET, filter={SECRET: SECRET})
        for tool in memory_tools(ann):
            tool.invoke({"query": SECRET, "content": SECRET, "category": "fact", "memory_id": SECRET})
    shows_nothing(lines)


async def test_the_memories_of_xaibo(memory: Memory, lines: Lines) -> None:
    async with memory:
        ann = memory.bind(app=SECRET, user=USER)
        embedder = TextEmbedder(embedder=HashingEmbedder())
        for module in (CoreMemory(memory=ann), VectorMemory(TokenChunker(), embedder, VectorIndex(), memory=ann)):
            memory_id = await module.store_memory(f"{SECRET} tea", {SECRET: SECRET})
            assert await module.search_memory(f"where is {SECRET}?")
            assert await module.update_memory(memory_id, f"{SECRET} coffee")
            assert await module.delete_memory(memory_id)
    shows_nothing(lines)


async def test_the_documented_memories_of_spade(tmp_path: Path, lines: Lines) -> None:
    notes = AgentInteractionMemory("agent@localhost", str(tmp_path / "notes"))
    notes.add_information(f"{SECRET} session", f"{SECRET} tea")
    assert notes.get_information(f"{SECRET} session")
    base = AgentBaseMemory("agent@localhost", str(tmp_path / "base"))
    await base.store_memory(f"{SECRET} coffee", "fact", context=SECRET)
    assert await base.search_memories(f"where is {SECRET}?")
    await base.cleanup()
    shows_nothing(lines)
