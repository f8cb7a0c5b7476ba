"""Background work: pending vectors, texts that an older version analysed, and the sweep of `removal.py`.

A vector is pending when a record was added with `embed="later"` or when the embedder failed; until it is computed, the
record is found by its words. Each kind of work is found through an index, so that asking costs the same however many
records there are, and each point is changed in one conditional update: work that another process did, or that became
out of date meanwhile, does nothing.

A change of the embedder works alike: every embedder has a named vector of its own, added beside the old one. A filter
finds the points that lack it, and searches use the old one until the description of the store names the new embedder.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from memory_core.errors import EmbeddingError, FingerprintError, StorageError, UnsupportedError, reason_for_log
from memory_core.models import Fingerprint
from memory_core.progress import Progress, ProgressCallback
from memory_core.protocols import Clock, Embedder
from memory_core.retrieval.features import ANALYSIS
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import PENDING, Stored, analysed, named_vectors, to_stored
from memory_core.storage.qdrant.collection import OvertakenError, by
from memory_core.storage.qdrant.connection import MissingPointError, UnansweredError
from memory_core.storage.qdrant.meta import vector_name
from memory_core.storage.qdrant.owners import Access, Owner, to_owner
from memory_core.storage.qdrant.removal import sweep
from memory_core.storage.qdrant.schema import ensure_vector
from memory_core.storage.qdrant.where import Clause, all_of, any_of, ranged, same
from memory_core.storage.qdrant.writing import Changes
from memory_core.storage.shared.prepared import embed_pieces

logger = logging.getLogger(__name__)

BATCH: Final = 32
PASSES: Final = 3
"""How often records written while the embedder changes are looked for before the switch, and once more after it."""
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
ROUND_SECONDS: Final = 600.0
"""How often work that other processes left is looked for."""
ANALYSIS_PAUSE_SECONDS: Final = 0.05
"""Pause between two batches of reanalysis, for searches and writes."""


Work = tuple[Stored, Sequence[bytes]]
"""A record with its vectors, to be written again."""


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
            except (EmbeddingError, StorageError) as error:
                logger.warning("background work waits, next try in %.0f s: %s", pause, reason_for_log(error))
                self._wake.set()
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), max(next_round - loop.time(), 0.1))

    async def _analyse(self) -> None:
        try:
            await _drain(self._analyse_older)
        except StorageError as error:
            logger.warning("reanalysis of texts stopped until the store is opened again: %s", reason_for_log(error))

    async def _embed_pending(self) -> set[str]:
        """Compute some pending vectors; a process that cannot leaves them to others."""
        embedder = self._embedder
        if embedder is None or self._access.vector is None:
            return set()
        found = [item for item, _ in await self._find(same("_keys", PENDING))]
        vectors = await embed_pieces(embedder, [(item.record.text, item.spans) for item in found])
        return await self._store(list(zip(found, vectors, strict=True)), embedder.fingerprint)

    async def _analyse_older(self) -> set[str]:
        """Analyse some texts of older versions. What a newer version analysed stays."""
        older = await self._find(ranged("_analysis", lt=ANALYSIS))
        done = await self._store(older, self._access.fingerprint)
        await asyncio.sleep(ANALYSIS_PAUSE_SECONDS if done else 0)
        return done

    async def _find(self, condition: Clause) -> list[Work]:
        vector = self._access.vector
        request = models.QueryRequest(
            filter=all_of(condition),
            limit=BATCH,
            with_payload=True,
            with_vector=False if vector is None else [vector],
        )
        return [(to_stored(point), point.rows(vector)) for point in (await self._access.points.query([request]))[0]]

    async def _store(self, found: Sequence[Work], made_by: Fingerprint | None) -> set[str]:
        """Write records as they are, analysed by this version and with these vectors, unless they changed meanwhile;
        returns the states that were found: the same ones again cannot be helped."""
        for key in {item.owner for item, _ in found}:
            works = [(item, vectors) for item, vectors in found if item.owner == key]
            try:
                await self._access.run(to_owner(key)[0], partial(_store_of, works=works, made_by=made_by))
            except UnansweredError:
                raise
            except StorageError as error:  # of this owner's records; the others do not wait for them
                logger.warning("the vectors of some records stay pending: %s", reason_for_log(error))
        return {item.point + item.write for item, _ in found}


async def _store_of(owner: Owner, works: Sequence[Work], made_by: Fingerprint | None) -> None:
    changes = Changes(owner)
    for item, vectors in works:
        if item.owner == owner.key:  # what was erased meanwhile stays erased
            changes.put(analysed(item.record, item.spans, vectors)._replace(made_by=made_by), item, item.write)
    try:
        await changes.carry_out()
    except OvertakenError:
        logger.debug("records changed while their vectors were computed; they are found again if necessary")


async def _drain(step: Callable[[], Awaitable[set[str]]]) -> None:
    """Repeat a step of the work until it finds nothing, or nothing new."""
    last: set[str] = set()
    while (found := await step()) and found != last:
        last = found


async def change_embedder(access: Access, embedder: Embedder, progress: ProgressCallback | None) -> int:
    """Compute the vectors that are missing, then describe the store as the embedder's; returns how many there were,
    and raises as `QdrantStore.reembed`."""
    fingerprint, known = embedder.fingerprint, await access.meta.known()
    if known.fingerprint == fingerprint:
        return 0
    try:
        await ensure_vector(access.points.connection, access.points.name, fingerprint)
    except UnansweredError:
        raise
    except StorageError as error:
        raise UnsupportedError(f"the server cannot add vectors to a collection; upgrade it to 1.18: {error}") from error
    computed = 0
    for _ in range(PASSES):
        made = await compute_lacking(access, embedder, progress, computed)
        computed += made
        if not made:
            break
    if not await access.meta.change(known, replace(known, fingerprint=fingerprint)):
        raise FingerprintError("another process has changed the embedder of this store meanwhile; begin again")
    return computed


async def compute_lacking(access: Access, embedder: Embedder, progress: ProgressCallback | None, computed: int) -> int:
    """One pass over the points that lack a vector; returns how many vectors were computed, after `computed` others."""
    vector, made = vector_name(embedder.fingerprint), 0
    lacking = all_of(ranged("_seq", gte=0), but_not=[models.HasVectorCondition(has_vector=vector)])
    async for page in access.points.pages(lacking):
        for some in by(BATCH, [item for item in map(to_stored, page) if item.spans]):
            vectors = await embed_pieces(embedder, [(item.record.text, item.spans) for item in some])
            await _store_vectors(access, vector, list(zip(some, vectors, strict=True)))
            made += sum(map(len, vectors))
            if progress is not None:
                progress(Progress(computed + made, computed + made))
    return made


async def _store_vectors(access: Access, vector: str, items: Sequence[tuple[Stored, Sequence[bytes]]]) -> None:
    """Add vectors to the points that are unchanged."""
    update = models.UpdateVectors(
        points=[models.PointVectors(id=item.point, vector=named_vectors(vector, rows)) for item, rows in items],
        update_filter=all_of(any_of("_write", [item.write for item, _ in items])),
    )
    try:
        await access.points.write(models.UpdateVectorsOperation(update_vectors=update))
    except MissingPointError:  # one of them was deleted meanwhile
        for one in items if len(items) > 1 else ():
            await _store_vectors(access, vector, [one])
