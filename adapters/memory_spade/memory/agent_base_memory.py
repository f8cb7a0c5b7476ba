"""Long-term memories of an agent, as spade_llm's document describes them."""

from __future__ import annotations

import os
from typing import Any

from memory_spade.memory.backends.base import MemoryBackend, MemoryEntry
from memory_spade.memory.backends.sqlite_backend import SqliteBackend, own_backend
from memory_spade.memory.opening import Opening


class AgentBaseMemory:
    """Facts, patterns, preferences and capabilities that an agent has learned in all its conversations.

    The storage is opened by the first call or by `initialize`. After `cleanup` the object can be used again.

    Args:
        agent_id: The agent, usually a JID; resource and case are ignored.
        memory_path: A directory for `{agent}_base_memory.db`, or `":memory:"`. The default is the directory in the
            environment variable SPADE_LLM_MEMORY_PATH, else `spade_llm/data/agent_memory`.
        backend: Your own storage backend instead.

    Raises:
        TypeError: Both a backend and a path are given.
    """

    def __init__(
        self,
        agent_id: str,
        memory_path: str | os.PathLike[str] | None = None,
        backend: MemoryBackend | None = None,
    ) -> None:
        if backend is not None and memory_path is not None:
            raise TypeError(f"give memory_path={memory_path!r} to the backend instead; it decides where memories live")
        self.agent_id = agent_id
        if backend is None:
            backend = own_backend(agent_id, Opening.of_agent(agent_id, memory_path))
        self.backend = backend.for_agent(agent_id) if isinstance(backend, SqliteBackend) else backend
        self._initialized = False

    async def initialize(self) -> None:
        """Open the storage now instead of on the first call.

        Raises:
            MemoryInitializationError: It cannot be opened.
        """
        await self.backend.initialize()
        self._initialized = True

    async def store_memory(
        self, content: str, category: str, context: str | None = None, confidence: float = 1.0
    ) -> str:
        """Store a memory and return its id. Storing the same content again creates another memory.

        Args:
            content: The text to remember.
            category: `fact`, `pattern`, `preference` or `capability`.
            context: When or why it was learned.
            confidence: 0 to 1.

        Raises:
            MemoryStorageError: An argument cannot be stored, or the storage failed.
        """
        entry = MemoryEntry(
            agent_id=self.agent_id, category=category, content=content, context=context, confidence=confidence
        )
        return await (await self._ready()).store_memory(entry)

    async def search_memories(self, query: str, limit: int = 10, category: str | None = None) -> list[MemoryEntry]:
        """Return the memories that match a question or some words, best first; a blank query finds nothing.

        Raises:
            MemorySearchError: The limit or the category is invalid, or the search failed.
        """
        return await (await self._ready()).search_memories(self.agent_id, query, limit, category)

    async def get_memories_by_category(self, category: str, limit: int = 10) -> list[MemoryEntry]:
        """Return the memories of a category, newest first; raises like `search_memories`."""
        return await (await self._ready()).get_memories_by_category(self.agent_id, category, limit)

    async def get_recent_memories(self, limit: int = 10) -> list[MemoryEntry]:
        """Return the memories that were stored, found or listed most recently first; raises like `search_memories`."""
        return await (await self._ready()).get_recent_memories(self.agent_id, limit)

    async def update_memory(
        self,
        memory_id: str,
        content: str | None = None,
        category: str | None = None,
        context: str | None = None,
        confidence: float | None = None,
    ) -> bool:
        """Change the given fields; return `False` if this agent has no such memory.

        Raises:
            MemoryStorageError: A new value cannot be stored, or the storage failed.
        """
        updates = {"content": content, "category": category, "context": context, "confidence": confidence}
        given = {name: value for name, value in updates.items() if value is not None}
        return await (await self._ready()).update_memory(memory_id, **given)

    async def delete_memory(self, memory_id: str) -> bool:
        """Delete a memory; return `False` if this agent has no such memory."""
        return await (await self._ready()).delete_memory(memory_id)

    async def get_memory_stats(self) -> dict[str, Any]:
        """Return `total_memories`, `categories`, `avg_confidence`, `oldest_memory` and `newest_memory`."""
        return await (await self._ready()).get_memory_stats(self.agent_id)

    async def cleanup(self) -> None:
        """Close files and connections."""
        self._initialized = False
        await self.backend.cleanup()

    async def _ready(self) -> MemoryBackend:
        if not self._initialized:
            await self.initialize()
        return self.backend
