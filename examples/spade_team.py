"""A coordinator and its two experts share one memory: what one of them learns, the others recall in their prompts.

The language models are scripted, so no key is needed; agents and messages are real.
"""

from __future__ import annotations

import asyncio
import re

from spade_llm.agent import CoordinatorAgent

from memory_core import Memory
from memory_spade import MemoryLLMAgent, MemoryMixin
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from memory_spade.testing.xmpp import xmpp_server


class Coordinator(MemoryMixin, CoordinatorAgent):
    """spade_llm's coordinator, with memory."""


def expert(request: Request) -> str | ToolCall:
    """Look up a fact, and store it for the team."""
    if request.results:
        return f"Done: {request.results[-1]}"
    return ToolCall("store_memory", {"content": f"Looked up: {request.said}", "category": "fact"})


def remembered(request: Request) -> list[str]:
    """The team's memories in the prompt."""
    return re.findall(r'^- .*: "(.*)"$', request.system, re.MULTILINE)


def coordinator(request: Request) -> str:
    """Answer from what the team remembers."""
    return (remembered(request) or ["Nobody knows."])[0]


async def main() -> None:
    """Each expert learns a fact; the coordinator, which received none of them, is asked about both."""
    async with Memory(":memory:") as memory, xmpp_server() as server:
        team = memory.bind(app="team", user="harbour")
        experts = [
            MemoryLLMAgent(server.jid(name), "pw", ScriptedProvider(expert), memory=team)
            for name in ("tides", "cranes")
        ]
        boss = Coordinator(
            server.jid("boss"),
            "pw",
            [str(agent.jid) for agent in experts],
            provider=ScriptedProvider(coordinator),
            memory=team,
        )
        captain = Peer(server.jid("captain"))
        for agent in (*experts, boss, captain):
            await server.start(agent)

        await captain.ask(server.jid("tides"), "high tide is at noon on Friday")
        await captain.ask(server.jid("cranes"), "crane two is out of service until Monday")
        for question in ("When is high tide?", "Which crane cannot be used?"):
            answer = await captain.ask(server.jid("boss"), question)
            print(f"Captain: {question}\nBoss: {answer.body}\n")
        for record in (await team.list(order="oldest")).records:
            print(
                f"{(record.agent or '').split('@')[0]} learnt from {(record.author or '').split('@')[0]}: {record.text}"
            )


if __name__ == "__main__":
    asyncio.run(main())
