"""Where an agent's memories live, and whose memory a conversation reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from memory_core import BoundMemory, ClosedError, Memory, ScopeError, portability
from memory_spade.flags import Source, Sources
from memory_spade.memory import AgentBaseMemory, AgentInteractionMemory, MemoryBackend
from memory_spade.memory.backends.backend_handle import BackendHandle
from memory_spade.memory.backends.handle_backend import HandleBackend
from memory_spade.memory.notes_in_store import NotesInStore
from memory_spade.memory.opening import Opening

Owner = Literal["agent", "peer"] | Callable[[str], str]
"""Whose memories an agent keeps: its own, those of whom it talks to, or those of whoever the function makes of the
peer's bare JID."""

INTERACTIONS: Final = "interaction_memory"
BASE: Final = portability.BASE_COLLECTION
"""In an agent's own partition the two kinds live in collections of their own, so that a search of long-term memories
never shows one peer what was noted about another. A memory that the application has bound to a user is about that
user, whatever wrote it, and is searched whole."""


class Home:
    """The memories of one agent, opened and closed with it unless the application has opened them.

    Args:
        jid: The agent's bare JID.
        sources: Where each kind lives.
        owner: Whose memories they are.
    """

    def __init__(self, jid: str, sources: Sources, owner: Owner) -> None:
        self._jid = jid
        self._sources = sources
        self._owner = owner
        self._stopped = False
        self._notes_file: AgentInteractionMemory | None = None
        if sources.notes_directory is not None:
            self._notes_file = AgentInteractionMemory(jid, sources.notes_directory)
        self.base_door: AgentBaseMemory | None = None
        """The documented door to long-term memories."""
        if isinstance(sources.base, MemoryBackend):
            self.base_door = AgentBaseMemory(jid, backend=sources.base)
        elif sources.base is not None:
            backend = HandleBackend(jid, lambda: self.base(None), opened=self.open, closed=self.release)
            self.base_door = AgentBaseMemory(jid, backend=backend)

    def notes(self, peer: str | None) -> AgentInteractionMemory | None:
        """The documented door to the notes of conversations, as far as one with `peer` reaches; `None` if none are
        kept."""
        source = self._sources.interactions
        if source is None:
            return self._notes_file
        kept = NotesInStore(lambda: self._bound(source, peer, INTERACTIONS), self._jid, peer)
        return AgentInteractionMemory.over(self._jid, kept)

    def base(self, peer: str | None) -> BoundMemory:
        """The handle for long-term memories in a conversation with `peer` (its bare JID).

        Raises:
            ScopeError: None are kept; they belong to peers and there is none; or the shared handle is somebody else's.
            ClosedError: The agent was stopped.
        """
        source = self._sources.base
        if source is None:
            raise ScopeError("this agent keeps no long-term memories; make it with agent_base_memory=True")
        if isinstance(source, MemoryBackend):
            return BackendHandle(self.base_door or AgentBaseMemory(self._jid, backend=source))
        return self._bound(source, peer, BASE)

    async def open(self) -> None:
        """Open what is the agent's to open, and check that the rest can be opened."""
        self._stopped = False
        for source in (self._sources.interactions, self._sources.base):
            if isinstance(source, MemoryBackend) and self.base_door is not None:
                await self.base_door.initialize()
            elif isinstance(source, Memory | BoundMemory | Opening):
                await self._handle(source).memory.open()

    async def close(self) -> None:
        """`release`, and refuse to open anything at a mere use until `open` is called."""
        self._stopped = True
        await self.release()

    async def release(self) -> None:
        """Close what is the agent's to close. May be called twice."""
        for source in (self._sources.interactions, self._sources.base):
            if isinstance(source, Opening):
                await source.close()
            elif isinstance(source, MemoryBackend) and self.base_door is not None:
                await self.base_door.cleanup()

    def _bound(self, source: Source, peer: str | None, collection: str) -> BoundMemory:
        handle = self._handle(source)
        if self._owner == "agent":
            if handle.scope.user is not None:
                return handle
            handle = handle.owned_by(portability.identity(self._jid))
            return handle if handle.scope.collection is not None else handle.bind(collection=collection)
        if peer is None:
            raise ScopeError("no conversation is running, so it is open whose memory this is")
        return handle.owned_by(peer if isinstance(self._owner, str) else self._owner(peer))

    def _handle(self, source: Source) -> BoundMemory:
        if isinstance(source, BoundMemory):
            return source
        if isinstance(source, Memory):
            return source.bind()
        if self._stopped:
            raise ClosedError(f"agent {self._jid} was stopped and its memory closed; start it again")
        return source.memory().bind()
