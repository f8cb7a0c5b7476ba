"""Where an agent's memories live, and whose memory a conversation reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from memory_core import BoundMemory, ClosedError, ScopeError, UnsupportedError
from memory_core.adapting import AgentMemory, owned_by
from memory_spade import files
from memory_spade.memory.agent_base_memory import AgentBaseMemory
from memory_spade.memory.backends.backend_handle import BackendHandle
from memory_spade.memory.backends.handle_backend import HandleBackend
from memory_spade.memory.flags import TAKEN_OVER, Places
from memory_spade.memory.interaction_memory import AgentInteractionMemory
from memory_spade.memory.notes_in_store import NotesInStore
from memory_spade.memory.opening import Borrowed, Opening

Owner = Literal["agent", "peer"] | Callable[[str], str]
"""Whose memories an agent keeps: its own, those of whom it talks to, or those of whoever the function makes of the
peer's bare JID."""

INTERACTIONS: Final = "interaction_memory"
BASE: Final = files.BASE_COLLECTION
"""In an agent's own partition the two kinds live in collections of their own, so that a search of long-term memories
never shows one peer what was noted about another. A memory that the application has bound to a user is about that
user, whatever wrote it, and is searched whole."""


class Home:
    """The memories of one agent, opened and closed with it unless the application has opened them.

    Args:
        jid: The agent's bare JID.
        places: Where notes and long-term memories live.
        owner: Whose memories they are.

    Raises:
        TypeError: The owner is none, or one that a place cannot keep apart from others.
    """

    def __init__(self, jid: str, places: Places, owner: Owner) -> None:
        if owner not in ("agent", "peer") and not callable(owner):
            raise TypeError(f"owner must be 'agent', 'peer' or a function of the peer's bare JID, not {owner!r}")
        for flag, place in zip(TAKEN_OVER, places, strict=True):
            if owner != "agent" and isinstance(place, AgentInteractionMemory | AgentBaseMemory):
                raise TypeError(f"{flag} cannot keep peers apart; with owner={owner!r} give it a place by memory=")
        self._jid, self._owner, self._stopped = jid, owner, False
        self._notes, self._base = self._places = places
        self.base_door = self._base if isinstance(self._base, AgentBaseMemory) else None
        """The documented door to long-term memories; `None` if none are kept."""
        if isinstance(self._base, Opening | Borrowed):
            backend = HandleBackend(jid, lambda: self.handle(None), opened=self.open, closed=self.release)
            self.base_door = AgentBaseMemory(jid, backend=backend)

    def notes(self, peer: str | None) -> AgentInteractionMemory | None:
        """The documented door to the notes of conversations, as far as one with `peer` reaches; `None` if none are
        kept."""
        place = self._notes
        if not isinstance(place, Opening | Borrowed):
            return place
        kept = NotesInStore(lambda: self._bound(place, peer, INTERACTIONS), self._jid, peer)
        return AgentInteractionMemory.over(self._jid, kept)

    def handle(self, peer: str | None) -> BoundMemory:
        """`base`, for everything that a handle can do.

        Raises:
            UnsupportedError: They are in a `MemoryBackend` of the user's own.
        """
        base = self.base(peer)
        if not isinstance(base, BoundMemory):
            raise UnsupportedError("this agent's memories are kept by a MemoryBackend; use agent.agent_base_memory")
        return base

    def base(self, peer: str | None) -> AgentMemory:
        """The long-term memories in a conversation with `peer` (its bare JID).

        Raises:
            ScopeError: None are kept; they belong to peers and there is none; or the shared handle is somebody else's.
            ClosedError: The agent was stopped.
        """
        if self._base is None:
            raise ScopeError("this agent keeps no long-term memories; make it with agent_base_memory=True")
        if isinstance(self._base, AgentBaseMemory):
            return BackendHandle(self._base)
        return self._bound(self._base, peer, BASE)

    async def open(self) -> None:
        """Open what is the agent's to open, and check that the rest can be opened."""
        self._stopped = False
        for place in self._places:
            if isinstance(place, AgentBaseMemory):
                await place.initialize()
            elif isinstance(place, Opening | Borrowed):
                await place.open()

    async def close(self) -> None:
        """`release`, and refuse to open anything at a mere use until `open` is called."""
        self._stopped = True
        await self.release()

    async def release(self) -> None:
        """Close what is the agent's to close. May be called twice."""
        for place in self._places:
            if isinstance(place, AgentBaseMemory):
                await place.cleanup()
            elif isinstance(place, Opening | Borrowed):
                await place.close()

    def _bound(self, place: Opening | Borrowed, peer: str | None, collection: str) -> BoundMemory:
        if self._stopped and isinstance(place, Opening):
            raise ClosedError(f"agent {self._jid} was stopped and its memory closed; start it again")
        handle = place.handle()
        if self._owner == "agent":
            if handle.scope.user is not None:
                return handle
            handle = owned_by(handle, files.identity(self._jid))
            return handle if handle.scope.collection is not None else handle.bind(collection=collection)
        if peer is None:
            raise ScopeError("no conversation is running, so it is open whose memory this is")
        try:
            return owned_by(handle, peer if isinstance(self._owner, str) else self._owner(peer))
        except LookupError as error:  # a stranger must not end a behaviour, as SPADE does after any other error
            raise ScopeError(f"owner knows no user for {peer!r}") from error
