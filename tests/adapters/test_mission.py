"""The mission in one story: one owner, one file, three processes, five frameworks, while all of them go on working."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from frameworks import Elsewhere, opened
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from memory_core import BoundMemory, Memory
from memory_langchain import MemoryMiddleware
from memory_langchain.testing import ScriptedChatModel
from memory_spade.testing.xmpp import XmppServer

pytestmark = pytest.mark.process

OWNER = ("demo", "ann")
TOLD, CORRECTED = "The spare key is with Mrs Okafor", "The spare key hangs behind the mill"
QUESTION = "Where is the spare key?"


async def prompt_of(handle: BoundMemory, question: str, thread: str) -> str:
    """The prompt that a LangChain agent shows its model for a question in a new conversation."""
    model = ScriptedChatModel(script=["I see."])
    agent = create_agent(model, middleware=[MemoryMiddleware(handle, tools=())])
    await agent.ainvoke({"messages": [HumanMessage(question)]}, {"configurable": {"thread_id": thread}})
    return str(model.prompts[0][0].text)


async def works(there: Elsewhere, framework: str, done: asyncio.Event) -> list[str]:
    """Another process that writes until it is done; returns what it wrote."""
    written: list[str] = []
    while not done.is_set():
        written.append(f"{framework} notes number {len(written)}")
        await asyncio.to_thread(there.do, framework, "write", written[-1])
    return written


async def test_a_fact_told_in_spade_is_corrected_in_adk_asked_in_langchain_forgotten_over_mcp_and_gone_in_xaibo(
    server: XmppServer, container: None, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    async with Memory(path, embedder=None) as memory, AsyncExitStack() as stack:
        ann = memory.bind(app=OWNER[0], user=OWNER[1])
        there, busy = await asyncio.gather(*(asyncio.to_thread(Elsewhere, path, *OWNER) for _ in range(2)))
        stack.callback(there.close)
        stack.callback(busy.close)
        done = asyncio.Event()
        going_on = asyncio.create_task(works(busy, "langchain", done))
        spade, xaibo = [await stack.enter_async_context(opened(name, ann, server)) for name in ("spade", "xaibo")]

        told = await spade.write(TOLD)
        await asyncio.to_thread(there.do, "adk", "update", told, CORRECTED)
        prompt = await prompt_of(ann, QUESTION, "monday")
        assert CORRECTED in prompt
        assert "Okafor" not in prompt
        assert [version.text for version in await ann.history(told)] == [TOLD, CORRECTED]

        await asyncio.to_thread(there.do, "mcp", "delete", told)
        assert told not in await xaibo.find(QUESTION)
        assert await ann.get(told) is None
        assert "mill" not in await prompt_of(ann, QUESTION, "tuesday")

        done.set()
        written = await going_on
        records = {record.text for record in (await ann.list(limit=10_000)).records}
        assert set(written) <= records
        count = (await ann.stats()).records
        receipt = await ann.erase()
        assert (receipt.records, receipt.files_clean) == (count, True)
        assert await asyncio.to_thread(there.do, "adk", "find", QUESTION) == []
    assert not any(text.encode() in path.read_bytes() for text in (TOLD, CORRECTED))
