"""The messages that a SPADE agent hears and says, told to its `Conversation`: one message is one record.

- Who said a message, the id of its stanza (in a room, the id that the room has given it) and its text tell it apart. A
  sender chooses ids, so nobody else's message has the same key, and one who uses an id again has said another text.
- A message without an id is aligned with what is stored, by its text and its time.
- Only its author corrects or retracts a message; in a room, the same nick with the same occupant id.
- A message was said when it arrived. What the agent's server or the room says of a delay counts only for the backlog of
  a login or a join, and not before the last stored message of its author: a peer could have written it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from weakref import WeakKeyDictionary

from spade.message import Message

from memory_core import BoundMemory, DataCondition, Draft, Json, MemoryCoreError, MemoryRecord, Patch, Where, utc_now
from memory_core.adapting import ANY_STATE, Conversations, limits, message_key
from memory_spade.carriable import carriable
from memory_spade.conversation import session_of_message
from memory_spade.stanzas import MESSAGE_ID, Arrival, arrival_of

FRAMEWORK: Final = "spade"
CONVERSATION_ID: Final = "conversation-id"
"""FIPA's metadata key for the conversation of a message."""
IDS: Final = "ids"
"""Key in a record's data for the ids of the stanza, by which corrections and retractions name it."""
OCCUPANT: Final = "occupant"
"""Key in a record's data for the room's id of who said it."""
STAMP: Final = "stamp"
"""Key in a record's data for when a delayed message was said, as it claims."""
_MAX_ID_CHARS: Final = 256
"""Longer ids are replaced by a hash, because senders choose them."""

_conversations: WeakKeyDictionary[Any, Conversations] = WeakKeyDictionary()
"""Of each open memory; all agents of a process that share it write one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A message of a conversation, taken from SPADE's object, which an agent of this process may change later."""

    draft: Draft
    id: str | None
    room: str | None
    """The session of the room that it was said in."""
    is_own: bool
    """True if the agent said it."""
    arrival: Arrival | None

    @property
    def is_retraction(self) -> bool:
        """True if it says nothing but that an earlier message is retracted."""
        return self.arrival is not None and self.arrival.retracts is not None


def told(message: Message, *, agent: str, peer: str | None, author: str | None, is_own: bool) -> Told | None:
    """The part of a message that a conversation is told; `None` if that is nothing. JIDs are bare."""
    arrival, text = arrival_of(message), message.body or ""
    is_retraction = arrival is not None and arrival.retracts is not None
    if (arrival is not None and arrival.is_error) or not (text.strip() or is_retraction):
        return None
    metadata: dict[str, str] = dict(message._metadata)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (only single keys are public)
    id = metadata.pop(MESSAGE_ID, None)  # noqa: A001  (the stanza's own word)
    session = session_of_message(message, message.thread or metadata.get(CONVERSATION_ID), peer)
    is_of_room = arrival is not None and arrival.is_of_room
    draft = Draft(
        text,
        role="assistant" if is_own else "user",
        kind="message",
        author=author,
        agent=agent,
        session=session,
        occurred_at=utc_now() if arrival is None else arrival.at,
        data=_data(metadata, None if is_of_room else str(message.to.bare), [id] if id else [], arrival),
    )
    return Told(draft=draft, id=id, room=session if is_of_room else None, is_own=is_own, arrival=arrival)


async def tell(memory: BoundMemory, said: Told) -> None:
    """Store a message, or correct or delete the one that it corrects or retracts; return when that is durable."""
    meant = await _meant(memory, said)
    session = (meant.session if meant else None) or said.draft.session or ""
    conversation = _conversations_of(memory).of(memory, session)
    if meant is not None and meant.source_key is not None:
        if said.is_retraction:
            await conversation.delete([meant.source_key])
        else:
            await conversation.edit(meant.source_key, said.draft.text)
    elif not said.is_retraction:
        key = _key(memory, said)
        await conversation.remember([replace(said.draft, source_key=key, occurred_at=await _said_at(memory, said))])
    # The caller has a deadline of its own, and a late write still happens.
    await conversation.settled(limits.BACKGROUND_SECONDS)
    if said.is_own and said.room is not None and said.id is not None:
        await _note_as_own(memory, _key(memory, said))


