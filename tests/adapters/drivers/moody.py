"""A store that works, hangs or fails, as a test tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory_core import Hit, MemoryRecord, Scope, StoreUnavailableError
from memory_core.requests import SearchRequest
from memory_core.storage.sqlite.store import SqliteStore


class Moody(SqliteStore):
    """A file whose searches and adds follow its mood."""

    mood = "well"

    def __init__(self, path: Path) -> None:
        super().__init__(path, embedder=None, clock=lambda: datetime.now(UTC))

    async def _suffer(self) -> None:
        while self.mood == "hangs":  # noqa: ASYNC110  (the test sets it in another thread)
            await asyncio.sleep(0.01)
        if self.mood == "fails":
            raise StoreUnavailableError("out of reach")

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        await self._suffer()
        return await super().search(scopes, request)

    async def add(self, scope: Scope, records: Sequence[MemoryRecord], **options: Any) -> list[MemoryRecord | None]:
        await self._suffer()
        return await super().add(scope, records, **options)
