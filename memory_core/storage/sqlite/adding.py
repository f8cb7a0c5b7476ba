"""Queue single adds, embed them in batches and pass them to the writer.

Adds that arrive while others are being embedded are prepared and embedded together in one call, because most models
are faster in batches. Owners take turns: an add waits for one batch, however many another owner has sent before. Long
texts, whose vectors take much longer, are embedded beside the queue, those of each owner together.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Final, NamedTuple

from memory_core.concurrency.loop import answer
from memory_core.concurrency.threads import in_slices
from memory_core.errors import ClosedError
from memory_core.models import MemoryRecord, Quota, Scope
from memory_core.storage.shared.embedding_batches import with_vectors
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.shared.turns import Turns
from memory_core.storage.sqlite.adds import Adds
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.rows import by_source_key
from memory_core.supplied import Embedder
from memory_core.values.long_texts import is_long

MOST_TOGETHER: Final = 64
"""Most adds embedded in one call; limits how long the first of them waits."""
FEW_PIECES: Final = 2
"""A text with more pieces is long here: the adds of other owners do not wait for its vectors."""
_Owner = tuple[str | None, str | None]


class _Waiting(NamedTuple):
    scope: Scope
    embed_later: bool
    quota: Quota | None
    done: asyncio.Future[MemoryRecord | None]
    item: Prepared


class AddQueue:
    """Prepares the adds of each owner in order of arrival. Used on the core loop only.

    Args:
        prepare: Analyses a record.
        embed: Computes the vectors of batches.
        claim: Called before texts are written; see `SharedFile.claim`.
    """

    def __init__(
        self,
        writer: Writer,
        prepare: Callable[[MemoryRecord], Prepared],
        embed: Callable[[Sequence[Batch]], Awaitable[list[list[Prepared]]]],
        claim: Callable[[], Awaitable[None]],
    ) -> None:
        self._writer = writer
        self._prepare = prepare
        self._embed = embed
        self._claim = claim
        self._queue: Turns[_Owner, _Waiting] = Turns()
        self._long: dict[_Owner, list[_Waiting]] = {}
        """Adds of long texts that wait, of each owner some of whose are being embedded."""
        self._arrival = asyncio.Event()
        self._closed = False
        self._preparing: set[asyncio.Task[None]] = set()
        """Work on long texts; other adds do not wait for it."""
        self._task = asyncio.create_task(self._serve(), name="memory-core add_queue")

    def put(
        self,
        scope: Scope,
        record: MemoryRecord,
        done: asyncio.Future[MemoryRecord | None],
        *,
        embed_later: bool,
        quota: Quota | None,
    ) -> None:
        """See `Adding.begin_add`; cancelling `done` before the writer has the record withdraws the record."""
        if self._closed:
            raise ClosedError("this memory was closed; make a new Memory to open it again")
        waiting = partial(_Waiting, scope, embed_later, quota, done)
        if is_long(record.text):
            self._begin(self._put_long(record, done, waiting))
        else:
            self._enqueue(waiting(self._prepare(record)))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)

    async def close(self) -> None:
        """Pass everything that was accepted to the writer."""
        self._closed = True
        while self._preparing:
            await asyncio.wait(self._preparing)
        self._arrival.set()
        await self._task

    async def _put_long(
        self, record: MemoryRecord, done: asyncio.Future[MemoryRecord | None], waiting: Callable[[Prepared], _Waiting]
    ) -> None:
        try:
            item = await in_slices(self._prepare, record)
        except BaseException as error:  # noqa: BLE001  (whatever it was, it is the caller's)
            answer([(done, None, error)])
        else:
            self._enqueue(waiting(item))

    def _enqueue(self, waiting: _Waiting) -> None:
        owner = waiting.scope.app, waiting.scope.user
        if waiting.embed_later or len(waiting.item.chunks) <= FEW_PIECES:
            self._queue.put(owner, waiting)
            self._arrival.set()
        elif owner in self._long:
            self._long[owner].append(waiting)
        else:
            self._long[owner] = [waiting]
            self._begin(self._pass_on_long(owner))

    async def _pass_on_long(self, owner: _Owner) -> None:
        """Pass on the long texts of an owner, those together that wait while others are being embedded."""
        while waiting := self._long[owner]:
            self._long[owner] = waiting[MOST_TOGETHER:]
            await self._writer.has_room()
            group = [one for one in waiting[:MOST_TOGETHER] if not one.done.done()]
            if group:
                await self._pass_on(group, embed_later=False)
        del self._long[owner]

    async def _serve(self) -> None:
        while self._queue or self._preparing or not self._closed:
            await self._arrival.wait()
            await self._writer.has_room()
            group = self._queue.take(MOST_TOGETHER)
            if not self._queue and (self._preparing or not self._closed):
                self._arrival.clear()
            for later in (True, False):
                some = [waiting for waiting in group if waiting.embed_later is later and not waiting.done.done()]
                if some:
                    await self._pass_on(some, embed_later=later)

    async def _pass_on(self, group: Sequence[_Waiting], *, embed_later: bool) -> None:
        try:
            await self._hand_over(group, embed_later=embed_later)
        except Exception as error:  # noqa: BLE001  (any error: every caller of this group gets it)
            answer([(waiting.done, None, error) for waiting in group])

    async def _hand_over(self, group: Sequence[_Waiting], *, embed_later: bool) -> None:
        await self._claim()
        by_scope: dict[tuple[Scope, Quota | None], list[_Waiting]] = {}
        for waiting in group:
            by_scope.setdefault((waiting.scope, waiting.quota), []).append(waiting)
        batches = [(scope, [waiting.item for waiting in some]) for (scope, _), some in by_scope.items()]
        ready = [items for _, items in batches] if embed_later else await self._embed(batches)
        for ((scope, quota), some), items in zip(by_scope.items(), ready, strict=True):
            wanted = [(item, one.done) for one, item in zip(some, items, strict=True) if not one.done.done()]
            if wanted:
                adds = Adds(scope, [item for item, _ in wanted], quota)
                self._writer.enqueue(adds, [done for _, done in wanted])


Batch = tuple[Scope, Sequence[Prepared]]
"""New records of one owner, in the order of writing."""


async def embedded(embedder: Embedder | None, reader: Readers, batches: Sequence[Batch]) -> list[list[Prepared]]:
    """The batches with vectors, from one call of the embedder, or without them if there is no embedder or it fails; see
    `embedding_batches.with_vectors`."""
    if embedder is None:
        return [list(batch) for _, batch in batches]
    kept, items = await _stored(reader, batches), [item for _, batch in batches for item in batch]
    ready = iter(await with_vectors(embedder, items, kept=kept))
    return [[next(ready) for _ in batch] for _, batch in batches]


async def _stored(reader: Readers, batches: Sequence[Batch]) -> set[str]:
    """The ids of records stored with the same source key and text; reads at most once."""
    if any(item.record.source_key is not None for _, batch in batches for item in batch):
        found = await reader.run(lambda db: [_stored_of(db, scope, batch) for scope, batch in batches])
        return {id for some in found for id in some}  # noqa: A001
    return set()


def _stored_of(db: sqlite3.Connection, scope: Scope, batch: Sequence[Prepared]) -> set[str]:
    owner = find(db, scope)
    sources = [item.record.source_key for item in batch if item.record.source_key is not None]
    known = by_source_key(db, scope, owner, sources) if owner is not None and sources else {}
    texts = {source: row.record.text for source, row in known.items()}
    return {item.record.id for item in batch if texts.get(item.record.source_key or "") == item.record.text}