def _data(
    metadata: dict[str, str], receiver: str | None, ids: Sequence[str], arrival: Arrival | None
) -> dict[str, Json]:
    data: dict[str, Json] = {"metadata": dict(metadata)} if metadata else {}
    if receiver:
        data["receiver"] = receiver
    if named := {_short(id): True for id in (ids if arrival is None else _names(arrival))}:  # noqa: A001
        data[IDS] = named
    if arrival is not None and arrival.stamp is not None:
        data[STAMP] = arrival.stamp.astimezone(UTC).isoformat()
    if arrival is not None and arrival.occupant is not None:
        data[OCCUPANT] = _short(arrival.occupant)
    return data


def _names(arrival: Arrival) -> Sequence[str]:
    """The ids of a message; a correction that becomes a message, because the corrected one is not stored, has its id,
    too."""
    return arrival.ids if arrival.corrects is None else [*arrival.ids, arrival.corrects]


def _short(id: str) -> str:  # noqa: A002  (the stanza's own word)
    return id if len(id) <= _MAX_ID_CHARS else hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()


def _conversations_of(memory: BoundMemory) -> Conversations:
    known = _conversations.get(memory.memory)
    return known or _conversations.setdefault(memory.memory, Conversations(FRAMEWORK, "SPADE's agents"))


def _key(memory: BoundMemory, said: Told) -> str | None:
    """The key of a message; who sends it and who receives it have the same, although each names the session after the
    other. XML changes the ends of lines and drops characters."""
    if said.id is None:
        return None
    words = " ".join(carriable(said.draft.text).split())
    text = hashlib.sha256(words.encode()).hexdigest()
    return message_key(memory.own.scope, FRAMEWORK, said.room or "", said.draft.author or "", said.id, text)


async def _said_at(memory: BoundMemory, said: Told) -> datetime | None:
    """The time at which a message was said; see the module."""
    arrival, arrived = said.arrival, said.draft.occurred_at
    if arrival is None or arrival.stamp is None or not arrival.is_backlog:
        return arrived
    with suppress(MemoryCoreError):  # the arrival is the best that is known
        last = await _last_of_author(memory, said)
        if last is not None and last.occurred_at <= arrival.stamp <= arrival.at:
            return arrival.stamp
    return arrived


async def _meant(memory: BoundMemory, said: Told) -> MemoryRecord | None:
    """The stored message that is corrected or retracted, if its author does that."""
    meant = None if said.arrival is None else said.arrival.corrects or said.arrival.retracts
    if meant is None:
        return None
    with suppress(MemoryCoreError):  # a correction is remembered as a message then
        return await _last_of_author(memory, said, DataCondition((IDS, _short(meant)), "exists", value=True))
    return None


async def _last_of_author(memory: BoundMemory, said: Told, *conditions: DataCondition) -> MemoryRecord | None:
    """The newest stored message of who says this one; in a room the nick says it, and the room's id of who has it."""
    same = () if said.room is None else (_same_occupant(said),)
    where = Where(kinds=("message",), author=said.draft.author, session=said.room, matching=(*same, *conditions))
    page = await memory.own.list(where=where, order="newest", limit=1)
    return page.records[0] if page.records else None


def _same_occupant(said: Told) -> DataCondition:
    occupant = said.draft.data.get(OCCUPANT)
    return (
        DataCondition((OCCUPANT,), "exists", value=False)
        if occupant is None
        else DataCondition((OCCUPANT,), "eq", occupant)
    )


async def _note_as_own(memory: BoundMemory, key: str | None) -> None:
    """A message of an agent in a room comes back to all who hear it; the view of who said it is the right one."""
    page = await memory.own.list(where=replace(ANY_STATE, source_keys=(key,) if key else ()), limit=1)
    for record in page.records:
        if record.role != "assistant":
            await memory.own.update(record.id, Patch(role="assistant"))
