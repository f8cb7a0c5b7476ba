"""An agent with beliefs (spade_bdi): beliefs are remembered as facts, and facts are recalled as beliefs.

`pip install spade_bdi` beside `memory-core[spade]`. The plans are in AgentSpeak; this program adds two actions.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import agentspeak
import spade_bdi.utils
from spade.agent import Agent
from spade.behaviour import OneShotBehaviour
from spade.message import Message
from spade_bdi.bdi import BDIAgent

from memory_core import Draft, Where
from memory_spade import MemoryMixin
from memory_spade.testing.xmpp import XmppServer, xmpp_server

terms: Any = agentspeak  # neither package has types
literals: Any = spade_bdi.utils

PLANS = """
+delivered(Crate, Pier) <- .remember(delivered(Crate, Pier)).
+asked(Crate) : delivered(Crate, Pier) & Pier > 3 <- .say(Crate, Pier).
"""


class Foreman(MemoryMixin, BDIAgent):  # type: ignore[misc]
    """Remembers its beliefs over the end of its process."""

    def __init__(self, jid: str, plans: Path, memory: Path) -> None:
        self.said: asyncio.Queue[str] = asyncio.Queue()
        self.remembering: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        super().__init__(jid, "secret", str(plans), memory=memory)

    def add_custom_actions(self, actions: Any) -> None:
        """Add the actions that the plans use."""

        @actions.add(".remember", 1)  # type: ignore[untyped-decorator]
        def remember(_agent: Any, term: Any, intention: Any) -> Iterator[None]:
            belief = terms.asl_str(terms.freeze(term.args[0], intention.scope, {}))
            fact = Draft(belief, kind="fact", source_key=f"belief:{belief}")
            self.remembering.put_nowait(asyncio.create_task(self.memory.add(fact)))
            yield

        @actions.add(".say", 2)  # type: ignore[untyped-decorator]
        def say(_agent: Any, term: Any, intention: Any) -> Iterator[None]:
            self.said.put_nowait(" at pier ".join(str(terms.grounded(each, intention.scope)) for each in term.args))
            yield

    async def setup(self) -> None:
        """Believe what is remembered."""
        behaviour: Any = self.bdi
        for fact in (await self.memory.list(where=Where(kinds=["fact"]), order="oldest")).records:
            functor, arguments = literals.parse_literal(fact.text)
            behaviour.set_belief(functor, *arguments)  # numbers stay numbers; it makes atoms of strings


class Tell(OneShotBehaviour):
    """Tells an agent what to believe."""

    def __init__(self, to: str, beliefs: Sequence[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # spade does not annotate its constructor
        self.to, self.beliefs = to, beliefs

    async def run(self) -> None:
        """Send a message for each belief."""
        for belief in self.beliefs:
            await self.send(Message(to=self.to, body=belief, metadata={"performative": "BDI", "ilf_type": "tell"}))


async def one_day(server: XmppServer, folder: Path, *beliefs: str) -> None:
    """Start a new foreman with the file of yesterday's, and tell it something."""
    foreman = Foreman(server.jid("foreman"), folder / "plans.asl", folder / "foreman.db")
    ann = Agent(server.jid("ann"), "secret")
    await server.start(foreman)
    await server.start(ann)
    ann.add_behaviour(Tell(server.jid("foreman"), beliefs))
    if any(belief.startswith("asked") for belief in beliefs):
        async with asyncio.timeout(30):
            print(f"  the foreman says: {await foreman.said.get()}")
    for belief in beliefs:
        if belief.startswith("delivered"):
            await (await foreman.remembering.get())
    await server.stop(foreman)
    await server.stop(ann)


async def main() -> None:
    """Two days, each with a new agent."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plans.asl").write_text(PLANS, encoding="utf-8")
        async with xmpp_server() as server:
            print("Monday")
            await one_day(server, folder, "delivered(crate7, 4)", "delivered(crate8, 1)")
            print("Tuesday")
            await one_day(server, folder, "asked(crate7)")


if __name__ == "__main__":
    asyncio.run(main())
