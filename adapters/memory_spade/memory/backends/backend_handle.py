"""A custom `MemoryBackend` as the memory of tools, prompts and behaviours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Literal

from memory_core import (
    Draft,
    Hit,
    MemoryRecord,
    Page,
    Patch,
    RecordNotFoundError,
    Scope,
    ScopeError,
    UnsupportedError,
    Where,
    utc_now,
)
from memory_core.adapting import EVERYTHING, PRIVATE, Mode, Order, complete, with_context, without_context
from memory_spade import files
from memory_spade.memory.agent_base_memory import AgentBaseMemory
from memory_spade.memory.backends.base import MemoryEntry
from memory_spade.memory.backends.records import context_of
from memory_spade.memory.checks import CATEGORIES
from memory_spade.memory.exceptions import MemorySearchError, foreign


class BackendHandle:
    """An `AgentMemory` for the long-term memories of one agent in a custom backend.

    A backend keeps text, category, context and confidence; everything else of a draft is dropped. It filters by one
    category; other conditions, modes and orders raise `UnsupportedError`. All calls run on the caller's event loop, for
    which the backend was created.
    """

    def __init__(self, kept: AgentBaseMemory) -> None:
        self._kept = kept
        self._scope = Scope(app="default", user=files.identity(kept.agent_id))

    @property
    def spaces(self) -> Mapping[str, Literal["read", "write"]]:
        """None: a backend belongs to one agent."""
        return {}

    def label_of(self, record: MemoryRecord) -> None:
        """See `BoundMemory.label_of`."""

    async def add(
        self,
        entry: str | Draft,
        *,
        embed: Literal["now", "later"] = "now",  # noqa: ARG002
        space: str = PRIVATE,
    ) -> MemoryRecord:
        """See `BoundMemory.add`; the backend decides whether and when to compute a vector."""
        if space != PRIVATE:
            raise ScopeError(f"a MemoryBackend has no space {space!r}")
        draft = entry if isinstance(entry, Draft) else Draft(entry)
        if draft.kind not in CATEGORIES:
            raise UnsupportedError(
                f"a MemoryBackend keeps {', '.join(CATEGORIES)}, not a {draft.kind!r}; to remember messages, too, give "
                "the agent memory="
            )
        context = context_of(draft)
        content = without_context(draft.text, context)
        memory_id = await self._kept.store_memory(content, draft.kind, context, draft.confidence)
        return complete(replace(draft, id=memory_id), self._scope, utc_now())

    async def search(  # noqa: PLR0913  (as the core's)
        self,
        query: str,
        *,
        limit: int = 10,
        where: Where = EVERYTHING,
        mode: Mode = "hybrid",
        floor: bool = True,  # noqa: ARG002  (the backend decides what is relevant)
        explain: bool = False,
        apart: bool = False,  # noqa: ARG002  (it has no extracted facts)
        most_bytes: int | None = None,  # noqa: ARG002  (the backend has read them all)
    ) -> list[Hit]:
        """See `BoundMemory.search`; the backend determines the order."""
        if mode != "hybrid" or explain:
            raise UnsupportedError("a MemoryBackend searches in its own way: leave mode and explain out")
        found = await self._kept.search_memories(query, limit, _category(where))
        return [Hit(record, 1 / rank, None) for rank, record in enumerate(self._records(found), 1)]

    async def list(self, *, where: Where = EVERYTHING, order: Order = "newest", limit: int = 50) -> Page:
        """See `BoundMemory.list`; returns a single page."""
        if order != "newest":
            raise UnsupportedError(f"a MemoryBackend lists the newest memories first, not in the order {order!r}")
        return Page(tuple(self._records(await self._listed(_category(where), limit))), None)

    async def update(self, id: str, patch: Patch) -> MemoryRecord:  # noqa: A002  (the core's word)
        """See `BoundMemory.update`; only the text can be changed, and only id and text of the result are valid."""
        if not isinstance(patch.text, str) or replace(patch, text=Patch().text) != Patch():
            raise UnsupportedError("a MemoryBackend can only be given a new text for a memory: Patch(text=...)")
        if not await self._kept.update_memory(id, content=patch.text):
            raise RecordNotFoundError(f"there is no memory {id!r}")
        return complete(Draft(patch.text, id=id), self._scope, utc_now())

    async def delete(self, id: str) -> None:  # noqa: A002
        """See `BoundMemory.delete`."""
        if not await self._kept.delete_memory(id):
            raise RecordNotFoundError(f"there is no memory {id!r}")

    async def _listed(self, category: str | None, limit: int) -> Sequence[MemoryEntry]:
        if category is None:
            return await self._kept.get_recent_memories(limit)
        return await self._kept.get_memories_by_category(category, limit)

    def _records(self, entries: Sequence[MemoryEntry]) -> Sequence[MemoryRecord]:
        with foreign(MemorySearchError, "reading the entries of the MemoryBackend"):
            return [self._record(entry) for entry in entries]

    def _record(self, entry: MemoryEntry) -> MemoryRecord:
        created = entry.created_at.astimezone(UTC)
        draft = Draft(
            with_context(entry.content, entry.context),
            id=entry.id,
            kind=entry.category,
            data={} if entry.context is None else {"context": entry.context},
            occurred_at=created,
        )
        return complete(draft, self._scope, created)


def _category(where: Where) -> str | None:
    if replace(where, kinds=None) != EVERYTHING or (where.kinds is not None and len(where.kinds) != 1):
        raise UnsupportedError(f"a MemoryBackend filters by one category, not by {where}")
    return None if where.kinds is None else where.kinds[0]
