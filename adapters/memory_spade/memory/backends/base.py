"""The interface of a storage backend of `AgentBaseMemory`."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(kw_only=True)
class MemoryEntry:
    """A long-term memory. Pass keywords; omitted fields get defaults."""

    agent_id: str
    category: str
    """`fact`, `pattern`, `preference` or `capability`."""
    content: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    context: str | None = None
    confidence: float = 1.0
    """0 to 1."""
    created_at: datetime = field(default_factory=_now)
    """A time without a zone is local."""
    last_accessed: datetime = field(default_factory=_now)
    access_count: int = 0


class MemoryBackend(ABC):
    """Subclass it to store memories elsewhere, and pass an instance to `AgentBaseMemory(backend=...)`."""

    @abstractmethod
    async def initialize(self) -> None:
        """Open the storage; may be called repeatedly, also after `cleanup`."""

    @abstractmethod
    async def store_memory(self, entry: MemoryEntry) -> str:
        """Store an entry and return its id."""

    @abstractmethod
    async def search_memories(
        self, agent_id: str, query: str, limit: int = 10, category: str | None = None
    ) -> list[MemoryEntry]:
        """Return the entries of an agent that match a query, best first."""

    @abstractmethod
    async def get_memories_by_category(self, agent_id: str, category: str, limit: int = 10) -> list[MemoryEntry]:
        """Return the entries of a category, newest first."""

    @abstractmethod
    async def get_recent_memories(self, agent_id: str, limit: int = 10) -> list[MemoryEntry]:
        """Return the most recently used entries, latest first."""

    @abstractmethod
    async def update_memory(self, memory_id: str, **updates: Any) -> bool:  # the document's signature
        """Change `content`, `category`, `context` or `confidence`; return `False` if there is no such entry."""

    @abstractmethod
    async def delete_memory(self, memory_id: str) -> bool:
        """Delete an entry; return whether it existed."""

    @abstractmethod
    async def get_memory_stats(self, agent_id: str) -> dict[str, Any]:
        """Return counts and dates of an agent's entries."""

    @abstractmethod
    async def cleanup(self) -> None:
        """Close files and connections."""
