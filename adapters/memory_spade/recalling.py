"""Recall for a prompt, whatever goes wrong: an agent answers without memories rather than not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from memory_core import Recalled
from memory_core.adapting import NOTHING, AgentMemory, Asked, block_of_turn

if TYPE_CHECKING:
    from memory_spade.mixin import MemoryMixin


async def recalled(
    memory: Callable[[], Awaitable[AgentMemory]],
    asked: Asked,
    agent: MemoryMixin,
    peer: str | None,
    *,
    most: int | None = None,
) -> Recalled:
    """What an agent recalls for its answer to a peer.

    Errors, also those of functions in the options and a deadline that is exceeded, are logged, and nothing is recalled.
    """
    deadline = agent.home.deadline

    async def recall() -> Recalled:
        return await block_of_turn(await memory(), asked, agent.recall_options, most=most, owner=peer)

    with deadline.spared("an agent answers without its memory", Exception):
        return await deadline.read("recalling memories", recall)
    return NOTHING
