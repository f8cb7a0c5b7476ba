"""The records of messages: one for each message, however many behaviours, agents and copies it passes through."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final
from weakref import WeakValueDictionary

from memory_core import BoundMemory, ConflictError, Draft, Json, MemoryRecord, Patch, Where

RECEIVERS: Final = "receivers"
"""Key in a record's data: the bare JID of every receiver of the message, with the id of the copy it received."""
COPIES_WITHIN: Final = timedelta(minutes=1)
"""Messages are copies of one broadcast only if they are sent within this time."""
_MOST_COPIES: Final = 50
"""Most recent messages of an author in a conversation that may be the same broadcast."""

_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


async def keep(memory: BoundMemory, draft: Draft, *, receiver: str, message_id: str) -> None:
    """Store a message, or note the receiver on its record if another behaviour or agent has stored it already.

    A message is recognised by its author (a nick in a room), text and id. Copies of a broadcast have different ids and
    receivers; they have their author, text, metadata and conversation in common. A message that reaches the same
    receiver again with another id was said again and gets a record of its own.

    Args:
        memory: Where to store it; several agents may share it.
        draft: The message as a record, with its time.
        receiver: Bare JID of the agent it was sent to.
        message_id: Id of the message; that of a copy is different.
    """
    bounds = (memory.scope.agent, memory.scope.collection)
    room = draft.session if (draft.session or "").startswith("room:") else None
    key = "spade:" + _digest(*bounds, room, draft.author, draft.text, message_id)
    lock = _locks.setdefault(f"{id(asyncio.get_running_loop())}:{_digest(draft.author, draft.text)}", asyncio.Lock())
    async with lock:  # agents of one process hear a broadcast at the same moment
        known = await _by_key(memory, key) or await _copy(memory, draft, receiver, message_id)
        if known is None:
            data: dict[str, Json] = {**draft.data, RECEIVERS: {receiver: message_id}}
            await memory.add_many([replace(draft, source_key=key, data=data)], embed="later")
        else:
            await _note(memory, known, draft, receiver, message_id)


async def _by_key(memory: BoundMemory, key: str) -> MemoryRecord | None:
    page = await memory.list(where=Where(source_keys=(key,), states=("active", "compacted", "archived")), limit=1)
    return page.records[0] if page.records else None


async def _copy(memory: BoundMemory, draft: Draft, receiver: str, message_id: str) -> MemoryRecord | None:
    """The record of another copy of the same broadcast."""
    since = None if draft.occurred_at is None else draft.occurred_at - COPIES_WITHIN
    where = Where(kinds=(draft.kind,), session=draft.session, author=draft.author, since=since)
    page = await memory.list(where=where, limit=_MOST_COPIES)
    metadata = draft.data.get("metadata")
    equal = [each for each in page.records if each.text == draft.text and each.data.get("metadata") == metadata]
    known = [record for record in equal if _receivers(record).get(receiver) == message_id]
    missing = [record for record in reversed(equal) if receiver not in _receivers(record)]
    # The oldest that misses it, because a receiver hears the messages of a sender in order.
    return next(iter(known or missing), None)


async def _note(memory: BoundMemory, known: MemoryRecord, draft: Draft, receiver: str, message_id: str) -> None:
    """Note a receiver on a record; the sender's view of the role is the right one."""
    record: MemoryRecord | None = known
    while record is not None:
        receivers = {receiver: message_id, **_receivers(record)}
        role = "assistant" if draft.role == "assistant" else record.role
        if len(receivers) == len(_receivers(record)) and role == record.role:
            return
        patch = Patch(data={**record.data, RECEIVERS: receivers}, role=role)
        try:
            await memory.update(record.id, patch, expected_version=record.version)
        except ConflictError:  # another process has noted another receiver
            record = await memory.get(record.id)
        else:
            return


def _receivers(record: MemoryRecord) -> Mapping[str, Json]:
    noted = record.data.get(RECEIVERS)
    return noted if isinstance(noted, Mapping) else {}


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(chr(0).join(part or "" for part in parts).encode(errors="surrogatepass")).hexdigest()
