"""spade_llm's default backend, on a store of the core."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_core import BoundMemory, MemoryRecord, RecordNotFoundError, Where
from memory_core.adapting import cut_query
from memory_spade import files
from memory_spade.memory.backends.records import draft_of, entry_of
from memory_spade.memory.opening import Opening
from memory_spade.memory.paths import IN_MEMORY
from memory_spade.stock.entries import MemoryBackend, MemoryEntry


class SQLiteMemoryBackend(MemoryBackend):
    """Long-term memories of any number of agents in one file, which `memory_spade.SqliteBackend` can open as well.

    Unlike spade_llm's backend it searches by meaning, with the best match first, and `":memory:"` supports every call.
    Calls without an agent apply to the agents this object was used for.

    Args:
        db_path: The file, or `":memory:"`.
    """

    def __init__(self, db_path: str | os.PathLike[str]) -> None:
        self.is_in_memory = os.fspath(db_path) == IN_MEMORY
        self.db_path: str | Path = IN_MEMORY if self.is_in_memory else Path(db_path)
        self._opening = Opening.of_database(self.db_path)
        self._agents: dict[str, str] = {}

    async def initialize(self) -> None:
        """See `MemoryBackend`."""
        if isinstance(self.db_path, Path):
            self.db_path.parent.mkdir(parents=True, exist_ok=True)
        await self._opening.open()

    async def store_memory(self, entry: MemoryEntry) -> str:
        """See `MemoryBackend`; an entry with a known id replaces the other one."""
        handle = self._handle(entry.agent_id)
        await handle.delete_where(Where(ids=(entry.id,)))
        return (await handle.add(draft_of(entry, entry.agent_id))).id

    async def get_memories_by_category(self, agent_id: str, category: str, limit: int = 50) -> list[MemoryEntry]:
        """See `MemoryBackend`; the most recently used ones first."""
        return await self._listed(agent_id, Where(kinds=(category,)), limit)

    async def search_memories(self, agent_id: str, query: str, limit: int = 10) -> list[MemoryEntry]:
        """See `MemoryBackend`; a blank query finds nothing."""
        if limit < 1:
            return []
        hits = await self._handle(agent_id).search(cut_query(query), limit=limit)
        return _entries(agent_id, (hit.record for hit in hits))

    async def get_recent_memories(self, agent_id: str, limit: int = 10) -> list[MemoryEntry]:
        """See `MemoryBackend`."""
        return await self._listed(agent_id, Where(), limit)

    async def update_access(self, memory_id: str) -> None:
        """See `MemoryBackend`; an unknown id is ignored."""
        for agent_id in list(self._agents.values()):
            await self._handle(agent_id).list(where=Where(ids=(memory_id,)), limit=1, touch=True)

    async def delete_memory(self, memory_id: str) -> bool:
        """See `MemoryBackend`."""
        for agent_id in list(self._agents.values()):
            try:
                await self._handle(agent_id).delete(memory_id)
            except RecordNotFoundError:
                continue
            return True
        return False

    async def get_memory_stats(self, agent_id: str) -> dict[str, Any]:
        """Return `total_memories`, `category_counts`, `oldest_memory` and `newest_memory`."""
        stats = await self._handle(agent_id).stats()
        return {
            "total_memories": stats.records,
            "category_counts": dict(stats.by_kind),
            "oldest_memory": _text(stats.oldest),
            "newest_memory": _text(stats.newest),
        }

    async def cleanup(self) -> None:
        """See `MemoryBackend`; the next call opens the file again. Memories in `":memory:"` are lost."""
        await self._opening.close()

    async def _listed(self, agent_id: str, where: Where, limit: int) -> list[MemoryEntry]:
        if limit < 1:
            return []
        page = await self._handle(agent_id).list(where=where, order="accessed", limit=limit)
        return _entries(agent_id, page.records)

    def _handle(self, agent_id: str) -> BoundMemory:
        who = files.identity(agent_id)
        self._agents.setdefault(who, agent_id)
        return self._opening.handle().bind(user=who, collection=files.BASE_COLLECTION)


def _entries(agent_id: str, records: Iterable[MemoryRecord]) -> list[MemoryEntry]:
    return [_entry(agent_id, record) for record in records]


def _entry(agent_id: str, record: MemoryRecord) -> MemoryEntry:
    entry = entry_of(record, agent_id, MemoryEntry)
    entry.created_at, entry.last_accessed = _local(entry.created_at), _local(entry.last_accessed)
    return entry


def _local(moment: datetime) -> datetime:
    return moment.astimezone().replace(tzinfo=None)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else _local(moment).isoformat()
