"""A store that hangs, drips, fails before or after the write, or cancels costs the call that meets it: nobody else
waits, the framework goes on, and what is sent again afterwards is stored once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Final

import pytest
from google.adk.events import Event
from google.adk.sessions import Session
from google.genai.types import Content, Part
from langchain_core.messages import HumanMessage
from mcp import Client
from spade.message import Message

from memory_adk import MemoryService
from memory_core import BoundMemory, Draft, Memory, MemoryRecord, Scope, StoreUnavailableError
from memory_core.values.progress import ProgressCallback
from memory_langchain import MemoryChatMessageHistory
from memory_mcp import memory_server
from memory_spade.conversation import MESSAGE_ID
from memory_xaibo import CoreMemory
from tests.adapters.chats.spade import BOT, PERSON, Hearing, Plain
from tests.adapters.closes import slow_store
from tests.adapters.closes.slow_store import SlowStore, at

FAULTS: Final = ("hang", "drip", "error", "error after the write", "cancel")
SAID: Final = "Ann keeps bees"
_GUARD_SECONDS: Final = 100.0


class FaultyStore(SlowStore):
    """A store with a fault at each write for Ann, until it is mended."""

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(at(path), one_by_one=False)
        self.fault: str | None = fault
        self.is_reached = threading.Event()  # it is called on the loop of the memory

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        progress: ProgressCallback | None = None,
    ) -> list[MemoryRecord | None]:
        await self._before(scope)
        done = await super().add(scope, records, embed_later=embed_later, progress=progress)
        self._after(scope)
        return done

    async def put(
        self, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str]
    ) -> list[MemoryRecord]:
        await self._before(scope)
        done = await super().put(scope, records, remove=remove)
        self._after(scope)
        return done

    async def _before(self, scope: Scope) -> None:
        if scope.user != "ann" or self.fault is None:
            return
        self.is_reached.set()
        if self.fault == "hang":
            while self.fault is not None:  # noqa: ASYNC110  (an event would be of another loop)
                await asyncio.sleep(0.01)
            raise StoreUnavailableError("the connection has ended")
        if self.fault == "drip":
            await asyncio.sleep(0.5)
        elif self.fault == "error":
            raise StoreUnavailableError("the connection was lost")
        elif self.fault == "cancel":
            raise asyncio.CancelledError

    def _after(self, scope: Scope) -> None:
        if scope.user == "ann" and self.fault == "error after the write":
            self.is_reached.set()
            raise StoreUnavailableError("the connection was lost before the answer came")


async def core(handle: BoundMemory, text: str) -> None:
    await handle.add(Draft(text, source_key=text))


async def adk(handle: BoundMemory, text: str) -> None:
    event = Event(author="user", id=text, content=Content(role="user", parts=[Part(text=text)]))
    session = Session(id="s", app_name="demo", user_id=str(handle.scope.user), events=[event])
    await MemoryService(handle).add_session_to_memory(session)


async def langchain(handle: BoundMemory, text: str) -> None:
    await MemoryChatMessageHistory(handle, session_id="s").aadd_messages([HumanMessage(text, id=text)])


async def mcp(handle: BoundMemory, text: str) -> None:
    async with Client(memory_server(handle, timeout=0.5)) as client:
        said = {"messages": [{"role": "user", "content": text, "id": text}], "session": "s"}
        await client.call_tool("memory_remember", said)


async def xaibo(handle: BoundMemory, text: str) -> None:
    await CoreMemory(None, memory=handle).store_memory(text)


async def spade(handle: BoundMemory, text: str) -> None:
    agent, hearing = Plain(BOT, "secret", memory=handle, memory_timeout=0.5), Hearing()
    await agent.home.begin()
    agent.behaviours.append(hearing)
    hearing.set_agent(agent)
    assert hearing.queue is not None
    said = Message(to=BOT, sender=f"{PERSON}/phone", body=text, thread="s", metadata={MESSAGE_ID: text})
    await hearing.queue.put(said)
    await hearing.receive()


KEYED = (core, adk, langchain, mcp, spade)
"""What sends a message under an id of its own."""
Say = Callable[[BoundMemory, str], Awaitable[None]]


@pytest.mark.parametrize("say", [*KEYED, xaibo])
@pytest.mark.parametrize("fault", FAULTS)
async def test_it_costs_the_call_that_meets_it_and_heals(
    say: Say, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(slow_store, "WRITE_SECONDS", 0.0)
    caplog.set_level(logging.CRITICAL)  # each adapter has a test of what it logs
    store = FaultyStore(tmp_path / "memory.db", fault)
    async with asyncio.timeout(_GUARD_SECONDS), Memory(store) as memory:
        ann, tom = memory.bind(app="demo", user="ann"), memory.bind(app="demo", user="tom")
        said = asyncio.ensure_future(say(ann, SAID))
        await asyncio.to_thread(store.is_reached.wait)
        await say(tom, "I like tea")
        assert [hit.record.text for hit in await tom.search("tea")] == ["I like tea"]
        if fault == "hang":  # the framework gives up at the latest
            await asyncio.wait({said}, timeout=1)
            said.cancel()
        await asyncio.wait({said})
        store.fault = None
        await say(ann, SAID)
        texts = [record.text for record in await ann.list()]
        assert set(texts) == {SAID}
        assert len(texts) == 1 or say is xaibo
        assert [record.text for record in await tom.list()] == ["I like tea"]
