"""Measures one operation at a time, from quiet to quiet."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from memory_core import Memory
from memory_core.adapting import on_core
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.storage.sqlite.owners import lacks_vectors
from memory_core.storage.sqlite.store import SqliteStore
from tests.budget.counting import Counter, Work

DIMENSIONS: Final = 64
_PAUSE: Final = 0.002
Operation = Callable[[], Awaitable[object]]


def opened(path: Path) -> Memory:
    """A memory whose clock and vectors are the same in every run."""
    seconds = itertools.count()
    start = datetime(2024, 5, 6, tzinfo=UTC)
    return Memory(
        path, embedder=HashingEmbedder(dimensions=DIMENSIONS), clock=lambda: start + timedelta(seconds=next(seconds))
    )


class Measuring:
    """Counts operations on the memory of one file."""

    def __init__(self, counter: Counter, memory: Memory, path: Path) -> None:
        self._counter = counter
        self._memory = memory
        self._path = path

    async def count(self, operation: Operation, *, opens: bool = False) -> Work:
        """The work of an operation, with all that it leaves to the background; `opens` if it opens the memory."""
        if not opens:
            await self._quiet()
        work = await self._counted(operation)
        return work.less(await self._counted(_nothing))  # the work of `_quiet` itself

    async def _counted(self, operation: Operation) -> Work:
        self._counter.start()
        try:
            await operation()
            await self._quiet()
        finally:
            work = self._counter.stop()
        return work

    async def _quiet(self) -> None:
        """Return when no vector is pending and no thread of the memory has anything left to do."""
        while self._is_pending():  # noqa: ASYNC110  (nothing announces it without being counted)
            await asyncio.sleep(_PAUSE)
        await on_core(self._drain)

    def _is_pending(self) -> bool:
        with self._counter.unseen(), closing(sqlite3.connect(self._path)) as db:
            return lacks_vectors(db)

    async def _drain(self) -> None:
        """Wait behind all work in the threads of both connections; twice, because its end may cause more."""
        store = await self._memory.ready()
        assert isinstance(store, SqliteStore)
        file = store._shared  # pyright: ignore[reportPrivateUsage]  (of our own: no operation waits for both threads)
        for connection in (file.write_connection, file.reader) * 2:
            await connection.run(lambda _: None)


async def _nothing() -> None: ...
