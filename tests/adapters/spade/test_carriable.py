"""A text that leaves an agent can be carried by XML 1.0, whatever is in its memory: its connection stays."""

from __future__ import annotations

import sys
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate
from xml.sax.saxutils import escape

from spade.agent import Agent
from spade.behaviour import CyclicBehaviour
from spade.message import Message

from memory_core import Memory
from memory_spade import MemoryBehaviour, MemoryLLMAgent, MemoryMixin
from memory_spade.carriable import REPLACEMENT, carriable
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider
from tests.adapters.spade.saying import Jid, Start

EVERY = [chr(point) for point in range(sys.maxunicode + 1)]
REFUSED = "".join(char for char in EVERY if carriable(char) != char)
HOSTILE = f"The harbour closes at \x0b six {REFUSED} \U0001fffe \ufdd0 \u202e \u2028 \x85 \x7f ]]> & <b>"


def read(text: str) -> str:
    """The text that a parser of XML makes of it."""
    found, parser = list[str](), ParserCreate("utf-8")
    parser.CharacterDataHandler = found.append
    parser.Parse(f"<a>{escape(text)}</a>".encode(), True)  # noqa: FBT003  (its only form)
    return "".join(found)


def test_a_character_is_replaced_exactly_if_a_parser_of_xml_refuses_it() -> None:
    kept = "".join(char for char in EVERY if carriable(char) == char)
    assert read(kept) == kept.replace("\r", "\n")
    for char in REFUSED:
        assert carriable(char) == REPLACEMENT
        try:
            read(char)
        except (ExpatError, UnicodeEncodeError):
            continue
        raise AssertionError(f"XML carries {char!r}")


class Plain(CyclicBehaviour):
    """A behaviour that knows nothing of memories."""

    async def run(self) -> None:
        message = await self.receive(timeout=10)
        if message is not None:
            await self.send(answer_to(message))


class Remembering(MemoryBehaviour):
    async def run(self) -> None:
        message = await self.receive(timeout=10)
        if message is not None:
            await self.send(answer_to(message))


def answer_to(message: Message) -> Message:
    answer = message.make_reply()
    answer.body = HOSTILE
    answer.set_metadata("where", HOSTILE)
    return answer


class Office(MemoryMixin, Agent):
    behaviour: CyclicBehaviour

    async def setup(self) -> None:
        self.add_behaviour(self.behaviour)


def insist_on_whole(agent: Agent, body: str) -> None:
    client: Any = agent.client
    assert client.is_connected()
    assert body == carriable(HOSTILE)


async def test_no_text_of_a_memory_ends_the_connection_of_an_agent(start: Start, jid: Jid, memory: Memory) -> None:
    ann = Peer(jid("ann"))
    await start(ann)
    made: Any = (("plain", Plain), ("remembering", Remembering))  # SPADE does not annotate its constructors
    for name, behaviour in made:
        office = Office(jid(name), "pw", memory=memory)
        office.behaviour = behaviour()
        await start(office)
        for _ in range(2):
            answer = await ann.ask(str(office.jid.bare), "When does the harbour close?")
            insist_on_whole(office, str(answer.body))
            assert answer.get_metadata("where") == carriable(HOSTILE)


async def test_no_answer_of_a_model_ends_the_connection_of_an_agent(start: Start, jid: Jid, memory: Memory) -> None:
    def answer(_: Request) -> str:
        return HOSTILE

    bot, ann = MemoryLLMAgent(jid("bot"), "pw", ScriptedProvider(answer), memory=memory), Peer(jid("ann"))
    await start(bot, ann)
    for _ in range(2):
        insist_on_whole(bot, str((await ann.ask(str(bot.jid.bare), "When does it close?", thread="t1")).body))
