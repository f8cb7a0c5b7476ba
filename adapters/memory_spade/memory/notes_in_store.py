"""Notes by conversation in a shared memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from memory_core import BoundMemory, Draft, MemoryRecord, Where, run_sync
from memory_core.adapting import every_record


class NotesInStore:
    """The notes of one agent, stored through a handle, for synchronous callers.

    Args:
        handle: Returns the handle; called for every operation.
        agent: The agent's bare JID, set on the notes it writes and required of those it reads.
        author: Author of the notes.
    """

    def __init__(self, handle: Callable[[], BoundMemory], agent: str, author: str | None = None) -> None:
        self._handle = handle
        self._agent = agent
        self._author = author

    def get(self, conversation_id: str, last: int | None = None) -> list[str]:
        """Return the notes of a conversation, oldest first; with `last` (at least 1), only this many of the newest."""
        if last is None:
            return [record.text for record in self._records(self._where(conversation_id))]
        newest = run_sync(self._handle().list, where=self._where(conversation_id), limit=last)
        return [record.text for record in reversed(newest.records)]

    def conversations(self) -> list[str]:
        """Return the conversations that have notes, in the order of their first note."""
        everywhere = self._records(Where(kinds=("note",), agent=self._agent))
        return list(dict.fromkeys(record.session for record in everywhere if record.session is not None))

    def add(self, conversation_id: str, information: str, now: datetime) -> None:
        """Append a note; return when it is on disk."""
        draft = Draft(information, session=conversation_id, agent=self._agent, author=self._author, occurred_at=now)
        run_sync(self._handle().add, draft)

    def clear(self, conversation_id: str) -> bool:
        """Delete the notes of a conversation; return whether there were any."""
        return run_sync(self._handle().delete_where, self._where(conversation_id)).records > 0

    def _records(self, where: Where) -> list[MemoryRecord]:
        return run_sync(every_record, self._handle(), where)

    def _where(self, conversation_id: str) -> Where:
        # The thread of a message without one is None, which in a condition would match any conversation.
        return Where(kinds=("note",), session=conversation_id or "", agent=self._agent)
