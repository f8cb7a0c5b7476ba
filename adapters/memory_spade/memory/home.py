"""The places of an agent's memories, and the owner of the memories in a conversation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal, TypeVar

from memory_core import BoundMemory, ScopeError, UnsupportedError
from memory_core.adapting import AgentMemory, Deadline, LateError, check_seconds, limits, owned_by
from memory_spade import files
from memory_spade.memory.agent_base_memory import AgentBaseMemory
from memory_spade.memory.backends.backend_handle import BackendHandle
from memory_spade.memory.backends.handle_backend import HandleBackend
from memory_spade.memory.flags import TAKEN_OVER, Places
from memory_spade.memory.interaction_memory import AgentInteractionMemory
from memory_spade.memory.notes_in_store import NotesInStore
from memory_spade.memory.place import Place
from memory_spade.owners import OwnerFunction, Owners

T = TypeVar("T")

Owner = Literal["agent", "peer"] | OwnerFunction
"""The owner of an agent's memories: the agent, its peer, or the user that the function returns for the peer's bare
JID."""

INTERACTIONS: Final = "interaction_memory"
BASE: Final = files.BASE_COLLECTION
"""In an agent's own partition, notes and long-term memories are in separate collections, so that a search of long-term
memories never shows one peer the notes about another. A memory that the application has bound to a user concerns only
that user and is searched as a whole."""


class Home:
    """The memories of one agent, opened and closed with the agent unless the application opened them.

    Args:
        jid: The agent's bare JID.
        places: The places of notes and long-term memories.
        owner: The owner of the memories.
        timeout: The number of seconds that the agent waits for one call of its memory.

    Raises:
        TypeError: The owner is invalid, or a place cannot separate such owners.
        ScopeError: A space of the handle has the agent for its owner.
    """

    def __init__(self, jid: str, places: Places, owner: Owner, timeout: float = limits.CALL_SECONDS) -> None:
        if owner not in ("agent", "peer") and not callable(owner):
            raise TypeError(f"owner must be 'agent', 'peer' or a function of the peer's bare JID, not {owner!r}")
        for flag, place in zip(TAKEN_OVER, places, strict=True):
            if owner != "agent" and isinstance(place, AgentInteractionMemory | AgentBaseMemory):
                raise TypeError(f"{flag} cannot separate peers; with owner={owner!r}, set its place with memory=")
        self._jid, self._owner = jid, owner
        self._owners = None if isinstance(owner, str) else Owners(owner)
        self._notes, self._base = places
        self._place = next((place for place in places if isinstance(place, Place)), None)
        if self.given is not None:
            self._insist_on_one_owner(self.given)
        self.deadline = Deadline(check_seconds("memory_timeout", timeout), jid)
        """The deadline of every call of the memory in the agent's behaviours."""
        self.base_door = self._base if isinstance(self._base, AgentBaseMemory) else None
        """The documented interface to long-term memories; `None` if they are off."""
        if isinstance(self._base, Place):
            backend = HandleBackend(self._base, handle=lambda _: self.handle(None).own)
            self.base_door = AgentBaseMemory(jid, backend=backend)

    def notes(self, peer: str | None) -> AgentInteractionMemory | None:
        """The documented interface to the notes that are available in a conversation with `peer`; `None` if notes are
        off."""
        place = self._notes
        if not isinstance(place, Place):
            return place
        kept = NotesInStore(lambda: self._bound(place.handle(), peer, INTERACTIONS).own, self._jid, peer)
        return AgentInteractionMemory.over(self._jid, kept)

    @property
    def given(self) -> BoundMemory | None:
        """The handle that the application passed, before it is bound to an owner; `None` for an agent's own files."""
        return None if self._place is None else self._place.given

    def use(self, handle: BoundMemory) -> None:
        """Replace the handle that the application passed, from the next call on.

        Raises:
            ScopeError: It passed none, or this one is of another owner.
        """
        place, given = self._place, self.given
        if place is None or given is None or (handle.memory, handle.scope) != (given.memory, given.scope):
            raise ScopeError(f"the memory of {self._jid} can be replaced only by another handle of the same scope")
        self._insist_on_one_owner(handle)
        place.use(handle)

    def base(self, peer: str | None) -> AgentMemory:
        """The long-term memories in a conversation with `peer` (its bare JID), with the spaces of the handle.

        Raises:
            ScopeError: Long-term memories are off; they belong to peers and there is no peer; or the shared handle
                is bound to another user.
            ClosedError: The agent was stopped.
        """
        if self._base is None:
            raise ScopeError("this agent has no long-term memories; create it with agent_base_memory=True")
        if isinstance(self._base, AgentBaseMemory):
            return BackendHandle(self._base)
        return self._bound(self._base.handle(), peer, BASE)

    def handle(self, peer: str | None) -> BoundMemory:
        """`base` as a handle with all operations.

        Raises:
            UnsupportedError: The memories are in a custom `MemoryBackend`.
        """
        base = self.base(peer)
        if not isinstance(base, BoundMemory):
            raise UnsupportedError("this agent's memories are in a MemoryBackend; use agent.agent_base_memory")
        return base

    async def reached(self, find: Callable[[str | None], T], peer: str | None) -> T:
        """`find(peer)`, one of the methods above, once the owner is known."""
        if self._owners is not None and peer is not None and not _is_nick(peer):
            await self._owners.ask(peer)
        return find(peer)

    def heard(self, peer: str | None) -> None:
        """A message of this peer has arrived, or one is said to it: an owner function is asked again."""
        if self._owners is not None and peer is not None:
            self._owners.heard(peer)

    async def begin(self) -> None:
        """`open`, but do not wait longer than for any call: the memory then opens while the agent works without it."""
        with suppress(LateError):  # logged, and the agent starts
            await self.deadline.write("opening it", self.open)

    async def end(self) -> None:
        """Let writes and late calls finish, then `close`; neither is waited for longer than any other call."""
        self.deadline.is_over = True
        try:
            await self.deadline.finish()
        finally:
            with suppress(LateError):  # logged, and it goes on
                await self.deadline.write("closing it", self.close)

    async def open(self) -> None:
        """Open the agent's own memories, and check that borrowed ones can be opened."""
        self.deadline.is_over = False
        if isinstance(self._base, AgentBaseMemory):
            await self._base.initialize()
        if self._place is not None:
            await self._place.open()

    async def close(self) -> None:
        """Close the agent's own memories, and refuse to reopen them on use until `open` is called."""
        if self._place is not None:
            await self._place.close(f"agent {self._jid} was stopped and its memory closed; start it again")
        if isinstance(self._base, AgentBaseMemory):
            await self._base.cleanup()

    def _insist_on_one_owner(self, handle: BoundMemory) -> None:
        """Refuse a space of the agent's own when it is made and not at every call; peers are known only then."""
        if self._owner == "agent":
            self._bound(handle, None, BASE)

    def _bound(self, handle: BoundMemory, peer: str | None, collection: str) -> BoundMemory:
        if self._owner == "agent":
            if handle.scope.user is not None:
                return handle
            handle = owned_by(handle, files.identity(self._jid))
            return handle if handle.scope.collection is not None else handle.bind(collection=collection)
        if peer is None:
            raise ScopeError(
                "no conversation is running, so the owner is unknown; use this while a message is answered"
            )
        if self._owners is None:
            return owned_by(handle, peer)
        if _is_nick(peer):
            raise ScopeError(f"{peer!r} is a nick in a room, which anybody may choose; it has no user")
        return owned_by(handle, self._owners.user(peer))


def _is_nick(peer: str) -> bool:
    return "/" in peer
