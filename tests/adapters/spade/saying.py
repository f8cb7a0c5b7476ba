"""Agents that send messages as they are, and conversations without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from spade.agent import Agent
from spade.behaviour import OneShotBehaviour
from spade.message import Message

from memory_core import BoundMemory
from memory_spade import MemoryLLMAgent

Start = Callable[[Agent], Awaitable[None]]
Jid = Callable[[str], str]


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
