"""Recall for a prompt, whatever goes wrong: an agent answers without memories rather than not at all."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from memory_core import Recalled, RecallOptions
from memory_core.adapting import NOTHING, AgentMemory, Asked, block_of_turn, reason_for_log
from memory_spade.memory.deadline import Deadline

logger = logging.getLogger(__name__)


async def recalled(
    memory: Callable[[], Awaitable[AgentMemory]],
    query: str,
    options: RecallOptions,
    deadline: Deadline,
    peer: str | None,
    before: Sequence[str] = (),
) -> Recalled:
    """Recall memories for a prompt, after the profile of the peer of its thread.

    Args:
        before: What the peer said before in the same conversation, oldest first.

    Errors, also those of functions in the options and a deadline that is exceeded, are logged, and nothing is recalled.
    """

    async def recall() -> Recalled:
        return await block_of_turn(await memory(), Asked(query, before), options, owner=peer)

    try:
        return await deadline.read("recalling memories", recall)
    except Exception as error:  # noqa: BLE001  (a function of the application may raise anything)
        reason = reason_for_log(error)  # without the traceback, whose messages may quote
        logger.log(deadline.level, "an agent answers without its memory: %s", reason)
        return NOTHING
