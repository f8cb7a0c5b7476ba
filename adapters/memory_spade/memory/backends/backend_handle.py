"""Somebody's `MemoryBackend` as a handle of the core, for tools, recall and behaviours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any, Final, NoReturn

from memory_core import (
    BoundMemory,
    Draft,
    Hit,
    Hits,
    InvalidInputError,
    Memory,
    MemoryRecord,
    Page,
    Patch,
    RecordNotFoundError,
    Scope,
    Where,
    utc_now,
)
from memory_core.adapting import complete
from memory_spade import files
from memory_spade.memory.agent_base_memory import AgentBaseMemory
from memory_spade.memory.backends.base import MemoryEntry

EVERYTHING: Final = Where()


class _Elsewhere(Memory):
    """What stands behind the handle for all that a backend cannot do."""

    async def ready(self) -> NoReturn:
        raise InvalidInputError("a MemoryBackend can add, search, list, update and delete memories, and nothing else")


class BackendHandle(BoundMemory):
    """The long-term memories of one agent, wherever its backend keeps them.

    What a backend cannot hold (who said it, in which conversation) is dropped, and of conditions it knows one kind.
    Everything happens on the caller's event loop, which is the one a backend was made for.
    """

    def __init__(self, kept: AgentBaseMemory) -> None:
        super().__init__(_Elsewhere(":memory:"), Scope(app="default", user=files.identity(kept.agent_id)))
        self._kept = kept

    async def add(self, entry: str | Draft, **_: object) -> MemoryRecord:
        """See `BoundMemory.add`."""
        draft = entry if isinstance(entry, Draft) else Draft(entry)
        reason = draft.data.get("context")
        memory_id = await self._kept.store_memory(
            draft.text, draft.kind, reason if isinstance(reason, str) else None, draft.confidence
        )
        return complete(replace(draft, id=memory_id), self.scope, utc_now())

    async def search(self, query: str, *, limit: int = 10, where: Where = EVERYTHING, **_: Any) -> Hits:
        """See `BoundMemory.search`; the order is the backend's."""
        found = await self._kept.search_memories(query, limit, _category(where))
        return Hits(Hit(self._record(entry), 1 / rank, None) for rank, entry in enumerate(found, 1))

    async def list(self, *, where: Where = EVERYTHING, limit: int = 50, **_: Any) -> Page:
        """See `BoundMemory.list`; one page."""
        return Page(tuple(map(self._record, await self._listed(_category(where), limit))), None)

    async def update(
        self,
        id: str,  # noqa: A002  (the core's word)
        patch: Patch,
        *,
        expected_version: int | None = None,
    ) -> MemoryRecord:
        """See `BoundMemory.update`; only the text can be changed, and only id and text of what returns are right."""
        if expected_version is not None:
            raise InvalidInputError("a backend of your own counts no versions; leave expected_version out")
        if not isinstance(patch.text, str):
            raise InvalidInputError("a backend of your own can only be given a new text for a memory")
        if not await self._kept.update_memory(id, content=patch.text):
            raise RecordNotFoundError(f"there is no memory {id!r}")
        return complete(Draft(patch.text, id=id), self.scope, utc_now())

    async def delete(self, id: str) -> None:  # noqa: A002
        """See `BoundMemory.delete`."""
        if not await self._kept.delete_memory(id):
            raise RecordNotFoundError(f"there is no memory {id!r}")

    async def _listed(self, category: str | None, limit: int) -> Sequence[MemoryEntry]:
        if category is None:
            return await self._kept.get_recent_memories(limit)
        return await self._kept.get_memories_by_category(category, limit)

    def _record(self, entry: MemoryEntry) -> MemoryRecord:
        created = entry.created_at.astimezone(UTC)
        draft = Draft(
            entry.content,
            id=entry.id,
            kind=entry.category,
            data={} if entry.context is None else {"context": entry.context},
            occurred_at=created,
        )
        return complete(draft, self.scope, created)


def _category(where: Where) -> str | None:
    return where.kinds[0] if where.kinds else None
