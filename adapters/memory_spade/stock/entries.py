"""A long-term memory and its backend, in the form of spade_llm's code."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


def _new_id() -> str:
    return str(uuid.uuid4())


def _now() -> datetime:
    return datetime.now()  # noqa: DTZ005  (spade_llm's times are local and have no zone)


@dataclass
class MemoryEntry:
    """A long-term memory. Times are local and have no zone."""

    agent_id: str
    category: str
    content: str
    context: str | None = None
    confidence: float = 1.0
    id: str | None = None
    created_at: datetime | None = field(default=None)
    last_accessed: datetime | None = field(default=None)
    access_count: int = 0

    def __post_init__(self) -> None:
        self.id = self.id or _new_id()
        self.created_at = self.created_at or _now()
        self.last_accessed = self.last_accessed or _now()


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
