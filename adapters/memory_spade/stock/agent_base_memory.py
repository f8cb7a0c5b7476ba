"""`AgentBaseMemory` with the signatures and words of spade_llm's code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from memory_spade.memory.checks import CATEGORIES
from memory_spade.memory.paths import IN_MEMORY, base_file, directory
from memory_spade.memory.summaries import formatted, summary
from memory_spade.stock.backend import SQLiteMemoryBackend
from memory_spade.stock.entries import MemoryBackend, MemoryEntry


class AgentBaseMemory:
    """The long-term memories of one agent.

    Args:
        agent_id: The agent's JID.
        backend: Your own backend; by default a file.
        memory_path: Directory of the file, or `":memory:"`; by default `spade_llm/data/agent_memory`.
    """

    def __init__(
        self,
        agent_id: str,
        backend: MemoryBackend | None = None,
        memory_path: str | os.PathLike[str] | None = None,
    ) -> None:
        self.agent_id = agent_id
        if backend is None:
            folder = directory(memory_path)
            backend = SQLiteMemoryBackend(IN_MEMORY if folder == IN_MEMORY else base_file(folder, agent_id))
        self.backend: MemoryBackend = backend
        self._initialized = False

    async def store_memory(
        self, category: str, content: str, context: str | None = None, confidence: float = 1.0
    ) -> str:
        """Store a memory and return its id.

        Raises:
            ValueError: The category is unknown, or the confidence is not from 0 to 1.
        """
        await self._ensure_initialized()
        if category not in CATEGORIES:
            raise ValueError(f"Invalid category '{category}'. Must be one of: {list(CATEGORIES)}")
        if not 0.0 <= confidence <= 1.0:
            raise ValueError(f"Confidence must be between 0.0 and 1.0, got {confidence}")
        entry = MemoryEntry(self.agent_id, category, content, context, confidence)
        return await self.backend.store_memory(entry)

    async def search_memories(self, query: str, limit: int = 10) -> list[MemoryEntry]:
        """Return the memories that match a query, and count the access."""
        await self._ensure_initialized()
        return await self._accessed(await self.backend.search_memories(self.agent_id, query, limit))

    async def get_memories_by_category(self, category: str, limit: int = 50) -> list[MemoryEntry]:
        """Return the memories of a category, and count the access."""
        await self._ensure_initialized()
        return await self._accessed(await self.backend.get_memories_by_category(self.agent_id, category, limit))

    async def get_recent_memories(self, limit: int = 10) -> list[MemoryEntry]:
        """Return the most recently used memories, and count the access without changing their order."""
        await self._ensure_initialized()
        return await self._accessed(await self.backend.get_recent_memories(self.agent_id, limit))

    async def get_relevant_memories(self, context: str | None = None, limit: int = 10) -> list[MemoryEntry]:
        """Return the memories that match a context, or recent ones if it is blank."""
        if context and context.strip():
            return await self.search_memories(context, limit)
        return await self.get_recent_memories(limit)

    async def format_for_context(self, memories: Sequence[MemoryEntry]) -> str:
        """Format memories for a system message, grouped by category."""
        return formatted(memories)

    def get_context_summary(self, memories: Sequence[MemoryEntry]) -> str | None:
        """Format memories for a system message: as a plain list on an event loop, else grouped by category."""
        if not memories:
            return None
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return formatted(memories)
        return summary(memories)

    async def delete_memory(self, memory_id: str) -> bool:
        """Delete a memory; return whether it existed."""
        await self._ensure_initialized()
        return await self.backend.delete_memory(memory_id)

    async def get_memory_stats(self) -> dict[str, Any]:
        """Return counts and dates."""
        await self._ensure_initialized()
        return await self.backend.get_memory_stats(self.agent_id)

    async def cleanup(self) -> None:
        """Close files and connections, if they were opened."""
        if self._initialized:
            await self.backend.cleanup()
            self._initialized = False

    async def _accessed(self, memories: list[MemoryEntry]) -> list[MemoryEntry]:
        for memory in reversed(memories):  # the first one is the latest, so that the next list has the same order
            await self.backend.update_access(str(memory.id))
        return memories

    async def _ensure_initialized(self) -> None:
        if not self._initialized:
            await self.backend.initialize()
            self._initialized = True
