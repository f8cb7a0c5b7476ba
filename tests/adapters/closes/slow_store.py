"""A store that takes its time for every write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

from memory_core import ClosedError, Deleted, ErasureReceipt, Hit, MemoryRecord, Page, Patch, Scope, Version, Where
from memory_core.requests import ListRequest, SearchRequest
from memory_core.storage.sqlite.store import SqliteStore

WRITE_SECONDS = 0.2
# Named, because the store has a method `list`.
Stored = list[MemoryRecord | None]
Put = list[MemoryRecord]
Versions = list[Version]
Hits = list[Hit]


def at(path: Path) -> SqliteStore:
    """The store of a file, without an embedder."""
    return SqliteStore(path, embedder=None, clock=lambda: datetime.now(UTC))


class SlowStore:
    """A store behind a slow line, as `Store` wants it: every write takes a while, and is done before the
    store is closed.

    Args:
        behind: The store itself.
        one_by_one: True if writes wait for each other.
    """

    def __init__(self, behind: SqliteStore, *, one_by_one: bool) -> None:
        self._behind = behind
        self._turn = asyncio.Lock() if one_by_one else nullcontext()
        self._accepted = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._is_closed = False

    async def open(self) -> None:
        await self._behind.open()

    async def close(self) -> None:
        self._is_closed = True
        await self._is_idle.wait()
        await self._behind.close()

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> Hits:
        return await self._behind.search(scopes, request)

    async def list(self, scope: Scope, request: ListRequest) -> Page:
        return await self._behind.list(scope, request)

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        versions: Mapping[str, int] | None = None,
    ) -> Stored:
        async with self._writing():
            return await self._behind.add(scope, records, embed_later=embed_later, versions=versions)

    async def update(self, scope: Scope, id: str, patch: Patch, *, expected_version: int | None) -> MemoryRecord:  # noqa: A002
        async with self._writing():
            return await self._behind.update(scope, id, patch, expected_version=expected_version)

    async def delete(
        self,
        scope: Scope,
        where: Where,
        *,
        forget: bool,
        versions: Mapping[str, int] | None = None,
        keeps_derived: bool = False,
    ) -> Deleted:
        async with self._writing():
            return await self._behind.delete(
                scope, where, forget=forget, versions=versions, keeps_derived=keeps_derived
            )

    async def erase(self, scope: Scope) -> ErasureReceipt:
        async with self._writing():
            return await self._behind.erase(scope)

    async def put(
        self, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str], embed_later: bool
    ) -> Put:
        async with self._writing():
            return await self._behind.put(scope, records, remove=remove, embed_later=embed_later)

    async def versions(self, scope: Scope, id: str) -> Versions:  # noqa: A002
        return await self._behind.versions(scope, id)

    async def postpone(self, scope: Scope, expiries: Mapping[str, datetime | None]) -> None:
        async with self._writing():
            await self._behind.postpone(scope, expiries)

    async def sweep(self, scope: Scope) -> int:
        async with self._writing():
            return await self._behind.sweep(scope)

    @asynccontextmanager
    async def _writing(self) -> AsyncGenerator[None]:
        if self._is_closed:
            raise ClosedError("this memory was closed")
        self._accepted += 1
        self._is_idle.clear()
        try:
            async with self._turn:
                await asyncio.sleep(WRITE_SECONDS)
                yield
        finally:
            self._accepted -= 1
            if not self._accepted:
                self._is_idle.set()
