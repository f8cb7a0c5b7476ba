"""An agent of SPADE with a model, on an XMPP server, and a person who writes to it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from spade.template import Template

from memory_core import PUSHED, Where
from memory_spade import MemoryBehaviour, MemoryLLMAgent
from memory_spade.testing.peer import FOR_MODELS, Peer
from memory_spade.testing.provider import ScriptedProvider
from tests.adapters.drivers.driver import Setting, embedded


class Spade:
    """An agent that hears what it is told; the application keeps its answers, which no behaviour of SPADE hears."""

    def __init__(self, setting: Setting) -> None:
        assert setting.server is not None
        self._memory, number = setting.memory, uuid.uuid4().hex[:8]
        self._provider = ScriptedProvider(lambda request: setting.answer(request.said))
        self.agent: Final = MemoryLLMAgent(
            *(setting.server.jid(f"bot-{number}"), "secret", self._provider),
            memory=setting.memory,
            agent_base_memory=True,
            recall=PUSHED,
            memory_timeout=setting.seconds,
        )
        self.agent.add_behaviour(MemoryBehaviour(), Template(metadata=dict(FOR_MODELS)))
        self.peer: Final = Peer(setting.server.jid(f"ann-{number}"))
        self._said: list[tuple[str, str, str]] = []
        """The exchanges, each with its conversation, while the application has not stored it."""

    @property
    def person(self) -> str:
        return str(self.peer.jid.bare)

    async def say(self, text: str, conversation: str = "monday") -> str:
        answer = await self.peer.ask(str(self.agent.jid.bare), text, thread=conversation)
        self._said.append((text, str(answer.body), conversation))
        return str(answer.body)

    def prompt(self) -> str:
        return "\n".join(str(message["content"]) for message in self._provider.requests[-1].messages)

    async def settled(self) -> None:
        for text, answer, conversation in self._said:
            while not await self._is_heard(text, conversation):  # noqa: ASYNC110  (a message has no receipt)
                await asyncio.sleep(0.005)
            await self._memory.remember([("user", text), ("assistant", answer)], session=conversation)
        self._said.clear()
        await embedded(self._memory)

    async def _is_heard(self, text: str, conversation: str) -> bool:
        page = await self._memory.list(where=Where(session=conversation), limit=100)
        return any(record.text == text for record in page.records)


@asynccontextmanager
async def spade(setting: Setting) -> AsyncIterator[Spade]:
    """Connect an agent and a person until the test is over."""
    assert setting.server is not None
    driver = Spade(setting)
    try:
        for each in (driver.agent, driver.peer):
            await setting.server.start(each)
        yield driver
    finally:
        for each in (driver.peer, driver.agent):
            await setting.server.stop(each)
