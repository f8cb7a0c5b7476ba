"""A backend that stores long-term memories through handles of the core."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

from memory_core import (
    BoundMemory,
    Json,
    MemoryCoreError,
    MemoryRecord,
    Page,
    Patch,
    RecordNotFoundError,
    Where,
    utc_now,
)
from memory_core.adapting import core_loop, cut_query, reason_for_log, with_context
from memory_spade import files
from memory_spade.memory.backends.base import MemoryBackend, MemoryEntry
from memory_spade.memory.backends.records import draft_of, entry_of
from memory_spade.memory.checks import CATEGORIES, checked_category, checked_content
from memory_spade.memory.exceptions import (
    MemoryBackendError,
    MemoryInitializationError,
    MemorySearchError,
    MemoryStorageError,
    reported_as,
)
from memory_spade.memory.place import Place

logger = logging.getLogger(__name__)

UPDATABLE: Final = ("content", "category", "context", "confidence")


class HandleBackend(MemoryBackend):
    """A backend on a place, with a handle for each agent.

    Searches and reads by category count as accesses of the returned memories, recorded in one write. Reading recent
    memories does not count, so that repeated calls return the same list. A search returns before its write; later calls
    wait for that write. Update and delete, which name no agent, apply to those for which this object was used before.

    Args:
        place: The place that `initialize` opens and `cleanup` closes.
        handle: Returns the handle of an agent's `identity`; by default that of the agent's own partition in the place.
        agent_id: The only agent whose memories it touches; by default, it serves any number.
    """

    def __init__(
        self,
        place: Place,
        *,
        handle: Callable[[str], BoundMemory] | None = None,
        agent_id: str | None = None,
    ) -> None:
        self._place = place
        self._handle = handle or self._partition
        self._only = None if agent_id is None else files.identity(agent_id)
        self._agents: set[str] = set() if self._only is None else {self._only}
        self._counting: Future[Page] | None = None

    def for_agent(self, agent_id: str) -> HandleBackend:
        """The same storage for one agent only; `initialize` and `cleanup` still concern all of it."""
        return HandleBackend(self._place, handle=self._handle, agent_id=agent_id)

    async def initialize(self) -> None:
        """See `MemoryBackend`; raises `MemoryInitializationError`."""
        with reported_as(MemoryInitializationError):
            await self._place.open()

    async def store_memory(self, entry: MemoryEntry) -> str:
        """See `MemoryBackend`; raises `MemoryStorageError`, also if the id is already in use."""
        with reported_as(MemoryStorageError):
            checked_content(entry.content)
            checked_category(entry.category, MemoryStorageError)
            draft = draft_of(entry, entry.agent_id)
            return (await self._of_agent(entry.agent_id).add(draft)).id

    async def search_memories(
        self, agent_id: str, query: str, limit: int = 10, category: str | None = None
    ) -> list[MemoryEntry]:
        """See `MemoryBackend`; raises `MemorySearchError`."""
        with reported_as(MemorySearchError):
            handle = self._of_agent(agent_id)
            hits = await handle.search(cut_query(query), limit=limit, where=_of(category))
            return self._used(handle, agent_id, [hit.record for hit in hits])

    async def get_memories_by_category(self, agent_id: str, category: str, limit: int = 10) -> list[MemoryEntry]:
        """See `MemoryBackend`; raises `MemorySearchError`."""
        with reported_as(MemorySearchError):
            page = await self._of_agent(agent_id).list(where=_of(category), limit=limit, touch=True)
            return [entry_of(record, agent_id) for record in page.records]

    async def get_recent_memories(self, agent_id: str, limit: int = 10) -> list[MemoryEntry]:
        """See `MemoryBackend`; raises `MemorySearchError`."""
        await self.counted()
        with reported_as(MemorySearchError):
            page = await self._of_agent(agent_id).list(order="accessed", limit=limit)
            return [entry_of(record, agent_id) for record in page.records]

    async def update_memory(self, memory_id: str, **updates: Any) -> bool:
        """See `MemoryBackend`; `None` leaves a field as it is. Raises `MemoryStorageError`."""
        unknown = set(updates) - set(UPDATABLE)
        if unknown:
            raise MemoryStorageError(f"a memory has no {', '.join(sorted(unknown))} to update; it has {UPDATABLE}")
        given = {name: value for name, value in updates.items() if value is not None}
        with reported_as(MemoryStorageError):
            for handle in self._every_handle():
                record = await handle.get(memory_id)
                if record is not None:
                    return await _done(handle.update(memory_id, _patch(record, given)))
            return False

    async def delete_memory(self, memory_id: str) -> bool:
        """See `MemoryBackend`; raises `MemoryStorageError`."""
        with reported_as(MemoryStorageError):
            return any([await _done(handle.delete(memory_id)) for handle in self._every_handle()])

    async def get_memory_stats(self, agent_id: str) -> dict[str, Any]:
        """Return the document's keys, and spade_llm's own `category_counts` with the same value as `categories`."""
        with reported_as(MemorySearchError):
            stats = await self._of_agent(agent_id).stats()
        categories = {**dict.fromkeys(CATEGORIES, 0), **stats.by_kind}
        return {
            "total_memories": stats.records,
            "categories": categories,
            "category_counts": dict(categories),
            "avg_confidence": stats.average_confidence or 0.0,
            "oldest_memory": files.timestamp(stats.oldest),
            "newest_memory": files.timestamp(stats.newest),
        }

    async def cleanup(self) -> None:
        """See `MemoryBackend`."""
        await self.counted()
        with reported_as(MemoryBackendError):
            await self._place.close()

    async def counted(self) -> None:
        """Wait until the accesses of earlier searches are recorded; failures are logged."""
        counting, self._counting = self._counting, None
        if counting is not None:
            try:
                await asyncio.wrap_future(counting)
            except MemoryCoreError as error:
                logger.warning("a search of an agent's memories was not counted: %s", reason_for_log(error))

    def _of_agent(self, agent_id: str) -> BoundMemory:
        who = files.identity(agent_id)
        if self._only not in (None, who):
            raise MemorySearchError(f"these are the memories of {self._only!r}, not of {agent_id!r}")
        self._agents.add(who)
        return self._handle(who)

    def _partition(self, agent: str) -> BoundMemory:
        return self._place.handle().bind(user=agent, collection=files.BASE_COLLECTION)

    def _every_handle(self) -> list[BoundMemory]:
        return [self._handle(who) for who in self._agents]

    def _used(self, handle: BoundMemory, agent_id: str, records: Sequence[MemoryRecord]) -> list[MemoryEntry]:
        if records:
            touched = handle.list(where=Where(ids=[each.id for each in records]), limit=len(records), touch=True)
            self._counting = core_loop().submit(touched)
        now = utc_now()
        counted = (replace(each, accessed_at=now, access_count=each.access_count + 1) for each in records)
        return [entry_of(record, agent_id) for record in counted]


def _patch(record: MemoryRecord, given: Mapping[str, Any]) -> Patch:
    """The changes of a record whose entry gets the given fields."""
    known = entry_of(record, "")
    context = given.get("context", known.context)
    data: dict[str, Json] = {**record.data, **({} if context is None else {"context": context})}
    return Patch(
        text=with_context(checked_content(given.get("content", known.content)), context),
        kind=checked_category(given["category"], MemoryStorageError) if "category" in given else record.kind,
        confidence=given.get("confidence", record.confidence),
        data=data,
    )


async def _done(change: Awaitable[object]) -> bool:
    """True if the record of a change was there."""
    try:
        await change
    except RecordNotFoundError:
        return False
    return True


def _of(category: str | None) -> Where:
    return Where() if category is None else Where(kinds=(checked_category(category, MemorySearchError),))
