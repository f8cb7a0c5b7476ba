"""The context of a memory is found and shown like its content, and what the model reads counts as read."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import Memory
from memory_core.app.main import main
from memory_spade import AgentBaseMemory, MemoryBackend, MemoryLLMAgent
from memory_spade.files import export_agent_memories
from memory_spade.testing.backend import ListBackend
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from tests.adapters.spade.saying import Jid, Start

CONTENT, CONTEXT = "Ann prefers CSV to JSON", "said while we exported the harbour ledger"


async def test_a_memory_is_found_by_its_context_and_keeps_both_apart(tmp_path: Path) -> None:
    memory = AgentBaseMemory("bot@localhost", str(tmp_path))
    known = await memory.store_memory(CONTENT, "preference", CONTEXT)
    await memory.store_memory("The crane is red", "fact")
    found = (await memory.search_memories("harbour ledger"))[0]
    assert (found.id, found.content, found.context) == (known, CONTENT, CONTEXT)

    assert await memory.update_memory(known, context="at the quay")
    assert await memory.update_memory(known, content="Ann prefers TSV")
    changed = (await memory.search_memories("quay"))[0]
    assert (changed.content, changed.context) == ("Ann prefers TSV", "at the quay")
    await memory.cleanup()


async def test_other_readers_of_the_file_see_the_content_without_the_context(tmp_path: Path) -> None:
    memory = AgentBaseMemory("bot@localhost", str(tmp_path))
    await memory.store_memory(CONTENT, "preference", CONTEXT)
    await memory.store_memory("The crane is red", "fact", "")
    await memory.store_memory("It (context: none) is blue", "fact")
    await memory.cleanup()
    path = tmp_path / "bot_localhost_base_memory.db"
    async with Memory(path, embedder=None) as opened:
        handle = opened.bind(user="bot@localhost", collection="agent_base_memory")
        await export_agent_memories(handle, tmp_path / "exported.db", agent_id="bot@localhost")
    for file in (path, tmp_path / "exported.db"):
        with closing(sqlite3.connect(file)) as db:
            rows = db.execute("SELECT content, coalesce(context, '') FROM agent_memories ORDER BY content").fetchall()
        assert rows == [(CONTENT, CONTEXT), ("It (context: none) is blue", ""), ("The crane is red", "")]


async def test_what_spade_llm_stored_is_found_by_its_context(tmp_path: Path) -> None:
    memory = AgentBaseMemory("bot@localhost", str(tmp_path / "here"))
    await memory.store_memory(CONTENT, "preference", CONTEXT)
    await memory.cleanup()
    async with Memory(tmp_path / "here" / "bot_localhost_base_memory.db", embedder=None) as opened:
        handle = opened.bind(user="bot@localhost", collection="agent_base_memory")
        (tmp_path / "there").mkdir()
        exported, there = tmp_path / "exported.db", tmp_path / "there" / "bot_localhost_base_memory.db"
        await export_agent_memories(handle, exported, agent_id="bot@localhost")
    command = ["import", "--format", "spade-llm", str(exported), "--file", str(there), "--yes"]
    assert await asyncio.to_thread(main, command) == 0
    brought_in = AgentBaseMemory("bot@localhost", str(tmp_path / "there"))
    found = (await brought_in.search_memories("harbour ledger"))[0]
    assert (found.content, found.context) == (CONTENT, CONTEXT)
    await brought_in.cleanup()


def _obey(request: Request) -> str | ToolCall:
    if request.results:
        return request.results[-1]
    verb, _, rest = request.said.partition(" ")
    match verb:
        case "STORE":
            return ToolCall("store_memory", {"content": rest, "category": "fact", "context": CONTEXT})
        case "SEARCH":
            return ToolCall("search_memories", {"query": rest})
        case "UPDATE":
            memory_id, _, content = rest.partition(" ")
            return ToolCall("update_memory", {"memory_id": memory_id, "content": content})
        case "LIST":
            return ToolCall("list_memories", {"category": rest} if rest else {})
        case _:
            return request.system


@pytest.mark.parametrize("server", ["pyjabber"], indirect=True)
@pytest.mark.parametrize("make", [lambda: True, ListBackend])
async def test_the_model_finds_and_sees_the_context(
    start: Start, jid: Jid, tmp_path: Path, make: Callable[[], bool | MemoryBackend]
) -> None:
    given = make()
    bot = MemoryLLMAgent(
        *(jid("bot"), "pw", ScriptedProvider(_obey)),
        agent_base_memory=given,
        memory_path=tmp_path if given is True else None,
        memory_editing=True,
    )
    ann = Peer(jid("ann"))
    await start(bot, ann)

    async def told(text: str) -> str:
        return str((await ann.ask(jid("bot"), text, thread="t1")).body)

    assert await told("LIST") == "No memories stored yet."
    await told("STORE the token is 42")
    sought = "token" if isinstance(given, ListBackend) else "which harbour ledger?"
    for text in (f"SEARCH {sought}", "LIST fact", sought):
        assert f"the token is 42 (context: {CONTEXT})" in await told(text)
    assert await told("LIST pattern") == "No memories in the category pattern."
    (entry,) = await bot.agent_base_memory.get_memories_by_category("fact")
    assert (entry.content, entry.context) == ("the token is 42", CONTEXT)
    await told(f"UPDATE {entry.id} the token is 43")
    (entry,) = await bot.agent_base_memory.get_memories_by_category("fact")
    assert (entry.content, entry.context) == ("the token is 43", CONTEXT)
    assert f"the token is 43 (context: {CONTEXT})" in await told(f"SEARCH {sought}")


@pytest.mark.parametrize("server", ["pyjabber"], indirect=True)
async def test_what_the_tools_read_is_counted_and_recent(start: Start, jid: Jid, memory: Memory) -> None:
    bot = MemoryLLMAgent(jid("bot"), "pw", ScriptedProvider(_obey), memory=memory)
    ann = Peer(jid("ann"))
    await start(bot, ann)
    base = bot.agent_base_memory
    for content in ("the crane is red", "the quay is wet", "the rope is blue"):
        await base.store_memory(content, "fact")
    for text in ("SEARCH crane", "SEARCH crane", "SEARCH quay"):
        await ann.ask(jid("bot"), text, thread="t1")
    recent = [(entry.content, entry.access_count) for entry in await base.get_recent_memories()]
    assert recent == [("the quay is wet", 1), ("the crane is red", 1), ("the rope is blue", 0)]
