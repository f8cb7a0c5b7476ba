"""Whatever an application's backend, owner function, provider or recall option raises costs one call its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from spade.agent import Agent

from memory_core import Memory, RecallOptions
from memory_spade import AgentBaseMemory, MemoryBehaviour, MemoryEntry, MemoryLLMAgent, MemoryMixin
from memory_spade.memory.exceptions import MemoryInitializationError, MemorySearchError, MemoryStorageError
from memory_spade.testing.backend import ListBackend
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from tests.adapters.spade.saying import ON_ONE_SERVER, Jid, Start


class Flaky(ListBackend):
    """Raises the error that is set, which may be of any kind."""

    error: Exception | None = None
    entries_of: Any = None

    async def initialize(self) -> None:
        self._maybe_fail()
        await super().initialize()

    async def store_memory(self, entry: MemoryEntry) -> str:
        self._maybe_fail()
        return await super().store_memory(entry)

    async def search_memories(self, *args: Any, **kwargs: Any) -> list[MemoryEntry]:
        self._maybe_fail()
        return await super().search_memories(*args, **kwargs) if self.entries_of is None else self.entries_of

    def _maybe_fail(self) -> None:
        if self.error is not None:
            raise self.error


def obey(request: Request) -> str | ToolCall:
    if request.results:
        return request.results[-1]
    verb, _, rest = request.said.partition(" ")
    return ToolCall("store_memory", {"content": rest, "category": "fact"}) if verb == "STORE" else f"echo {rest}"


async def told(peer: Peer, agent: Agent, text: str) -> str:
    return str((await peer.ask(str(agent.jid), text, thread="t1")).body)


@pytest.mark.parametrize("error", [RuntimeError("redis down"), TimeoutError(), KeyError("x"), StopAsyncIteration()])
async def test_every_error_of_a_backend_becomes_a_documented_one(error: Exception) -> None:
    backend = Flaky()
    memory = AgentBaseMemory("bot@localhost", backend=backend)
    backend.error = error
    with pytest.raises(MemoryInitializationError, match=f"Flaky raised {type(error).__name__}"):
        await memory.search_memories("tea")
    backend.error = None
    await memory.initialize()
    backend.error = error
    with pytest.raises(MemorySearchError, match=f"Flaky raised {type(error).__name__}"):
        await memory.search_memories("tea")
    with pytest.raises(MemoryStorageError, match=f"Flaky raised {type(error).__name__}"):
        await memory.store_memory("tea", "fact")


async def test_no_backend_is_given_what_cannot_be_stored_or_searched() -> None:
    backend = ListBackend()
    memory: Any = AgentBaseMemory("bot@localhost", backend=backend)
    for wrong in (
        {"content": "x", "category": "nonsense"},
        {"content": " ", "category": "fact"},
        {"content": 7, "category": "fact"},
        {"content": "x", "category": "fact", "confidence": 7.0},
        {"content": "x", "category": "fact", "confidence": "high"},
        {"content": "x", "category": "fact", "context": 7},
    ):
        with pytest.raises(MemoryStorageError):
            await memory.store_memory(**wrong)
    known = await memory.store_memory("x", "fact")
    for update in ({"category": "nonsense"}, {"content": ""}, {"confidence": -1}):
        with pytest.raises(MemoryStorageError):
            await memory.update_memory(known, **update)
    for call in (
        memory.search_memories("x", limit=0),
        memory.search_memories("x", category="nonsense"),
        memory.get_memories_by_category("nonsense"),
        memory.get_memories_by_category(None),
        memory.get_recent_memories(limit="5"),
    ):
        with pytest.raises(MemorySearchError):
            await call
    assert [entry.content for entry in backend.entries] == ["x"]


@ON_ONE_SERVER
async def test_a_backend_that_fails_costs_one_call_its_memory_and_no_thread(start: Start, jid: Jid) -> None:
    backend = Flaky()
    bot, ann = MemoryLLMAgent(jid("bot"), "pw", ScriptedProvider(obey), agent_base_memory=backend), Peer(jid("ann"))
    await start(bot, ann)
    assert "Stored fact" in await told(ann, bot, "STORE tea")
    backend.error = RuntimeError("redis down")
    assert await told(ann, bot, "ECHO one") == "echo one"
    assert await told(ann, bot, "STORE milk") == "store_memory failed: Flaky raised RuntimeError: redis down"
    backend.error, backend.entries_of = None, ["not an entry"]
    assert await told(ann, bot, "ECHO two") == "echo two"
    backend.entries_of = None
    assert "Stored fact" in await told(ann, bot, "STORE sugar")
    assert [entry.content for entry in backend.entries] == ["tea", "sugar"]


def raising(peer: str) -> str:
    raise ValueError("no such customer")


def nobody(peer: str) -> Any:
    return None


def blank(peer: str) -> str:
    return ""


@ON_ONE_SERVER
@pytest.mark.parametrize("owner", [raising, nobody, blank])
async def test_an_owner_function_that_fails_costs_one_call_its_memory(
    start: Start, jid: Jid, memory: Memory, owner: Callable[[str], str]
) -> None:
    class Answering(MemoryBehaviour):
        async def run(self) -> None:
            heard = await self.receive(timeout=10)
            if heard is not None:
                answer = heard.make_reply()
                answer.body = f"recalled {len((await self.recall(heard)).hits)}"
                await self.send(answer)
                await self.memory.search("raises, and ends this call of run only")

    class Plain(MemoryMixin, Agent):
        async def setup(self) -> None:
            self.add_behaviour(Answering())

    bot = MemoryLLMAgent(jid("bot"), "pw", ScriptedProvider(obey), memory=memory, owner=owner)
    plain, ann = Plain(jid("plain"), "pw", memory=memory, owner=owner), Peer(jid("ann"))
    await start(bot, plain, ann)
    for n in range(2):
        assert await told(ann, bot, f"ECHO {n}") == f"echo {n}"
        assert await told(ann, plain, f"hello {n}") == "recalled 0"
    assert "failed: " in await told(ann, bot, "STORE tea")


@ON_ONE_SERVER
async def test_a_provider_that_fails_once_answers_the_thread_again(start: Start, jid: Jid, memory: Memory) -> None:
    ended: list[tuple[str, str]] = []

    def script(request: Request) -> str:
        if request.said == "fail":
            raise ConnectionError("no route to the model")
        return "fine"

    bot = MemoryLLMAgent(
        *(jid("bot"), "pw", ScriptedProvider(script)),
        memory=memory,
        on_conversation_end=lambda conversation, reason: ended.append((conversation, reason)),
    )
    ann = Peer(jid("ann"))
    await start(bot, ann)
    assert "no route to the model" in await told(ann, bot, "fail")
    assert await told(ann, bot, "again") == "fine"
    assert ended == [("t1", "error")]


@ON_ONE_SERVER
async def test_a_function_of_the_recall_options_that_fails_costs_one_prompt_its_memories(
    start: Start, jid: Jid, memory: Memory
) -> None:
    def broken(record: object, text: str) -> str:
        raise ZeroDivisionError

    options = RecallOptions(format=broken)
    bot = MemoryLLMAgent(jid("bot"), "pw", ScriptedProvider(obey), memory=memory, recall=options)
    ann = Peer(jid("ann"))
    await start(bot, ann)
    await bot.memory.add("The echo is loud")
    assert await told(ann, bot, "ECHO loud") == "echo loud"


@ON_ONE_SERVER
async def test_a_custom_backend_refuses_messages_and_the_behaviour_goes_on(
    start: Start, jid: Jid, caplog: pytest.LogCaptureFixture
) -> None:
    class Answering(MemoryBehaviour):
        async def run(self) -> None:
            heard = await self.receive(timeout=10)
            if heard is not None:
                answer = heard.make_reply()
                answer.body = "ok"
                await self.send(answer)

    class Plain(MemoryMixin, Agent):
        async def setup(self) -> None:
            self.add_behaviour(Answering())

    backend = ListBackend()
    plain, ann = Plain(jid("plain"), "pw", agent_base_memory=backend), Peer(jid("ann"))
    await start(plain, ann)
    assert [await told(ann, plain, "hello") for _ in range(2)] == ["ok", "ok"]
    assert backend.entries == []
    assert "UnsupportedError" in caplog.text
