"""Every framework, closed in its own way while it is at work."""

from __future__ import annotations

import asyncio
import io
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Self

import httpx2
from google.adk.runners import Runner
from langchain_core.messages import AIMessage, HumanMessage
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from spade.message import Message

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask
from memory_core import BoundMemory, ClosedError, Memory
from memory_langchain import MemoryChatMessageHistory
from memory_mcp import memory_server
from memory_mcp.serving import serve_http
from memory_spade.memory.home import Home
from memory_spade.memory.place import Place
from memory_xaibo import CoreMemory, TextEmbedder, TokenChunker, VectorIndex, VectorMemory
from tests.adapters.adk.agents import APP, runner_of, said_event, session_with
from tests.adapters.chats.spade import BOT, PERSON, Hearing, Plain
from tests.adapters.drivers.driver import Setting
from tests.adapters.drivers.every import DRIVERS, Opening

ANN: Final = "ann"
TALKS: Final = 5
"""Conversations that go on at the same time."""
MOST_SECONDS: Final = 1.5
"""The time after which it is closed at the latest; a write takes 0.2 s."""


@dataclass
class Work:
    """The work that goes on while a framework is closed."""

    memory: Memory
    dice: Random
    acknowledged: list[str] = field(default_factory=list[str])
    """The texts of which the framework has said that they are stored, or that the turn is over."""

    @property
    def handle(self) -> BoundMemory:
        """The memory of who talks."""
        return self.memory.bind(app=APP, user=ANN)

    async def until_closed(
        self,
        talk: Callable[[int, int], Awaitable[Sequence[str]]],
        close: Callable[[], Awaitable[object]],
        *,
        is_stored_later: bool = False,
    ) -> None:
        """Talk in several conversations, and close at a random moment; then everybody hears that it is closed.

        Args:
            talk: One turn of a conversation; returns what is acknowledged with it.
            close: Closes as the framework does.
            is_stored_later: True if a turn is over before it is stored: one that is over when it is being closed
                already may have come too late.
        """
        talks = [asyncio.create_task(self._talk(talk, number)) for number in range(TALKS)]
        await asyncio.sleep(self.dice.uniform(0, MOST_SECONDS))
        if self.dice.random() < 0.5:  # as a server does that is asked to end, or as a program does whose tasks go on
            for task in talks:
                task.cancel()
        acknowledged = self.acknowledged
        if is_stored_later:
            self.acknowledged = []
        await close()
        await self.memory.close()
        for task in talks:
            task.cancel()
        ended = await asyncio.gather(*talks, return_exceptions=True)
        wrong = [error for error in ended if not isinstance(error, asyncio.CancelledError | ClosedError)]
        assert wrong == []
        self.acknowledged = acknowledged

    async def _talk(self, talk: Callable[[int, int], Awaitable[Sequence[str]]], number: int) -> None:
        for turn in itertools.count():
            said = await talk(number, turn)
            self.acknowledged += said
            await asyncio.sleep(self.dice.uniform(0, 0.05))


Closing = Callable[[Work], Awaitable[None]]


async def nothing() -> None:
    """The framework has nothing to close: the application closes the memory."""


def texts(number: int, turn: int) -> list[str]:
    return [f"question {number} {turn}", f"answer {number} {turn}"]


async def adk_runner(work: Work) -> None:
    """A runner with the plugin; its service owns the memory."""
    service, plugin = MemoryService(work.memory, owns_memory=True), MemoryPlugin()
    model = ScriptedLlm(script=[lambda request: f"answer {_said(request).removeprefix('question ')}"] * 10_000)
    runner: Runner = runner_of(service, model, plugins=[plugin])

    async def talk(number: int, turn: int) -> list[str]:
        question, answer = texts(number, turn)
        assert await ask(runner, question, user_id=ANN, session_id=f"s{number}") == answer
        return [question, answer]

    async def close() -> None:
        await runner.close()
        await service.close()

    await work.until_closed(talk, close, is_stored_later=True)


def _said(request: Any) -> str:
    said = [part.text for content in request.contents for part in content.parts or [] if part.text]
    return str(next(text for text in reversed(said) if text.startswith("question ")))


async def adk_service(work: Work) -> None:
    """Sessions that are handed over whole."""
    service = MemoryService(work.memory, owns_memory=True)

    async def talk(number: int, turn: int) -> list[str]:
        said = [text for earlier in range(turn + 1) for text in texts(number, earlier)]
        events = [said_event(text, id=text, at=at) for at, text in enumerate(said)]
        await service.add_session_to_memory(session_with(*events, session_id=f"s{number}"))
        return said[-2:]

    await work.until_closed(talk, service.close)


async def langchain_history(work: Work) -> None:
    """Messages that are added to a history."""

    async def talk(number: int, turn: int) -> list[str]:
        question, answer = texts(number, turn)
        history = MemoryChatMessageHistory(work.handle, f"s{number}")
        await history.aadd_messages([HumanMessage(question, id=question), AIMessage(answer, id=answer)])
        return [question, answer]

    await work.until_closed(talk, nothing)


def driven(opened: Opening) -> Closing:
    """A framework that has nothing to close, through its driver."""

    async def closing(work: Work) -> None:
        setting = Setting(work.handle, lambda said: f"answer {said.removeprefix('question ')}")
        async with opened(setting) as driver:

            async def talk(number: int, turn: int) -> list[str]:
                question, answer = texts(number, turn)
                assert await driver.say(question, f"s{number}") == answer
                return [question, answer]

            await work.until_closed(talk, nothing)

    return closing


