"""Background work: pending vectors, texts that an older version analysed, and the sweep of `removal.py`.

A vector is pending when a record was added with `embed="later"` or when the embedder failed; until it is computed, the
record is found by its words. Each kind of work is found through an index, so that asking costs the same however many
records there are, and each point is changed in one conditional update: work that another process did, or that became
out of date meanwhile, does nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from memory_core.errors import EmbeddingError, StorageError, reason_for_log
from memory_core.models import Fingerprint
from memory_core.protocols import Clock, Embedder
from memory_core.retrieval.features import ANALYSIS
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import PENDING, STORED_FIELDS, Stored, analysed, rows_of, to_stored
from memory_core.storage.qdrant.collection import EpochError
from memory_core.storage.qdrant.owners import Access, Owner, to_owner
from memory_core.storage.qdrant.removal import sweep
from memory_core.storage.qdrant.retry import UnansweredError
from memory_core.storage.qdrant.where import Clause, all_of, beyond, same
from memory_core.storage.qdrant.writing import Changes, OvertakenError
from memory_core.storage.shared.prepared import embed, texts_to_embed

logger = logging.getLogger(__name__)

BATCH: Final = 64
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
ROUND_SECONDS: Final = 600.0
"""How often work that other processes left is looked for."""
ANALYSIS_PAUSE_SECONDS: Final = 0.05
"""Pause between two batches of reanalysis, for searches and writes."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A record with its vectors, to be written again."""

    owner: str
    """Its owner with the epoch; what was erased meanwhile stays erased."""
    item: Stored
    vectors: tuple[bytes, ...]
    made_by: Fingerprint | None


class Background:
    """The tasks of this work. Lives on the core loop."""

    def __init__(self, access: Access, embedder: Embedder | None, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._embedder = embedder
        self._wake = asyncio.Event()
        self._wake.set()
        self._tasks = [
            asyncio.create_task(self._serve(), name="memory-core qdrant background"),
            asyncio.create_task(self._analyse(), name="memory-core qdrant reanalysis"),
        ]

    def wake(self, embedder: Embedder | None = None) -> None:
        """Signal that vectors may be pending, perhaps for another embedder."""
        self._embedder = embedder or self._embedder
        self._wake.set()

    async def close(self) -> None:
        """Stop; the next process does the remaining work."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        pause, next_round = FIRST_PAUSE_SECONDS, 0.0
        while True:
            try:
                if loop.time() >= next_round:
                    await sweep(self._access, self._clock())
                    next_round = loop.time() + ROUND_SECONDS
                    self._wake.set()
                if self._wake.is_set():
                    self._wake.clear()
                    await _drain(self._embed_pending)
                pause = FIRST_PAUSE_SECONDS
            except (EmbeddingError, StorageError, EpochError, OvertakenError) as error:
                logger.warning("background work waits, next try in %.0f s: %s", pause, reason_for_log(error))
                self._wake.set()
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                continue
            try:
                await asyncio.wait_for(self._wake.wait(), max(next_round - loop.time(), 0.1))
            except TimeoutError:
                continue

    async def _analyse(self) -> None:
        try:
            await _drain(self._analyse_older)
        except (StorageError, EpochError) as error:
            logger.warning("reanalysis of texts stopped until the store is opened again: %s", reason_for_log(error))

    async def _embed_pending(self) -> set[str]:
        """Compute some pending vectors; a process that cannot leaves them to others."""
        embedder = self._embedder
        if embedder is None or self._access.vector is None:
            return set()
        found = await self._find(same("_keys", PENDING), vector=None)
        texts = [texts_to_embed(work.item.record.text, work.item.spans) for work in found]
        blobs = iter(await embed(embedder, [text for some in texts for text in some]) if found else ())
        made_by = embedder.fingerprint
        vectors = [tuple(next(blobs) for _ in work.item.spans) for work in found]
        return await self._store(
            [replace(work, vectors=rows, made_by=made_by) for work, rows in zip(found, vectors, strict=True)]
        )

    async def _analyse_older(self) -> set[str]:
        """Analyse some texts of older versions. What a newer version analysed stays."""
        older = beyond("_analysis", ANALYSIS, descending=True)
        done = await self._store(await self._find(older, vector=self._access.vector))
        await asyncio.sleep(ANALYSIS_PAUSE_SECONDS if done else 0)
        return done

    async def _find(self, condition: Clause, *, vector: str | None) -> list[_Work]:
        request = models.QueryRequest(
            filter=all_of(condition),
            limit=BATCH,
            with_payload=[*STORED_FIELDS, "_owner"],
            with_vector=False if vector is None else [vector],
        )
        made_by, works = self._access.fingerprint, list[_Work]()
        for point in (await self._access.points.query([request]))[0]:
            payload = point.payload or {}
            vectors = rows_of(point.vector, vector)
            works.append(_Work(payload["_owner"], to_stored(point.id, payload), vectors, made_by))
        return works

    async def _store(self, found: Sequence[_Work]) -> set[str]:
        """Write records as they are, analysed by this version and with these vectors, unless they changed meanwhile.

        Returns:
            The states that were found; the same ones again cannot be helped.
        """
        for key in {work.owner for work in found}:
            works = [work for work in found if work.owner == key]
            try:
                await self._access.run(to_owner(key)[0], partial(_store_of, works=works))
            except OvertakenError:
                logger.debug("records changed while their vectors were computed; they are found again if necessary")
            except UnansweredError:
                raise
            except StorageError as error:  # of this owner's records; the others do not wait for them
                logger.warning("the vectors of some records stay pending: %s", reason_for_log(error))
        return {work.item.point + work.item.write for work in found}


async def _store_of(owner: Owner, works: Sequence[_Work]) -> None:
    changes = Changes(owner)
    for work in works:
        if work.owner == owner.key:
            made = analysed(work.item.record, work.item.spans, work.vectors)._replace(made_by=work.made_by)
            changes.put(made, work.item, work.item.write)
    await changes.carry_out()


async def _drain(step: Callable[[], Awaitable[set[str]]]) -> None:
    """Repeat a step of the work until it finds nothing, or nothing new."""
    last: set[str] = set()
    while (found := await step()) and found != last:
        last = found
