"""The promises that every framework's tools have in common, because each calls the same operations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp_types import TextContent

from memory_adk.radbot import QdrantMemoryService, search_past_conversations, store_important_information
from memory_adk.tools import STORE_IMPORTANT_INFORMATION
from memory_core import BoundMemory, Draft, Memory, Patch
from memory_core.adapting import SEARCH_MEMORIES, STORE_MEMORY, Tool, ToolContext, equal_form, operations
from memory_core.embedding.hashing import HashingEmbedder
from memory_langchain import memory_tools
from memory_mcp import memory_server
from memory_xaibo import CoreMemory, SentenceTransformerEmbedder, TokenChunker, VectorIndex, VectorMemory

pytestmark = pytest.mark.uncovered

FACT = "Ann prefers oat milk"
AGAIN = (FACT, "ann prefers oat milk.", "Ann  prefers oat milk!")


@dataclass(frozen=True)
class Agent:
    """An agent of one framework: how its tools store and search."""

    store: Callable[[str], Awaitable[str]]
    """Returns what the model is told."""
    search: Callable[[str], Awaitable[list[str]]] | None
    """Returns the texts that are found."""
    tells: bool = True
    """True if a document leaves room to say that something is known already; else the id says it."""


def of_tools(handle: BoundMemory, storing: Tool, argument: str, searching: Tool | None = None) -> Agent:
    context = ToolContext(memory=handle, agent="helper", session="monday")

    async def store(text: str) -> str:
        return (await storing(context, {argument: text})).text

    async def search(query: str) -> list[str]:
        assert searching is not None
        found: Any = (await searching(context, {"query": query})).data["memories"]
        return [each["text"] for each in found]

    return Agent(store, None if searching is None else search)


def of_langchain(handle: BoundMemory) -> Agent:
    tools = {tool.name: tool for tool in memory_tools(handle)}

    async def store(text: str) -> str:
        return str(await tools["store_memory"].ainvoke({"content": text, "category": "fact"}))

    async def search(query: str) -> list[str]:
        call = {"type": "tool_call", "id": "1", "name": "search_memories", "args": {"query": query}}
        return [each["text"] for each in (await tools["search_memories"].ainvoke(call)).artifact["memories"]]

    return Agent(store, search)


def of_mcp(client: Client) -> Agent:
    async def store(text: str) -> str:
        result = await client.call_tool("memory_store", {"content": text, "metadata": {"type": "fact"}})
        return "\n".join(part.text for part in result.content if isinstance(part, TextContent))

    async def search(query: str) -> list[str]:
        found = (await client.call_tool("memory_search", {"query": query})).structured_content
        assert found is not None
        return [each["content"] for each in found["results"]]

    return Agent(store, search)


def of_xaibo(memory: CoreMemory | VectorMemory) -> Agent:
    async def search(query: str) -> list[str]:
        return [each.content for each in await memory.search_memory(query)]

    return Agent(memory.store_memory, search, tells=False)


def of_radbot(handle: BoundMemory) -> Agent:
    context: Any = SimpleNamespace(memory_service=QdrantMemoryService(memory=handle), user_id=handle.scope.user)

    async def store(text: str) -> str:
        return str((await asyncio.to_thread(store_important_information, text, tool_context=context))["message"])

    async def search(query: str) -> list[str]:
        found = await asyncio.to_thread(search_past_conversations, query, tool_context=context)
        return [each["text"] for each in found["results"]]

    return Agent(store, search)


def vectors(handle: BoundMemory, folder: Path) -> VectorMemory:
    index = VectorIndex({"storage_dir": str(folder / "index")})
    return VectorMemory(TokenChunker(), SentenceTransformerEmbedder(), index, memory=handle)


AGENTS = ("core", "LangChain", "ADK", "MCP", "Skynet", "Xaibo", "Xaibo's parts", "RadBot")


@asynccontextmanager
async def agent_of(name: str, handle: BoundMemory, folder: Path) -> AsyncGenerator[Agent]:
    if name in ("MCP", "Skynet"):
        async with Client(memory_server(handle, skynet=name == "Skynet")) as client:
            yield of_mcp(client)
        return
    made: dict[str, Callable[[], Agent]] = {
        "core": lambda: of_tools(handle, STORE_MEMORY, "content", SEARCH_MEMORIES),
        "LangChain": lambda: of_langchain(handle),
        "ADK": lambda: of_tools(handle, STORE_IMPORTANT_INFORMATION, "information"),
        "Xaibo": lambda: of_xaibo(CoreMemory(memory=handle)),
        "Xaibo's parts": lambda: of_xaibo(vectors(handle, folder)),
        "RadBot": lambda: of_radbot(handle),
    }
    yield made[name]()


@pytest_asyncio.fixture
async def handle(tmp_path: Path) -> AsyncIterator[BoundMemory]:
    async with Memory(tmp_path / "memory.db", embedder=HashingEmbedder()) as memory:
        yield memory.bind(app="demo", user="ann")


@pytest.mark.parametrize("name", AGENTS)
async def test_what_is_known_already_is_not_stored_again(name: str, handle: BoundMemory, tmp_path: Path) -> None:
    async with agent_of(name, handle, tmp_path) as agent:
        first, *later = [await agent.store(text) for text in AGAIN]
        (record,) = (await handle.list()).records
        assert "Known already" not in first
        if agent.tells:
            assert all(f"Known already (ID {record.id})" in told for told in later)
        else:
            assert {first, *later} == {record.id}
        await agent.store("Ann prefers tea")
        assert (await handle.stats()).records == 2


@pytest.mark.parametrize("name", AGENTS)
async def test_what_others_have_stored_is_known_and_found_once(name: str, handle: BoundMemory, tmp_path: Path) -> None:
    """A memory of each kind, agent and collection that a framework gives to what it stores."""
    for kind in ("fact", "important_fact", "note", "text"):
        for agent_name in (None, "helper"):
            for collection in (None, "skynet_memories"):
                await handle.add(Draft(FACT, kind=kind, agent=agent_name, collection=collection))
    before = (await handle.stats()).records
    async with agent_of(name, handle, tmp_path) as agent:
        await agent.store(FACT)
        assert (await handle.stats()).records == before
        if agent.search is not None:
            assert await agent.search("oat milk") == [FACT]


@pytest.mark.parametrize("name", AGENTS)
async def test_what_is_stored_at_once_and_again_and_again_after_a_time_out_is_stored_once(
    name: str, handle: BoundMemory, tmp_path: Path
) -> None:
    """A caller gives up at any moment, and repeats the call at once."""
    async with agent_of(name, handle, tmp_path) as agent:
        for number in range(20):
            text = f"Ann saw bird {number}"
            first = asyncio.ensure_future(agent.store(text))
            for _ in range(number):
                await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, *(agent.store(text) for _ in range(3)), return_exceptions=True)
    texts = [record.text for record in (await handle.list(limit=100)).records]
    assert sorted(texts) == sorted(f"Ann saw bird {number}" for number in range(20))


async def test_changes_at_once_are_all_made(handle: BoundMemory) -> None:
    """Each agent adds a tag to what it has read."""
    record = await handle.add(FACT)

    def tagged(number: int) -> Callable[[Any], Any]:
        return lambda old: Patch(tags=(*old.tags, f"tag {number}"))

    await asyncio.gather(*(operations.change(handle, record.id, tagged(n)) for n in range(8)))
    changed = await handle.get(record.id)
    assert changed is not None
    assert set(changed.tags) == {f"tag {number}" for number in range(8)}


TEXTS = st.sampled_from([*AGAIN, "Ann rows", "Ann rows.", "Ann swims", "Ann runs", "Ann sings"])


@given(texts=st.lists(TEXTS, max_size=12), limit=st.integers(1, 4))
def test_pages_of_a_list_have_every_memory_once_and_each_sentence_of_a_page_once(texts: list[str], limit: int) -> None:
    async def read() -> None:
        async with Memory(":memory:", embedder=None) as memory:
            handle = memory.bind(user="ann")
            added = [(await handle.add(text)).id for text in texts]
            shown, cursor = list[str](), None
            while True:
                page = await operations.list_page(handle, limit=limit, order="oldest", cursor=cursor)
                assert len(page.groups) <= limit
                firsts = [equal_form(first.text) for first, *_ in page.groups]
                assert len(firsts) == len(set(firsts))
                shown += [record.id for group in page.groups for record in group]
                if (cursor := page.cursor) is None:
                    break
            assert sorted(shown) == sorted(added)

    asyncio.run(read())
