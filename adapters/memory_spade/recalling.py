"""Recall for a prompt, whatever goes wrong: an agent answers without memories rather than not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from slixmpp import JID
from spade.message import Message

from memory_core import Recalled, RecallOptions
from memory_core.adapting import NOTHING, AgentMemory, Asked, block_of_turn
from memory_spade.memory.home import Home


class Remembering(Protocol):
    """The parts of an agent with the mixin that the mixin's modules need."""

    home: Home
    interaction_memory: Any
    agent_base_memory: Any
    recall_options: RecallOptions
    behaviours: list[Any]

    @property
    def address(self) -> str:
        """The agent's bare JID."""
        ...

    def peer_at(self, jid: JID) -> str | None:
        """See `MemoryMixin.peer_at`."""
        ...


@runtime_checkable
class Listening(Protocol):
    """The parts of a behaviour that remembers which an agent with a memory needs."""

    async def enqueue(self, message: Message) -> None:
        """Let the behaviour receive a message."""
        ...

    async def remember_waiting(self) -> None:
        """Remember the messages that wait to be received."""
        ...


async def recalled(
    memory: Callable[[], Awaitable[AgentMemory]],
    asked: Asked,
    agent: Remembering,
    peer: str | None,
) -> Recalled:
    """The memories that an agent recalls for its answer to a peer.

    Errors, also those of functions in the options and a deadline that is exceeded, are logged, and nothing is recalled.
    """
    deadline, options = agent.home.deadline, agent.recall_options

    async def recall() -> Recalled:
        return await block_of_turn(await memory(), asked, options, owner=peer)

    with deadline.spared("an agent answers without its memory", Exception):
        return await deadline.read("recalling memories", recall)
    return NOTHING
