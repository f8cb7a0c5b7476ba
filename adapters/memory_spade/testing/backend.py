"""A minimal custom `MemoryBackend`."""

from __future__ import annotations

from typing import Any

from memory_spade.memory import MemoryBackend, MemoryEntry


class ListBackend(MemoryBackend):
    """Keeps memories in a list, the oldest first; a search finds those that contain the query."""

    def __init__(self) -> None:
        self.entries: list[MemoryEntry] = []

    async def initialize(self) -> None:
        """See `MemoryBackend`."""

    async def store_memory(self, entry: MemoryEntry) -> str:
        """See `MemoryBackend`."""
        self.entries.append(entry)
        return entry.id

    async def search_memories(
        self, agent_id: str, query: str, limit: int = 10, category: str | None = None
    ) -> list[MemoryEntry]:
        """See `MemoryBackend`."""
        return [entry for entry in self._of(agent_id) if query in entry.content and category in (None, entry.category)][
            :limit
        ]

    async def get_memories_by_category(self, agent_id: str, category: str, limit: int = 10) -> list[MemoryEntry]:
        """See `MemoryBackend`."""
        return [entry for entry in self._of(agent_id) if entry.category == category][:limit]

    async def get_recent_memories(self, agent_id: str, limit: int = 10) -> list[MemoryEntry]:
        """See `MemoryBackend`."""
        return self._of(agent_id)[:limit]

    async def update_memory(self, memory_id: str, **updates: Any) -> bool:
        """See `MemoryBackend`."""
        known = [entry for entry in self.entries if entry.id == memory_id]
        for entry in known:
            vars(entry).update(updates)
        return bool(known)

    async def delete_memory(self, memory_id: str) -> bool:
        """See `MemoryBackend`."""
        before = len(self.entries)
        self.entries = [entry for entry in self.entries if entry.id != memory_id]
        return len(self.entries) < before

    async def get_memory_stats(self, agent_id: str) -> dict[str, Any]:
        """See `MemoryBackend`."""
        return {"total_memories": len(self._of(agent_id))}

    async def cleanup(self) -> None:
        """See `MemoryBackend`."""

    def _of(self, agent_id: str) -> list[MemoryEntry]:
        return [entry for entry in reversed(self.entries) if entry.agent_id == agent_id]
