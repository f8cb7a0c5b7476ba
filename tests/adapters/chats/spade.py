"""Agents of SPADE that hear and say messages, without a server: stanzas are put into the queues of their behaviours.

A person corrects a message (XEP-0308) to edit it, and retracts it (XEP-0424) to remove it.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final
from xml.etree import ElementTree as ET

from slixmpp import Message as Stanza
from spade.agent import Agent
from spade.behaviour import CyclicBehaviour
from spade.message import Message

from memory_core import BoundMemory
from memory_spade import MemoryBehaviour, MemoryMixin
from memory_spade.stanzas import received

BOT, PERSON = "bot@localhost", "ann@localhost"
CHANGING: Final = {
    "edit": "<replace xmlns='urn:xmpp:message-correct:0' id='{id}'/>",
    "remove": "<retract xmlns='urn:xmpp:message-retract:1' id='{id}'/>",
}


class Plain(MemoryMixin, Agent):
    """An agent without a model."""


class Silent(CyclicBehaviour):
    """Sends nothing."""

    async def send(self, msg: Message) -> None:
        msg.sender, msg.sent = BOT, True


class Hearing(MemoryBehaviour, Silent):
    """Remembers what it hears and what it would send."""


@dataclass
class Said:
    """A message of the person that her client shows."""

    id: str
    text: str


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
        self._stanzas: list[Message] = []
        self._said: list[Said] = []
        self._answers: list[str] = []

    async def do(self, what: str, place: int, text: str, *, process: int) -> None:
        if what in ("again", "at_once"):
            heard = self._heard if what == "at_once" else [self._heard[process]]
            for message in self._stanzas:
                await asyncio.gather(*(self._hear(each, message) for each in heard))
            return
        if what in CHANGING and self._said:
            await self._change(what, self._said[place % len(self._said)], text, process)
            return
        self._said.append(Said(f"stanza {len(self._stanzas)}", text))
        await self._send(text, process)
        if what != "interrupt":
            answer = Message(to=PERSON, body=f"answer to {text}", thread="monday")
            await self._heard[process][0].send(answer)
            self._answers.append(str(answer.body))

    async def shown(self) -> list[str]:
        return [said.text for said in self._said] + self._answers

    async def _change(self, what: str, said: Said, text: str, process: int) -> None:
        await self._send(text, process, ET.fromstring(CHANGING[what].format(id=said.id)))
        if what == "edit":
            said.text = text
        else:
            self._said.remove(said)

    async def _send(self, text: str, process: int, *elements: ET.Element) -> None:
        made = Message(to=BOT, sender=f"{PERSON}/phone", body=text, thread="monday", metadata={"language": "en"})
        client: Any = SimpleNamespace(Message=Stanza)  # SPADE puts the thread and the metadata into a form
        stanza: Any = made.prepare(client)
        stanza["id"] = f"stanza {len(self._stanzas)}"
        for element in elements:
            stanza.append(element)
        self._stanzas.append(received(stanza))
        await self._hear(self._heard[process], self._stanzas[-1])

    async def _hear(self, behaviours: Sequence[Hearing], message: Message) -> None:
        for behaviour in behaviours:
            assert behaviour.queue is not None
            await behaviour.queue.put(copy.copy(message))
        await asyncio.gather(*(behaviour.receive() for behaviour in behaviours))
