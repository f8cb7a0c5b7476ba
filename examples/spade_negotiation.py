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
CLOSE_ENOUGH = 5.0


class Trader(MemoryMixin, Agent):
    """An agent with its own memory file."""

    def __init__(self, jid: str, memory: Path, opening: float, partner: str = "") -> None:
        super().__init__(jid, "secret", memory=memory)
        self.opening, self.partner = opening, partner
        self.bargain = Bargain()

    async def setup(self) -> None:
        """Listen to this negotiation only."""
        self.add_behaviour(self.bargain, Template(metadata=NEGOTIATION))


class Bargain(MemoryBehaviour):
    """Offers a price halfway between its own and the other side's last one, from today or an earlier day."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = asyncio.Event()

    async def on_start(self) -> None:
        """The trader that has a partner makes the first offer of the day."""
        if self.agent.partner:
            await self.say("propose", await self.next_price(self.agent.partner), self.agent.partner)

    async def run(self) -> None:
        """Answer the first offer of the day: accept it if it is close to the own next one, else make that one."""
        message = await self.receive(timeout=10)
        if message is None:
            return
        partner = str(message.sender.bare)
        if not self.agent.partner:
            price, offered = await self.next_price(partner), price_in(str(message.body))
            if abs(price - offered) <= CLOSE_ENOUGH:
                await self.say("accept-proposal", offered, partner)
            else:
                await self.say("propose", price, partner)
        self.is_over.set()

    async def say(self, performative: str, price: float, to: str) -> None:
        """Send a message of the negotiation."""
        print(f"  {self.agent.name:6} {performative} {price:.2f}")
        await self.send(Message(to=to, body=f"price {price}", metadata={**NEGOTIATION, "performative": performative}))

    async def next_price(self, partner: str) -> float:
        """The opening price on the first day, then the middle of both sides' last offers."""
        own, theirs = await self.last(self.agent.address), await self.last(partner)
        return self.agent.opening if own is None or theirs is None else (own + theirs) / 2

    async def last(self, author: str) -> float | None:
        """The last price that an author proposed in this negotiation."""
        proposed = {**NEGOTIATION, "performative": "propose"}
        matching = [DataCondition(("metadata", key), "eq", value) for key, value in proposed.items()]
        said = await self.memory.list(where=Where(author=author, matching=matching), limit=1)
        return price_in(said.records[0].text) if said.records else None


def price_in(text: str) -> float:
    """The price that a message names."""
    return float(text.split()[1])


async def one_day(server: XmppServer, folder: Path) -> None:
    """Start both agents with their files only; the buyer makes an offer, and the seller answers it."""
    seller = Trader(server.jid("seller"), folder / "seller.db", opening=100.0)
    buyer = Trader(server.jid("buyer"), folder / "buyer.db", opening=60.0, partner=server.jid("seller"))
    for trader in (seller, buyer):
        await server.start(trader)
    async with asyncio.timeout(30):
        await buyer.bargain.is_over.wait()
    for trader in (buyer, seller):
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
