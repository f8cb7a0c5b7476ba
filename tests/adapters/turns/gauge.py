"""The cost of a turn: calls of this project's functions, and drafts that the store is given. Never time."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import memory_core
from memory_core import MemoryRecord, Scope
from memory_core.adapting import on_core
from memory_core.storage.sqlite.store import SqliteStore

_CORE: Final = Path(memory_core.__file__).parent
PLACES: Final = (f"{_CORE}/", f"{_CORE.parent / 'adapters'}/")
"""The folders of the code files of this project."""


class CountingStore(SqliteStore):
    """Counts the records that it is given."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, embedder=None, clock=lambda: datetime.now(UTC))
        self.given = 0

    async def add(self, scope: Scope, records: Sequence[MemoryRecord], **options: Any) -> list[MemoryRecord | None]:
        self.given += len(records) if len(records) > 1 else 0  # one alone goes through `begin_add`
        return await super().add(scope, records, **options)

    def begin_add(self, scope: Scope, record: MemoryRecord, *args: Any, **options: Any) -> None:
        self.given += 1
        super().begin_add(scope, record, *args, **options)

    async def put(self, scope: Scope, records: Sequence[MemoryRecord], **options: Any) -> list[MemoryRecord]:
        self.given += len(records)
        return await super().put(scope, records, **options)


class Gauge:
    """Measures one turn, in every thread that is running or begins meanwhile."""

    def __init__(self, store: CountingStore) -> None:
        self._store = store
        self.drafts = 0
        """The number of drafts that the store was given during the turn."""
        self._is_ours: dict[CodeType, bool] = {}
        self._counted: Counter[CodeType] = Counter()
        self._on = False

    async def measure(self, turn: Callable[[], Awaitable[object]]) -> None:
        """Run a turn, and count."""
        await self._profile(self._count)
        before, self._on = self._store.given, True
        try:
            await turn()
        finally:
            self._on = False
            await self._profile(None)
        self.drafts = self._store.given - before

    @property
    def calls(self) -> int:
        """Calls of functions of this project during the turn, resumed generators included."""
        return self._counted.total()

    def most(self, count: int) -> list[str]:
        """The functions that were called most, for a failure's message."""
        return [
            f"{number} {Path(code.co_filename).relative_to(_CORE.parent)}:{code.co_firstlineno} {code.co_qualname}"
            for code, number in self._counted.most_common(count)
        ]

    async def _profile(self, count: Callable[[FrameType, str, object], object] | None) -> None:
        async def of_core_loop() -> None:
            sys.setprofile(count)

        await on_core(of_core_loop)
        threading.setprofile(count)
        sys.setprofile(count)

    def _count(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self._on:
            return
        code = frame.f_code
        ours = self._is_ours.get(code)
        if ours is None:
            ours = self._is_ours[code] = code.co_filename.startswith(PLACES)
        if ours:
            self._counted[code] += 1
