"""The session key and the participants of a conversation."""

from __future__ import annotations

import copy
import hashlib
import uuid
from datetime import UTC, datetime
from typing import Any, Final

from spade.message import Message

MESSAGE_ID: Final = "memory-message-id"
"""Metadata key of a message for an id that is unique across all messages. Behaviours that remember set it, so that all
agents that share a memory store only one record of the message. A message from elsewhere has the id of its stanza."""
MAX_THREAD_CHARS: Final = 256
"""Longer threads are replaced by a hash: senders choose threads freely, but the session of a record has a limit."""
_PREFIXES: Final = ("peer:", "room:", "thread:")
_DELAY: Final = "{urn:xmpp:delay}delay"
_STANZA_ID: Final = "{urn:xmpp:sid:0}stanza-id"


class Received(Message):
    """A message from the server, with what SPADE's class leaves out: whether it was said in a room or is an error that
    quotes an undelivered message, and when it was said."""

    is_of_room: bool = False
    is_error: bool = False
    said_at: datetime | None = None


def received(stanza: Any) -> Message:  # slixmpp's stanzas have no useful types
    """Convert a stanza as SPADE does, and keep its id, its time if it was delayed, and whether it is of a room."""
    message: Any = Received.from_node(stanza)
    message.is_of_room, message.is_error = stanza["type"] == "groupchat", stanza["type"] == "error"
    delay = stanza.xml.find(_DELAY)
    message.said_at = None if delay is None else _moment(delay.get("stamp"))
    by_room = stanza.xml.find(_STANZA_ID) if message.is_of_room else None
    stanza_id = stanza["id"] or ("" if by_room is None else by_room.get("id", ""))
    if stanza_id and not is_identified(message):
        message.set_metadata(MESSAGE_ID, stanza_id)
    return message  # type: ignore[no-any-return]


def _moment(stamp: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo and moment <= datetime.now(UTC) else None


def sender_of(message: Message) -> str | None:
    """The bare JID of the sender of a message, or of the room it was said in; the resource may change with every
    login."""
    return str(message.sender.bare) or None


def author_of(message: Message, peer: str | None) -> str | None:
    """Who said a message: a nick in a room (in full if it looks like a JID), otherwise the peer."""
    if not is_of_room(message):
        return peer
    nick = str(message.sender.resource)
    return str(message.sender) if "@" in nick or not nick else nick


def is_of_room(message: Message) -> bool:
    """Whether a message was said in a room."""
    return isinstance(message, Received) and message.is_of_room


def identified(message: Message, sender: str | None) -> Message:
    """Copy a message and give the copy a new id. A copy is needed because a sender in the same process uses the same
    object, and a new id because a reply starts as a copy of the message it answers."""
    made = copy.copy(message)
    made._metadata = dict(message._metadata)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (only single keys are public)
    made.set_metadata(MESSAGE_ID, f"{sender}#{uuid.uuid4().hex}")
    return made


def is_identified(message: Message) -> bool:
    """Whether a message has an id that its sender made; a reply of a plain agent has the id of what it answers."""
    return (message.get_metadata(MESSAGE_ID) or "").startswith(f"{sender_of(message)}#")


def invented_thread(peer: str) -> str:
    """Create a thread for a message without one. It is new every time, as in spade_llm, but names the peer, so that the
    memory continues although the conversation does not."""
    return f"peer:{peer}:{uuid.uuid4().hex}"


def session_of(thread: str | None, peer: str | None) -> str:
    """The key of a conversation's notes: its thread, or `peer:<bare JID>` if its messages have none.

    A thread that `invented_thread` created for this peer maps back to the peer, also after a restart. Such a thread
    gives no access to the notes of another peer.
    """
    if thread is None or not thread.strip():
        return f"peer:{peer}"
    if peer is not None and thread.startswith(f"peer:{peer}:"):
        return f"peer:{peer}"
    if len(thread) > MAX_THREAD_CHARS:
        return f"thread:{hashlib.sha256(thread.encode()).hexdigest()}"
    return f"thread:{thread}" if thread.startswith(_PREFIXES) else thread


def session_of_message(message: Message, thread: str | None, peer: str | None) -> str:
    """The session of a message: one for everything said in a room, otherwise that of its thread or peer."""
    if is_of_room(message):
        return f"room:{peer}"
    return session_of(thread, peer)
