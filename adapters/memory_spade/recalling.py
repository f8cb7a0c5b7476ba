"""Recall for a prompt, whatever goes wrong: an agent answers without memories rather than not at all."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from memory_core import Recalled, RecallOptions
from memory_core.adapting import AgentMemory, cut_query, reason_for_log, recall_with, with_profile
from memory_spade.memory.deadline import Deadline

logger = logging.getLogger(__name__)

NOTHING: Final = Recalled("", (), ())


async def recalled(
    memory: Callable[[], Awaitable[AgentMemory]],
    query: str,
    options: RecallOptions,
    deadline: Deadline,
    peer: str | None,
) -> Recalled:
    """Recall memories for a prompt, after the profile of the peer of its thread.

    Errors, also those of functions in the options and a deadline that is exceeded, are logged, and nothing is recalled.
    """

    async def recall() -> Recalled:
        reached = await memory()
        found = await recall_with(reached, cut_query(query), options)
        return replace(found, text=await with_profile(reached, found.text, owner=peer))

    try:
        return await deadline.read("recalling memories", recall)
    except Exception as error:  # noqa: BLE001  (a function of the application may raise anything)
        reason = reason_for_log(error)  # without the traceback, whose messages may quote
        logger.error("an agent answers without its memory: %s", reason)  # noqa: TRY400
        return NOTHING
