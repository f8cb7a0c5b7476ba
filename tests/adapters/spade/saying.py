"""Agents that send messages as they are, and conversations without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import pytest
from spade.agent import Agent
from spade.behaviour import OneShotBehaviour
from spade.message import Message

from memory_core import BoundMemory
from memory_spade import MemoryEntry, MemoryLLMAgent
from memory_spade.testing.backend import ListBackend

Jid = Callable[[str], str]


class Start(Protocol):
    """Starts agents, which are stopped after the test."""

    async def __call__(self, *agents: Agent) -> None: ...


ON_ONE_SERVER = pytest.mark.parametrize("server", ["pyjabber"], indirect=True)
"""Of a test for which the server makes no difference."""


class Say(OneShotBehaviour):
    """Sends messages as they are."""

    def __init__(self, *messages: Message) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # spade's have no annotations
        self.messages = messages

    async def run(self) -> None:
        for message in self.messages:
            await self.send(message)


async def say(agent: Agent, *messages: Message) -> None:
    behaviour = Say(*messages)
    agent.add_behaviour(behaviour)
    await behaviour.join()


def message(to: str, body: str, thread: str | None = None, **metadata: str) -> Message:
    return Message(to=to, body=body, thread=thread, metadata=metadata)


async def until(memory: BoundMemory, count: int) -> None:
    while (await memory.stats()).records < count:  # noqa: ASYNC110  (a message has no receipt to wait for)
        await asyncio.sleep(0.005)


class Watched(ListBackend):
    """Counts how often it is open, and sees on which event loops it is used."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = 0
        self.loops: set[asyncio.AbstractEventLoop] = set()

    async def initialize(self) -> None:
        self.opened += 1

    async def store_memory(self, entry: MemoryEntry) -> str:
        self.loops.add(asyncio.get_running_loop())
        return await super().store_memory(entry)

    async def search_memories(
        self, agent_id: str, query: str, limit: int = 10, category: str | None = None
    ) -> list[MemoryEntry]:
        self.loops.add(asyncio.get_running_loop())
        return await super().search_memories(agent_id, query, limit, category)

    async def cleanup(self) -> None:
        self.opened -= 1


class Conversation:
    """Drives an agent's behaviour the way XMPP does, message by message, without a server."""

    def __init__(self, agent: MemoryLLMAgent, thread: str = "t1") -> None:
        self.agent = agent
        self.thread = thread
        behaviour: Any = agent.llm_behaviour
        behaviour.set_agent(agent)
        self.answers: list[str] = []

        async def keep(message: Message) -> None:
            self.answers.append(str(message.body))

        behaviour.send = keep

    async def say(self, text: str) -> str:
        behaviour: Any = self.agent.llm_behaviour
        message = Message(
            to=str(self.agent.jid),
            sender="ann@localhost/phone",
            body=text,
            thread=self.thread,
            metadata={"message_type": "llm"},
        )
        await behaviour.queue.put(message)
        await behaviour.run()
        return self.answers[-1]
