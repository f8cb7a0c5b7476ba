"""Where an agent's memories live, and whose memory a conversation reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from memory_core import BoundMemory, ClosedError, Memory, ScopeError
from memory_spade.flags import Source, Sources
from memory_spade.memory import AgentBaseMemory, AgentInteractionMemory
from memory_spade.memory.backends.handle_backend import HandleBackend
from memory_spade.memory.backends.sqlite_backend import COLLECTION
from memory_spade.memory.notes_in_store import NotesInStore
from memory_spade.paths import identity

Owner = Literal["agent", "peer"] | Callable[[str], str]
"""Whose memories an agent keeps: its own, those of whom it talks to, or those of whoever the function makes of the
peer's bare JID."""

INTERACTIONS: Final = "interaction_memory"
BASE: Final = COLLECTION
"""In an agent's own partition the two kinds live in collections of their own, so that a search of long-term memories
never shows one peer what was noted about another. A memory that the application has bound to a user is about that
user, whatever wrote it, and is searched whole."""


class Home:
    """The memories of one agent: opened with it, and closed with it unless somebody else opened them.

    Args:
        jid: The agent's bare JID.
        sources: Where each kind lives.
        owner: Whose memories they are.
    """

    def __init__(self, jid: str, sources: Sources, owner: Owner) -> None:
        self._jid = jid
        self.notes_file: AgentInteractionMemory | None = None
        if sources.notes_directory is not None:
            self.notes_file = AgentInteractionMemory(jid, sources.notes_directory)
        self._sources = sources
        self._owner = owner
        self._opened: dict[str, Memory] = {}
        self._stopped = False

    @property
    def has_interactions(self) -> bool:
        """Whether notes about conversations are kept."""
        return self.notes_file is not None or self._sources.interactions is not None

    @property
    def has_base(self) -> bool:
        """Whether long-term memories are kept."""
        return self._sources.base is not None

    def interaction_memory(self) -> AgentInteractionMemory | None:
        """The documented door to the notes, wherever they live; `None` if there are none."""
        if not self.has_interactions:
            return None
        return self.notes_file or AgentInteractionMemory.over(
            self._jid, NotesInStore(lambda: self.interactions(None), self._jid)
        )

    def agent_base_memory(self) -> AgentBaseMemory | None:
        """The documented door to long-term memories; `None` if there are none."""
        if not self.has_base:
            return None
        backend = HandleBackend(self._jid, lambda: self.base(None), opened=self.open, closed=self.release)
        return AgentBaseMemory(self._jid, backend=backend)

    def interactions(self, peer: str | None) -> BoundMemory:
        """The handle for notes in a conversation with `peer`; raises like `base`."""
        return self._bound(self._sources.interactions, peer, INTERACTIONS)

    def base(self, peer: str | None) -> BoundMemory:
        """The handle for long-term memories in a conversation with `peer` (its bare JID).

        Raises:
            ScopeError: Memories belong to peers and there is none, or the shared handle is somebody else's.
            ClosedError: The agent was stopped.
        """
        return self._bound(self._sources.base, peer, BASE)

    async def open(self) -> None:
        """Open what the agent was given as a path, and check that the rest can be opened."""
        self._stopped = False
        for source in (self._sources.interactions, self._sources.base):
            if source is not None:
                await self._handle(source).memory.open()

    async def close(self) -> None:
        """`release`, and refuse to open anything at a mere use until `open` is called."""
        self._stopped = True
        await self.release()

    async def release(self) -> None:
        """Close what `open` or a first use has opened here. May be called twice."""
        opened, self._opened = self._opened, {}
        for memory in opened.values():
            await memory.close()

    def _bound(self, source: Source | None, peer: str | None, collection: str) -> BoundMemory:
        if source is None:
            raise ScopeError(f"this agent keeps no {collection}; make it with {collection}=True")
        handle = self._handle(source)
        if self._owner == "agent":
            if handle.scope.user is not None:
                return handle
            handle = handle.owned_by(identity(self._jid))
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
        path = str(source)
        if path not in self._opened:
            self._opened[path] = Memory(path)
        return self._opened[path].bind()
