"""A minimal custom `MemoryBackend`."""

from __future__ import annotations

import asyncio
from typing import Any

from memory_spade.memory import MemoryBackend, MemoryEntry


class ListBackend(MemoryBackend):
    """Keeps memories in a list, and records whether it is open and on which event loops it was used."""

    def __init__(self) -> None:
        self.entries: list[MemoryEntry] = []
        self.opened = 0
        self.loops: set[asyncio.AbstractEventLoop] = set()

    async def initialize(self) -> None:
        """See `MemoryBackend`."""
        self.opened += 1

    async def store_memory(self, entry: MemoryEntry) -> str:
        """See `MemoryBackend`."""
        self.loops.add(asyncio.get_running_loop())
        self.entries.append(entry)
        return entry.id

    async def search_memories(
        self, agent_id: str, query: str, limit: int = 10, category: str | None = None
    ) -> list[MemoryEntry]:
        """See `MemoryBackend`; finds memories that contain the query."""
        return [entry for entry in self._of(agent_id, category) if query in entry.content][:limit]

    async def get_memories_by_category(self, agent_id: str, category: str, limit: int = 10) -> list[MemoryEntry]:
        """See `MemoryBackend`."""
        return self._of(agent_id, category)[:limit]

    async def get_recent_memories(self, agent_id: str, limit: int = 10) -> list[MemoryEntry]:
        """See `MemoryBackend`."""
        return self._of(agent_id, None)[:limit]

    async def update_memory(self, memory_id: str, **updates: Any) -> bool:
        """See `MemoryBackend`."""
        for entry in self.entries:
            if entry.id == memory_id:
                vars(entry).update(updates)
                return True
        return False

    async def delete_memory(self, memory_id: str) -> bool:
        """See `MemoryBackend`."""
        kept = [entry for entry in self.entries if entry.id != memory_id]
        found, self.entries = len(kept) < len(self.entries), kept
        return found

    async def get_memory_stats(self, agent_id: str) -> dict[str, Any]:
        """See `MemoryBackend`."""
        return {"total_memories": len(self._of(agent_id, None))}

    async def cleanup(self) -> None:
        """See `MemoryBackend`."""
        self.opened -= 1

    def _of(self, agent_id: str, category: str | None) -> list[MemoryEntry]:
        """Entries of an agent, newest first."""
        self.loops.add(asyncio.get_running_loop())
        return [
            entry
            for entry in reversed(self.entries)
            if entry.agent_id == agent_id and category in (None, entry.category)
        ]
