"""An embedder that hangs, drips, fails, answers rubbish or cancels costs its caller vectors, and nobody else more than
its deadline: each adapter, with two users of one memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from google.adk.events import Event
from google.adk.sessions import Session
from google.genai.types import Content, Part
from langchain_core.messages import HumanMessage
from mcp import Client

from memory_adk import MemoryService
from memory_core import BoundMemory, EmbeddingError, Fingerprint, Memory
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.storage.shared import embedding_batches
from memory_langchain import MemoryChatMessageHistory
from memory_mcp import memory_server
from memory_xaibo import CoreMemory

if TYPE_CHECKING:
    from memory_core.protocols import Vector, Vectors

FAULTS = ("hang", "drip", "error", "rubbish", "cancel")
_GUARD_SECONDS: Final = 100.0


class Faulty:
    """An embedder with a fault whenever a text has the word "poison"."""

    def __init__(self, fault: str) -> None:
        self._whole, self._fault = HashingEmbedder(), fault
        self.is_reached = threading.Event()  # it is called on the loop of the memory

    @property
    def fingerprint(self) -> Fingerprint:
        return self._whole.fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = await self._whole.embed_documents(texts)
        return await self._spoilt(vectors) if any("poison" in text for text in texts) else vectors

    async def embed_query(self, text: str) -> Vector:
        vector = await self._whole.embed_query(text)
        return await self._spoilt(vector) if "poison" in text else vector

    async def close(self) -> None: ...

    async def _spoilt(self, vectors: Vectors) -> Vectors:
        self.is_reached.set()
        if self._fault == "hang":
            await asyncio.Event().wait()
        elif self._fault == "drip":
            await asyncio.sleep(0.5)
        elif self._fault == "error":
            raise OSError("the connection was lost")
        elif self._fault == "cancel":
            raise asyncio.CancelledError
        return np.full_like(vectors, np.nan) if self._fault == "rubbish" else vectors


async def core(handle: BoundMemory, text: str) -> None:
    await handle.add(text)


async def adk(handle: BoundMemory, text: str) -> None:
    event = Event(author="user", content=Content(role="user", parts=[Part(text=text)]))
    session = Session(id="s", app_name="demo", user_id=str(handle.scope.user), events=[event])
    await MemoryService(handle).add_session_to_memory(session)


async def langchain(handle: BoundMemory, text: str) -> None:
    await MemoryChatMessageHistory(handle, session_id="s").aadd_messages([HumanMessage(text)])


async def mcp(handle: BoundMemory, text: str) -> None:
    async with Client(memory_server(handle)) as client:
        result = await client.call_tool("memory_store", {"content": text, "metadata": {"type": "fact"}})
    assert not result.is_error, result.content


async def xaibo(handle: BoundMemory, text: str) -> None:
    await CoreMemory(None, memory=handle).store_memory(text)


@pytest.mark.parametrize("say", [core, adk, langchain, mcp, xaibo])
@pytest.mark.parametrize("fault", FAULTS)
async def test_nobody_else_waits_longer_than_the_deadline(
    say: Callable[[BoundMemory, str], Awaitable[None]], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_batches, "LONGEST_CALL_SECONDS", 0.1)
    embedder = Faulty(fault)
    async with asyncio.timeout(_GUARD_SECONDS), Memory(tmp_path / "memory.db", embedder=embedder) as memory:
        ann, tom = memory.bind(app="demo", user="ann"), memory.bind(app="demo", user="tom")
        said = asyncio.ensure_future(say(ann, "a poison that no model likes"))
        await asyncio.to_thread(embedder.is_reached.wait)
        await say(tom, "I like tea")
        assert [hit.record.text for hit in await tom.search("tea")] == ["I like tea"]
        await said  # nothing that was said is lost, and words find it
        assert [record.text for record in await ann.list()] == ["a poison that no model likes"]
        assert [hit.record.text for hit in await ann.search("likes", mode="lexical")] == [
            "a poison that no model likes"
        ]


async def test_a_question_that_the_embedder_does_not_answer_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_batches, "LONGEST_CALL_SECONDS", 0.1)
    async with Memory(tmp_path / "memory.db", embedder=Faulty("hang")) as memory:
        ann = memory.bind(user="ann")
        await ann.add("I like tea")
        with pytest.raises(EmbeddingError, match="did not answer within 1 s"):
            await ann.search("poison")
