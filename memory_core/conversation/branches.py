"""Messages that a person leaves, comes back to, or changes: what that does to what is stored of them.

A record that is left keeps everything, and the store leaves what was made of its words with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from memory_core.conversation.messages.message_to_draft import Message, message_drafts
from memory_core.conversation.messages.remember import reachable
from memory_core.errors import RecordNotFoundError
from memory_core.every_record import every_record
from memory_core.handle import BoundMemory, known
from memory_core.models import Known, MemoryRecord, Patch
from memory_core.values.limits import MAX_LISTED
from memory_core.where.where import ANY_STATE

_AT_ONCE: Final = 50
"""Records that are changed at the same time; the store writes them together."""


async def stored(handle: BoundMemory, session: str, keys: Sequence[str]) -> list[Known]:
    """The stored messages of a session with these keys, any number of them."""
    conversation = handle.bind(session=session)
    parts = [keys[start : start + MAX_LISTED] for start in range(0, len(keys), MAX_LISTED)]
    return [one for part in parts for one in await known(conversation, part)]


async def leave(handle: BoundMemory, session: str, keys: Sequence[str]) -> None:
    """Leave the messages with these keys; the store leaves what was made of their words."""
    shown = [one.id for one in await stored(handle, session, keys) if not one.left]
    await _set_left(handle, shown, left=True)


async def resume(handle: BoundMemory, session: str, keys: Sequence[str]) -> None:
    """Take back that the messages with these keys were left."""
    left = await every_record(handle, replace(ANY_STATE, session=session, left=True))
    resumed = frozenset(keys)
    await _set_left(handle, [record.id for record in left if record.source_key in resumed], left=False)


async def show(handle: BoundMemory, records: Sequence[MemoryRecord]) -> None:
    """Take back that some of these messages were left."""
    await _set_left(handle, [record.id for record in records if record.left], left=False)


async def follow_branch(handle: BoundMemory, session: str, visible: Sequence[Message], left: Sequence[Message]) -> None:
    """Leave the messages of branches that a conversation has left, and resume those that it shows again.

    Args:
        handle: The memory that they were remembered in, by `BoundMemory.remember`.
        session: The conversation.
        visible: The messages with ids on the branch that is visible.
        left: The messages with ids on other branches.
    """
    await leave(handle.own, session, _keys(handle, session, left))
    await resume(handle.own, session, _keys(handle, session, visible))


async def edit(handle: BoundMemory, session: str, key: str, text: str) -> None:
    """Give a message another text; the store leaves what was made of the earlier one."""
    for one in await stored(handle, session, [key]):
        record = await handle.get(one.id)
        if record is not None and record.text != text:
            await handle.update(one.id, Patch(text=text))


def _keys(handle: BoundMemory, session: str, messages: Sequence[Message]) -> list[str]:
    drafts = reachable(handle.scope, message_drafts(messages, session=session, data={}))
    return [draft.source_key for draft in drafts if draft.source_key is not None]


async def _set_left(handle: BoundMemory, ids: Sequence[str], *, left: bool) -> None:
    async def set_one(id: str) -> None:  # noqa: A002  (the record's own word)
        with suppress(RecordNotFoundError):  # deleted meanwhile, which says more
            await handle.update(id, Patch(left=left))

    for start in range(0, len(ids), _AT_ONCE):
        await asyncio.gather(*map(set_one, ids[start : start + _AT_ONCE]))
