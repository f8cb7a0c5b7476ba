"""Background work: pending vectors, expired records, and unfinished writes of dead processes.

A vector is pending when a record was added with `embed="later"` or when the embedder failed. Until it is computed, the
record is found by its words. Each reason has a unique name in the payload, and storing a vector names the reason it
settles: a vector that became pending again meanwhile stays pending.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from memory_core.errors import EmbeddingError, StorageError, reason_for_log
from memory_core.models import Scope
from memory_core.protocols import Clock, Embedder
from memory_core.storage.qdrant.changes import Changes
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import TEXT, Stored, dense, owner_key, to_stored, token
from memory_core.storage.qdrant.ledger import GRACE
from memory_core.storage.qdrant.retry import MissingPointError
from memory_core.storage.qdrant.where import Clause, all_of, among, any_of, empty, owned, same
from memory_core.storage.qdrant.writing import Access, ConflictError, apply, carry_out, removal
from memory_core.storage.shared.prepared import embed, texts_to_embed

logger = logging.getLogger(__name__)

BATCH: Final = 128
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
ROUND_SECONDS: Final = 600.0
"""How often expired records and unfinished writes of other processes are looked for."""


class PendingVectors:
    """The task of this background work. Lives on the core loop.

    Args:
        embedder: `None` for a process that cannot compute vectors and leaves them to others.
    """

    def __init__(self, access: Access, embedder: Embedder | None, clock: Clock) -> None:
        self._access = access
        self._embedder = embedder
        self._clock = clock
        self._wake = asyncio.Event()
        self._embedding = asyncio.Lock()
        self._task = asyncio.create_task(self._serve(), name="memory-core qdrant pending_vectors")

    def wake(self) -> None:
        """Signal that vectors may be pending."""
        self._wake.set()

    async def drain(self, scope: Scope | None = None) -> None:
        """Compute all vectors pending now, of one or all owners; raises `EmbeddingError` if the embedder fails."""
        if self._embedder is None:
            return
        async with self._embedding:
            tried: set[str] = set()
            while batch := await self._next(scope):
                reasons = {item.pending for item in batch if item.pending is not None}
                if reasons <= tried:
                    logger.warning("%d vectors stay pending: their records keep changing", len(batch))
                    return
                tried |= reasons
                await self._embed(self._embedder, batch)

    async def close(self) -> None:
        """Stop; the next process does the remaining work."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _serve(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        until_round = 0.0
        loop = asyncio.get_running_loop()
        while True:
            try:
                if loop.time() >= until_round:
                    waiting = await self._finish_abandoned()
                    await self._sweep()
                    until_round = loop.time() + (GRACE.total_seconds() if waiting else ROUND_SECONDS)
                self._wake.clear()
                await self.drain()
                pause = FIRST_PAUSE_SECONDS
            except (EmbeddingError, StorageError) as error:
                logger.warning("vectors are still pending, next try in %.0f s: %s", pause, reason_for_log(error))
                pause = await self._rest(pause)
                continue
            try:
                await asyncio.wait_for(self._wake.wait(), max(until_round - loop.time(), 1.0))
            except TimeoutError:
                continue

    @staticmethod
    async def _rest(pause: float) -> float:
        await asyncio.sleep(pause)
        return min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _finish_abandoned(self) -> bool:
        """Apply the journals of dead processes; returns whether there are younger journals to check later."""
        journals, younger = await self._access.ledger.abandoned()
        for journal in journals:
            if journal.text is not None:
                changes = Changes.from_json(journal.text)
                logger.info("finishing a write of %d points that another process left behind", len(changes))
                async with self._access.locks.of(changes.scope):
                    await apply(self._access, changes)
            await self._access.ledger.strike(journal.id)
        return younger

    async def _sweep(self) -> None:
        """Delete expired records, so that they do not stay on disk."""
        gone = models.FieldCondition(key="expires_at", range=models.DatetimeRange(lte=self._clock()))
        found = await self._access.records.all(all_of(gone), fields=True)
        by_owner: dict[Scope, list[Stored]] = {}
        for record in found:
            stored = to_stored(str(record.id), record.payload)
            by_owner.setdefault(Scope(stored.record.app, stored.record.user), []).append(stored)
        for scope, items in by_owner.items():
            async with self._access.locks.of(scope):
                try:
                    await carry_out(self._access, await removal(self._access, scope, items), token())
                except ConflictError:  # deletions do not conflict
                    logger.debug("sweeping was disturbed")

    async def _next(self, scope: Scope | None) -> list[Stored]:
        """Some records with pending vectors."""
        where: list[Clause] = [] if scope is None else [owned(scope)]
        request = models.QueryRequest(
            filter=all_of(*where, but_not=[empty("_pending")]), limit=BATCH, with_payload=True
        )
        (found,) = await self._access.records.query([request])
        return [to_stored(str(record.id), record.payload) for record in found]

    async def _embed(self, embedder: Embedder, batch: Sequence[Stored]) -> None:
        """Compute and store the vectors of records as they are now."""
        texts = [texts_to_embed(item.record.text, item.spans) for item in batch]
        blobs = iter(await embed(embedder, [text for some in texts for text in some]))
        vectors = [
            models.PointVectors(id=item.point, vector={TEXT: dense([next(blobs) for _ in some])})
            for item, some in zip(batch, texts, strict=True)
        ]
        by_owner: dict[str, list[int]] = {}
        for n, item in enumerate(batch):
            by_owner.setdefault(owner_key(Scope(item.record.app, item.record.user)), []).append(n)
        for key, mine in by_owner.items():
            await self._store(key, [(batch[n], vectors[n]) for n in mine])

    async def _store(self, owner: str, embedded: Sequence[tuple[Stored, models.PointVectors]]) -> None:
        points = self._access.records.for_owner(owner)
        unchanged = all_of(any_of("_pending", [item.pending for item, _ in embedded if item.pending is not None]))
        try:
            await points.write(points.set_vectors([vectors for _, vectors in embedded], unchanged))
        except MissingPointError:  # one of them was deleted meanwhile
            if len(embedded) == 1:
                return
            for one in embedded:
                await self._store(owner, [one])
            return
        await points.write(
            *(
                points.set_fields({"_pending": None}, all_of(among([item.point]), same("_pending", item.pending or "")))
                for item, _ in embedded
            )
        )
