"""Where the notes of a conversation are kept, and who takes part in it."""

from __future__ import annotations

import copy
import hashlib
import uuid
from typing import Final

from spade.message import Message

MESSAGE_ID: Final = "memory-message-id"
"""In the metadata of a message: what tells it from every other message. Behaviours that remember put it there, so that
all agents that share a memory keep one record of it."""
MAX_THREAD_CHARS: Final = 256
"""A longer thread is known by its hash: who writes may take any, and the session of a record has its limits."""


def sender_of(message: Message) -> str | None:
    """The bare JID of whoever sent a message: resources differ between servers and from one login to the next."""
    return str(message.sender.bare) or None


def identified(message: Message) -> Message:
    """A copy of a message with an id of its own, whatever id it has; in one process the sender holds the same object,
    and a reply begins as a copy of what it answers."""
    made = copy.copy(message)
    made._metadata = dict(message._metadata)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (only single keys are public)
    made.set_metadata(MESSAGE_ID, uuid.uuid4().hex)
    return made


def source_key_of(message: Message, author: str | None, session: str) -> str | None:
    """The source key of a message; `None` if it has no id. A reply that took over the metadata of what it answers has
    another author."""
    identity = message.get_metadata(MESSAGE_ID)
    if identity is None:
        return None
    return f"spade:{hashlib.sha256(chr(0).join((session, author or '', identity)).encode()).hexdigest()}"


def invented_thread(peer: str) -> str:
    """A thread for a message that has none. It is new every time, as in spade_llm, and names the peer, so that the
    memory goes on although the conversation does not."""
    return f"peer:{peer}:{uuid.uuid4().hex}"


def session_of(thread: str | None, peer: str | None) -> str:
    """Where the notes of a conversation are kept: its thread, or `peer:<bare JID>` where messages have none.

    A thread made by `invented_thread` for this very peer leads back to the peer, also after a restart. Nobody reaches
    another peer's notes by writing such a thread.
    """
    if thread is None or not thread.strip():
        return f"peer:{peer}"
    if peer is not None and thread.startswith(f"peer:{peer}:"):
        return f"peer:{peer}"
    if len(thread) > MAX_THREAD_CHARS:
        return f"thread:{hashlib.sha256(thread.encode()).hexdigest()}"
    return f"thread:{thread}" if thread.startswith(("peer:", "thread:")) else thread
