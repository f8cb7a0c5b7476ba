"""Four agents with a blackboard: contractors bid in a FIPA contract net, and each knows what the others have learnt.

What an agent hears, says and stores stays in its own memory. What it posts on the board, the others recall. There is no
language model.
"""

from __future__ import annotations

import asyncio

from spade.agent import Agent
from spade.behaviour import OneShotBehaviour
from spade.message import Message
from spade.template import Template

from memory_core import BoundMemory, Draft, Memory, RecallOptions, Where
from memory_spade import MemoryBehaviour, MemoryMixin
from memory_spade.testing.xmpp import XmppServer, xmpp_server

PROTOCOL = {"protocol": "fipa-contract-net", "ontology": "harbour"}
LESSON = "Pier four carries five tons only: come with the small crane"
SECONDS = 30.0


class Member(MemoryMixin, Agent):
    """An agent with its own memory, and the board of the team."""


class Bidding(MemoryBehaviour):
    """A contractor: proposes a price, and does one contract."""

    def __init__(self, price: int) -> None:
        super().__init__()
        self.price, self.is_busy = price, False

    async def run(self) -> None:
        """Answer a message of the manager."""
        message = await self.receive(timeout=10)
        if message is None:
            return
        match message.get_metadata("performative"):
            case "cfp":
                await self.propose(message)
            case "accept-proposal":
                await self.work(message)
            case _:
                pass

    async def propose(self, call: Message) -> None:
        """Propose a price and a crane: the small one if somebody has learnt that it is needed there."""
        if self.is_busy:
            await self.send(reply_to(call, "refuse", "I am busy"))
            return
        crane = "large"
        for hit in await self.memory.search(str(call.body), where=Where(kinds=["fact"])):
            if "small crane" in hit.record.text:
                crane = f"small, as {hit.record.author} says on the {self.memory.space_of(hit.record)}"
        await self.send(reply_to(call, "propose", f"{self.price} euros (crane: {crane})"))

    async def work(self, contract: Message) -> None:
        """Do the contract, and post on the board what the others should know."""
        self.is_busy = True
        if "small" not in str(contract.body):
            lesson = Draft(LESSON, kind="fact", author=self.agent.address)
            await self.memory.add(lesson, space="board")
        await self.send(reply_to(contract, "inform", "done"))


class Contracting(MemoryBehaviour, OneShotBehaviour):
    """The manager of one contract: calls for proposals, and accepts the cheapest."""

    def __init__(self, contractors: list[str], number: str, task: str) -> None:
        super().__init__()
        self.contractors, self.number, self.task = contractors, number, task

    async def run(self) -> None:
        """Run the protocol once."""
        print(f"Contract {self.number}: {self.task}")
        metadata = {**PROTOCOL, "performative": "cfp", "conversation-id": self.number}
        for contractor in self.contractors:
            await self.send(Message(to=contractor, body=self.task, metadata=metadata))
        answers = [await self.answer() for _ in self.contractors]
        for answer in sorted(answers, key=name_of):
            print(f"  {name_of(answer)} {answer.get_metadata('performative')}: {answer.body}")
        proposals = [answer for answer in answers if answer.get_metadata("performative") == "propose"]
        best = min(proposals, key=lambda proposal: int(str(proposal.body).split()[0]))
        for proposal in proposals:
            performative = "accept-proposal" if proposal is best else "reject-proposal"
            await self.send(reply_to(proposal, performative, proposal.body))
        done = await self.answer()
        print(f"  {name_of(done)} {done.get_metadata('performative')}: {done.body}")

    async def answer(self) -> Message:
        """The next message of a contractor."""
        message = await self.receive(timeout=SECONDS)
        if message is None:
            raise TimeoutError(f"a contractor did not answer within {SECONDS:.0f} seconds")
        return message


def reply_to(message: Message, performative: str, body: str | None) -> Message:
    """A reply in the same conversation."""
    reply = message.make_reply()
    reply.set_metadata("performative", performative)
    reply.body = body
    return reply


def name_of(message: Message) -> str:
    """The name of the agent that sent a message."""
    return str(message.sender.local)


async def contract(manager: Member, contractors: list[str], number: str, task: str) -> None:
    """Let the manager give one contract."""
    contracting = Contracting(contractors, number, task)
    manager.add_behaviour(contracting, Template(metadata={**PROTOCOL, "conversation-id": number}))
    await contracting.join()


async def team(server: XmppServer, memory: Memory, board: BoundMemory) -> tuple[Member, list[Member]]:
    """Start the manager, which may read the board, and three contractors, which may also write to it."""
    reading = memory.bind().sharing({"board": board})
    manager = Member(server.jid("manager"), "secret", memory=reading)
    contractors: list[Member] = []
    for name, price in (("anton", 45), ("berta", 40), ("clara", 50)):
        writing = memory.bind().sharing({"board": board}, writable=["board"])
        member = Member(server.jid(name), "secret", memory=writing)
        await member.memory.add(Draft(f"My lowest price is {price - 10} euros", kind="fact", author=member.address))
        member.add_behaviour(Bidding(price), Template(metadata=PROTOCOL))
        contractors.append(member)
    for agent in (manager, *contractors):
        await server.start(agent)
    return manager, contractors


async def two_contracts(server: XmppServer) -> None:
    """Berta learns something at the first contract; Anton uses it for his proposal at the second."""
    async with Memory(":memory:") as memory:
        manager, contractors = await team(server, memory, memory.bind(app="harbour", user="team:harbour"))
        addresses = [contractor.address for contractor in contractors]
        await contract(manager, addresses, "c-1", "unload crates at pier four")
        await contract(manager, addresses, "c-2", "unload machines at pier four")
        for agent in (contractors[0], manager):
            print(f"What {agent.name} can recall about prices and cranes:")
            recalled = await agent.memory.recall(
                "lowest price, crane", RecallOptions(where=Where(kinds=["fact"]), floor=False)
            )
            for hit in recalled.hits:
                print(f"  [{agent.memory.space_of(hit.record)}] {hit.record.author}: {hit.record.text}")
        for agent in (manager, *contractors):
            await server.stop(agent)


async def main() -> None:
    """Run it on a server of its own."""
    async with xmpp_server() as server:
        await two_contracts(server)


if __name__ == "__main__":
    asyncio.run(main())
