"""The session key and the participants of a conversation."""

from __future__ import annotations

import copy
import hashlib
import uuid
from typing import Final

from spade.message import Message

MESSAGE_ID: Final = "memory-message-id"
"""Metadata key of a message for an id that is unique across all messages. Behaviours that remember set it, so that all
agents that share a memory store only one record of the message."""
MAX_THREAD_CHARS: Final = 256
"""Longer threads are replaced by a hash: senders choose threads freely, but the session of a record has a limit."""


def sender_of(message: Message) -> str | None:
    """The bare JID of the sender of a message; the resource may change with every login."""
    return str(message.sender.bare) or None


def identified(message: Message) -> Message:
    """Copy a message and give the copy a new id. A copy is needed because a sender in the same process uses the same
    object, and a new id because a reply starts as a copy of the message it answers."""
    made = copy.copy(message)
    made._metadata = dict(message._metadata)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (only single keys are public)
    made.set_metadata(MESSAGE_ID, uuid.uuid4().hex)
    return made


def source_key_of(message: Message, author: str | None, session: str) -> str | None:
    """The source key of a message; `None` if it has no id. The key includes the author, because a reply may have copied
    the metadata of the message it answers."""
    identity = message.get_metadata(MESSAGE_ID)
    if identity is None:
        return None
    return f"spade:{hashlib.sha256(chr(0).join((session, author or '', identity)).encode()).hexdigest()}"


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
    return f"thread:{thread}" if thread.startswith(("peer:", "thread:")) else thread
