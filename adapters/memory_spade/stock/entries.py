"""A long-term memory and its backend, in the form of spade_llm's code."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_spade.memory.backends.base import MemoryEntry as DocumentedEntry


@dataclass(init=False)
class MemoryEntry(DocumentedEntry):
    """A long-term memory. Times are local and have no zone."""

    def __init__(  # noqa: PLR0913  (the signature of spade_llm)
        self,
        agent_id: str,
        category: str,
        content: str,
        context: str | None = None,
        confidence: float = 1.0,
        id: str | None = None,  # noqa: A002  (spade_llm's word)
        created_at: datetime | None = None,
        last_accessed: datetime | None = None,
        access_count: int = 0,
    ) -> None:
        now = datetime.now()  # noqa: DTZ005  (spade_llm's times are local and have no zone)
        super().__init__(
            agent_id=agent_id,
            category=category,
            content=content,
            context=context,
            confidence=confidence,
            id=id or str(uuid.uuid4()),
            created_at=created_at or now,
            last_accessed=last_accessed or now,
            access_count=access_count,
        )


class MemoryBackend(ABC):
    """Subclass it to store memories elsewhere."""

    @abstractmethod
    async def initialize(self) -> None:
        """Open the storage."""

    @abstractmethod
    async def store_memory(self, entry: MemoryEntry) -> str:
        """Store an entry and return its id."""

    @abstractmethod
    async def get_memories_by_category(self, agent_id: str, category: str, limit: int = 50) -> list[MemoryEntry]:
        """Return the entries of a category."""

    @abstractmethod
    async def search_memories(self, agent_id: str, query: str, limit: int = 10) -> list[MemoryEntry]:
        """Return the entries that match a query."""

    @abstractmethod
    async def get_recent_memories(self, agent_id: str, limit: int = 10) -> list[MemoryEntry]:
        """Return the most recently used entries, latest first."""

    @abstractmethod
    async def update_access(self, memory_id: str) -> None:
        """Count an access of an entry."""

    @abstractmethod
    async def delete_memory(self, memory_id: str) -> bool:
        """Delete an entry; return whether it existed."""

    @abstractmethod
    async def get_memory_stats(self, agent_id: str) -> dict[str, Any]:
        """Return counts and dates of an agent's entries."""

    @abstractmethod
    async def cleanup(self) -> None:
        """Close files and connections."""
