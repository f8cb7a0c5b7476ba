"""The default backend: a core store in one SQLite file."""

from __future__ import annotations

import os
from typing import Any

from memory_core import BoundMemory
from memory_spade import files
from memory_spade.memory.backends.base import MemoryBackend, MemoryEntry
from memory_spade.memory.backends.handle_backend import HandleBackend
from memory_spade.memory.exceptions import MemoryBackendError, MemoryInitializationError, reported_as
from memory_spade.memory.opening import Opening


class SqliteBackend(MemoryBackend):
    """Long-term memories of any number of agents in one file.

    Calls that name a memory but no agent (update, delete) apply to all agents for which this object was used before;
    `AgentBaseMemory` restricts itself to its own agent with `for_agent`.

    Args:
        database_path: The file, or `":memory:"`.
    """

    def __init__(self, database_path: str | os.PathLike[str]) -> None:
        self._opening = Opening.of_database(database_path)
        self._agents: dict[str, HandleBackend] = {}

    def for_agent(self, agent_id: str) -> HandleBackend:
        """Return the backend of one agent in this file; it opens and closes the file for all agents."""
        who = files.identity(agent_id)
        if who not in self._agents:
            self._agents[who] = own_backend(agent_id, self._opening)
        return self._agents[who]

    async def initialize(self) -> None:
        """See `MemoryBackend`."""
        with reported_as(MemoryInitializationError):
            await self._opening.open()

    async def store_memory(self, entry: MemoryEntry) -> str:
        """See `HandleBackend`."""
        return await self.for_agent(entry.agent_id).store_memory(entry)

    async def search_memories(
        self, agent_id: str, query: str, limit: int = 10, category: str | None = None
    ) -> list[MemoryEntry]:
        """See `HandleBackend`."""
        return await self.for_agent(agent_id).search_memories(agent_id, query, limit, category)

    async def get_memories_by_category(self, agent_id: str, category: str, limit: int = 10) -> list[MemoryEntry]:
        """See `HandleBackend`."""
        return await self.for_agent(agent_id).get_memories_by_category(agent_id, category, limit)

    async def get_recent_memories(self, agent_id: str, limit: int = 10) -> list[MemoryEntry]:
        """See `HandleBackend`."""
        return await self.for_agent(agent_id).get_recent_memories(agent_id, limit)

    async def update_memory(self, memory_id: str, **updates: Any) -> bool:
        """See `HandleBackend`."""
        for backend in list(self._agents.values()):
            if await backend.update_memory(memory_id, **updates):
                return True
        return False

    async def delete_memory(self, memory_id: str) -> bool:
        """See `HandleBackend`."""
        for backend in list(self._agents.values()):
            if await backend.delete_memory(memory_id):
                return True
        return False

    async def get_memory_stats(self, agent_id: str) -> dict[str, Any]:
        """See `HandleBackend`."""
        return await self.for_agent(agent_id).get_memory_stats(agent_id)

    async def cleanup(self) -> None:
        """Close the file; the next call opens it again. Memories in `":memory:"` are lost."""
        for backend in self._agents.values():
            await backend.counted()
        with reported_as(MemoryBackendError):
            await self._opening.close()


def own_backend(agent_id: str, opening: Opening) -> HandleBackend:
    """Create the backend of one agent in a file that other agents may share."""
    who = files.identity(agent_id)

    def handle() -> BoundMemory:
        return opening.handle().bind(user=who, collection=files.BASE_COLLECTION)

    return HandleBackend(agent_id, handle, opened=opening.open, closed=opening.close)
