"""Background work: pending vectors, texts that an older version analysed, and the sweep of `erasing.py`.

A vector is pending when a record was added with `embed="later"` or when the embedder failed; until it is computed, the
record is found by its words. All work is found through indexes. A point is written again with its vectors and analysis
if its record is still in the state that they were made from, and that state keeps its token: so a change of the record
has effect before and after it, whichever of the two a replica applies first when a node has died.

A change of the embedder works alike: every embedder has a named vector of its own, added beside the old one. A filter
finds the points that lack it, and searches use the old one until the description of the store names the new embedder.
What was written with the old one until then, here or by a process that was not opened again, becomes pending.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from memory_core.errors import FingerprintError, StorageError, UnsupportedError, reason_for_log
from memory_core.models import Fingerprint
from memory_core.retrieval.analysis import ANALYSIS
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import (
    PENDING,
    Stored,
    analysed,
    named_vectors,
    next_state,
    to_stored,
    token,
    whole,
)
from memory_core.storage.qdrant.connection import MissingPointError, UnansweredError
from memory_core.storage.qdrant.erasing import sweep
from memory_core.storage.qdrant.meta import vector_name
from memory_core.storage.qdrant.owners import Access, shard_of, to_owner
from memory_core.storage.qdrant.points import Points, by
from memory_core.storage.qdrant.schema import ensure_vector
from memory_core.storage.qdrant.where import Clause, all_of, among, ranged, same
from memory_core.storage.shared.background import BackgroundTask
from memory_core.storage.shared.embedding_batches import embed_pieces, texts_to_embed
from memory_core.storage.shared.refusals import Refusals
from memory_core.supplied import Clock, Embedder
from memory_core.values.progress import Progress, ProgressCallback

logger = logging.getLogger(__name__)

POINTS_AT_ONCE: Final = 32
PASSES: Final = 3
"""The number of times that records written while the embedder changes are looked for before the switch."""
FIRST_ROUND_SECONDS: Final = 1.0
ROUND_SECONDS: Final = 600.0
"""Pauses double from the first to this one while nothing is found: a replica that is behind may not show all work."""
ANALYSIS_PAUSE_SECONDS: Final = 0.05
"""Pause between two batches of reanalysis, for searches and writes."""


Work = tuple[Stored, Sequence[bytes]]
"""A record with its vectors."""


class Background:
    """The tasks of this work. Lives on the core loop."""

    def __init__(self, access: Access, embedder: Embedder | None, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._refusals = None if embedder is None else Refusals[str](embedder)
        self._next_sweep = 0.0
        self._idle = FIRST_ROUND_SECONDS
        self._task = BackgroundTask("memory-core qdrant background", self._work, self._next_round)
        self._analysis = asyncio.create_task(self._analyse(), name="memory-core qdrant reanalysis")

    def wake(self, embedder: Embedder | None = None) -> None:
        """Signal that vectors may be pending, perhaps for another embedder."""
        self._refusals = self._refusals if embedder is None else Refusals[str](embedder)
        self._idle = FIRST_ROUND_SECONDS
        self._task.wake()

    async def close(self) -> None:
        """Stop; the next process does the remaining work."""
        self._analysis.cancel()
        await asyncio.gather(self._task.close(), self._analysis, return_exceptions=True)

    def _next_round(self) -> float:
        """The time at which to look again, by the clock of the loop: later each time that nobody woke the task."""
        at = asyncio.get_running_loop().time() + self._idle
        self._idle = min(2 * self._idle, ROUND_SECONDS)
        return at

    async def _work(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._next_sweep:
            await sweep(self._access, self._clock())
            self._next_sweep = now + ROUND_SECONDS
        await _drain(self._embed_pending)

    async def _analyse(self) -> None:
        try:
            await _drain(self._analyse_older)
            await mark_lacking(self._access)
            self._task.wake()
        except StorageError as error:
            logger.warning("reanalysis of texts stopped until the store is opened again: %s", reason_for_log(error))

    async def _embed_pending(self) -> Sequence[Work]:
        """Compute some pending vectors; a process that cannot leaves them to others."""
        refusals = self._refusals
        if refusals is None or self._access.vector is None:
            return ()
        found = await self._find(same("_keys", PENDING), but_not=[among(refusals.set_aside())])
        vectors = await refusals.embed({item.point: texts_to_embed(item.record.text, item.spans) for item, _ in found})
        works = [(item, vectors[item.point]) for item, _ in found if item.point in vectors]
        await self._store(works, refusals.embedder.fingerprint)
        return found

    async def _analyse_older(self) -> Sequence[Work]:
        """Analyse some texts of older versions. What a newer version analysed stays."""
        made_by = self._access.fingerprint  # of the vectors that are found; the embedder may change meanwhile
        older = await self._find(ranged("_analysis", lt=ANALYSIS))
        await self._store(older, made_by)
        await asyncio.sleep(ANALYSIS_PAUSE_SECONDS if older else 0)
        return older

    async def _find(self, condition: Clause, but_not: Sequence[Clause] = ()) -> list[Work]:
        vector = self._access.vector
        vectors = False if vector is None else [vector]
        request = models.QueryRequest(
            filter=all_of(condition, but_not=but_not), limit=POINTS_AT_ONCE, with_payload=True, with_vector=vectors
        )
        return [(to_stored(point), point.rows(vector)) for point in (await self._access.points.query([request]))[0]]

    async def _store(self, found: Sequence[Work], made_by: Fingerprint | None) -> None:
        """Write these records as they are, in the same states, with their vectors and analysed by this version."""
        vector = self._access.vector if made_by == self._access.fingerprint else None
        for owner in {item.owner for item, _ in found}:
            points = self._access.points.for_owner(shard_of(to_owner(owner)[0]), {})
            works = [(replace(item, writes=item.writes[:-1]), rows) for item, rows in found if item.owner == owner]
            made = [whole(owner, analysed(item.record, item.spans, rows), item, vector) for item, rows in works]
            try:
                await self._access.finish(points.upsert(made, {item.point: item.write for item, _ in works}))
            except UnansweredError:
                raise
            except StorageError as error:  # of this owner's records; the others do not wait for them
                logger.warning("the vectors of some records stay pending: %s", reason_for_log(error))


async def _drain(step: Callable[[], Awaitable[Sequence[Work]]]) -> None:
    """Repeat a step of the work until it finds nothing, or the same as before, which cannot be helped."""
    last: set[str] = set()
    while (found := {item.point + item.write for item, _ in await step()}) and found != last:
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
        made = await _compute_lacking(access, embedder, progress, computed)
        computed += made
        if not made:
            break
    if not await access.meta.change(known, replace(known, fingerprint=fingerprint)):
        raise FingerprintError("another process has changed the embedder of this store meanwhile; begin again")
    return computed


async def mark_lacking(access: Access) -> None:
    """Mark the vectors of the store's embedder as pending where they are missing because a writer had another one.

    The mark is a state of its own, so that no writer that has not seen it removes it.
    """
    if access.vector is None:
        return
    fields = ["_owner", "_keys", "_spans", "_write", "_writes"]
    async for page in access.points.pages(_lacking(access.vector, same("_keys", PENDING)), fields=fields):
        marks: list[models.UpdateOperation] = []
        for point, was in ((found.id, found.payload) for found in page if found.payload["_spans"]):
            points = access.points.for_owner(shard_of(to_owner(was["_owner"])[0]), {})
            state = {"_keys": [*was["_keys"], PENDING], **next_state(was["_writes"], token())}
            marks.append(points.set_fields(state, among([point]), same("_write", was["_write"])))
        if marks:
            await access.points.write(*marks)


def _lacking(vector: str, *but_not: Clause) -> models.Filter:
    """The condition for a record that lacks this vector."""
    return all_of(ranged("_seq", gte=0), but_not=[models.HasVectorCondition(has_vector=vector), *but_not])


async def _compute_lacking(access: Access, embedder: Embedder, progress: ProgressCallback | None, computed: int) -> int:
    """One pass over the points that lack a vector; returns how many vectors were computed, after `computed` others."""
    vector, made = vector_name(embedder.fingerprint), 0
    async for page in access.points.pages(_lacking(vector)):
        for some in by(POINTS_AT_ONCE, [item for item in map(to_stored, page) if item.spans]):
            rows = await embed_pieces(embedder, [(item.record.text, item.spans) for item in some])
            await _add_vectors(access.points, vector, list(zip(some, rows, strict=True)))
            made += sum(map(len, rows))
            if progress is not None:
                progress(Progress(computed + made, computed + made))
    return made


async def _add_vectors(points: Points, vector: str, works: Sequence[Work]) -> None:
    """Add these vectors to the points whose records are unchanged."""
    updates = [
        models.UpdateVectors(
            points=[models.PointVectors(id=item.point, vector=named_vectors(vector, rows))],
            update_filter=all_of(same("_write", item.write)),
            shard_key=points.for_owner(shard_of(to_owner(item.owner)[0]), {}).shard,
        )
        for item, rows in works
    ]
    try:
        await points.write(*(models.UpdateVectorsOperation(update_vectors=update) for update in updates))
    except MissingPointError:  # one of them was deleted meanwhile
        for one in works if len(works) > 1 else ():
            await _add_vectors(points, vector, [one])
