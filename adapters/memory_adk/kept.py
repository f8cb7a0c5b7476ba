"""The kept messages of a session: those that are live in its record. Those that a rewind has undone are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory_adk.convert import event_drafts
from memory_adk.rewind import Change
from memory_core import BoundMemory
from memory_core.adapting import Conversation, key_in_scope, reachable


@dataclass(frozen=True, slots=True)
class Kept:
    """One session as it is kept."""

    handle: BoundMemory
    """The memory of the user."""
    session: str
    """Its id; empty for events of no session, which nobody can undo."""
    conversation: Conversation

    async def follow(self, change: Change, metadata: Mapping[str, object]) -> None:
        """Store what the record says, in the background; `metadata` is ADK's, of all messages.

        Raises:
            InvalidInputError: A message or the metadata cannot be stored; nothing is.
        """
        live = {key: event for key, event in change.items() if event is not None}
        drafts = event_drafts(live, self.session, metadata, self.handle.memory.clock())
        await self.conversation.remember(reachable(self.handle.scope, drafts), are_shown=True)
        if self.session:
            await self.conversation.leave(self._keys(change, live=False))

    async def take_back(self, change: Change) -> bool:
        """Leave what is undone, and resume what is live; store nothing.

        Returns:
            True if all that is undone is stored. The rest may be waiting to be written, by another process.
        """
        undone = self._keys(change, live=False)
        await self.conversation.leave(undone)
        await self.conversation.resume(self._keys(change, live=True))
        await self.conversation.settled()
        return {one.key for one in await self.conversation.known()}.issuperset(undone)

    def _keys(self, change: Change, *, live: bool) -> list[str]:
        return [key_in_scope(self.handle.scope, key) for key, event in change.items() if (event is not None) == live]
