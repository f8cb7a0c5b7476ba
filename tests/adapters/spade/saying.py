"""Agents that send messages as they are."""

from __future__ import annotations

from spade.agent import Agent
from spade.behaviour import OneShotBehaviour
from spade.message import Message


class Say(OneShotBehaviour):
    """Sends messages as they are."""

    def __init__(self, *messages: Message) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # spade's have no annotations
        self.messages = messages

    async def run(self) -> None:
        for message in self.messages:
            await self.send(message)


async def say(agent: Agent, *messages: Message) -> None:
    behaviour = Say(*messages)
    agent.add_behaviour(behaviour)
    await behaviour.join()


def message(to: str, body: str, thread: str | None = None, **metadata: str) -> Message:
    return Message(to=to, body=body, thread=thread, metadata=metadata)
