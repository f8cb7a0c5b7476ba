"""One fact among twenty, asked in thirty conversations of an agent on a real server: it is in every prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from spade.agent import Agent
from spade.template import Template

from memory_core import BoundMemory, Memory, RecallOptions
from memory_spade import MemoryBehaviour, MemoryLLMAgent
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider
from tests.adapters.spade.saying import ON_ONE_SERVER
from tests.recall.asking import ANSWER, ENGLISH, IN_ANY_LANGUAGE, MIXED, assert_recalled, facts

Start = Callable[[Agent], Awaitable[None]]
Jid = Callable[[str], str]


async def kept(memory: BoundMemory, count: int) -> None:
    """Return once so much is found by its meaning, too; between the messages of people there is time for that."""
    while (stats := await memory.stats()).records < count or stats.vectors_pending:  # noqa: ASYNC110  (no receipt)
        await asyncio.sleep(0.01)


@ON_ONE_SERVER
@pytest.mark.parametrize(
    ("recall", "asked"),
    [(RecallOptions(), ENGLISH), pytest.param(IN_ANY_LANGUAGE, MIXED, marks=pytest.mark.torture)],
)
async def test_the_agent_is_shown_it_every_time(
    start: Start, jid: Jid, tmp_path: Path, recall: RecallOptions, asked: Sequence[str]
) -> None:
    prompts: list[str] = []

    def script(request: Request) -> str:
        prompts.append(request.system)
        return ANSWER if "tea" in request.said.casefold() else "Noted."

    async with Memory(tmp_path / "memory.db") as memory:  # recall goes by meaning, too
        ann = memory.bind(app="mas", user="ann")
        bot = MemoryLLMAgent(
            jid("bot"), "pw", provider=ScriptedProvider(script), memory=ann, agent_base_memory=True, recall=recall
        )
        bot.add_behaviour(MemoryBehaviour(), Template(metadata={"message_type": "llm"}))
        peer = Peer(jid("ann"))
        await start(bot)
        await start(peer)
        for n, fact in enumerate(facts(), 1):
            await peer.ask(jid("bot"), fact, thread=f"fact {n}")
            await kept(ann, n)
        for n, question in enumerate(asked):
            await peer.ask(jid("bot"), question, thread=f"asking {n}")
            await kept(ann, len(prompts) + n)
            await ann.remember([("user", question), ("assistant", ANSWER)], session=f"asking {n}")
            assert_recalled(prompts[-1], question)
