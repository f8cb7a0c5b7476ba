"""Notes by conversation in a memory shared with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from memory_core import BoundMemory, Draft, MemoryRecord, Where, run_sync


class NotesInStore:
    """The notes of one agent behind a handle, for synchronous callers.

    Args:
        handle: Returns the handle; called for every operation.
        agent: The agent's bare JID, stamped on what it writes and required of what it reads.
        author: Who said what is noted.
    """

    def __init__(self, handle: Callable[[], BoundMemory], agent: str, author: str | None = None) -> None:
        self._handle = handle
        self._agent = agent
        self._author = author

    def get(self, conversation_id: str, last: int | None = None) -> list[str]:
        """The notes of a conversation, oldest first; only the `last` so many, if that is given (at least 1)."""
        if last is None:
            return [record.text for record in self._records(self._where(conversation_id))]
        newest = run_sync(self._handle().list, where=self._where(conversation_id), limit=last)
        return [record.text for record in reversed(newest.records)]

    def conversations(self) -> list[str]:
        """The conversations that have notes, in the order of their first one."""
        everywhere = self._records(Where(kinds=("note",), agent=self._agent))
        return list(dict.fromkeys(record.session for record in everywhere if record.session is not None))

    def add(self, conversation_id: str, information: str, now: datetime) -> None:
        """Append a note; returns when it is on disk."""
        draft = Draft(information, session=conversation_id, agent=self._agent, author=self._author, occurred_at=now)
        run_sync(self._handle().add, draft)

    def clear(self, conversation_id: str) -> bool:
        """Drop the notes of a conversation; `False` if there are none."""
        return run_sync(self._handle().delete_where, self._where(conversation_id)) > 0

    def _records(self, where: Where) -> Iterator[MemoryRecord]:
        cursor: str | None = None
        while True:
            page = run_sync(self._handle().list, where=where, order="oldest", limit=1_000, cursor=cursor)
            yield from page.records
            cursor = page.cursor
            if cursor is None:
                return

    def _where(self, conversation_id: str) -> Where:
        # The thread of a message that has none is None, which a condition would take for any conversation.
        return Where(kinds=("note",), session=conversation_id or "", agent=self._agent)
