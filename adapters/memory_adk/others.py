"""The turns that other sessions have taken back: a rewind calls no plugin, so a session is asked before its memories
are shown.

What a rewind of any session has undone is not shown in another one. A session that has changed since it was last read
here is read; the messages that it has not stored yet are left to its own next turn, whose policy applies to them.
A session is its owner's: memories of a space are shown as they are, also if its owner has a session of the same name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Final

from memory_core import MemoryRecord, Recalled
from memory_core.adapting import AgentMemory, Asked, limits, one_line, reason_for_log

logger = logging.getLogger(__name__)

MAX_OTHERS: Final = 5
"""Most sessions that are asked for one search, those of the best hits."""

Read = Callable[[str], Awaitable[bool]]
"""Takes back what a session of the user has taken back; says whether it has changed since it was last read."""


async def current(
    memory: AgentMemory,
    question: Asked,
    recall: Callable[[Asked], Awaitable[Recalled]],
    running: str,
    read: Read,
    seconds: float = limits.RECALL_SECONDS / 2,
) -> Recalled:
    """Recall again until no session of what was recalled, up to five, has changed since it was read.

    Args:
        memory: The memory that is recalled from.
        question: It is asked again without the memories of sessions that did not answer in time.
        recall: Recalls for a question.
        running: The session that is not asked.
        read: Reads another session.
        seconds: The time that a search waits for all of them, beside the time that it takes itself.
    """
    asked, left = {running, None}, seconds
    unread = set[str | None]()

    def is_left_out(record: MemoryRecord) -> bool:
        is_unread = record.session in unread and memory.label_of(record) is None  # a space is another owner's
        return is_unread or question.shows(record)

    narrowed = replace(question, shows=is_left_out)
    while True:
        found = await recall(narrowed if unread else question)
        own = (hit.record.session for hit in found.hits if memory.label_of(hit.record) is None)
        names = [name for name in dict.fromkeys(own) if name not in asked][: MAX_OTHERS + 2 - len(asked)]
        if not names:
            return found
        asked.update(names)
        began = asyncio.get_running_loop().time()
        has_changed, late = await _ask([name for name in names if name], read, left)
        left = max(left - (asyncio.get_running_loop().time() - began), 0)
        unread.update(late)
        if not (late or has_changed):
            return found


async def _ask(names: Collection[str], read: Read, seconds: float) -> tuple[bool, Collection[str]]:
    """Read the sessions that have changed; return whether any has, and those that did not answer in time."""
    asking = {asyncio.ensure_future(read(name)): name for name in names}
    done, late = await asyncio.wait(asking, timeout=seconds)
    for task in late:
        task.cancel()
    failed = {task: error for task in done if (error := task.exception()) is not None}
    for task, error in failed.items():
        logger.warning("session %s cannot be read: %s", one_line(asking[task]), reason_for_log(error))
    if late:
        logger.warning("memories of %d sessions are left out: their sessions were not read in time", len(late))
    has_changed = any(task.result() for task in done if task not in failed)
    return has_changed, [asking[task] for task in (*late, *failed)]