async def spade_agent(work: Work) -> None:
    """An agent that closes the memory when it is stopped; its behaviours end their last run after that."""
    await _spade(work, lambda _: None)


async def spade_agent_of_its_own(work: Work) -> None:
    """The same with a memory that the agent has opened itself."""

    def own(agent: Plain) -> None:
        agent.home = Home(BOT, (None, Place(lambda: work.memory)), "agent")

    await _spade(work, own)


async def _spade(work: Work, prepare: Callable[[Plain], None]) -> None:
    agent = Plain(BOT, "secret", memory=work.handle)
    prepare(agent)
    await agent.home.begin()
    behaviours = [Hearing() for _ in range(TALKS)]
    for behaviour in behaviours:
        agent.behaviours.append(behaviour)
        behaviour.set_agent(agent)

    async def talk(number: int, turn: int) -> list[str]:
        behaviour, (question, answer) = behaviours[number], texts(number, turn)
        if behaviour.is_killed():  # SPADE begins no other run, but lets this one end
            await asyncio.Event().wait()
        assert behaviour.queue is not None
        await behaviour.queue.put(Message(to=BOT, sender=f"{PERSON}/phone", body=question, thread=f"s{number}"))
        await behaviour.receive()
        work.acknowledged.append(question)
        was_stopped = behaviour.is_killed()
        await behaviour.send(Message(to=PERSON, body=answer, thread=f"s{number}"))
        return [] if was_stopped else [answer]  # without a connection, nothing is sent

    await work.until_closed(talk, agent.stop)


async def mcp_server(work: Work) -> None:
    """A server over HTTP that is asked to end, as the program does it."""
    async with _Served(work.handle) as served:

        async def talk(number: int, turn: int) -> list[str]:
            said = texts(number, turn)
            messages = [{"role": "user", "content": text, "id": text} for text in said]
            await served.call("memory_remember", messages=messages, session=f"s{number}")
            await served.call("memory_store", content=f"fact {number} {turn}")
            return [*said, f"fact {number} {turn}"]

        await work.until_closed(talk, served.stop)


_starting = asyncio.Lock()


class _Served:
    """A server, and a client that hears no more than it answers."""

    def __init__(self, handle: BoundMemory) -> None:
        self._handle = handle
        self._is_ready, self._has_ended = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> Self:
        async with _starting:  # each says on standard error where it listens
            with redirect_stderr(io.StringIO()) as said:
                server = memory_server(self._handle, tools="all")
                self._serving = asyncio.create_task(serve_http(server, "127.0.0.1", 0, hosts=()))
                while not said.getvalue():  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
        url = said.getvalue().removeprefix("memory-mcp: ").strip()
        self._connected = asyncio.create_task(self._connect(url))
        ready = asyncio.create_task(self._is_ready.wait())
        await asyncio.wait({self._connected, ready}, return_when=asyncio.FIRST_COMPLETED)
        assert self._is_ready.is_set(), self._connected.exception()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._connected.cancel()
        await asyncio.wait({self._connected})
        if not self._connected.cancelled():
            self._connected.exception()  # there is no server to take leave of

    async def _connect(self, url: str) -> None:
        http = httpx2.AsyncClient(timeout=300)
        async with http, Client(streamable_http_client(url, http_client=http)) as self._client:
            self._is_ready.set()
            await asyncio.Event().wait()

    async def stop(self) -> None:
        """Let the server end, as a signal does."""
        self._serving.cancel()
        await asyncio.wait({self._serving})
        self._has_ended.set()

    async def call(self, tool: str, **arguments: Any) -> None:
        """Call a tool; raises `ClosedError` if there is no answer any more."""
        calling = asyncio.create_task(self._client.call_tool(tool, arguments))
        calling.add_done_callback(lambda call: call.cancelled() or call.exception())  # perhaps nobody waits any more
        ended = asyncio.create_task(self._has_ended.wait())
        done, _ = await asyncio.wait({calling, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if calling not in done or calling.exception() is not None or calling.result().is_error:
            calling.cancel()
            assert self._serving.cancelling() or self._serving.done(), calling
            raise ClosedError("the server has ended")


async def xaibo_core(work: Work) -> None:
    """A module that stores memories."""
    module = CoreMemory(memory=work.handle)

    async def talk(number: int, turn: int) -> list[str]:
        (text, _) = texts(number, turn)
        await module.store_memory(text)
        return [text]

    await work.until_closed(talk, module.close)


async def xaibo_vectors(work: Work) -> None:
    """A module with a chunker, an embedder and an index of its own."""
    module = VectorMemory(TokenChunker(), TextEmbedder(), VectorIndex(), memory=work.handle)

    async def talk(number: int, turn: int) -> list[str]:
        (text, _) = texts(number, turn)
        await module.store_memory(text)
        return [text]

    await work.until_closed(talk, module.close)


CLOSED: Final = frozenset({"adk", "spade"})
"""The drivers of frameworks that are closed in their own way."""
CLOSINGS: Final[Mapping[str, Closing]] = {
    "adk runner": adk_runner,
    "adk service": adk_service,
    "langchain history": langchain_history,
    "spade": spade_agent,
    "spade, own memory": spade_agent_of_its_own,
    "mcp": mcp_server,
    "xaibo module": xaibo_core,
    "xaibo vectors": xaibo_vectors,
    **{name: driven(opened) for name, opened in DRIVERS.items() if name not in CLOSED},
}
