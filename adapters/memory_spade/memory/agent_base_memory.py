"""Long-term memories of an agent, as spade_llm's document describes them."""

from __future__ import annotations

import os
from typing import Any

from memory_spade.memory.backends.base import MemoryBackend, MemoryEntry
from memory_spade.memory.backends.handle_backend import HandleBackend
from memory_spade.memory.checks import check_fields, check_search, checked_category
from memory_spade.memory.exceptions import (
    MemoryBackendError,
    MemoryInitializationError,
    MemorySearchError,
    MemoryStorageError,
    foreign,
)
from memory_spade.memory.place import in_directory


class AgentBaseMemory:
    """Facts, patterns, preferences and capabilities that an agent has learned in all its conversations.

    Arguments are checked before a backend receives them, and whatever a backend raises becomes one of the documented
    errors. The storage is opened by the first call or by `initialize`. After `cleanup` the object can be used again.

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
            backend = HandleBackend(in_directory(agent_id, memory_path))
        self.backend = backend.for_agent(agent_id) if isinstance(backend, HandleBackend) else backend
        self._initialized = False

    async def initialize(self) -> None:
        """Open the storage now instead of on the first call.

        Raises:
            MemoryInitializationError: It cannot be opened.
        """
        with foreign(MemoryInitializationError, self._name):
            await self.backend.initialize()
        self._initialized = True

    async def store_memory(
        self, content: str, category: str, context: str | None = None, confidence: float = 1.0
    ) -> str:
        """Store a memory and return its id. Storing the same content again creates another memory.

        Args:
            content: The text to remember.
            category: `fact`, `pattern`, `preference` or `capability`.
            context: The occasion on which it was learned, or the reason.
            confidence: 0 to 1.

        Raises:
            MemoryStorageError: An argument cannot be stored, or the storage failed.
        """
        check_fields({"content": content, "category": category, "context": context, "confidence": confidence})
        entry = MemoryEntry(
            agent_id=self.agent_id, category=category, content=content, context=context, confidence=confidence
        )
        await self._ready()
        with foreign(MemoryStorageError, self._name):
            return await self.backend.store_memory(entry)

    async def search_memories(self, query: str, limit: int = 10, category: str | None = None) -> list[MemoryEntry]:
        """Return the memories that match a question or some words, best first; a blank query finds nothing.

        Raises:
            MemorySearchError: The limit or the category is invalid, or the search failed.
        """
        check_search(limit, category)
        await self._ready()
        with foreign(MemorySearchError, self._name):
            return (await self.backend.search_memories(self.agent_id, query, limit, category))[:limit]

    async def get_memories_by_category(self, category: str, limit: int = 10) -> list[MemoryEntry]:
        """Return the memories of a category, newest first; raises like `search_memories`."""
        checked_category(category, MemorySearchError)
        check_search(limit)
        await self._ready()
        with foreign(MemorySearchError, self._name):
            return (await self.backend.get_memories_by_category(self.agent_id, category, limit))[:limit]

    async def get_recent_memories(self, limit: int = 10) -> list[MemoryEntry]:
        """Return the memories that were stored, found or listed most recently first; raises like `search_memories`."""
        check_search(limit)
        await self._ready()
        with foreign(MemorySearchError, self._name):
            return (await self.backend.get_recent_memories(self.agent_id, limit))[:limit]

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
        check_fields(given)
        await self._ready()
        with foreign(MemoryStorageError, self._name):
            return await self.backend.update_memory(memory_id, **given)

    async def delete_memory(self, memory_id: str) -> bool:
        """Delete a memory; return `False` if this agent has no such memory."""
        await self._ready()
        with foreign(MemoryStorageError, self._name):
            return await self.backend.delete_memory(memory_id)

    async def get_memory_stats(self) -> dict[str, Any]:
        """Return `total_memories`, `categories`, `avg_confidence`, `oldest_memory` and `newest_memory`."""
        await self._ready()
        with foreign(MemorySearchError, self._name):
            return await self.backend.get_memory_stats(self.agent_id)

    async def cleanup(self) -> None:
        """Close files and connections."""
        self._initialized = False
        with foreign(MemoryBackendError, self._name):
            await self.backend.cleanup()

    async def _ready(self) -> None:
        if not self._initialized:
            await self.initialize()

    @property
    def _name(self) -> str:
        return type(self.backend).__name__
