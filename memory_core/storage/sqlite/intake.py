"""Single adds on their way to the writer.

Adds that arrive while others are embedded are prepared and embedded together, in one call: for a model that is faster
by the batch, and for turns of one session it decides which of them comes before which.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memory_core.models import MemoryRecord, Scope
from memory_core.storage.sqlite.prepared import Prepared
from memory_core.storage.sqlite.vectors import Batch
from memory_core.storage.sqlite.writer import Writer
from memory_core.storage.sqlite.writing import Insertion

MOST_TOGETHER: Final = 64
"""Most adds that are embedded in one call; bounds how long the first of them waits."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    scope: Scope
    record: MemoryRecord
    done: asyncio.Future[list[MemoryRecord | None]]


class Intake:
    """Prepares adds in the order they came. Lives on the core loop.

    Args:
        prepare: Analyses a record.
        embed: Gives batches their vectors.
    """

    def __init__(
        self,
        writer: Writer,
        prepare: Callable[[MemoryRecord], Prepared],
        embed: Callable[[Sequence[Batch]], Awaitable[list[list[Prepared]]]],
    ) -> None:
        self._writer = writer
        self._prepare = prepare
        self._embed = embed
        self._queue: deque[_Waiting] = deque()
        self._arrival = asyncio.Event()
        self._closed = False
        self._task = asyncio.create_task(self._serve(), name="memory-core intake")

    async def add(self, scope: Scope, record: MemoryRecord) -> MemoryRecord | None:
        """See `Records.add`; a caller that is cancelled before the writer has its record takes it back."""
        done: asyncio.Future[list[MemoryRecord | None]] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(scope, record, done))
        self._arrival.set()
        return (await done)[0]

    async def close(self) -> None:
        """Hand everything that was accepted to the writer."""
        self._closed = True
        self._arrival.set()
        await self._task

    async def _serve(self) -> None:
        while self._queue or not self._closed:
            await self._arrival.wait()
            group = [self._queue.popleft() for _ in range(min(len(self._queue), MOST_TOGETHER))]
            if not self._queue and not self._closed:
                self._arrival.clear()
            try:
                await self._hand_over([waiting for waiting in group if not waiting.done.done()])
            except Exception as error:  # noqa: BLE001  (whatever it was, every caller of this group must hear of it)
                for waiting in group:
                    if not waiting.done.done():
                        waiting.done.set_exception(error)

    async def _hand_over(self, group: Sequence[_Waiting]) -> None:
        by_scope: dict[Scope, list[_Waiting]] = {}
        for waiting in group:
            by_scope.setdefault(waiting.scope, []).append(waiting)
        batches = [(scope, [self._prepare(waiting.record) for waiting in some]) for scope, some in by_scope.items()]
        embedded = await self._embed(batches) if batches else []
        for (scope, some), batch in zip(by_scope.items(), embedded, strict=True):
            for waiting, item in zip(some, batch, strict=True):
                if not waiting.done.done():
                    self._writer.enqueue(Insertion(scope, [item]), waiting.done)
