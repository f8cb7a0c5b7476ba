"""Agents of SPADE that hear and say messages, without a server: what is received is put into their queues."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from typing import Any

from spade.agent import Agent
from spade.behaviour import CyclicBehaviour
from spade.message import Message

from memory_core import BoundMemory
from memory_spade import MemoryBehaviour, MemoryMixin
from memory_spade.stanzas import MESSAGE_ID

BOT, PERSON = "bot@localhost", "ann@localhost"


class Plain(MemoryMixin, Agent):
    """An agent without a model."""


class Silent(CyclicBehaviour):
    """Sends nothing."""

    async def send(self, msg: Message) -> None:
        msg.sender, msg.sent = BOT, True


class Hearing(MemoryBehaviour, Silent):
    """Remembers what it hears and what it would send."""


class Spade:
    """One agent in several processes, each with two behaviours that hear everything."""

    def __init__(self, handles: Sequence[BoundMemory], **options: Any) -> None:
        self.agents = [Plain(BOT, "secret", memory=handle, **options) for handle in handles]
        self._heard: list[list[Hearing]] = []
        for agent in self.agents:
            behaviours = [Hearing(), Hearing()]
            for behaviour in behaviours:
                behaviour.set_agent(agent)
            self._heard.append(behaviours)
        self._messages: list[Message] = []
        self._answers: list[str] = []

    async def do(self, what: str, place: int, text: str, *, process: int) -> None:
        if what in ("again", "at_once"):
            heard = self._heard if what == "at_once" else [self._heard[process]]
            for message in self._messages:
                await asyncio.gather(*(self._hear(each, message) for each in heard))
            return
        message = self._stanza(text)
        self._messages.append(message)
        await self._hear(self._heard[process], message)
        if what != "interrupt":
            answer = Message(to=PERSON, body=f"answer to {text}", thread="monday")
            await self._heard[process][0].send(answer)
            self._answers.append(str(answer.body))

    async def shown(self) -> list[str]:
        return [str(message.body) for message in self._messages] + self._answers

    def _stanza(self, text: str) -> Message:
        message = Message(to=BOT, sender=f"{PERSON}/phone", body=text, thread="monday")
        message.set_metadata(MESSAGE_ID, f"stanza {len(self._messages)}")
        return message

    async def _hear(self, behaviours: Sequence[Hearing], message: Message) -> None:
        for behaviour in behaviours:
            assert behaviour.queue is not None
            await behaviour.queue.put(copy.copy(message))
        await asyncio.gather(*(behaviour.receive() for behaviour in behaviours))
