"""The session key and the participants of a conversation."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import Final

from spade.message import Message

from memory_spade.stanzas import is_of_room

MAX_THREAD_CHARS: Final = 256
"""Longer threads are replaced by a hash: senders choose threads freely, but the session of a record has a limit."""
_PREFIXES: Final = ("peer:", "room:", "thread:", "through:")
_INVENTED: Final = re.compile(r"peer:(?P<peer>.+):[0-9a-f]{32}", re.DOTALL)


def sender_of(message: Message) -> str | None:
    """The bare JID of the sender of a message, or of the room it was said in; the resource may change with every
    login."""
    return str(message.sender.bare) or None


def author_of(message: Message, peer: str | None) -> str | None:
    """The speaker of a message: a nick in a room (in full if it looks like a JID), otherwise the peer."""
    if not is_of_room(message):
        return peer
    nick = str(message.sender.resource)
    return str(message.sender) if "@" in nick or not nick else nick


def invented_thread(peer: str) -> str:
    """Create a thread for a message without one. It is new every time, as in spade_llm, but names the peer, so that the
    memory continues although the conversation does not."""
    return f"peer:{peer}:{uuid.uuid4().hex}"


def session_of(thread: str | None, peer: str | None) -> str:
    """The key of a conversation's notes: its thread, or `peer:<bare JID>` if its messages have none.

    A thread that `invented_thread` created for this peer maps back to the peer, also after a restart. One that was
    created for somebody else, whose messages this peer passes on, maps to both. Neither gives access to the notes of
    another peer.
    """
    if thread is None or not thread.strip():
        return f"peer:{peer}"
    invented = None if peer is None else _INVENTED.fullmatch(thread)
    if invented is not None and invented["peer"] == peer:
        return f"peer:{peer}"
    session = f"thread:{thread}" if thread.startswith(_PREFIXES) else thread
    if invented is not None:
        session = f"through:{json.dumps([peer, invented['peer']], ensure_ascii=False)}"
    if len(session) > MAX_THREAD_CHARS:
        return f"thread:{hashlib.sha256(session.encode()).hexdigest()}"
    return session


def session_of_message(message: Message, thread: str | None, peer: str | None) -> str:
    """The session of a message: one for everything said in a room, otherwise that of its thread or peer."""
    if is_of_room(message):
        return f"room:{peer}"
    return session_of(thread, peer)
