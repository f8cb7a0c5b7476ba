"""Recall for a prompt, whatever goes wrong: an agent answers without memories rather than not at all."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from memory_core import Recalled, RecallOptions
from memory_core.adapting import NOTHING, AgentMemory, Asked, block_for, reason_for_log, with_profile
from memory_spade.memory.deadline import Deadline
from memory_spade.memory.exceptions import MemoryTimeoutError

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
        reached = await memory()
        found = await block_for(reached, Asked(query, before), options)
        return replace(found, text=await with_profile(reached, found.text, owner=peer))

    try:
        return await deadline.read("recalling memories", recall)
    except MemoryTimeoutError:  # logged
        return NOTHING
    except Exception as error:  # noqa: BLE001  (a function of the application may raise anything)
        reason = reason_for_log(error)  # without the traceback, whose messages may quote
        logger.log(deadline.level, "an agent answers without its memory: %s", reason)
        return NOTHING
