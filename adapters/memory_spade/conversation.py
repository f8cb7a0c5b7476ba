"""Which conversation, and with whom, the code that is running belongs to."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

MAX_THREADS: Final = 10_000
"""So many conversations are remembered with their peer; the longest silent ones go first."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message being answered by an agent."""

    agent: str
    """Bare JID of the agent."""
    conversation_id: str
    """spade_llm's name of the conversation: the thread."""
    session: str
    """Where notes of the conversation are kept: the thread, or `peer:<bare JID>` where messages have none."""
    peer: str | None
    """Bare JID of the sender; `None` when it is not known for sure."""
    recalled: dict[str, str] = field(default_factory=dict[str, str])
    """What was put into the prompt for a message, so that the calls of a tool loop recall once."""


_running: ContextVar[Turn | None] = ContextVar("memory_spade_turn", default=None)


def enter(turn: Turn) -> None:
    """From here on, the current task, the tasks and the threads it starts belong to `turn`."""
    _running.set(turn)


def running(agent: str) -> Turn | None:
    """The turn of this agent that the current task belongs to."""
    turn = _running.get()
    return turn if turn is not None and turn.agent == agent else None


def invented_thread(peer: str) -> str:
    """A thread for a message that has none. It is new every time, as in spade_llm, and names the peer, so that the
    memory goes on although the conversation does not."""
    return f"peer:{peer}:{uuid.uuid4().hex}"


def session_of(thread: str | None, peer: str | None) -> str:
    """Where the notes of a conversation are kept.

    A thread made by `invented_thread` for this very peer leads back to the peer, also after a restart. Nobody reaches
    another peer's notes by writing such a thread.
    """
    if thread is None:
        return f"peer:{peer}"
    if peer is not None and thread.startswith(f"peer:{peer}:"):
        return f"peer:{peer}"
    return f"thread:{thread}" if thread.startswith(("peer:", "thread:")) else thread


class Threads:
    """Who writes in which thread, as far as messages have shown it."""

    def __init__(self) -> None:
        self._peers: OrderedDict[str, str | None] = OrderedDict()

    def saw(self, thread: str, peer: str) -> None:
        """Take note of the sender of a message."""
        known = self._peers.pop(thread, peer)
        self._peers[thread] = peer if known == peer else None
        if len(self._peers) > MAX_THREADS:
            self._peers.popitem(last=False)

    def peer_of(self, thread: str) -> str | None:
        """The one peer who writes there; `None` if there are several or it is forgotten."""
        return self._peers.get(thread)
