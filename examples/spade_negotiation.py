"""Two plain SPADE agents negotiate over three days in FIPA messages. Each remembers its own side across restarts.

There is no language model: an agent derives its offers from its memory.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from spade.agent import Agent
from spade.message import Message
from spade.template import Template

from memory_core import DataCondition, Where
from memory_spade import MemoryBehaviour, MemoryMixin
from memory_spade.testing.xmpp import XmppServer, xmpp_server

NEGOTIATION = {"protocol": "bargaining", "ontology": "harbour", "conversation-id": "crates-7"}
"""Metadata of every message; a trader may be in several negotiations with the same partner."""


class Trader(MemoryMixin, Agent):
    """An agent with its own memory file."""


class Bargain(MemoryBehaviour):
    """Offers a price halfway between its own and the other side's last one, from today or an earlier day."""

    def __init__(self, trader: Trader, opening: float, *, answers: bool) -> None:
        super().__init__()
        self.trader, self.opening, self.answers = trader, opening, answers
        self.heard = asyncio.Event()

    async def offer(self, to: str) -> None:
        """Make an offer, based on the messages of all days."""
        own, theirs = await self.last(self.trader.address), await self.last(to)
        price = self.opening if own is None or theirs is None else (own + theirs) / 2
        print(f"  {self.trader.name:6} offers {price:6.2f}")
        await self.send(Message(to=to, body=f"price {price}", metadata={**NEGOTIATION, "performative": "propose"}))

    async def last(self, author: str) -> float | None:
        """The last price that an author named in this negotiation."""
        proposed = {**NEGOTIATION, "performative": "propose"}
        matching = [DataCondition(("metadata", key), "eq", value) for key, value in proposed.items()]
        said = await self.memory.list(where=Where(author=author, matching=matching), limit=1)
        return float(said.records[0].text.split()[1]) if said.records else None

    async def run(self) -> None:
        """Receive an offer; the seller answers it with one of its own."""
        message = await self.receive(timeout=10)
        if message is not None:
            if self.answers:
                await self.offer(str(message.sender.bare))
            self.heard.set()


async def one_day(server: XmppServer, folder: Path) -> None:
    """Start both agents with their files only; each makes one offer."""
    bargains: list[Bargain] = []
    traders: list[Trader] = []
    for name, opening in (("buyer", 60.0), ("seller", 100.0)):
        trader = Trader(server.jid(name), "secret", memory=folder / f"{name}.db")
        bargains.append(Bargain(trader, opening, answers=name == "seller"))
        trader.add_behaviour(bargains[-1], Template(metadata={**NEGOTIATION, "performative": "propose"}))
        await server.start(trader)
        traders.append(trader)
    await bargains[0].offer(server.jid("seller"))
    await asyncio.wait_for(bargains[0].heard.wait(), 30)
    for trader in traders:
        await server.stop(trader)


async def main() -> None:
    """Three days, each with fresh agents."""
    with tempfile.TemporaryDirectory() as folder:
        async with xmpp_server() as server:
            for day in ("Monday", "Tuesday", "Wednesday"):
                print(day)
                await one_day(server, Path(folder))


if __name__ == "__main__":
    asyncio.run(main())
